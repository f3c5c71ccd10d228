"""The scheduler: which pages to check now, and when the others are due.

It reads the watch list into a table of arrays, and learns from every check.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING

import numpy as np

from driftline.errors import StoreError
from driftline.http.headers import lifetime
from driftline.model.outcome import Failed
from driftline.model.page import Lane
from driftline.plurals import count
from driftline.schedule import forecast
from driftline.schedule.backoff import Backoff
from driftline.schedule.budget import Credit, rate_in_words
from driftline.schedule.change_model import change_probability
from driftline.schedule.forecast import ScheduledCheck, lane_of
from driftline.schedule.host_table import HostBudgets, HostTable
from driftline.schedule.loader import ClockSkew, WatchListLoad
from driftline.schedule.page_stats import PageStats, load_pauses
from driftline.schedule.page_table import DAY
from driftline.schedule.picking import pick_pages
from driftline.store.pages import urls_of
from driftline.store.schedule_records import CLOCK_TOLERANCE, count_pages, last_checks, read_visits
from driftline.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from driftline.model.outcome import Outcome
    from driftline.model.page import BlockedPage, Policy
    from driftline.schedule.page_table import Floats, Places
    from driftline.store.engine import Store

_LOG = logging.getLogger(__name__)

_PROBED = 0.1  # share of a pick in the paper's order that goes to pages which its filter drops
_ORDER: dict[Policy, str] = {
    "value": "", "intelligent": ", in the order of visits", "fixed": ", each at its interval",
    "uniform": ", the longest unchecked first",
}  # fmt: skip


class Scheduler:
    """Picks the pages to check, from a table of the watch list that it keeps up to date with the store.

    No addresses are kept, and each fact about a page takes a few bytes of an array: a million pages take less than
    300 MB. `budget` and `host_budget` are in checks a second, `every` is the usual interval in seconds, `threshold`
    that of the second paper's filter, `early` as at `PageTable.pick`; `blocked` returns the pages that must not be
    checked. One thread uses it, except for `record_lifetimes`.
    """

    def __init__(
        self, store: Store, *, policy: Policy = "value", budget: float | None = None, host_budget: float | None = None,
        every: float = 3_600.0, threshold: float = 0.5, early: float = 0.0, clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic, blocked: Callable[[], Mapping[int, BlockedPage]] = dict,
    ) -> None:  # fmt: skip
        self._store = store
        self._blocked = blocked
        self._policy: Policy = policy
        self._budget = budget
        self._every = every
        self._threshold = threshold
        self._early = early
        self._clock = clock
        self._ticks = ticks
        self._started = clock(), ticks()
        self._credit: Credit | None = None
        self._host_budgets = None if host_budget is None else HostBudgets(host_budget, ticks())
        self._hosts = HostTable()
        self._stats = PageStats(store, self._hosts, 0)
        self._clock_skew = ClockSkew(store)
        self._backoff = Backoff(store, self._clock_skew, every if policy == "fixed" else np.inf, early)
        self._lifetimes: dict[int, float] = {}
        self._latest = -np.inf
        self._probes = 0.0
        self._stamp: object = None
        self._reading: WatchListLoad | None = None
        self._learned_meanwhile: list[int] = []  # pages that were learned from since the reading began
        self._others_meanwhile = False  # whether other processes checked pages since then
        self.edition = 0  # differs whenever a page was added or removed, or has another version or other settings

    def __len__(self) -> int:
        return len(self._stats.table)

    def __repr__(self) -> str:
        return f"<Scheduler policy={self._policy} budget={self._budget} {self._stats!r} {self._backoff!r}>"

    @property
    def budget(self) -> float:
        """Return the budget in checks a second: the one that was set, or one check of each page per usual interval.

        Where none was set, pages with an interval of their own are not part of it: their checks come on top.
        """
        if self._budget is not None:
            return self._budget
        return float(np.isinf(self._stats.table.every).sum()) / self._every

    def describe(self) -> str:
        """Return how many pages are checked and how often, as the end of a sentence: `1 page, about once an hour`."""
        pages = count(len(self), "page")
        every = self._stats.table.every.astype(np.float64)
        timed = float((1 / every[np.isfinite(every)]).sum())
        order = _ORDER[self._policy]
        if self._policy == "fixed" and self._budget is None:
            return f"{pages}{order}: {rate_in_words(timed + self.budget)}"
        if self._budget is not None:
            most = f"{pages}, at most {rate_in_words(self._budget)}{order}"
            share = rate_in_words(min(timed, self._budget))
            return f"{most}; {share} of that at set intervals" if timed and self._policy != "fixed" else most
        if not timed:
            return f"{pages}, about {rate_in_words(self.budget)}{order}"
        others = f", the others about {rate_in_words(self.budget)}{order}" if self.budget else ""
        return f"{pages}, {rate_in_words(timed)} at set intervals{others}"

    def refresh(self) -> None:
        """Read the whole watch list, and learn from checks that nothing was learned from yet.

        Nothing is read if the watch list has not changed since the last time, and no run has begun or ended.
        """
        self._reading = None
        self.refresh_until(lambda: False)

    def refresh_until(self, enough: Callable[[], bool]) -> bool:
        """Do as `refresh`, but only until `enough` returns True. Returns whether everything is read.

        Until then, picks use what was read before. The first time there is nothing yet, so everything is read at once.
        """
        if self._reading is None:
            stamp = self._store.stamp()
            if stamp == self._stamp:
                load_pauses(self._store, self._stats, self._clock())
                return True
            self._learned_meanwhile, self._others_meanwhile = [], False
            self._reading = self._begin(stamp)
        reading = self._reading
        try:
            done = reading.run_until(enough if self._stamp is not None else lambda: False)
        except StoreError:
            self._reading = None
            raise
        if done:
            self._reading = None
            reading.stats.merge(self._stats, self._learned_meanwhile)
            self._stats, self.edition, self._stamp = reading.stats, reading.edition, reading.stamp
            _LOG.debug("read the watch list: %r", self)
            self._forget()
            if self._others_meanwhile:
                self.learn_from_others()  # pages added meanwhile may be among those that they checked
        return done

    def _begin(self, stamp: object) -> WatchListLoad:
        expected = len(self) or count_pages(self._store)
        return WatchListLoad(
            self._store, self._hosts, self._backoff, self._clock_skew, self._lifetimes, stamp=stamp, clock=self._clock,
            expected=expected, threshold=self._threshold, ordered=self._policy == "intelligent",
        )  # fmt: skip

    def learn_from(self, page_ids: Sequence[int]) -> None:
        """Learn from the new checks of these pages, made by this process or another."""
        now = self._clock()
        if self._reading is not None:
            self._learned_meanwhile += page_ids
        versions = self._stats.versions
        for places, states in self._stats.learn_from(page_ids, now, self._lifetimes):
            self._stats.clamp_times(places, self._clock_skew, now)
            self._backoff.update(self._stats, places, states, now)
        if self._stats.versions != versions:
            self.edition = hash((self.edition, self._stats.versions))

    def learn_from_others(self) -> None:
        """Learn from new checks of any pages, made by other processes; much faster than `refresh`."""
        if self._stamp is None:
            self.refresh()
        else:
            self._others_meanwhile = self._reading is not None
            self.learn_from(self._stats.pages_with_new_checks())

    def _forget(self) -> None:
        """Drop data about pages that are no longer watched, or no longer failing: a run may last for months."""
        self._clock_skew.finish_reading()
        self._backoff.forget_recovered(self._stats)
        here = set(self._stats.table.page[self._stats.places([*self._lifetimes])].tolist())
        for page in [page for page in [*self._lifetimes] if page not in here]:
            self._lifetimes.pop(page, None)

    def record_lifetimes(self, outcomes: Sequence[Outcome]) -> None:
        """Remember for how long these responses declare their pages fresh, for `learn_from`. Safe in any thread.

        The headers of a version are in the store. Those of a response that proved a page unchanged are not stored, to
        save the cost: only the process that received it has them.
        """
        for outcome in outcomes:
            document = outcome.document
            if not isinstance(outcome, Failed):
                seconds = lifetime(document.headers)
                # a 304 need not repeat these headers
                if seconds is not None or document.status != HTTPStatus.NOT_MODIFIED:
                    self._lifetimes[document.link.page_id] = seconds or 0.0

    def pick(
        self, most: int | None = None, without: Collection[int] = (), claim: Callable[[], object] = lambda: None
    ) -> list[int]:
        """Return the ids of pages to check now, the most urgent first, at most `most` of them, `without` these.

        If there are any, `claim` is called before they are charged to the budget: if it raises, nothing is charged.
        """
        now = self._clock()
        if now < self._latest - CLOCK_TOLERANCE:
            _LOG.debug("the clock was set back by %.0f s: reading the watch list again", self._latest - now)
            self._stamp = None
            self.refresh()
        self._latest = now
        table = self._stats.table
        credit = self._credit = self._credit or self._first_credit()
        allowed = credit.refill(self._ticks(), self.budget)
        if most is not None:
            allowed = min(allowed, most)
        room = None if self._host_budgets is None else self._host_budgets.refill(self._ticks(), len(self._hosts))
        places = self._pick(now, allowed, room, without)[:most]
        if len(places):
            claim()
        charged = self._charged(places)
        self._spend(places, len(charged))
        # a tenth of a small pick is less than one page, so what is left over is saved for a later pick
        probed = int(np.isinf(table.rank[charged]).sum())
        earned = self._probes + _PROBED * (len(charged) - probed)
        self._probes = max(0.0, min(earned, max(1.0, _PROBED * allowed)) - probed)
        return [int(page) for page in table.page[places]]

    def refund(self, page_ids: Sequence[int]) -> None:
        """Give back the budget of pages that were picked and are not checked after all."""
        places = self._stats.places([*page_ids])
        self._spend(places, len(self._charged(places)), times=-1)

    def _charged(self, places: Places) -> Places:
        """Return the places of those of these pages whose checks are charged to the budget."""
        table = self._stats.table
        if self._budget is None:
            places = places[np.isfinite(table.checked[places]) & np.isinf(table.every[places])]
        return places

    def _spend(self, places: Places, charged: int, times: int = 1) -> None:
        if self._credit is not None and (self._policy != "fixed" or self._budget is not None):
            self._credit.spend(times * charged)
        if self._host_budgets is not None:
            self._host_budgets.spend(self._stats.table.host[places], times)

    def count_waiting(self, page_ids: Collection[int]) -> int:
        """Return how many of these picked pages can still be checked: watched, not blocked, not under Retry-After."""
        blocked = self._blocked()
        places = self._stats.places([page for page in page_ids if page not in blocked])
        return len(np.setdiff1d(places, self._held_back(self._clock())))

    def count_due(self, without: Collection[int]) -> int:
        """Return how many pages are due now, `without` these.

        Host budgets do not count here: a page that waits for others of its host is due.
        """
        return len(self._due(self._clock(), without))

    def slowest_host(self, seconds: float, without: Collection[int]) -> tuple[str, int, float] | None:
        """Return the host whose due pages will take longest, their number and the seconds between two.

        None if they all take no longer than `seconds`.
        """
        if self._host_budgets is None:
            return None
        table = self._stats.table
        places = self._due(self._clock(), without)
        if not len(places):
            return None
        waiting = np.bincount(table.host[places])
        worst = int(waiting.argmax())
        number, between = int(waiting[worst]), 1 / self._host_budgets.rate
        if number * between <= seconds:
            return None
        page = int(table.page[places[table.host[places] == worst][0]])
        urls = urls_of(self._store, [page])
        return (host_of(urls[page]), number, between) if page in urls else None

    def _due(self, now: float, without: Collection[int]) -> Places:
        """Return the places of the pages due now, without regard to host budgets."""
        credit = self._credit = self._credit or self._first_credit()
        return self._pick(now, credit.refill(self._ticks(), self.budget), None, without)

    def _pick(self, now: float, allowed: int, room: NDArray[np.int64] | None, without: Collection[int]) -> Places:
        return pick_pages(
            self._stats.table, now, allowed, policy=self._policy, default_every=self._every, early=self._early,
            cycle=self._cycle(), room=room, shared=self._budget is not None,
            probes=int(max(self._probes, _PROBED * allowed)),
            without=np.r_[self._stats.places([*without, *self._blocked()]), self._held_back(now)],
        )  # fmt: skip

    def upcoming(self, limit: int | None = None) -> list[ScheduledCheck]:
        """Return the next check of each page, the earliest first: when it is likely to be, and why then.

        Pages that could be picked now are in the order in which they would be, each when the budgets allow it.
        """
        table, now, blocked = self._stats.table, self._clock(), self._blocked()
        ready = pick_pages(
            table, now, len(table), policy=self._policy, default_every=self._every, cycle=self._cycle(),
            without=np.r_[self._stats.places([*blocked]), self._held_back(now)],
        )  # fmt: skip
        retry_after = self._retry_after(now)
        due = forecast.due(
            table, policy=self._policy, default_every=self._every, cycle=self._cycle(), retry_after=retry_after
        )  # fmt: skip
        due[self._stats.places([*blocked])] = np.inf
        allowed = now + self._seconds_until_allowed(ready, due - now)
        others = np.setdiff1d(np.arange(len(table)), ready)
        likely = due.copy()
        likely[ready] = np.where((allowed > now) | np.isneginf(due[ready]), allowed, due[ready])
        places = np.r_[ready, others]
        shown = places[np.argsort(np.r_[allowed, due[others]], kind="stable")][:limit]
        worth = table.values(now, shown)
        days = np.clip((now - table.checked[shown]) / DAY, 0.0, 3_650.0).astype(np.float32)
        chances = change_probability(table.a[shown], table.b[shown], days)
        urls = urls_of(self._store, table.page[shown].tolist())
        tried = last_checks(self._store, table.page[shown].tolist())
        return [
            ScheduledCheck(
                page_id=int(table.page[place]), url=urls[int(table.page[place])],
                lane=Lane.UNSAFE if int(table.page[place]) in blocked
                else lane_of(table, place, now, self._policy, held=bool(now < retry_after[place] == due[place])),
                reason=blocked[int(table.page[place])].reason if int(table.page[place]) in blocked else "",
                failures=int(table.failures[place]), tried_at=tried.get(int(table.page[place])),
                value=float(worth[which]), weight=float(table.weight[place]),
                rate=float(table.a[place] / table.b[place]),
                days=None if np.isinf(table.checked[place]) else float(days[which]),
                chance=float(chances[which]), lifetime=float(table.lifetime[place]),
                every=None if np.isinf(table.every[place]) else float(table.every[place]),
                due_at=float(likely[place]) if np.isfinite(likely[place]) else None,
            )
            for which, place in enumerate(shown.tolist()) if int(table.page[place]) in urls
        ]  # fmt: skip

    def by_value(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the ids of all pages and the value of a check of each now, the highest first.

        Among equal ones, those never visited come first, then those whose first visit was earlier.
        """
        table = self._stats.table
        worth = table.values(self._clock())
        visit = np.zeros(len(table), np.int64)
        for portion in read_visits(self._store):
            places, here = self._stats.find(portion["id"])
            visit[places] = np.array(portion["visited"], np.int64)[here]
        order = np.lexsort((visit, -worth))
        return table.page[order], worth[order]

    def _seconds_until_allowed(self, ready: Places, until_due: Floats) -> Floats:
        """Return the seconds until the budgets allow a check of each of these pages, picked in this order."""
        credit = replace(self._credit or self._first_credit())
        credit.refill(self._ticks(), self.budget)
        found = forecast.seconds_until_allowed(
            self._stats.table, ready, until_due, policy=self._policy, default_every=self._every, budget=self.budget,
            shared=self._budget is not None, credit=credit.saved,
        )  # fmt: skip
        if self._host_budgets is None:
            return found
        self._host_budgets.refill(self._ticks(), len(self._hosts))
        return np.maximum(found, self._host_budgets.seconds_until(self._stats.table.host[ready]))

    def _first_credit(self) -> Credit:
        """Return the credit for the time since the last check, one check at most, so that a restart changes nothing.

        Where nothing was ever checked, only a budget that was set limits the first check.
        """
        table = self._stats.table
        charged = table.checked if self._budget is not None else table.checked[np.isinf(table.every)]
        last = charged.max(initial=-np.inf)
        if np.isinf(last) and self._budget is None:
            return Credit(self._ticks(), 0.0)
        started, ticks = self._started
        return Credit(ticks, min(1.0, max(0.0, started - float(last)) * self.budget))

    def _held_back(self, now: float) -> Places:
        """Return the places of the pages whose hosts are under Retry-After now."""
        return np.flatnonzero(self._retry_after(now) > now) if len(self._stats.retry_after) else np.zeros(0, np.int64)

    def _retry_after(self, now: float) -> Floats:
        """Return until when the host of each page is under Retry-After, minus infinity if it is not."""
        return self._stats.retry_after.until(len(self._hosts), now)[self._stats.table.host]

    def _cycle(self) -> float:
        """Return the seconds after which the paper's order starts again: a day, or less if the budget allows it."""
        if self._policy != "intelligent":
            return DAY  # not used
        table = self._stats.table
        ordered = np.isfinite(table.rank)
        if self._budget is None:
            ordered &= np.isinf(table.every)  # the others are checked on top
        return float(min(DAY, ordered.sum() / max(self.budget, 1e-9)))
