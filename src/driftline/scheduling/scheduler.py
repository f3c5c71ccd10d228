"""What `run` asks: which pages to check now. It reads the watch list into the index, and learns from every check.

Learning follows the checks that are recorded, whoever made them, and remembers of each page up to which one: a run that
was stopped, or a `check` by hand, costs nothing of it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import Integer, Text, cast, func, not_, or_, select, update

from driftline.headers import lifetime
from driftline.model import FailureKind, Verdict, host_of
from driftline.scheduling.budget import Credit, format_rate
from driftline.scheduling.index import DAY, PROBE, Index, back_off
from driftline.scheduling.rank import availability, importance
from driftline.scheduling.value import believed
from driftline.versions.schema import checks, pages, rates, states, versions, visits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from sqlalchemy import Row

    from driftline.model import Policy
    from driftline.scheduling.index import Floats, Places
    from driftline.versions.store import Store

_AT_ONCE = 500
_LONGEST_LIFETIME = DAY  # seconds: servers promise years
_GONE_AFTER, _GONE_DAYS = 4, 3.0  # failures in a row, over so many days at least
_STEP = 60.0  # seconds: a clock that is put right by less keeps nobody waiting for long
_WITNESSES = 20  # good pages that are asked whether the network was there while a name was not found
_PROBED = 0.1  # of a pick by the paper's order goes to pages that its filter drops


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Why a page is checked when it is: what the scheduler knows of it.

    `lane` is 'deadline', 'new', 'value', 'waiting' for a page that failed, or 'gone'. `rate` is in changes a day, and
    `chance` that of a change since the last check.
    """

    page_id: int
    url: str
    lane: str
    value: float
    weight: float
    rate: float
    days: float | None
    chance: float
    lifetime: float
    every: float | None
    due_at: float | None


