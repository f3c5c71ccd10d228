"""Reading the whole watch list in small steps, while the scheduler keeps using what was read before.

A million pages take about ten seconds to read. No pick should wait for that, so each step takes some hundredths of a
second, and the scheduler picks between steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from driftline.schedule.page_stats import PageStats, as_floats, load_distrusted_hosts, load_pauses
from driftline.schedule.weights import weigh
from driftline.store.schedule_records import FAILURE_COLUMNS, read_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from driftline.schedule.backoff import Backoff
    from driftline.schedule.clock_skew import ClockSkew
    from driftline.schedule.host_table import HostTable
    from driftline.store.engine import Store


class WatchListLoad:
    """One reading of the watch list, which also learns from checks that nothing was learned from yet. Used once.

    `stats` is the result, complete once `run_until` returns True. `edition` is a number that differs whenever a page
    was added or removed, or has another version or other settings. `stamp` is the store's when the reading began.
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
