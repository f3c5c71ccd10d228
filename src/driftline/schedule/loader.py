"""Reading the whole watch list in small steps, while the scheduler keeps using what was read before.

A million pages take about ten seconds to read. No pick should wait for that, so each step takes some hundredths of a
second, and the scheduler picks between steps. Recorded times in the future, after a clock was set back, are replaced.

How much each page weighs, and its rank, are computed from its visits.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.schedule.page_stats import PageStats, as_floats, load_distrusted_hosts, load_pauses
from driftline.store.schedule_records import (
    CLOCK_TOLERANCE,
    FAILURE_COLUMNS,
    pages_found_lately,
    read_clock_skew,
    read_pages,
    read_visits,
    save_clock_skew,
)
from driftline.store.statements import in_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from driftline.schedule.backoff import Backoff
    from driftline.schedule.host_table import HostTable
    from driftline.schedule.page_table import Floats, Places
    from driftline.store.engine import Store

    Numbers = NDArray[np.floating[Any]]

_LOG = logging.getLogger(__name__)
#: the smallest weight of a page, as a share of the mean weight
FLOOR = 0.1
_RESTORED = 3  # successful checks in a row that outweigh all failed visits


class WatchListLoad:
    """One reading of the watch list, which also learns from checks that nothing was learned from yet. Used once.

    `stats` is the result, complete once `run_until` returns True. `edition` is a number that changes whenever a page
    was added or removed, or has another version or other settings. `stamp` is that of the store at the start.
    """

    def __init__(
        self, store: Store, hosts: HostTable, backoff: Backoff, clock_skew: ClockSkew, lifetimes: dict[int, float], *,
        stamp: object, clock: Callable[[], float], expected: int, threshold: float, ordered: bool,
    ) -> None:  # fmt: skip
        self.stamp = stamp
        self.stats = PageStats(store, hosts, expected)
        self.edition = 0
        self._store = store
        self._hosts = hosts
        self._backoff = backoff
        self._clock_skew = clock_skew
        self._lifetimes = lifetimes
        self._clock = clock
        self._threshold = threshold
        self._ordered = ordered
        self._pages_read = 0
        self._steps = self._read()

    def __repr__(self) -> str:
        return f"<WatchListLoad pages_read={self._pages_read}>"

    def run_until(self, enough: Callable[[], bool]) -> bool:
        """Run the next steps, at least one, until `enough` returns True. Returns whether everything is read."""
        return all(not enough() for _ in self._steps)

    def _read(self) -> Iterator[None]:
        stats = self.stats
        self._clock_skew.start_reading()
        load_distrusted_hosts(self._store, self._hosts, self._clock())
        load_pauses(self._store, stats, self._clock())
        size = 0
        not_learned: list[int] = []
        for rows in read_pages(self._store):
            places = np.arange(size, size := size + len(rows["id"]))
            stats.reserve(size)
            self.edition = hash((self.edition, rows["id"], rows["version"], rows["settings"]))
            late = stats.load_rows(places, rows)
            not_learned += stats.table.page[places[late]].tolist()
            bad = np.flatnonzero((stats.table.failures[places] > 0) & ~late)
            states = as_floats(FAILURE_COLUMNS, {name: [rows[name][row] for row in bad] for name in FAILURE_COLUMNS})
            now = self._clock()  # the last step may have been long ago
            self._backoff.update(stats, places[bad], states, now)
            stats.clamp_times(places[~late], self._clock_skew, now)
            self._pages_read = size
            yield
        stats.truncate(size)
        for places, states in stats.learn_from(not_learned, self._clock(), self._lifetimes):
            now = self._clock()
            stats.clamp_times(places, self._clock_skew, now)
            self._backoff.update(stats, places, states, now)
            yield
        yield from weigh(self._store, stats, self._threshold, ordered=self._ordered)
        yield
        stats.table.apply_priors()


class ClockSkew:
    """Replaces recorded times in the future by the moment at which any of them was first seen.

    That moment is stored for all processes, as long as there are such times: if each reading used its own current time,
    it would advance with the clock, and nothing counted from it would ever be due. The records themselves are not
    changed, because it may be the current time that is wrong.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._first_seen: float | None = None
        self._seen_again = False

    def __repr__(self) -> str:
        return f"<ClockSkew first_seen={self._first_seen}>"

    def start_reading(self) -> None:
        """Prepare for reading all recorded times again."""
        self._seen_again = False
        self._first_seen = read_clock_skew(self._store)

    def clamp(self, times: Floats, now: float) -> Floats:
        """Return these times with those in the future replaced; up to a minute ahead is normal between two clocks."""
        future = times > now + CLOCK_TOLERANCE
        if not future.any():
            return times
        self._seen_again = True
        if self._first_seen is None or self._first_seen > now + CLOCK_TOLERANCE:
            _LOG.debug("%d recorded times are in the future: the clock was set back", int(future.sum()))
            save_clock_skew(self._store, now)
            self._first_seen = now
        return np.where(future, self._first_seen, times)

    def finish_reading(self) -> None:
        """Forget the moment if no time was in the future: the next such time will be from another wrong clock."""
        if self._first_seen is not None and not self._seen_again:
            _LOG.debug("no recorded time is in the future any more")
            save_clock_skew(self._store, None)
            self._first_seen = None