class Scheduler:
    """The watch list as an index, kept up to date with the store."""

    def __init__(
        self, store: Store, *, policy: Policy = "value", budget: float | None = None, host_budget: float | None = None,
        every: float = 3_600.0, threshold: float = 0.5, clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._store = store
        self._policy: Policy = policy
        self._budget = budget
        self._host_budget = host_budget
        self._every = every
        self._threshold = threshold
        self._clock = clock
        self._ticks = ticks
        self._credit = Credit(ticks())
        self._index = Index()
        self._urls: list[str] = []
        self._learned = np.zeros(0, np.int64)
        self._failed = np.zeros(0, np.int64)
        self._gone = np.zeros(0, np.bool_)
        self._added = np.zeros(0)
        self._hosts: dict[str, int] = {}
        self._distrusted: set[int] = set()
        self._good, self._tried = _Ahead(), _Ahead()
        self._latest = -np.inf
        self._probes = 0.0
        self._room = np.zeros(0)
        self._room_at = ticks()

        self.edition = 0  # another number whenever a page came or went, has another version or other settings

    def __len__(self) -> int:
        return len(self._index)

    @property
    def budget(self) -> float:
        """Checks a second: those that were set, or as many as would check every page at the usual interval."""
        return self._budget if self._budget is not None else len(self) / self._every

    @property
    def failing(self) -> set[int]:
        """The pages whose last check failed."""
        return {int(page) for page in self._index.page[self._index.failures > 0]}

    def describe(self) -> str:
        """What is done, in a sentence without its full stop."""
        pages = f"{len(self):,} page{'' if len(self) == 1 else 's'}"
        if self._policy == "fixed" and self._budget is None:
            return f"{pages}, each at its interval"
        return f"{pages}, {format_rate(self.budget)} by {_BY[self._policy]}"

    def refresh(self) -> None:
        """Read the whole watch list, with what was learned and what is still to be learned."""
        of = self._read()
        numbers = self._hosts
        index = self._index = Index(len(self._urls))
        index.page[:] = of["id"]
        index.host[:] = np.fromiter((numbers.setdefault(host_of(url), len(numbers)) for url in self._urls), np.int32)
        index.every[:] = np.where(np.isnan(of["every"]), np.inf, of["every"])
        index.failures[:] = _capped(of["failures"])
        self._added = of["added_at"]
        self._learned, self._failed = (np.zeros(len(index), np.int64) for _ in range(2))
        self._gone = np.zeros(len(index), np.bool_)
        self._room = np.pad(self._room, (0, max(0, len(numbers) - len(self._room))), constant_values=1.0)
        known = np.flatnonzero(~np.isnan(of["a"]))
        self._remember(known, *(of[name][known] for name in _LEARNED))
        self._settle(np.arange(len(index)))
        behind = of["sequence"] > self._learned
        self.follow(index.page[behind].tolist())
        bad = np.flatnonzero((of["failures"] > 0) & ~behind)
        self._stand_by(bad, of["failures"][bad], of["checked_at"][bad])
        self._weigh(of["frequency"], of["weightage"], of["ttl"], of["sequence"])
        index.expect()

    def follow(self, page_ids: Sequence[int]) -> None:
        """Learn from what was recorded of these pages since the last time, by this program or another."""
        watched = [page for page in page_ids if self._has(page)]
        for start in range(0, len(watched), _AT_ONCE):
            with self._store.read() as connection:
                rows = connection.execute(_unlearned(watched[start : start + _AT_ONCE])).all()
            each = {row.page_id: row for row in rows}
            places = self._places(list(each))
            names = ("failures", "checked_at", *_LEARNED)
            stored = _columns(names, [[getattr(row, name) for name in names] for row in each.values()])
            known = ~np.isnan(stored["a"])
            self._remember(places[known], *(stored[name][known] for name in _LEARNED))
            found = [row for row in rows if row.sequence is not None]
            self._learn(found)
            self._keep(np.unique(self._places([row.page_id for row in found])))
            self._settle(places)
            self._stand_by(places, stored["failures"], stored["checked_at"])

    def pick(self) -> list[int]:
        """The pages to check now, the most urgent first."""
        now = self._clock()
        if now < self._latest - _STEP:
            self.refresh()  # the clock was set back: what was the past is the future now
        self._latest = now
        index = self._index
        shared = self._budget is not None
        allowed = self._credit.grow(self._ticks(), self.budget)
        places = index.pick(
            now, allowed, policy=self._policy, default_every=self._every, cycle=self._cycle(), room=self._rooms(),
            shared=shared, probes=int(max(self._probes, _PROBED * allowed)),
        )  # fmt: skip
        charged = places if shared else places[np.isfinite(index.checked[places]) & np.isinf(index.every[places])]
        if self._policy != "fixed" or shared:
            self._credit.spend(len(charged))
        # where picks are too small to share, some go by before there is a probe in one
        probed = int(np.isinf(index.rank[charged]).sum())
        earned = self._probes + _PROBED * (len(charged) - probed)
        self._probes = max(0.0, min(earned, max(1.0, _PROBED * allowed)) - probed)
        if self._host_budget is not None:
            np.subtract.at(self._room, index.host[places], 1.0)
        return [int(page) for page in index.page[places]]

    def terms(self, limit: int | None = None) -> list[Terms]:
        """What will be checked next, and why, as things stand now: what can be picked, then the rest by its time."""
        index, now = self._index, self._clock()
        worth = index.values(now)
        chances = believed(index.a, index.b, _days(now - index.checked))
        ready = index.pick(
            now, len(index), policy=self._policy, default_every=self._every, cycle=self._cycle(),
        )  # fmt: skip
        due = self._due()
        rest = np.setdiff1d(np.arange(len(index)), ready)
        rest = rest[np.argsort(due[rest], kind="stable")]
        return [
            Terms(
                page_id=int(index.page[place]), url=self._urls[place], lane=self._lane(place, now),
                value=float(worth[place]), weight=float(index.weight[place]),
                rate=float(index.a[place] / index.b[place]),
                days=None if np.isinf(index.checked[place]) else float(_days(now - index.checked[place])),
                chance=float(chances[place]), lifetime=float(index.lifetime[place]),
                every=None if np.isinf(index.every[place]) else float(index.every[place]),
                due_at=float(due[place]) if np.isfinite(due[place]) else None,
            )
            for place in np.r_[ready, rest][:limit].tolist()
        ]  # fmt: skip

    def values(self) -> dict[str, float]:
        """What a check of each page is worth now, by address."""
        worth = self._index.values(self._clock())
        return {url: float(value) for url, value in zip(self._urls, worth, strict=True)}

    def _lane(self, place: int, now: float) -> str:
        index = self._index
        if self._gone[place]:
            return "gone"
        if index.not_before[place] > now:
            return "waiting"
        if np.isinf(index.checked[place]):
            return "new"
        if self._policy == "fixed" or np.isfinite(index.every[place]):
            return "deadline"
        return "value"

    def _due(self) -> Floats:
        """When each page is to be checked; minus infinity where it is as soon as the budget allows."""
        index = self._index
        every = index.every.astype(np.float64)
        if self._policy == "fixed":
            every[np.isinf(every)] = self._every
        elif self._policy == "intelligent":
            every = np.where(np.isinf(every), index.turns(self._cycle()), every)
        timed = np.isfinite(every) & np.isfinite(index.checked)
        due = np.add(index.checked, every, where=timed, out=np.full(len(index), -np.inf))
        latest: Floats = np.maximum(due, index.not_before)
        return latest

    def _read(self) -> dict[str, Floats]:
        """The columns of the watch list that are numbers, a part of the rows at a time: there may be a million."""
        self._urls = []
        self.edition = 0
        parts = []
        with self._store.read() as connection:
            for rows in connection.execute(_PAGES).partitions():
                self._urls.extend(row.url for row in rows)
                self.edition = hash((self.edition, *((row.id, row.version, row.settings) for row in rows)))
                parts.append(_columns(_NUMBERS, [row[2:] for row in rows]))
        return {name: np.concatenate([np.zeros(0), *(part[name] for part in parts)]) for name in _NUMBERS}

    def _has(self, page_id: int) -> bool:
        place = int(np.searchsorted(self._index.page, page_id))
        return place < len(self._index) and int(self._index.page[place]) == page_id

    def _places(self, page_ids: Sequence[int]) -> Places:
        """Where these pages are, which must be there."""
        return np.searchsorted(self._index.page, np.array(page_ids, np.int64))

    def _weigh(self, frequency: Floats, weightage: Floats, ttl: Floats, tries: Floats) -> None:
        """Weights and ranks by the visits, and by how often each page was there."""
        index = self._index
        frequency, weightage, ttl = (np.nan_to_num(column) for column in (frequency, weightage, ttl))
        there, asked = ttl + tries - self._failed, frequency + tries
        weight = len(index) * np.array(importance(frequency.tolist(), weightage.tolist()))
        index.weight[:] = weight * availability(there, asked)
        # a page that visits say is not there comes back when checks find it
        kept = (frequency == 0) | (ttl > frequency * self._threshold) | (there > asked * self._threshold)
        order = np.lexsort((-ttl, -weightage, -frequency))
        index.rank[order] = np.arange(len(index))
        index.rank[~kept] = np.inf

    def _remember(
        self, places: Places, a: Floats, b: Floats, at: Floats, learned: Floats, failed: Floats, lifetimes: Floats
    ) -> None:
        """Take over what is stored of these pages; one good check says nothing yet of how often a page changes."""
        index = self._index
        index.remember(places, a, b, np.where(np.isnan(at), -np.inf, at), learned - failed >= 2)
        index.lifetime[places] = np.where(np.isin(index.host[places], list(self._distrusted)), 0.0, lifetimes)
        self._learned[places], self._failed[places] = learned, failed

    def _learn(self, found: Sequence[Row[Any]]) -> None:
        """Learn from these checks, in order of page and of time: of each page the first, then the second, and so on."""
        index = self._index
        place = self._places([row.page_id for row in found])
        at = np.array([row.at for row in found])
        failed = np.array([row.verdict == Verdict.FAILED for row in found], np.bool_)
        changed = np.array([row.verdict == Verdict.CHANGED for row in found], np.bool_)
        first = np.r_[True, place[1:] != place[:-1]] if len(place) else np.zeros(0, np.bool_)
        turn = np.arange(len(place)) - np.flatnonzero(first)[np.cumsum(first) - 1]
        by_turn = np.argsort(turn, kind="stable")
        caught: set[int] = set()
        for some in np.split(by_turn, np.cumsum(np.bincount(turn))[:-1]):
            good = some[~failed[some]]
            where = place[good]
            early = where[changed[good] & (at[good] - index.checked[where] < index.lifetime[where])]
            caught.update(index.host[early].tolist())
            index.learn(where, at[good], changed[good])
        np.add.at(self._failed, place[failed], 1)
        for row, where_it_is in zip(found, place.tolist(), strict=True):
            self._learned[where_it_is] = row.sequence
            if row.headers is not None:
                trusted = int(index.host[where_it_is]) not in self._distrusted
                index.lifetime[where_it_is] = min(lifetime(row.headers), _LONGEST_LIFETIME) if trusted else 0.0
        if caught - self._distrusted:
            self._distrust(caught - self._distrusted)

    def _distrust(self, hosts: set[int]) -> None:
        """Believe these hosts no more, which changed a page before its time; those who come later neither."""
        index = self._index
        self._distrusted |= hosts
        theirs = np.isin(index.host, list(hosts))
        index.lifetime[theirs] = 0.0
        page_ids = index.page[theirs].tolist()
        for start in range(0, len(page_ids), _AT_ONCE):
            some = rates.c.page_id.in_(page_ids[start : start + _AT_ONCE])
            with self._store.write() as connection:
                connection.execute(update(rates).where(some).values(lifetime=0.0))

    def _settle(self, places: Places) -> None:
        """Let no last good check be in the future, from before the clock was set back."""
        index = self._index
        index.checked[places] = self._good.settled(index.page[places], index.checked[places], self._clock())

    def _stand_by(self, places: Places, failures: Floats, last: Floats) -> None:
        """Leave pages alone for a while that fail, and those for long that are gone; the others not any more."""
        index, now = self._index, self._clock()
        index.failures[places] = _capped(failures)
        index.not_before[places] = -np.inf
        self._gone[places] = False
        places, last = places[failures > 0], last[failures > 0]
        last = self._tried.settled(index.page[places], np.where(np.isnan(last), now, last), now)
        since = np.maximum(index.checked[places], self._added[places])
        long = (index.failures[places] >= _GONE_AFTER) & (last - since >= _GONE_DAYS * DAY)
        self._gone[self._never_to_return(places[long])] = True
        # who asked for an interval wants to know of a recovery within it
        asked = np.where(np.isinf(index.every[places]) & (self._policy == "fixed"), self._every, index.every[places])
        wait = np.minimum(back_off(index.failures[places]), asked)
        index.not_before[places] = last + np.where(self._gone[places], PROBE, wait)

    def _never_to_return(self, places: Places) -> Places:
        """Those of these pages whose host was no more, or said that they are not there, at all checks for days."""
        page_ids = self._index.page[places].tolist()
        rows: list[Any] = []
        with self._store.read() as connection:
            for start in range(0, len(page_ids), _AT_ONCE):
                rows += connection.execute(_missing(page_ids[start : start + _AT_ONCE])).all()
        rows = [row for row in rows if row.times >= _GONE_AFTER and row.last - row.first >= _GONE_DAYS * DAY]
        nameless = [row for row in rows if row.nameless]
        online = self._online([((row.first + row.last) / 2, row.last) for row in nameless])
        doubtful = {row.page_id for row, so in zip(nameless, online, strict=True) if not so}
        return self._places([row.page_id for row in rows if row.page_id not in doubtful])

    def _online(self, spans: Sequence[tuple[float, float]]) -> list[bool]:
        """Whether other pages could be fetched in these times, so that a name that was not found says something.

        It is the later half of a page's failures that counts: a machine that went offline after the first of them
        has not lost its pages.
        """
        good = np.flatnonzero((self._index.failures == 0) & np.isfinite(self._index.checked))
        if not spans or not len(good):
            return [False] * len(spans)
        some = good[np.linspace(0, len(good) - 1, min(_WITNESSES, len(good))).astype(np.int64)]
        begin = min(begin for begin, _end in spans)
        with self._store.read() as connection:
            hours = np.array(
                sorted(connection.scalars(_good_hours(self._index.page[some].tolist(), begin))), np.float64
            )
        first, last = (np.array(times) / _HOUR for times in zip(*spans, strict=True))
        return list(np.searchsorted(hours, first) < np.searchsorted(hours, last))

    def _keep(self, places: Places) -> None:
        """Store what was learned of these pages, unless another program has learned more meanwhile."""
        if not len(places):
            return
        index = self._index
        rows = [
            (int(index.page[place]), float(index.a[place]), float(index.b[place]),
             None if np.isinf(index.checked[place]) else float(index.checked[place]), int(self._learned[place]),
             int(self._failed[place]), float(index.lifetime[place]))
            for place in places
        ]  # fmt: skip
        with self._store.write() as connection:
            stored = {row.id: row.learned or 0 for row in connection.execute(_stored(index.page[places].tolist()))}
            fresh = [row for row in rows if row[0] in stored and row[4] > stored[row[0]]]
            self._store.statements.rate.many(connection, fresh)

    def _cycle(self) -> float:
        """Seconds after which the paper's order begins anew: a day, or less if the budget allows for more."""
        return float(min(DAY, np.isfinite(self._index.rank).sum() / max(self.budget, 1e-9)))

    def _rooms(self) -> NDArray[np.int64] | None:
        """How many pages of each host may be checked now; None if there is no bound."""
        if self._host_budget is None:
            return None
        now = self._ticks()
        most = max(1.0, 60 * self._host_budget)
        self._room = np.minimum(self._room + max(0.0, now - self._room_at) * self._host_budget, most)
        self._room_at = now
        return self._room.astype(np.int64)


_BY = {"value": "what a check is worth", "intelligent": "the paper's order", "fixed": "interval", "uniform": "age"}
_HOUR = 3_600.0
#: what is stored of what was learned of a page
_LEARNED = ("a", "b", "at_last", "learned", "failed", "lifetime")
_RATES = (
    rates.c.a, rates.c.b, rates.c.at.label("at_last"), rates.c.sequence.label("learned"), rates.c.failed,
    rates.c.lifetime,
)  # fmt: skip
_NUMBERS = (
    "id", "version", "every", "added_at", "sequence", "checked_at", "failures", "frequency", "weightage", "ttl",
    *_LEARNED,
)  # fmt: skip

_PAGES = (
    select(
        pages.c.url, cast(pages.c.settings, Text).label("settings"), pages.c.id, states.c.version, pages.c.every,
        pages.c.added_at, states.c.sequence, states.c.checked_at, states.c.failures, visits.c.frequency,
        visits.c.weightage, visits.c.ttl, *_RATES,
    )
    .join(states, states.c.page_id == pages.c.id)
    .outerjoin(rates, rates.c.page_id == pages.c.id)
    .outerjoin(visits, visits.c.url == pages.c.url)
    .order_by(pages.c.id)
    .execution_options(yield_per=10_000)
)  # fmt: skip


class _Ahead:
    """Times in the future, from before a clock was set back: each counts as the moment at which it was first seen.

    That moment is kept, however often the time itself is read anew: else it would move along with the clock, and what
    is due some time after it never would be.
    """

    def __init__(self) -> None:
        self._seen: dict[int, tuple[float, float]] = {}

    def settled(self, page_ids: NDArray[np.int64], times: Floats, now: float) -> Floats:
        """These times of these pages, none of them later than now."""
        found = times.copy()
        for which in np.flatnonzero(times > now).tolist():
            page, then = int(page_ids[which]), float(times[which])
            known, seen = self._seen.get(page, (then, now))
            self._seen[page] = (then, min(seen, now) if known == then else now)
            found[which] = self._seen[page][1]
        return found


def _unlearned(page_ids: Sequence[int]) -> Any:
    """Where these pages stand, with what was learned of them and each check that nothing was learned from yet.

    A check that made a version has its headers; a page without such checks has one row.
    """
    later = (checks.c.page_id == states.c.page_id) & (checks.c.sequence > func.coalesce(rates.c.sequence, 0))
    made = (versions.c.page_id == checks.c.page_id) & (versions.c.sequence == checks.c.sequence)
    return (
        select(
            states.c.page_id, states.c.failures, states.c.checked_at, *_RATES, checks.c.sequence, checks.c.at,
            checks.c.verdict, versions.c.headers,
        )
        .outerjoin(rates, rates.c.page_id == states.c.page_id)
        .outerjoin(checks, later)
        .outerjoin(versions, made)
        .where(states.c.page_id.in_(page_ids))
        .order_by(states.c.page_id, checks.c.sequence)
    )  # fmt: skip


def _stored(page_ids: Sequence[int]) -> Any:
    """Up to which check each of these pages was learned from, of those that are still there."""
    learned = rates.c.sequence.label("learned")
    return select(pages.c.id, learned).outerjoin(rates, rates.c.page_id == pages.c.id).where(pages.c.id.in_(page_ids))


def _missing(page_ids: Sequence[int]) -> Any:
    """At how many checks, up to the last, failing pages were not there, since when, and if for want of a name."""
    nameless = func.coalesce(checks.c.failure_kind, "") == FailureKind.DNS
    absent = or_(nameless, checks.c.status.in_((404, 410)))
    failing = (
        select(checks.c.page_id, checks.c.sequence)
        .join(states, states.c.page_id == checks.c.page_id)
        .where(states.c.page_id.in_(page_ids), checks.c.sequence > states.c.sequence - states.c.failures)
    )
    other = (
        failing.with_only_columns(checks.c.page_id, func.max(checks.c.sequence).label("sequence"))
        .where(not_(absent))
        .group_by(checks.c.page_id)
        .subquery()
    )
    return (
        failing.with_only_columns(
            checks.c.page_id, func.count().label("times"), func.min(checks.c.at).label("first"),
            func.max(checks.c.at).label("last"), func.max(cast(nameless, Integer)).label("nameless"),
        )
        .outerjoin(other, other.c.page_id == checks.c.page_id)
        .where(checks.c.sequence > func.coalesce(other.c.sequence, 0))
        .group_by(checks.c.page_id)
    )  # fmt: skip


def _good_hours(page_ids: Sequence[int], begin: float) -> Any:
    """The hours since then, counted from 1970, in which a check of these pages was good."""
    good = (checks.c.page_id.in_(page_ids), checks.c.at >= begin, checks.c.verdict != Verdict.FAILED)
    return select(cast(checks.c.at / _HOUR, Integer)).where(*good).distinct()


def _columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Floats]:
    """The rows' columns as numbers, and what is missing as none."""
    return dict(zip(names, np.array(rows, np.float64).reshape(-1, len(names)).T, strict=True))


def _capped(failures: Floats) -> NDArray[np.int16]:
    return np.minimum(failures, 1_000).astype(np.int16)


def _days(seconds: Any) -> Any:
    return np.clip(seconds / DAY, 0.0, 3_650.0).astype(np.float32)
