"""That parts of a page are ignored from now on is reported once, and can be undone."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

import driftline
from driftline import Report
from driftline.cli.main import main_with
from driftline.model.change import Importance, NoiseKind
from driftline.model.event import EventKind
from support.making import settings
from support.servers import Answer, Request, Server, html

FILLER = "<p>" + "A paragraph that says the same at every check, so that the page is not a small one. " * 6 + "</p>"
WORDS = ("amber", "birch", "cedar", "dahlia", "elder", "fern", "gorse", "hazel", "iris", "jasmine")
ITEMS = ("Desk lamp", "Oak table", "Wool blanket", "Clay pot", "Linen curtain", "Cork board", "Brass handle")


class Garden:
    """A site whose pages have a part that a test rewrites between checks, or that is another at every request."""

    def __init__(self, where: str) -> None:
        self.part: Callable[[], str] = str
        self.server = Server(self._answer)
        self.pages = driftline.open(settings=settings(store=where))

    def _answer(self, request: Request) -> Answer:
        start = f"<h1>The garden</h1>{FILLER}"
        return html(f"<title>Garden</title><main>{start}{self.part()}<p>The end of {request.path}.</p></main>")

    def check(self, part: str, *urls: str) -> Report:
        """Check with this part on all pages."""
        self.part = lambda: part
        return self.pages.check(*urls)


@pytest.fixture
def garden(where: str) -> Iterator[Garden]:
    made = Garden(where)
    with made.server, made.pages:
        yield made


def ignoring(report: Report) -> list[str]:
    return [event.headline for event in report.events if event.event is EventKind.IGNORING]


def tip(word: str) -> str:
    return f"<h2>Tips</h2><p>Tip of the day: try {word} in your garden, and tell a friend of it.</p>"


def latency(number: int) -> str:
    return f"<h2>Server</h2><p>Latency</p><p>{number} ms</p>"


def drawn(seed: str) -> str:
    some = random.Random(seed).sample(ITEMS, 3)
    return "<h2>Also bought</h2><ul>" + "".join(f"<li>{item}</li>" for item in some) + "</ul>"


def test_a_place_that_is_ignored_is_reported_once_and_again_reported_after_feedback(garden: Garden) -> None:
    url = garden.server.url("/")
    garden.pages.add(url)
    found = [garden.check(tip(word)) for word in WORDS[:6]]
    assert [report.changed for report in found] == [0, 1, 1, 0, 0, 0]
    assert [ignoring(report) for report in found] == [
        [], [], [], ["Now ignoring 'Tips' (cedar → dahlia): it differs at every check"], [], [],
    ]  # fmt: skip
    (event,) = found[3].events
    assert (event.kind, event.ids, event.urls) == (NoiseKind.EVERY_CHECK, ("1-4",), (url,))
    assert event.reason == f"{event.headline}. To have it reported again: driftline feedback 1-4 --important"
    assert [listed.event for listed in garden.pages.changes()] == ["ignoring", "changed", "changed"]
    assert [one.sequence for one in garden.pages.history.checks(url, news_only=True)] == [4, 3, 2, 1]
    since = {one.sequence: one.ignored and one.ignored.label for one in garden.pages.history.checks(url)}
    assert since == {1: None, 2: None, 3: None, 4: "Tips", 5: None, 6: None}

    garden.pages.history.feedback("1-4", Importance.IMPORTANT)
    again = [garden.check(tip(word)) for word in (*WORDS[6:], *WORDS)]
    assert {report.changed for report in again} == {1}, "it is not learned again"
    assert not any(map(ignoring, again))
    garden.pages.history.forget_feedback("1-4")
    later = [garden.check(tip(word)) for word in WORDS[:6]]
    assert sum(report.changed for report in later) < len(later)
    assert sum(len(ignoring(report)) for report in later) == 1, "what is ignored anew is reported anew"


def test_feedback_on_an_ignored_part_is_about_nothing_else(garden: Garden) -> None:
    garden.pages.add(garden.server.url("/"))
    for number in range(4):
        report = garden.check(f"{latency(40 + 7 * number)}<p>{100 + 13 * number} views</p>")
    assert ignoring(report) == ["Now ignoring 'Server' (54 ms → 61 ms): it differs at every check"]
    garden.pages.history.feedback("1-4", Importance.IMPORTANT)
    assert garden.check(f"{latency(61)}<p>180 views</p>").noisy == 1
    assert garden.check(f"{latency(70)}<p>180 views</p>").changed == 1


def test_a_section_that_is_drawn_at_every_fetch_is_named_by_its_heading(garden: Garden) -> None:
    garden.pages.add(garden.server.url("/"))
    requests = count()
    garden.part = lambda: drawn(f"{next(requests)}")
    found = [garden.pages.check() for _ in range(16)]
    assert [line for report in found for line in ignoring(report)] == [
        "Now ignoring 'Also bought': it differs at every check"
    ]
    (event,) = [event for event in garden.pages.changes() if event.event is EventKind.IGNORING]
    garden.pages.history.feedback(event.ids[0], Importance.IMPORTANT)
    again = [garden.pages.check() for _ in range(8)]
    assert {report.changed for report in again} == {1}, "although a second fetch shows others"


def test_states_of_several_things_are_parts_of_their_own(garden: Garden) -> None:
    garden.pages.add(garden.server.url("/"))

    def states(mail: str, files: str) -> str:
        return f"<h2>Status</h2><p>Mail</p><p>{mail}</p><p>Files</p><p>{files}</p>"

    words = ("Operational", "Degraded")
    found = [garden.check(states(words[number % 2], words[0])) for number in range(8)]
    assert [line for report in found for line in ignoring(report)] == [
        "Now ignoring 'Status' (Operational → Degraded): it comes and goes"
    ]
    report = garden.check(states(words[0], words[1]))
    assert report.changed == 1, "that one thing changes all the time does not silence another with the same words"
    more = [garden.check(states(words[0], words[number % 2])) for number in range(8)]
    assert [line for report in more for line in ignoring(report)] == [
        "Now ignoring 'Status' (Degraded → Operational): it comes and goes"
    ]


def test_several_parts_are_one_event_that_counts_them(garden: Garden) -> None:
    garden.pages.add(garden.server.url("/"))
    for number, word in enumerate(WORDS[:4]):
        report = garden.check(f"{latency(40 + 7 * number)}<p>More</p>{tip(word)}")
    assert ignoring(report) == ["Now ignoring 'Server' and 1 other part: they differ at every check"]
    garden.pages.history.feedback("1-4", Importance.IMPORTANT)
    assert garden.check(f"{latency(90)}<p>More</p>{tip(WORDS[3])}").changed == 1
    assert garden.check(f"{latency(90)}<p>More</p>{tip(WORDS[4])}").changed == 1


def test_what_the_pages_of_a_host_have_in_common_is_one_event(garden: Garden) -> None:
    urls = [garden.server.url(f"/{number}") for number in range(6)]
    garden.pages.add(*urls)
    found = [garden.check(latency(number)) for number in (54, 109, 71, 88, 60)]
    (event,) = [event for report in found for event in report.events if event.event is EventKind.IGNORING]
    assert (event.headline, sorted(event.urls)) == ("Now ignoring 'Server': it differs at every check", urls)
    assert event.reason.endswith("To have it reported again on a page: driftline feedback 1-4 --important")


def test_what_is_ignored_because_of_other_pages_is_reported_for_one_of_them(garden: Garden) -> None:
    known = [garden.server.url(f"/{number}") for number in range(3)]
    others = [garden.server.url(f"/other/{number}") for number in range(3)]
    garden.pages.add(*known, *others)
    for number in (54, 109, 71):
        garden.check(latency(number), *known)
    garden.check(latency(88), *others)
    found = [garden.check(latency(90), url) for url in others]
    assert [report.noisy for report in found] == [1, 1, 1]
    assert [ignoring(report) for report in found] == [
        ["Now ignoring 'Server' (88 ms → 90 ms): it differs on other pages too"], [], [],
    ]  # fmt: skip
    for url in others:
        newest = garden.pages.history.checks(url)[0]
        assert newest.ignored is not None, "each page says so in its history"
    (event,) = [event for event in found[0].events if event.event is EventKind.IGNORING]
    garden.pages.history.feedback(event.ids[0], Importance.IMPORTANT)
    assert garden.check(latency(99), *others).changed == 3


def test_what_is_noise_by_where_it_stands_is_not_reported_as_ignored(garden: Garden) -> None:
    garden.pages.add(garden.server.url("/"))
    found = [garden.check(f"</main><footer><p>Thought: {word}</p></footer><main>") for word in WORDS]
    assert [event for report in found for event in report.events] == []


def test_commands_print_what_is_ignored(
    garden: Garden, where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRIFTLINE_STORE", where)
    url = garden.server.url("/")

    def told(*arguments: str) -> str:
        assert main_with(arguments) == 0
        return capsys.readouterr().out

    garden.pages.add(url)
    for number in (54, 109, 71):
        garden.check(latency(number))
    garden.part = lambda: latency(88)
    what = "Now ignoring 'Server' (71 ms → 88 ms): it differs at every check"
    undo = "To have it reported again: driftline feedback 1-4 --important"
    assert told("check").splitlines()[0] == f"ignoring  1-4     {url}  {what}. {undo}"
    assert f"ignoring  1-4     {url}  {what}. {undo}" in told("changes").splitlines()[0]
    assert json.loads(told("changes", "--json"))[0]["event"] == "ignoring"
    assert told("history", url).splitlines()[1].endswith(f"{what}. {undo}")
    assert json.loads(told("history", url, "--json"))[0]["ignored"] == {
        "kind": "every-check", "label": "Server", "example": "71 ms → 88 ms", "others": 0, "headline": what,
        "reason": f"{what}. {undo}",
    }  # fmt: skip
    told("feedback", "1-4", "--important")
    assert garden.check(latency(93)).changed == 1


def test_run_passes_to_a_command_what_is_ignored(
    garden: Garden, where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRIFTLINE_STORE", where)
    heard = tmp_path / "heard"
    command = ("run", "--once", "--exec", f"sh -c 'cat >> {heard}'")
    garden.part = lambda: latency(54)
    garden.pages.add(garden.server.url("/"), every="1h")
    assert main_with(command) == 0
    for number in (109, 71, 88):
        garden.check(latency(number))
    assert main_with(command) == 0
    capsys.readouterr()
    *_, event = [json.loads(line) for line in heard.read_text().splitlines()]
    assert (event["event"], event["kind"], event["ids"]) == ("ignoring", "every-check", ["1-4"])
    assert event["reason"].endswith("driftline feedback 1-4 --important")
    (page,) = event["pages"]
    assert (page["check"], page["url"]) == ("1-4", garden.server.url("/"))
