"""Visits in the log of a web server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import BadSetting, UsageError
from driftline.model.visit import Visit
from driftline.visits.import_tally import ImportTally
from driftline.visits.server_logs import read_log
from support.properties import searched

SITE = "https://example.org"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def line(
    second: int = 0, request: str = "GET /a HTTP/1.1", status: int = 200, host: str = "203.0.113.7",
    agent: str | None = FIREFOX,
) -> str:  # fmt: skip
    """A line in combined format, or in common format if there is no agent."""
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    common = f'{host} - - [01/Mar/2026:{hour:02}:{minute:02}:{second:02} +0000] "{request}" {status} 512'
    return common if agent is None else f'{common} "https://example.org/" "{agent}"'


def read(*lines: str, site: str | None = SITE) -> tuple[list[Visit], ImportTally]:
    tally = ImportTally()
    return list(read_log(lambda: enumerate(lines, start=1), site, tally)), tally


def short(*lines: str) -> list[tuple[str, float]]:
    """Path and seconds of each visit."""
    return [(visit.url.removeprefix(SITE), visit.seconds) for visit in read(*lines)[0]]


def test_a_visit_lasts_until_the_next_request_of_the_same_visitor() -> None:
    lines = [
        line(0, "GET /a HTTP/1.1"),
        line(5, "GET /b HTTP/1.1", host="203.0.113.8"),
        line(40, "GET /c HTTP/1.1"),
        line(70, "GET /d HTTP/1.1"),
    ]
    assert short(*lines) == [("/a", 40), ("/b", 0), ("/c", 30), ("/d", 0)]


def test_a_visitor_is_an_address_and_an_agent() -> None:
    assert short(line(0), line(9, agent="Mozilla/5.0 Chrome/140"), line(20)) == [("/a", 20), ("/a", 0), ("/a", 0)]


def test_no_visit_lasts_longer_than_half_an_hour() -> None:
    assert short(line(0), line(1_799), line(7_200)) == [("/a", 1_799), ("/a", 1_800), ("/a", 0)]


def test_a_visitor_whose_clock_goes_back_stayed_no_time() -> None:
    assert short(line(10), line(4)) == [("/a", 0), ("/a", 0)]


def test_common_format_has_no_agent_and_is_read_as_well() -> None:
    assert short(line(0, agent=None), line(7, agent=None)) == [("/a", 7), ("/a", 0)]


def test_a_status_from_400_on_means_unavailable() -> None:
    visits, _ = read(*(line(status=status) for status in (200, 206, 304, 404, 410, 503)))
    assert [visit.available for visit in visits] == [True, True, True, False, False, False]


def test_assets_bots_redirects_and_other_methods_are_no_visits() -> None:
    lines = [
        line(request="GET /style.css?v=3 HTTP/1.1"), line(request="GET /logo.SVG HTTP/1.1"),
        line(request="GET /app.min.js HTTP/2.0"), line(request="GET /robots.txt HTTP/1.1"),
        line(request="POST /a HTTP/1.1"), line(request="HEAD /a HTTP/1.1"), line(request="-", status=400),
        line(request=r"\\x16\\x03\\x01", status=400), line(request="OPTIONS * HTTP/1.1"), line(status=301),
        line(agent="Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"),
        line(agent="curl/8.5.0"), line(agent="Driftline/0.1.0 (web page change detection)"),
    ]  # fmt: skip
    visits, tally = read(*lines)
    assert visits == []
    assert (tally.skipped, tally.bad) == (len(lines), 0)


def test_pages_with_dots_and_people_with_odd_phones_are_visits() -> None:
    lines = [
        line(request="GET /v1.2/ HTTP/1.1"), line(request="GET /a.html HTTP/1.1"),
        line(request="GET /?x=a.css HTTP/1.1"), line(request="GET /paper.pdf HTTP/1.1"),
        line(agent="Mozilla/5.0 (Linux; Android 9; CUBOT X19) Chrome/99"),
    ]  # fmt: skip
    assert len(read(*lines)[0]) == len(lines)


def test_quotes_within_quotes_and_more_fields_at_the_end_do_no_harm() -> None:
    odd = line(3, 'GET /a?q=\\"x\\" HTTP/1.1', agent='Odd \\"browser\\"')
    visits, tally = read(odd, line(4) + ' "-" 0.003')
    assert [visit.url for visit in visits] == [f"{SITE}/a?q=\\%22x\\%22", f"{SITE}/a"]
    assert tally.bad == 0


def test_times_are_taken_with_their_zone() -> None:
    text = '::1 - me [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 2326'
    assert read(text)[0][0].at == 971_211_336


def test_a_bad_line_is_reported_by_its_number_and_the_others_count() -> None:
    visits, tally = read(line(), "what is this", "", line(5).replace("Mar", "Foo"), line(9))
    assert len(visits) == 2
    assert [problem.line for problem in tally.problems] == [2, 4]


def test_of_many_bad_lines_ten_are_reported() -> None:
    _, tally = read(*["?"] * 25)
    assert (tally.bad, len(tally.problems)) == (25, 10)


def test_the_site_of_a_log_must_be_named() -> None:
    with pytest.raises(UsageError, match="--site"):
        read(line(), site=None)
    with pytest.raises(BadSetting, match="not a page"):
        read(line(), site="https://example.org/start")


def test_a_log_that_names_its_hosts_needs_no_site() -> None:
    visits, _ = read(line(request="GET http://other.example/x HTTP/1.1"), site=None)
    assert [visit.url for visit in visits] == ["http://other.example/x"]


def test_equal_lines_are_different_visits_and_the_same_when_they_are_read_again() -> None:
    first = [visit.key for visit in read(line(), line(), line(1))[0]]
    assert len(set(first)) == 3
    grown = [visit.key for visit in read(line(), line(), line(1), line(1))[0]]
    assert grown[:3] == first
    assert grown[3] not in first


def test_a_line_that_was_cut_while_it_was_written_is_the_same_visit_as_the_whole_one() -> None:
    whole = line()
    keys = {visit.key for end in range(len(whole)) for visit in read(whole[:end])[0]}
    assert keys == {read(whole)[0][0].key}


@searched
@given(st.lists(st.text(max_size=40) | st.just(line()) | st.builds(line, request=st.text(max_size=20)), max_size=8))
def test_no_line_is_lost_whatever_stands_in_it(lines: list[str]) -> None:
    visits, tally = read(*lines)
    assert len(visits) + tally.skipped + tally.bad == sum(not (not one or one.isspace()) for one in lines)
