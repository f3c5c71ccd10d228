"""What a run tells, and when: the clock is the test's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from driftline.cli.event_printer import News
from driftline.model import ChangeKind, ChangeSummary, Link, Matter, NewVersion, Outcome, Proof, Turn, Turned, Verdict
from driftline.pipeline.grouping import changes_of, turned_by
from driftline.pipeline.stop import Stop
from support.making import document


@dataclass
class Evening:
    """A clock with alarms, and what was told by each time."""

    now: float = 100.0
    alarms: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    events: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    stop: Stop = field(default_factory=Stop)
    unfinished: list[Callable[[], None]] = field(default_factory=list)
    taken_out: list[tuple[str, str]] = field(default_factory=list)

    def later(self, seconds: float, do: Callable[[], None]) -> Evening:
        self.alarms.append((self.now + seconds, do))
        return self

    def cancel(self) -> None:
        self.alarms.clear()

    def hook(self, event: dict[str, Any], done: Callable[[], None]) -> None:
        self.events.append((self.now, event))
        self.unfinished.append(done)

    def news(self, *, hooked: bool = True) -> News:
        hook = self.hook if hooked else None
        return News(self.stop, hook, self.taken_out.extend, later=self.later, monotonic=lambda: self.now)

    def pass_by(self, seconds: float) -> None:
        end = self.now + seconds
        while self.alarms and min(self.alarms)[0] <= end:
            alarm = min(self.alarms, key=lambda one: one[0])
            self.alarms.remove(alarm)
            self.now = alarm[0]
            alarm[1]()
        self.now = end

    def told(self) -> list[tuple[float, str, int]]:
        return [(at - 100.0, event["event"], len(event["urls"])) for at, event in self.events]


def changed(number: int, cause: bytes = b"", matter: Matter = Matter.MEANINGFUL) -> Outcome:
    of = document(Link(number, f"http://page.example/{number}", 2, None))
    version = NewVersion(
        number=2, body=b"", letters=b"", text=b"", size=0, title="", content_type="", charset="", blobs=()
    )
    change = ChangeSummary(
        kind=ChangeKind.TEXT, verdict=matter, score=0.5, reason="Words.", words_added=1, words_removed=0, cause=cause
    )
    verdict = Verdict.CHANGED if matter is Matter.MEANINGFUL else Verdict.UNCHANGED
    proof = None if matter is Matter.MEANINGFUL else Proof.NOISE
    return Outcome(of, verdict, proof, version=version, change=change)


def new(number: int) -> Outcome:
    return Outcome(document(Link(number, f"http://page.example/{number}", 1, None)), Verdict.NEW)


def turned(number: int, turn: Turn | None, host: str = "page.example") -> Outcome:
    of = document(Link(number, f"http://{host}/{number}", 2, None))
    outcome = Outcome(of, Verdict.UNCHANGED, Proof.WIRE)
    if turn is not None:
        outcome.turned = Turned(
            id=f"{number}-2", url=of.link.url, at=of.fetched_at, turn=turn, kind="status", reason="It said 404."
        )
    return outcome


def test_the_same_edit_within_two_seconds_is_one_event() -> None:
    evening = Evening()
    with evening.news() as news:
        news.told([changed(1, b"a menu with one more entry")])
        evening.pass_by(1.5)
        news.told([changed(2, b"a menu with one more entry"), changed(3)])
        evening.pass_by(1.5)
        assert evening.told() == [(2.0, "changed", 2), (2.0, "changed", 1)]
        news.told([changed(4, b"a menu with one more entry")])
        evening.pass_by(10.0)
    assert evening.told()[2:] == [(5.0, "changed", 1)]


def test_changes_are_told_in_time_while_new_pages_keep_coming(capsys: pytest.CaptureFixture[str]) -> None:
    evening = Evening()
    with evening.news() as news:
        for number in range(200):
            news.told([new(number)])
            if number == 20:
                news.told([changed(1_000)])
            evening.pass_by(0.5)
    [(at, what, _)] = evening.told()
    assert what == "changed"
    assert 10.0 <= at <= 12.0
    told = [line for line in capsys.readouterr().out.splitlines() if "first time" in line]
    counts = [int(line.split()[3]) for line in told]
    assert sum(counts) == 200
    assert len(counts) == 4, "a line for every half minute, and one for the rest"


def test_new_pages_are_counted_once_no_more_come(capsys: pytest.CaptureFixture[str]) -> None:
    evening = Evening()
    with evening.news() as news:
        news.told([new(1), new(2)])
        evening.pass_by(1.0)
        news.told([new(3)])
        evening.pass_by(1.9)
        assert capsys.readouterr().out == ""
        evening.pass_by(0.2)
        assert "3 pages seen for the first time" in capsys.readouterr().out
        assert not evening.alarms


def test_noise_is_news_only_if_many_pages_share_it() -> None:
    evening = Evening()
    footer = b"a footer with another year"
    with evening.news() as news:
        for number in range(4):
            news.told([changed(number, footer, Matter.NOISE)])
            evening.pass_by(1.0)
        evening.pass_by(5.0)
        assert evening.told() == []
        for number in range(7):
            news.told([changed(number, footer, Matter.NOISE)])
            evening.pass_by(1.0)
        evening.pass_by(5.0)
    assert [(what, pages) for _, what, pages in evening.told()] == [("changed", 7)]


def test_what_still_waits_at_the_end_is_told_even_if_the_run_failed() -> None:
    evening = Evening()
    news = evening.news()
    news.told([changed(1)])
    news.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    assert [what for _, what, _ in evening.told()] == ["changed"]
    assert evening.alarms == []


def test_pages_that_begin_to_fail_or_recover_are_told_by_host() -> None:
    evening = Evening()
    failing, recovered = Turn.FAILING, Turn.RECOVERED
    with evening.news() as news:
        news.told([turned(1, failing), turned(2, None), turned(3, failing, "other.example")])
        evening.pass_by(1.0)
        news.told([turned(4, failing), turned(5, recovered)])
        evening.pass_by(2.0)
    assert [(event["event"], event["urls"]) for _, event in evening.events] == [
        ("failing", ("http://page.example/1", "http://page.example/4")), ("failing", ("http://other.example/3",)),
        ("recovered", ("http://page.example/5",)),
    ]  # fmt: skip
    assert [at for at, *_ in evening.told()] == [2.0] * 3


def test_an_output_that_is_gone_ends_the_run_but_the_hook_hears_on() -> None:
    def gone(*_: object, **__: object) -> None:
        raise BrokenPipeError

    evening = Evening()
    news = News(evening.stop, evening.hook, evening.taken_out.extend, say=gone, later=evening.later)
    news.told([turned(1, Turn.FAILING)])
    evening.pass_by(2.0)
    assert evening.stop.requested
    news.told([changed(2)])
    with pytest.raises(BrokenPipeError):
        news.__exit__(None, None, None)
    assert [what for _, what, _ in evening.told()] == ["failing", "changed"]


def test_what_is_printed_is_told_and_noise_that_is_no_news_needs_no_telling() -> None:
    evening = Evening()
    with evening.news(hooked=False) as news:
        news.told([changed(1), turned(2, Turn.FAILING), changed(3, b"a footer with another year", Matter.NOISE)])
        assert evening.taken_out == []
        evening.pass_by(2.0)
    assert evening.taken_out == [("1-2", "changed"), ("2-2", "failing"), ("3-2", "changed")]


def test_with_a_hook_an_event_is_told_once_that_is_done_with_it() -> None:
    evening = Evening()
    with evening.news() as news:
        news.told([changed(1, b"a menu"), changed(2, b"a menu"), turned(3, Turn.RECOVERED)])
        evening.pass_by(2.0)
    assert evening.taken_out == []
    assert [event["ids"] for _, event in evening.events] == [("1-2", "2-2"), ("3-2",)]
    evening.unfinished[0]()
    assert evening.taken_out == [("1-2", "changed"), ("2-2", "changed")]


def test_what_could_not_be_printed_is_not_told() -> None:
    def gone(*_: object, **__: object) -> None:
        raise BrokenPipeError

    evening = Evening()
    news = News(evening.stop, None, evening.taken_out.extend, say=gone, later=evening.later)
    news.told([changed(1)])
    with pytest.raises(BrokenPipeError):
        news.__exit__(None, None, None)
    assert evening.taken_out == []


def test_what_an_earlier_run_left_is_told_before_what_this_one_finds() -> None:
    evening = Evening()
    earlier = changed(9)
    with evening.news() as news:
        news.left(changes_of([earlier]), turned_by([turned(8, Turn.FAILING)]), [])
        news.told([changed(1)])
        evening.pass_by(2.0)
    assert [event["ids"] for _, event in evening.events] == [("9-2",), ("1-2",), ("8-2",)]
