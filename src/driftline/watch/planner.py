"""What a run without an end does from one second to the next: it lets the scheduler pick, and its pipeline check.

Scheduling and the pipeline know nothing of each other; here they meet.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from driftline.errors import StoreBusy, StoreError, StoreLocked, StoreUnavailable
from driftline.runtime import program
from driftline.store.locks import patiently

if TYPE_CHECKING:
    from collections.abc import Callable

    from driftline.pipeline.sources import Feed
    from driftline.pipeline.stop import Stop
    from driftline.schedule.scheduler import Scheduler

_LOOK = 2.0  # seconds after which pages that were added, edited or removed are picked up
_READ = 0.05  # seconds before each pick for reading the watch list: where it is long, a part of it at a time
_PAUSE = 1.0  # seconds between two picks
_SLOW = 10.0  # seconds of waiting that are worth a word
_CATCH_UP = 5.0  # seconds at the end of a run that has no idle time; the next one goes on with the rest
_RETRY = 60.0  # seconds before catching up is tried again after it failed


class Planner:
    """Feeds a run with the pages whose turn it is, and learns from what came of them; for one thread.

    `catch_up` is what is done while nothing is due, until what it is given says that it is enough. `tell` hears how
    things stand, whenever that is otherwise than before. `slow` is told of a host whose pages will take long: how many
    wait, and the seconds between two.
    """

    def __init__(
        self, scheduler: Scheduler, feed: Feed, stop: Stop, catch_up: Callable[[Callable[[], bool]], object],
        tell: Callable[[str], None], ticks: Callable[[], float] = time.monotonic,
        slow: Callable[[str, int, float], None] | None = None,
    ) -> None:  # fmt: skip
        self._ticks = ticks
        self._scheduler = scheduler
        self._feed = feed
        self._stop = stop
        self._catch_up = catch_up
        self._tell = tell
        self._slow = slow
        self._pages = 0  # that there were when it was last looked at which will take long
        self._remark = ""
        self._others = False  # whether others were checking when it was last tried
        self._unlearned: list[int] = []
        self._look_at = self._ticks()
        self._settled: int | None = None
        self._catch_up_at = self._ticks()

    def go(self) -> float:
        """Have the pages checked whose turn it is now; the seconds to wait before the next look.

        None are offered while another process waits for its turn: it has it once those are settled that are in flight.
        """
        try:
            if (given_back := self._feed.make_way()) is not None:
                self._scheduler.take_back(given_back)
                self._others = True
                self._say("Waiting: another process has its turn to check pages.")
                return _PAUSE
            busy = self.offer(self._feed.next_portion())
        except StoreUnavailable:
            self._others = True  # they may have checked pages meanwhile
            return _LOOK
        except (StoreBusy, StoreLocked) as error:
            self._say(f"Waiting: {error}")
            return _LOOK
        if not busy:
            empty = f"No pages are watched yet. In another terminal: {program()} add https://example.com/"
            self._say(f"Watching {self._scheduler.describe()}." if len(self._scheduler) else empty)
        return _PAUSE if busy or self._caught_up(_PAUSE) else 0.0

    def step_aside(self) -> None:
        """Have nothing checked that was not begun with: the run is to end soon, for something else has its turn."""
        self._scheduler.take_back(self._feed.withdraw())

    def feed_anew(self, feed: Feed) -> None:
        """Feed another run from now on, with what was learned by then; others may have checked pages in between."""
        self._unlearned += self._feed.settled()
        self._feed = feed
        self._others = True

    def end(self, *, once: bool) -> None:
        """Learn from the last checks and, if `once` leaves no idle time for it, catch up for some seconds.

        The next run goes on with what is left of either.
        """
        with contextlib.suppress(StoreLocked, StoreUnavailable):
            self._learn()
        if once and not self._stop.requested:
            self._caught_up(_CATCH_UP)

    def offer(self, most: int | None = None) -> bool:
        """Offer the pages whose turn it is, `most` of them; whether there is enough to do for now.

        StoreBusy, and none picked, if another process checks pages at the moment. What is due is found out again once
        it is done, and nobody else can begin: it may have checked the same pages. Otherwise the right to check is asked
        for only when there is something to check, so that others are not refused it for nothing.
        """
        with contextlib.ExitStack() as rights:

            def claim() -> None:
                try:
                    rights.enter_context(self._feed.claimed())
                except StoreBusy:
                    self._others = True
                    raise

            if self._others:
                claim()
                self._scheduler.follow_others()
            self._learn()
            self._refresh()
            self._others = False
            if not len(self._scheduler):
                return False
            if most == 0:
                return True
            picked = self._scheduler.pick(most, self._feed.held(), claim)
            if not picked:
                return False
            self._feed.offer(picked)
            self._tell_slow()
            return True

    def left(self, *, once: bool) -> int:
        """How many pages were not checked although it is their turn, once nothing is checked any more.

        That is what was offered in vain and, unless all was offered `once`, what would be next; not what its host does
        not want to be asked for now.
        """
        waiting = self._scheduler.waiting(self._feed.unchecked())
        return waiting if once else waiting + self._scheduler.due([*self._feed.held(), *self._unlearned])

    def offer_patiently(self) -> None:
        """Offer all pages whose turn it is, once, waiting for a store that is locked; StoreBusy as for `offer`."""
        patiently(self.offer, lambda: self._stop.requested)

    def _tell_slow(self) -> None:
        """Tell of a host that has many more pages to check than it may be asked for, if pages came since the last look.

        That is where they come from, at a start or later; to look at every pick would take as long as the pick.
        """
        if self._slow is not None and len(self._scheduler) > self._pages:
            crowded = self._scheduler.crowded(_SLOW, self._feed.held())
            if crowded is not None:
                self._slow(*crowded)
        self._pages = len(self._scheduler)

    def _learn(self) -> None:
        """Learn from what was recorded since the last time; from all of it the next time, if the store is locked."""
        self._unlearned += self._feed.settled()
        self._scheduler.follow(self._unlearned)
        self._unlearned = []

    def _refresh(self) -> None:
        """See which pages were added, edited or removed, unless that was seen just now; some of them, of many."""
        started = self._ticks()
        if started >= self._look_at and self._scheduler.read_on(lambda: self._ticks() >= started + _READ):
            self._look_at = self._ticks() + _LOOK

    def _caught_up(self, seconds: float) -> bool:
        """Read versions anew and index them for at most so long; whether there is nothing left of that to do now.

        It need not be looked at again before a page has another version or other filters. A store that fails at it, for
        somebody else is at work there, need not fail at the next check: checks go on, and it is tried again later.
        """
        as_it_is = self._scheduler.edition
        if as_it_is == self._settled or self._ticks() < self._catch_up_at:
            return True
        end = self._ticks() + seconds
        try:
            self._catch_up(lambda: self._ticks() >= end)
        except StoreError as error:
            self._say(f"Catching up failed, and will be tried again: {error}")
            self._catch_up_at = self._ticks() + _RETRY
            return True
        if self._ticks() >= end or self._stop.requested:
            return False
        self._settled = as_it_is
        return True

    def _say(self, remark: str) -> None:
        """Say how things stand, unless that is what was said last."""
        if remark != self._remark:
            self._remark = remark
            self._tell(remark)
