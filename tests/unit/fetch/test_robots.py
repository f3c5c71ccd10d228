"""What robots.txt allows, and what a missing one means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driftline.errors import FailureKind
from driftline.fetch.robots import Rules, product, read_robots, robots_text, robots_url
from driftline.model.outcome import Document, Link
from driftline.model.page import Failure, Robots

DAY = 86_400.0
OURS = "Driftline/1.0 (web page change detection)"
RULES = """
User-agent: *
Disallow: /private/
Crawl-delay: 7

User-agent: driftline
Disallow: /only-for-others/
Crawl-delay: 2.5
Allow: /only-for-others/but-this
"""


def answer(status: int, *, at: float = 0.0, kind: FailureKind | None = None, redirects: int = 0) -> Document:
    failure = None if kind is None else Failure(kind=kind, sentence="The server answered so.")
    link = Link(0, "https://example.com/robots.txt", 1, None)
    return Document(link, status, b"", b"", 0, link.url, redirects, at, 0.1, failure)


def means(document: Document, before: Robots | None) -> Robots:
    return read_robots(document, robots_text(document), before)


def rules(text: str | None, user_agent: str = OURS) -> Rules:
    return Rules(Robots(text=text, until=DAY), user_agent)


def refused(text: str | None, path: str, user_agent: str = OURS) -> bool:
    return rules(text, user_agent).refusal(f"https://example.com{path}") is not None


def test_the_rules_for_our_name_count_and_those_for_all_only_without_them() -> None:
    assert refused(RULES, "/only-for-others/page")
    assert not refused(RULES, "/only-for-others/but-this")
    assert not refused(RULES, "/private/page")
    assert refused(RULES, "/private/page", "Other/2.0")


def test_the_delay_that_is_requested_is_bounded() -> None:
    assert rules(RULES).delay == 2.5
    assert rules("User-agent: *\nCrawl-delay: 86400").delay == 300.0
    assert rules("User-agent: *\nDisallow:").delay == 0.0


def test_rules_with_wildcards_are_bounded_for_each_costs_every_page_a_search() -> None:
    many = "\n".join(f"Disallow: /*a*x{number}y" for number in range(5_000))
    text = f"User-agent: *\nDisallow: /first\n{many}\nDisallow: /last"
    assert refused(text, "/a/x999y")
    assert not refused(text, "/a/x4444y")
    assert refused(text, "/first")
    assert refused(text, "/last")


def test_a_refusal_names_the_host_and_what_to_do() -> None:
    failure = rules("User-agent: *\nDisallow: /").refusal("https://user:secret@example.com/x")
    assert failure is not None
    assert failure.kind is FailureKind.ROBOTS
    assert "example.com" in failure.sentence
    assert "secret" not in failure.sentence


def test_no_robots_txt_allows_everything_for_a_day() -> None:
    for status in (404, 410, 401, 403, 300, 304, 206):
        found = means(answer(status, at=5.0, kind=FailureKind.STATUS), None)
        assert found == Robots(text=None, until=5.0 + DAY)


def test_a_server_that_fails_allows_nothing_and_is_tried_again_soon() -> None:
    for status in (500, 503, 429):
        found = means(answer(status, at=5.0, kind=FailureKind.STATUS), None)
        assert found.failure is not None
        assert found.failure.kind is FailureKind.ROBOTS
        assert found.until == 5.0 + 600.0
        assert Rules(found, OURS).refusal("https://example.com/") is found.failure


def test_a_host_that_is_not_there_is_reported_as_such() -> None:
    found = means(answer(0, kind=FailureKind.DNS), None)
    assert found.failure is not None
    assert found.failure.kind is FailureKind.DNS


def test_an_answer_that_is_still_known_counts_while_the_server_fails_but_not_for_ever() -> None:
    known = Robots(text=RULES, until=DAY)
    at = DAY
    while at < 29 * DAY:
        known = means(answer(503, at=at, kind=FailureKind.STATUS), known)
        assert known.text == RULES
        at += DAY
    at = 32 * DAY
    assert means(answer(503, at=at, kind=FailureKind.STATUS), known) == Robots(text=None, until=at + DAY)


def test_a_month_without_an_answer_counts_as_none() -> None:
    first = means(answer(503, at=0.0, kind=FailureKind.STATUS), None)
    later = means(answer(503, at=31 * DAY, kind=FailureKind.STATUS), first)
    assert later == Robots(text=None, until=32 * DAY)


def test_a_month_without_an_answer_ends_although_a_clock_was_set_back_in_it() -> None:
    first = means(answer(503, at=400 * DAY, kind=FailureKind.STATUS), None)
    second = means(answer(503, at=0.0, kind=FailureKind.STATUS), first)
    later = means(answer(503, at=31 * DAY, kind=FailureKind.STATUS), second)
    assert later == Robots(text=None, until=32 * DAY)


def test_it_is_requested_at_the_same_scheme_host_and_port_without_the_password() -> None:
    assert robots_url("http://user:secret@example.com:8080/a/b?c") == "http://example.com:8080/robots.txt"


def test_the_name_that_robots_txt_knows_us_by() -> None:
    assert product(OURS) == "Driftline"


def test_a_host_that_may_not_be_connected_to_is_reported_as_such() -> None:
    found = means(answer(0, kind=FailureKind.NOT_ALLOWED), None)
    assert found.failure is not None
    assert found.failure.kind is FailureKind.NOT_ALLOWED


def test_redirects_to_no_robots_txt_allow_everything() -> None:
    assert means(answer(302, at=5.0, kind=FailureKind.REDIRECTS), None) == Robots(text=None, until=5.0 + DAY)


def test_a_redirect_to_an_address_that_is_not_allowed_allows_everything() -> None:
    document = answer(0, kind=FailureKind.NOT_ALLOWED, redirects=1)
    assert means(document, None) == Robots(text=None, until=DAY)


@pytest.mark.parametrize(("status", "redirects"), [(302, 0), (302, 1), (0, 1)])
def test_a_redirect_to_what_is_blocked_allows_everything(status: int, redirects: int) -> None:
    document = answer(status, kind=FailureKind.UNSAFE, redirects=redirects)
    assert means(document, None) == Robots(text=None, until=DAY)


def test_what_keeps_from_the_file_alone_is_distinguished_from_what_keeps_from_the_page() -> None:
    blocked = means(answer(0, kind=FailureKind.UNSAFE), None).failure
    broken = means(answer(0, kind=FailureKind.CONNECTION), None).failure
    assert blocked is not None
    assert broken is not None
    assert (blocked.kind, broken.kind) == (FailureKind.UNSAFE, FailureKind.ROBOTS)
    assert "its robots.txt cannot be read: " in broken.sentence


def test_what_was_received_of_a_file_that_is_too_large_is_its_text() -> None:
    whole = replace(answer(200, kind=FailureKind.TOO_LARGE), body=b"User-agent: *\n\0Disallow: /")
    assert robots_text(whole) == "User-agent: *\nDisallow: /"
    assert whole.failure is not None, "the document is as it was"
    nothing = answer(200, kind=FailureKind.TOO_LARGE)
    assert robots_text(nothing) is nothing.failure


def test_a_file_that_cannot_be_decoded_has_no_text() -> None:
    broken = replace(answer(200), headers=b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", body=b"not gzip")
    failure = robots_text(broken)
    assert isinstance(failure, Failure)
    assert broken.failure is None, "the document is as it was"
    assert refused_by(means(broken, None))


def refused_by(robots: Robots) -> bool:
    return Rules(robots, OURS).refusal("https://example.com/") is not None
