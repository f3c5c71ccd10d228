"""The planner: about once a second it takes due pages from the scheduler and offers them to the pipeline.

The scheduler and the pipeline know nothing of each other; this module connects them.
"""

from __future__ import annotations

import contextlib
import logging
import time
from typing import TYPE_CHECKING

from driftline.errors import StoreBusy, StoreError, StoreLocked, StoreUnavailable
from driftline.runtime import command_name
from driftline.store.locks import patiently

if TYPE_CHECKING:
    from collections.abc import Callable

    from driftline.pipeline.sources import Feed
    from driftline.pipeline.stop import Stop
    from driftline.schedule.scheduler import Scheduler

_LOG = logging.getLogger(__name__)

_LOOK = 2.0  # seconds after which pages that were added, edited or removed are noticed
_READ = 0.05  # seconds before each pick for reading the watch list: a long one is read in parts
_PAUSE = 1.0  # seconds between two picks
_SLOW = 10.0  # seconds that the pages of a host take before it is reported as slow
_CATCH_UP = 5.0  # seconds for it at the end of a run that has no idle time; the next run continues
_RETRY = 60.0  # seconds before catching up is tried again after it failed


class Planner:
    """Offers due pages to a run, and learns from the outcomes. For use by one thread.

    `catch_up` is called while nothing is due, with a function that returns True when its time is over. `tell` gets a
    sentence about the state of the run, the same again while that lasts. `slow` gets a host whose pages will take long,
    how many of them wait, and the seconds between two.
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
        self._pages = 0  # in the watch list when slow hosts were last looked for
        self._others = False  # whether another process may have checked pages since the last pick
        self._unlearned: list[int] = []
        self._look_at = self._ticks()
        self._settled: int | None = None  # the edition of the watch list for which nothing is left to catch up
        self._catch_up_at = self._ticks()

    def __repr__(self) -> str:
        return f"<Planner pages={len(self._scheduler)} unlearned={len(self._unlearned)} stopped={self._stop.requested}>"

    def tick(self) -> float:
        """Offer the pages that are due now, and return the seconds to wait before the next tick.

        None are offered while another process waits to check pages: it may as soon as those in flight are recorded.
        """
        try:
            if (given_back := self._feed.make_way()) is not None:
                self._scheduler.refund(given_back)
                self._others = True
                _LOG.debug("pages given back to another process", extra={"pages": len(given_back)})
                self._tell("Waiting: another process is checking pages.")
                return _PAUSE
            busy = self.offer(self._feed.next_portion())
        except StoreUnavailable:
            self._others = True
            return _LOOK
        except (StoreBusy, StoreLocked) as error:
            self._tell(f"Waiting: {error}")
            return _LOOK
        if not busy:
            empty = f"No pages are watched yet: in another terminal, type: {command_name()} add https://example.com/"
            self._tell(f"Watching {self._scheduler.describe()}." if len(self._scheduler) else empty)
        return _PAUSE if busy or self._caught_up(_PAUSE) else 0.0

    def withdraw(self) -> None:
        """Take back the pages that are not being fetched yet, so that the run ends soon."""
        withdrawn = self._feed.withdraw()
        self._scheduler.refund(withdrawn)
        _LOG.debug("pages withdrawn", extra={"pages": len(withdrawn)})

    def continue_with(self, feed: Feed) -> None:
        """Offer pages to another run from now on. Other processes may have checked pages in between."""
        self._unlearned += self._feed.settled()
        self._feed = feed
        self._others = True

    def end(self, *, once: bool) -> None:
        """Learn from the last checks and, after `once`, which has no idle time for it, catch up for some seconds.

        The next run continues what is not finished.
        """
        with contextlib.suppress(StoreLocked, StoreUnavailable):
            self._learn()
        if once and not self._stop.requested:
            self._caught_up(_CATCH_UP)

    def offer(self, most: int | None = None) -> bool:
        """Offer pages that are due, at most `most` of them; return whether there is enough to do for now.

        Raise StoreBusy, and pick none, while another process checks pages. As it may check the same ones, what is due
        is found out again afterwards, under the lock. Otherwise the lock is taken only when there is something to
        check, so that other processes are not refused for nothing.
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
                self._scheduler.learn_from_others()
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
            _LOG.debug("pages offered", extra={"pages": len(picked)})
            self._tell_slow()
            return True

    def left(self, *, once: bool) -> int:
        """Return how many due pages were not checked, after the end of the run.

        That is what was offered and not checked and, without `once`, what would be offered next; not the pages of hosts
        that asked for a pause.
        """
        waiting = self._scheduler.count_waiting(self._feed.unchecked())
        return waiting if once else waiting + self._scheduler.count_due([*self._feed.held(), *self._unlearned])

    def offer_patiently(self) -> None:
        """Offer all pages that are due, waiting for a store that is locked; raise StoreBusy as `offer` does."""
        patiently(self.offer, lambda: self._stop.requested)

    def _tell_slow(self) -> None:
        """Report a host whose pages take long because of its delay, if pages were added since the last look.

        Only new pages make a host slow, and looking at every pick would take as long as the pick itself.
        """
        if self._slow is not None and len(self._scheduler) > self._pages:
            crowded = self._scheduler.slowest_host(_SLOW, self._feed.held())
            if crowded is not None:
                self._slow(*crowded)
        self._pages = len(self._scheduler)

    def _learn(self) -> None:
        """Learn from what was recorded since the last time. If the store is locked, nothing is forgotten."""
        self._unlearned += self._feed.settled()
        self._scheduler.learn_from(self._unlearned)
        self._unlearned = []

    def _refresh(self) -> None:
        """Notice pages that were added, edited or removed, at most every two seconds; of a long list, a part."""
        started = self._ticks()
        if started >= self._look_at and self._scheduler.refresh_until(lambda: self._ticks() >= started + _READ):
            self._look_at = self._ticks() + _LOOK

    def _caught_up(self, seconds: float) -> bool:
        """Extract versions again and index them for at most so long; return whether nothing of that is left to do.

        Afterwards there is nothing to do before a page has a new version or other filters. If the store fails, because
        another process is using it, checks go on and it is tried again later.
        """
        edition = self._scheduler.edition
        if edition == self._settled or self._ticks() < self._catch_up_at:
            return True
        end = self._ticks() + seconds
        try:
            self._catch_up(lambda: self._ticks() >= end)
        except StoreError as error:
            self._tell(f"Catching up failed, and will be tried again: {error}")
            self._catch_up_at = self._ticks() + _RETRY
            return True
        if self._ticks() >= end or self._stop.requested:
            return False
        self._settled = edition
        return True
