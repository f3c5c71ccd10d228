"""The watch list, read anew a little at a time, while what was read before is in use.

To read a million pages takes ten seconds or so. Nobody may wait for that with a pick, so it is done in steps of some
hundredths of a second, which whoever picks takes in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from driftline.schedule.page_stats import Learned, columns, recall_distrust, recall_pauses
from driftline.schedule.weights import weigh
from driftline.store.schedule_records import FAILURE_COLUMNS, read_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from driftline.schedule.backoff import Patience
    from driftline.schedule.clock_skew import Ahead
    from driftline.schedule.host_table import HostTable
    from driftline.store.engine import Store


class WatchListLoad:
    """One reading of the whole watch list, with what was learned and what is still to be learned; used once.

    `known` is what it found, and complete when `go_on` says so. `edition` is another number whenever a page came or
    went, has another version or other settings. `stamp` is that of the store when it began.
    """

    def __init__(
        self, store: Store, hosts: HostTable, patience: Patience, ahead: Ahead, heard: dict[int, float], *,
        stamp: object, clock: Callable[[], float], expected: int, threshold: float, ordered: bool,
    ) -> None:  # fmt: skip
        self.stamp = stamp
        self.known = Learned(store, hosts, expected)
        self.edition = 0
        self._store = store
        self._hosts = hosts
        self._patience = patience
        self._ahead = ahead
        self._heard = heard
        self._clock = clock
        self._threshold = threshold
        self._ordered = ordered
        self._steps = self._read()

    def go_on(self, enough: Callable[[], bool]) -> bool:
        """Take the next steps until it is enough, one at least; whether all is read."""
        return all(not enough() for _ in self._steps)

    def _read(self) -> Iterator[None]:
        known = self.known
        self._ahead.begin()
        recall_distrust(self._store, self._hosts, self._clock())
        recall_pauses(self._store, known, self._clock())
        size = 0
        behind: list[int] = []
        for rows in read_pages(self._store):
            places = np.arange(size, size := size + len(rows["id"]))
            known.make_room(size)
            self.edition = hash((self.edition, rows["id"], rows["version"], rows["settings"]))
            late = known.take(places, rows)
            behind += known.index.page[places[late]].tolist()
            bad = np.flatnonzero((known.index.failures[places] > 0) & ~late)
            told = columns(FAILURE_COLUMNS, {name: [rows[name][row] for row in bad] for name in FAILURE_COLUMNS})
            now = self._clock()  # it may have been long since the last step
            self._patience.stand_by(known, places[bad], told, now)
            known.settle(places[~late], self._ahead, now)
            yield
        known.cut(size)
        for places, told in known.follow(behind, self._clock(), self._heard):
            now = self._clock()
            known.settle(places, self._ahead, now)
            self._patience.stand_by(known, places, told, now)
            yield
        yield from weigh(self._store, known, self._threshold, ordered=self._ordered)
        yield
        known.index.expect()
