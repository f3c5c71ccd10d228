"""A right that several threads of a process share: one takes it, the others wait without a lock being held."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING

import pytest

from driftline.errors import RunStopped, StoreBusy
from driftline.store.process_locks import FileClaim, RegainedRight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from driftline.store.process_locks import Claim

WAIT = 30.0  # seconds, for a test that fails


class SlowRight:
    """A right that is granted once `granted` is set."""

    def __init__(self) -> None:
        self.requested, self.granted = Event(), Event()
        self.times = self.returned = 0

    @contextmanager
    def __call__(self) -> Iterator[Claim]:
        self.times += 1
        self.requested.set()
        assert self.granted.wait(WAIT)
        yield FileClaim()
        self.returned += 1


def test_threads_that_need_the_right_wait_for_the_one_that_takes_it_and_take_it_once() -> None:
    slow = SlowRight()
    right = RegainedRight(slow)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(right.take)
        assert slow.requested.wait(WAIT)
        assert (right.holds(), right.lapsed()) == (False, False), "it can be looked at while the store does not answer"
        assert repr(right) == "<RegainedRight None changing>"
        second = threads.submit(right.take)
        slow.granted.set()
        first.result(WAIT)
        second.result(WAIT)
    assert (slow.times, right.holds()) == (1, True)
    right.give_back()
    assert (slow.returned, right.holds()) == (1, False)


def test_a_right_that_was_refused_can_be_taken_later() -> None:
    refused = True

    @contextmanager
    def take() -> Iterator[Claim]:
        if refused:
            raise StoreBusy("Another run is checking pages.")
        yield FileClaim()

    with RegainedRight(take) as right:
        with pytest.raises(StoreBusy):
            right.take()
        with pytest.raises(RunStopped):
            right.regain(lambda: True)
        refused = False
        right.regain(lambda: False)
        assert right.holds()
    assert not right.holds()
