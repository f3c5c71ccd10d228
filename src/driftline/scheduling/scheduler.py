"""What `run` asks: which pages to check now. It reads the watch list into the index, and learns from every check.

Learning follows the checks that are recorded, whoever made them, and remembers of each page up to which one: a run that
was stopped, or a `check` by hand, costs nothing of it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import Text, cast, func, select

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
    from driftline.versions.store import Store

_AT_ONCE = 500
_LONGEST_LIFETIME = DAY  # seconds: servers promise years
_GONE_AFTER, _GONE_DAYS = 4, 3.0  # failures in a row, over so many days at least


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
        with self._store.read() as connection:
            rows: Sequence[Any] = connection.execute(_PAGES).all()
        size = len(rows)
        index = self._index = Index(size)
        self._urls = [row.url for row in rows]
        index.page[:] = [row.id for row in rows]
        self.edition = hash(tuple([(row.id, row.version, row.settings) for row in rows]))
        numbers = self._hosts
        index.host[:] = [numbers.setdefault(host_of(url), len(numbers)) for url in self._urls]
        index.every[:] = [np.inf if row.every is None else row.every for row in rows]
        self._learned = np.array([row.learned or 0 for row in rows], np.int64)
        self._failed = np.array([row.failed or 0 for row in rows], np.int64)
        known = np.flatnonzero([row.a is not None for row in rows])
        some = [rows[int(place)] for place in known]
        index.remember(
            known, np.array([row.a for row in some], np.float32), np.array([row.b for row in some], np.float32),
            np.array([-np.inf if row.at is None else row.at for row in some]),
        )  # fmt: skip
        index.lifetime[known] = [row.lifetime for row in some]
        self._added = np.array([row.added_at for row in rows])
        self._weigh(rows)
        self._room = np.pad(self._room, (0, max(0, len(numbers) - len(self._room))), constant_values=1.0)
        behind = [row.id for row, learned in zip(rows, self._learned, strict=True) if row.sequence > learned]
        self._gone = np.zeros(size, np.bool_)
        self.follow(behind)
        self._stand_by([(row.id, row.failures, row.checked_at) for row in rows if row.failures])

    def follow(self, page_ids: Sequence[int]) -> None:
        """Learn from what was recorded of these pages since the last time."""
        where = {int(page): place for place, page in enumerate(self._index.page)} if page_ids else {}
        for start in range(0, len(page_ids), _AT_ONCE):
            some = [page for page in page_ids[start : start + _AT_ONCE] if page in where]
            with self._store.read() as connection:
                found = connection.execute(_unlearned(some)).all()
                standing = connection.execute(_standing(some)).all()
            self._learn(found, where)
            self._stand_by([(row.page_id, row.failures, row.checked_at) for row in standing])
            self._keep({row.page_id for row in found}, where)

    def pick(self) -> list[int]:
        """The pages to check now, the most urgent first."""
        index, now = self._index, self._clock()
        # a clock that was set back must not keep pages waiting for the future
        np.minimum(index.checked, now, out=index.checked)
        np.minimum(index.not_before, now + PROBE, out=index.not_before)
        shared = self._budget is not None
        allowed = self._credit.grow(self._ticks(), self.budget)
        places = index.pick(
            now, allowed, policy=self._policy, default_every=self._every, cycle=self._cycle(), room=self._rooms(),
            shared=shared,
        )  # fmt: skip
        charged = places if shared else places[np.isfinite(index.checked[places]) & np.isinf(index.every[places])]
        if self._policy != "fixed" or shared:
            self._credit.spend(len(charged))
        if self._host_budget is not None:
            np.subtract.at(self._room, index.host[places], 1.0)
        return [int(page) for page in index.page[places]]

    def terms(self, limit: int | None = None) -> list[Terms]:
        """What will be checked next, and why, as things stand now."""
        index, now = self._index, self._clock()
        worth = index.values(now)
        chances = believed(index.a, index.b, _days(now - index.checked))
        lanes = [self._lane(place, now) for place in range(len(index))]
        due = [self._due(place, lane) for place, lane in enumerate(lanes)]
        order = sorted(
            range(len(index)), key=lambda place: (_LANES.index(lanes[place]), due[place] or 0.0, -worth[place])
        )
        return [
            Terms(
                page_id=int(index.page[place]), url=self._urls[place], lane=lanes[place], value=float(worth[place]),
                weight=float(index.weight[place]), rate=float(index.a[place] / index.b[place]),
                days=None if np.isinf(index.checked[place]) else float(_days(now - index.checked[place])),
                chance=float(chances[place]), lifetime=float(index.lifetime[place]),
                every=None if np.isinf(index.every[place]) else float(index.every[place]), due_at=due[place],
            )
            for place in order[:limit]
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

    def _due(self, place: int, lane: str) -> float | None:
        index = self._index
        if lane in ("gone", "waiting"):
            return float(index.not_before[place])
        if lane != "deadline":
            return None
        every = float(index.every[place])
        return float(index.checked[place]) + (self._every if np.isinf(every) else every)

    def _weigh(self, rows: Sequence[Any]) -> None:
        """Weights and ranks by the visits, and by how often each page was there."""
        index = self._index
        frequency, weightage, ttl = (
            np.array([getattr(row, name) or 0.0 for row in rows]) for name in ("frequency", "weightage", "ttl")
        )
        weight = len(rows) * np.array(importance(frequency.tolist(), weightage.tolist()))
        tries = np.array([row.sequence for row in rows], np.float64)
        index.weight[:] = weight * availability(ttl + tries - self._failed, frequency + tries)
        kept = (frequency == 0) | (ttl > frequency * self._threshold)
        order = np.lexsort((-ttl, -weightage, -frequency))
        index.rank[order] = np.arange(len(rows))
        index.rank[~kept] = np.inf

    def _learn(self, found: Sequence[Row[Any]], where: dict[int, int]) -> None:
        """Learn from these checks, in order of page and of time: of each page the first, then the second, and so on."""
        index = self._index
        place = np.array([where[row.page_id] for row in found], np.int64)
        at = np.array([row.at for row in found])
        failed = np.array([row.verdict == Verdict.FAILED for row in found], np.bool_)
        changed = np.array([row.verdict == Verdict.CHANGED for row in found], np.bool_)
        first = np.r_[True, place[1:] != place[:-1]] if len(place) else np.zeros(0, np.bool_)
        turn = np.arange(len(place)) - np.flatnonzero(first)[np.cumsum(first) - 1]
        for number in range(int(turn.max(initial=-1)) + 1):
            good = (turn == number) & ~failed
            early = place[good][changed[good] & (at[good] - index.checked[place[good]] < index.lifetime[place[good]])]
            # a host that changes a page before its time is not believed any more
            self._distrusted.update(index.host[early].tolist())
            index.learn(place[good], at[good], changed[good])
        np.add.at(self._failed, place[failed], 1)
        for row in found:
            self._learned[where[row.page_id]] = row.sequence
            if row.headers is not None:
                index.lifetime[where[row.page_id]] = min(lifetime(row.headers), _LONGEST_LIFETIME)
        index.lifetime[np.isin(index.host, list(self._distrusted))] = 0.0

    def _stand_by(self, standing: Sequence[tuple[int, int, float | None]]) -> None:
        """Leave pages alone for a while that fail, and those for long that are gone."""
        index, now = self._index, self._clock()
        failing = {page: (failures, at) for page, failures, at in standing if failures}
        if not failing:
            return
        places = np.flatnonzero(np.isin(index.page, list(failing)))
        index.failures[places] = [min(failing[int(page)][0], 1_000) for page in index.page[places]]
        last = np.array([failing[int(page)][1] or now for page in index.page[places]])
        since = np.maximum(index.checked[places], self._added[places])
        long = places[(index.failures[places] >= _GONE_AFTER) & (last - since >= _GONE_DAYS * DAY)]
        gone = self._never_to_return([int(page) for page in index.page[long]])
        self._gone[places] = np.isin(index.page[places], list(gone))
        # who asked for an interval wants to know of a recovery within it
        asked = np.where(np.isinf(index.every[places]) & (self._policy == "fixed"), self._every, index.every[places])
        wait = np.minimum(back_off(index.failures[places]), asked)
        index.not_before[places] = last + np.where(self._gone[places], PROBE, wait)

    def _never_to_return(self, page_ids: Sequence[int]) -> set[int]:
        """Those of these pages whose host is no more, or says that they are not there."""
        found: set[int] = set()
        with self._store.read() as connection:
            for start in range(0, len(page_ids), _AT_ONCE):
                rows = connection.execute(_last_checks(page_ids[start : start + _AT_ONCE]))
                found |= {
                    row.page_id for row in rows if row.failure_kind == FailureKind.DNS or row.status in (404, 410)
                }
        return found

    def _keep(self, page_ids: set[int], where: dict[int, int]) -> None:
        """Store what was learned of these pages."""
        index = self._index
        rows = [
            (page, float(index.a[place]), float(index.b[place]),
             None if np.isinf(index.checked[place]) else float(index.checked[place]), int(self._learned[place]),
             int(self._failed[place]), float(index.lifetime[place]))
            for page, place in ((page, where[page]) for page in page_ids)
        ]  # fmt: skip
        with self._store.write() as connection:
            there = set(connection.scalars(select(pages.c.id).where(pages.c.id.in_(page_ids))))
            self._store.statements.rate.many(connection, [row for row in rows if row[0] in there])

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
_LANES = ("deadline", "new", "value", "waiting", "gone")

_PAGES = (
    select(
        pages.c.id, pages.c.url, pages.c.every, pages.c.added_at, states.c.sequence, states.c.checked_at,
        states.c.failures, states.c.version, cast(pages.c.settings, Text).label("settings"), rates.c.a,
        rates.c.b, rates.c.at, rates.c.sequence.label("learned"), rates.c.failed,
        rates.c.lifetime, visits.c.frequency, visits.c.weightage, visits.c.ttl,
    )
    .join(states, states.c.page_id == pages.c.id)
    .outerjoin(rates, rates.c.page_id == pages.c.id)
    .outerjoin(visits, visits.c.url == pages.c.url)
    .order_by(pages.c.id)
)  # fmt: skip


def _unlearned(page_ids: Sequence[int]) -> Any:
    """The checks of these pages that nothing was learned from yet, with the headers of those that made a version."""
    made = (versions.c.page_id == checks.c.page_id) & (versions.c.sequence == checks.c.sequence)
    return (
        select(checks.c.page_id, checks.c.sequence, checks.c.at, checks.c.verdict, versions.c.headers)
        .outerjoin(rates, rates.c.page_id == checks.c.page_id)
        .outerjoin(versions, made)
        .where(checks.c.page_id.in_(page_ids), checks.c.sequence > func.coalesce(rates.c.sequence, 0))
        .order_by(checks.c.page_id, checks.c.sequence)
    )


def _standing(page_ids: Sequence[int]) -> Any:
    return select(states.c.page_id, states.c.failures, states.c.checked_at).where(states.c.page_id.in_(page_ids))


def _last_checks(page_ids: Sequence[int]) -> Any:
    last = (states.c.page_id == checks.c.page_id) & (states.c.sequence == checks.c.sequence)
    return (
        select(checks.c.page_id, checks.c.failure_kind, checks.c.status)
        .join(states, last)
        .where(states.c.page_id.in_(page_ids))
    )


def _days(seconds: Any) -> Any:
    return np.clip(seconds / DAY, 0.0, 3_650.0).astype(np.float32)
