"""Waiting while another process checks pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count

import pytest

from driftline.errors import StoreBusy, StoreError, StoreUnavailable
from driftline.pipeline.stop import Stop
from driftline.store.process_locks import Claim, FileClaim
from driftline.watch import service


class Other:
    """Another process that checks pages at the first so many tries."""

    def __init__(self, tries: int) -> None:
        self.tries = tries

    def __call__(self) -> str:
        self.tries -= 1
        if self.tries >= 0:
            raise StoreBusy("Another run is checking.")
        return "done"


class Place:
    """The place of the next process, which another one has at the first so many tries."""

    def __init__(self, tries: int = 0, error: type[StoreError] = StoreBusy) -> None:
        self.tries = tries
        self.taken = 0
        self.held = False
        self._error = error

    @contextmanager
    def __call__(self) -> Iterator[Claim]:
        self.tries -= 1
        if self.tries >= 0:
            raise self._error("Another process is next, or the server is away.")
        self.taken += 1
        self.held = True
        yield FileClaim()
        self.held = False


retry_while_busy = partial(service.retry_while_busy, pause=0.0)


def seconds(step: float) -> Iterator[float]:
    return (number * step for number in count())


def test_another_process_is_waited_for_and_that_is_said_once() -> None:
    said: list[str] = []
    assert retry_while_busy(Other(3), Stop(), Place(), said.append, seconds(0.1).__next__) == "done"
    assert said == ["Waiting for a minute at most: Another run is checking."]


def test_it_gives_up_after_a_minute() -> None:
    other = Other(1_000)
    with pytest.raises(StoreBusy):
        retry_while_busy(other, Stop(), Place(), print, ticks=seconds(20.0).__next__)
    assert other.tries == 996, "four tries, twenty seconds apart"


def test_a_stop_ends_the_waiting() -> None:
    other, stop = Other(1_000), Stop()
    stop.request()
    with pytest.raises(StoreBusy):
        retry_while_busy(other, stop, Place(), print, ticks=lambda: 0.0)
    assert other.tries == 998


def test_nothing_is_said_if_no_other_process_checks() -> None:
    place = Place()
    said: list[str] = []
    assert retry_while_busy(Other(0), Stop(), place, said.append) == "done"
    assert said == []
    assert not place.taken


def test_a_process_that_waits_is_the_next_until_it_is_done() -> None:
    place, other = Place(tries=2), Other(4)
    held: list[bool] = []

    def do() -> str:
        held.append(place.held)
        return other()

    assert retry_while_busy(do, Stop(), place, print) == "done"
    assert held == [False, False, False, True, True], "as soon as no other process is"
    assert (place.taken, place.held) == (1, False)


def test_a_server_that_is_away_does_not_end_the_wait() -> None:
    place = Place(2, StoreUnavailable)
    assert retry_while_busy(Other(4), Stop(), place, print, ticks=seconds(0.1).__next__) == "done"
    assert place.taken == 1
