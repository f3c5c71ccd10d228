"""What `run` prints of the event log."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from driftline.cli.watching import EventPrinter
from driftline.durations import utc
from driftline.model.change import ChangeKind
from driftline.model.event import Event, EventKind, EventSource
from driftline.model.outcome import Recorded
from driftline.pipeline.stop import Stop
from support.making import new


def event(number: int, source: EventSource = EventSource.RUN, what: EventKind = EventKind.CHANGED) -> Event:
    return Event(
        id=number, event=what, at=utc(1_000.0), host="a.example", urls=(f"http://a.example/{number}",),
        kind=ChangeKind.TEXT, score=1.0, headline="Price 5 € → 6 €", reason="Words.", ids=(f"{number}-2",),
        source=source,
    )  # fmt: skip


@dataclass
class Position:
    """A place in a log that is a list."""

    events: list[Event] = field(default_factory=list)
    at: int = 0

    def read(self) -> list[Event]:
        return [one for one in self.events if one.id > self.at]

    def advance(self, event: Event) -> None:
        self.at = event.id


def test_each_event_is_printed_once_with_its_headline(capsys: pytest.CaptureFixture[str]) -> None:
    position = Position([event(1), event(2, what=EventKind.FAILING)])
    printer = EventPrinter(position, Stop())
    printer.wake()
    printer.wake()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ", 1)[1] for line in lines] == [
        "changed   1-2     http://a.example/1  Price 5 € → 6 €",
        "failing           http://a.example/2  Price 5 € → 6 €",
    ]
    assert position.at == 2


def test_an_event_of_many_pages_names_ten_with_their_ids(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = range(1, 14)
    many = replace(
        event(1), urls=tuple(f"http://a.example/{number}" for number in numbers),
        ids=tuple(f"{number}-2" for number in numbers),
    )  # fmt: skip
    EventPrinter(Position([many]), Stop()).wake()
    first, *pages = capsys.readouterr().out.splitlines()
    assert first.endswith("changed   13 pages of a.example  Price 5 € → 6 €")
    assert [line.split() for line in pages[:10]] == [
        [f"{number}-2", f"http://a.example/{number}"] for number in numbers[:10]
    ]
    assert [line.strip() for line in pages[10:]] == ["… and 3 more"]


def test_what_a_check_printed_itself_is_passed_over(capsys: pytest.CaptureFixture[str]) -> None:
    position = Position([event(1, source=EventSource.CHECK)])
    EventPrinter(position, Stop()).wake()
    assert capsys.readouterr().out == ""
    assert position.at == 1


def test_new_pages_are_counted_once_no_more_come(capsys: pytest.CaptureFixture[str]) -> None:
    now = 100.0
    printer = EventPrinter(Position(), Stop(), ticks=lambda: now)
    printer.recorded(Recorded([new(), new()]))
    now += 1.5
    printer.recorded(Recorded([new()]))
    printer.wake()
    assert capsys.readouterr().out == ""
    now += 2
    printer.wake()
    assert "3 pages seen for the first time" in capsys.readouterr().out
    printer.close()
    assert capsys.readouterr().out == ""


def test_an_output_that_is_gone_ends_the_run_and_leaves_its_events_to_the_next() -> None:
    def gone(*_: object, **__: object) -> None:
        raise BrokenPipeError

    position, stop = Position([event(1), event(2)]), Stop()
    printer = EventPrinter(position, stop, say=gone)
    printer.wake()
    printer.close()
    assert stop.requested
    assert isinstance(printer.error, BrokenPipeError)
    assert position.at == 0
