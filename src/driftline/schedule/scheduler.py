"""What `run` asks: which pages to check now. It reads the watch list into the index, and learns from every check."""

from __future__ import annotations

import time
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING

import numpy as np

from driftline.durations import format_frequency
from driftline.errors import StoreError
from driftline.http.headers import lifetime
from driftline.model import Verdict
from driftline.plurals import count
from driftline.schedule import forecast
from driftline.schedule.backoff import Patience
from driftline.schedule.budget import Credit, format_rate
from driftline.schedule.change_model import believed
from driftline.schedule.clock_skew import Ahead
from driftline.schedule.forecast import Terms, lane_of
from driftline.schedule.host_table import HostTable, Rooms
from driftline.schedule.loader import WatchListLoad
from driftline.schedule.page_stats import Learned, recall_pauses
from driftline.schedule.page_table import DAY
from driftline.store.pages import urls_of
from driftline.store.schedule_records import CLOCK_TOLERANCE, count_pages, last_checks, read_visits
from driftline.urls.parts import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from driftline.model import Barred, Outcome, Policy
    from driftline.schedule.page_table import Floats, Places
    from driftline.store.engine import Store

_PROBED = 0.1  # of a pick by the paper's order goes to pages that its filter drops


class Scheduler:
    """The watch list as an index, kept up to date with the store.

    No address is kept, and every fact of a page takes a few bytes of an array: a million pages take less than 300 MB.
    """

    def __init__(
        self, store: Store, *, policy: Policy = "value", budget: float | None = None, host_budget: float | None = None,
        every: float = 3_600.0, threshold: float = 0.5, early: float = 0.0, clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic, barred: Callable[[], Mapping[int, Barred]] = dict,
    ) -> None:  # fmt: skip
        self._store = store
        self._barred = barred
        self._policy: Policy = policy
        self._budget = budget
        self._every = every
        self._threshold = threshold
        self._early = early
        self._clock = clock
        self._ticks = ticks
        self._started = clock(), ticks()
        self._credit: Credit | None = None
        self._rooms = None if host_budget is None else Rooms(host_budget, ticks())
        self._hosts = HostTable()
        self._known = Learned(store, self._hosts, 0)
        self._ahead = Ahead(store)
        self._patience = Patience(store, self._ahead, every if policy == "fixed" else np.inf, early)
        self._heard: dict[int, float] = {}
        self._latest = -np.inf
        self._probes = 0.0
        self._stamp: object = None
        self._reading: WatchListLoad | None = None
        self._followed: list[int] = []  # pages that were learned from since the reading began
        self._others = False  # whether others checked pages since then

        self.edition = 0  # another number whenever a page came or went, has another version or other settings

    def __len__(self) -> int:
        return len(self._known.index)

    @property
    def budget(self) -> float:
        """Checks a second: those that were set, for all pages, or what the usual interval makes for pages without one.

        Where none was set, pages with an interval of their own come on top.
        """
        if self._budget is not None:
            return self._budget
        return float(np.isinf(self._known.index.every).sum()) / self._every

    def describe(self) -> str:
        """Return how many pages are watched and how often, as a sentence without its full stop."""
        pages = count(len(self), "page")
        every = self._known.index.every.astype(np.float64)
        intervals = every[np.isfinite(every)]
        asked = float((1 / intervals).sum())
        if self._budget is not None:
            part = f", {format_rate(min(asked, self._budget))} of them at fixed intervals" if asked else ""
            return f"{pages}, at most {format_rate(self._budget)} checks{part}"
        usual = f"about {format_frequency(self._every)}"
        if not len(intervals):
            return f"{pages}, {usual}"
        own = "at its own interval" if len(intervals) == 1 else "at their own intervals"
        others = len(self) - len(intervals)
        return f"{pages}: {others:,} {usual}, {len(intervals):,} {own}" if others else f"{pages}, {own}"

    def refresh(self) -> None:
        """Read the whole watch list, with what was learned and what is still to be learned.

        Nothing is read if nobody has changed the watch list since the last time, or begun or ended a run.
        """
        self._reading = None
        self.read_on(lambda: False)

    def read_on(self, enough: Callable[[], bool]) -> bool:
        """The same, but only until it is `enough` for now; whether nothing is left to read.

        Meanwhile picks go by what was read before. There is nothing to go by at first, so then all of it is read.
        """
        if self._reading is None:
            stamp = self._store.stamp()
            if stamp == self._stamp:
                recall_pauses(self._store, self._known, self._clock())
                return True
            self._followed, self._others = [], False
            self._reading = self._begin(stamp)
        reading = self._reading
        try:
            done = reading.go_on(enough if self._stamp is not None else lambda: False)
        except StoreError:
            self._reading = None
            raise
        if done:
            self._reading = None
            reading.known.take_over(self._known, self._followed)
            self._known, self.edition, self._stamp = reading.known, reading.edition, reading.stamp
            self._forget()
            if self._others:
                self.follow_others()  # pages that came meanwhile may be among those that they checked
        return done

    def _begin(self, stamp: object) -> WatchListLoad:
        expected = len(self) or count_pages(self._store)
        return WatchListLoad(
            self._store, self._hosts, self._patience, self._ahead, self._heard, stamp=stamp, clock=self._clock,
            expected=expected, threshold=self._threshold, ordered=self._policy == "intelligent",
        )  # fmt: skip

    def follow(self, page_ids: Sequence[int]) -> None:
        """Learn from what was recorded of these pages since the last time, by this program or another."""
        now = self._clock()
        if self._reading is not None:
            self._followed += page_ids
        versions = self._known.versions
        for places, told in self._known.follow(page_ids, now, self._heard):
            self._known.settle(places, self._ahead, now)
            self._patience.stand_by(self._known, places, told, now)
        if self._known.versions != versions:
            self.edition = hash((self.edition, self._known.versions))

    def follow_others(self) -> None:
        """The same of whichever pages others have checked. To find them takes a fraction of the time of `refresh`."""
        if self._stamp is None:
            self.refresh()
        else:
            self._others = self._reading is not None
            self.follow(self._known.overtaken())

    def _forget(self) -> None:
        """Keep nothing of pages that are no more, or stand otherwise today: a run may go on for months."""
        self._ahead.forget()
        self._patience.forget(self._known)
        here = set(self._known.index.page[self._known.places([*self._heard])].tolist())
        for page in [page for page in [*self._heard] if page not in here]:
            self._heard.pop(page, None)

    def heard(self, outcomes: Sequence[Outcome]) -> None:
        """Note what servers said in these answers of how long their pages last, for `follow` to learn; in any thread.

        A version has its headers in the store. Of an answer that proved a page unchanged nothing is stored, so that it
        costs nothing: what it says is known only to who heard it.
        """
        for outcome in outcomes:
            document = outcome.document
            if outcome.verdict is not Verdict.FAILED:
                lasts = lifetime(document.headers)
                # one that only says that nothing changed need not repeat the rest
                if lasts is not None or document.status != HTTPStatus.NOT_MODIFIED:
                    self._heard[document.link.page_id] = lasts or 0.0

    def pick(
        self, most: int | None = None, without: Collection[int] = (), claim: Callable[[], object] = lambda: None
    ) -> list[int]:
        """The pages to check now, the most urgent first; `most` of them, `without` those that are being checked.

        If there are any, `claim` is called before they are charged to the budget: what it raises costs nothing.
        """
        now = self._clock()
        if now < self._latest - CLOCK_TOLERANCE:
            self._stamp = None
            self.refresh()  # the clock was set back: what was the past is the future now
        self._latest = now
        index = self._known.index
        credit = self._credit = self._credit or self._first_credit()
        allowed = credit.grow(self._ticks(), self.budget)
        if most is not None:
            allowed = min(allowed, most)
        room = None if self._rooms is None else self._rooms.grow(self._ticks(), len(self._hosts))
        places = self._next(now, allowed, room, without)[:most]
        if len(places):
            claim()
        charged = self._charged(places)
        self._spend(places, len(charged))
        # where picks are too small to share, some go by before there is a probe in one
        probed = int(np.isinf(index.rank[charged]).sum())
        earned = self._probes + _PROBED * (len(charged) - probed)
        self._probes = max(0.0, min(earned, max(1.0, _PROBED * allowed)) - probed)
        return [int(page) for page in index.page[places]]

    def take_back(self, page_ids: Sequence[int]) -> None:
        """These pages were picked, and are not checked after all: they cost nothing."""
        places = self._known.places([*page_ids])
        self._spend(places, len(self._charged(places)), times=-1)

    def _charged(self, places: Places) -> Places:
        """Where the pages are, of these, whose checks are charged to the budget."""
        index = self._known.index
        if self._budget is None:
            places = places[np.isfinite(index.checked[places]) & np.isinf(index.every[places])]
        return places

    def _spend(self, places: Places, charged: int, times: int = 1) -> None:
        if self._credit is not None and (self._policy != "fixed" or self._budget is not None):
            self._credit.spend(times * charged)
        if self._rooms is not None:
            self._rooms.spend(self._known.index.host[places], times)

    def waiting(self, page_ids: Collection[int]) -> int:
        """How many of these pages, which were picked, are still to be checked: watched, and neither blocked nor left
        alone with their host.
        """
        barred = self._barred()
        places = self._known.places([page for page in page_ids if page not in barred])
        return len(np.setdiff1d(places, self._left_alone(self._clock())))

    def due(self, without: Collection[int]) -> int:
        """How many pages are to be checked by now, `without` those that are being checked.

        How often hosts may be asked does not count here: a page that has to wait for others of its host is due.
        """
        return len(self._ripe(self._clock(), without))

    def crowded(self, seconds: float, without: Collection[int]) -> tuple[str, int, float] | None:
        """The host whose pages will take longest, if longer than so: how many are due, and the seconds between two."""
        if self._rooms is None:
            return None
        index = self._known.index
        places = self._ripe(self._clock(), without)
        if not len(places):
            return None
        waiting = np.bincount(index.host[places])
        worst = int(waiting.argmax())
        number, rest = int(waiting[worst]), 1 / self._rooms.rate
        if number * rest <= seconds:
            return None
        page = int(index.page[places[index.host[places] == worst][0]])
        urls = urls_of(self._store, [page])
        return (host_of(urls[page]), number, rest) if page in urls else None

    def _ripe(self, now: float, without: Collection[int]) -> Places:
        """Where the pages are that are to be checked by now, however many of one host they are."""
        credit = self._credit = self._credit or self._first_credit()
        return self._next(now, credit.grow(self._ticks(), self.budget), None, without)

    def _next(self, now: float, allowed: int, room: NDArray[np.int64] | None, without: Collection[int]) -> Places:
        return self._known.index.pick(
            now, allowed, policy=self._policy, default_every=self._every, early=self._early, cycle=self._cycle(),
            room=room, shared=self._budget is not None, probes=int(max(self._probes, _PROBED * allowed)),
            without=np.r_[self._known.places([*without, *self._barred()]), self._left_alone(now)],
        )  # fmt: skip

    def terms(self, limit: int | None = None) -> list[Terms]:
        """What will be checked next, and why, as things stand now: by the time at which it is likely to be.

        Of what can be picked that is when the budgets allow it, in the order in which it is picked.
        """
        index, now, barred = self._known.index, self._clock(), self._barred()
        ready = index.pick(
            now, len(index), policy=self._policy, default_every=self._every, cycle=self._cycle(),
            without=np.r_[self._known.places([*barred]), self._left_alone(now)],
        )  # fmt: skip
        asked = self._asked(now)
        due = forecast.due(index, policy=self._policy, default_every=self._every, cycle=self._cycle(), asked=asked)
        due[self._known.places([*barred])] = np.inf
        turn = now + self._held_for(ready, due - now)
        rest = np.setdiff1d(np.arange(len(index)), ready)
        likely = due.copy()
        likely[ready] = np.where((turn > now) | np.isneginf(due[ready]), turn, due[ready])
        places = np.r_[ready, rest]
        shown = places[np.argsort(np.r_[turn, due[rest]], kind="stable")][:limit]
        worth = index.values(now, shown)
        days = np.clip((now - index.checked[shown]) / DAY, 0.0, 3_650.0).astype(np.float32)
        chances = believed(index.a[shown], index.b[shown], days)
        urls = urls_of(self._store, index.page[shown].tolist())
        tried = last_checks(self._store, index.page[shown].tolist())
        return [
            Terms(
                page_id=int(index.page[place]), url=urls[int(index.page[place])],
                lane="unsafe" if int(index.page[place]) in barred
                else lane_of(index, place, now, self._policy, held=bool(now < asked[place] == due[place])),
                reason=barred[int(index.page[place])].reason if int(index.page[place]) in barred else "",
                failures=int(index.failures[place]), tried_at=tried.get(int(index.page[place])),
                value=float(worth[which]), weight=float(index.weight[place]),
                rate=float(index.a[place] / index.b[place]),
                days=None if np.isinf(index.checked[place]) else float(days[which]),
                chance=float(chances[which]), lifetime=float(index.lifetime[place]),
                every=None if np.isinf(index.every[place]) else float(index.every[place]),
                due_at=float(likely[place]) if np.isfinite(likely[place]) else None,
            )
            for which, place in enumerate(shown.tolist()) if int(index.page[place]) in urls
        ]  # fmt: skip

    def by_value(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the ids of all pages, those first whose check is worth most now, and what it is worth.

        Of equal ones, those come first that were never visited, then those whose first visit was earlier.
        """
        index = self._known.index
        worth = index.values(self._clock())
        visit = np.zeros(len(index), np.int64)
        for portion in read_visits(self._store):
            places, here = self._known.find(portion["id"])
            visit[places] = np.array(portion["visited"], np.int64)[here]
        order = np.lexsort((visit, -worth))
        return index.page[order], worth[order]

    def _held_for(self, ready: Places, until_due: Floats) -> Floats:
        """The seconds until the budgets allow for each of these pages, which are picked in this order."""
        credit = replace(self._credit or self._first_credit())
        credit.grow(self._ticks(), self.budget)
        found = forecast.held_for(
            self._known.index, ready, until_due, policy=self._policy, default_every=self._every, budget=self.budget,
            shared=self._budget is not None, credit=credit.saved,
        )  # fmt: skip
        if self._rooms is None:
            return found
        self._rooms.grow(self._ticks(), len(self._hosts))
        return np.maximum(found, self._rooms.held_for(self._known.index.host[ready]))

    def _first_credit(self) -> Credit:
        """What the time since the last check has brought, one check at most: so a start neither wins nor costs one.

        Where nothing was ever checked, only a budget that was set has to allow for the first check.
        """
        index = self._known.index
        charged = index.checked if self._budget is not None else index.checked[np.isinf(index.every)]
        last = charged.max(initial=-np.inf)
        if np.isinf(last) and self._budget is None:
            return Credit(self._ticks(), 0.0)
        started, ticks = self._started
        return Credit(ticks, min(1.0, max(0.0, started - float(last)) * self.budget))

    def _left_alone(self, now: float) -> Places:
        """Where the pages are whose hosts asked not to be asked for anything now."""
        return np.flatnonzero(self._asked(now) > now) if len(self._known.asked) else np.zeros(0, np.int64)

    def _asked(self, now: float) -> Floats:
        """Until when the host of each page is to be left alone, minus infinity if it is not."""
        return self._known.asked.until(len(self._hosts), now)[self._known.index.host]

    def _cycle(self) -> float:
        """Seconds after which the paper's order begins anew: a day, or less if the budget allows for more."""
        if self._policy != "intelligent":
            return DAY  # nobody asks
        index = self._known.index
        ordered = np.isfinite(index.rank)
        if self._budget is None:
            ordered &= np.isinf(index.every)  # the others are checked on top
        return float(min(DAY, ordered.sum() / max(self.budget, 1e-9)))