def importance(frequency: Numbers, weightage: Numbers) -> Numbers:
    """Return the importance of each page: half its share of all visits, half its share of all time spent.

    Both arrays are of the same pages, 0 for those never visited. Where no time is known, visits count whole; where
    nothing is known, all pages are equally important. No page is less important than `FLOOR` of the mean.
    """
    pages = max(1, len(frequency))
    visits, seconds = float(frequency.sum(dtype=np.float64)), float(weightage.sum(dtype=np.float64))
    if not visits and not seconds:
        return np.full_like(frequency, 1 / pages)
    half = 0.5 if visits and seconds else 1.0
    weight = frequency * (half / visits if visits else 0.0) + weightage * (half / seconds if seconds else 0.0)
    found: Numbers = np.maximum(weight, FLOOR / pages)
    return found


def availability(ttl: Numbers, frequency: Numbers) -> Numbers:
    """Return how likely a page is to be available at the next visit; ½ if nothing is known, and never quite 0 or 1."""
    found: Numbers = (ttl + 1) / (frequency + 2)
    return found


def weigh(store: Store, stats: PageStats, threshold: float, *, ordered: bool) -> Iterator[None]:
    """Set the weight of all pages from their visits and availability, and also their rank if `ordered`.

    The second paper's filter drops a page from the order if it was available at too few visits, until its last checks
    found it. This is a generator so that the caller can do something else between its steps.
    """
    table = stats.table
    frequency, weightage, ttl = (np.zeros(len(table), np.float32) for _ in range(3))
    filtered = [np.zeros(0, np.int64)]
    for portion in read_visits(store):
        places, here = stats.find(portion["id"])
        visits = {name: np.array(column, np.float64)[here] for name, column in portion.items()}
        frequency[places], weightage[places], ttl[places] = visits["frequency"], visits["weightage"], visits["ttl"]
        filtered.append(places[visits["ttl"] <= visits["frequency"] * threshold])
        yield
    dropped = np.concatenate(filtered)
    found: list[int] = []
    for some in in_batches(_may_be_back(stats, dropped)):
        found += pages_found_lately(store, some, _RESTORED)
        yield
    back = stats.places(sorted(found))
    checks = stats.sequence.astype(np.float32)
    available, tries = ttl + checks - stats.failed.astype(np.float32), frequency + checks
    available[back] = tries[back] = _RESTORED
    table.weight[:] = len(table) * importance(frequency, weightage) * availability(available, tries)
    if ordered:
        order = np.lexsort((-ttl, -weightage, -frequency))
        table.rank[order] = np.arange(len(table))
        table.rank[np.setdiff1d(dropped, back)] = np.inf


def _may_be_back(stats: PageStats, dropped: Places) -> list[int]:
    """Return the ids of those pages whose last checks may all have succeeded."""
    table = stats.table
    good = dropped[(table.failures[dropped] == 0) & (stats.sequence[dropped] >= _RESTORED)]
    pages: list[int] = table.page[good].tolist()
    return pages
