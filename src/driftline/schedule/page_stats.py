"""What was learned about each page from its checks: how often it changes, how often it fails.

Learning follows the recorded checks, whichever process made them, and stores for each page the last check it was
learned from: nothing is lost when a run stops, or when pages are checked manually. A read-only store is not changed.
"""

from __future__ import annotations

import logging
from itertools import compress
from math import isinf
from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.http.headers import lifetime
from driftline.model.change import Importance
from driftline.model.outcome import Verdict
from driftline.schedule.host_table import RetryAfterTable
from driftline.schedule.page_table import DAY, MOST_FAILURES, PageTable
from driftline.store.host_records import HostRecords
from driftline.store.pages import urls_of
from driftline.store.schedule_records import (
    FAILURE_COLUMNS,
    RATE_COLUMNS,
    distrusted_hosts,
    read_sequences,
    read_unlearned_checks,
    save_distrusted_hosts,
    save_rates,
)
from driftline.store.statements import in_batches
from driftline.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from driftline.schedule.host_table import HostTable
    from driftline.schedule.loader import ClockSkew
    from driftline.schedule.page_table import Floats, Places
    from driftline.store.engine import Store

    Pages = NDArray[np.int64]

_LOG = logging.getLogger(__name__)

_AT_ONCE = 2_000  # pages that are learned from at a time
_LONGEST_LIFETIME = DAY  # seconds: servers promise years
_DISTRUST = 180 * DAY  # seconds for which the promises of a host are ignored after it broke one


class PageStats:
    """The table of all watched pages, with what was learned from their checks.

    `sequence` is the last check that each page was learned from, and `failed` counts the failed ones up to it.
    `versions` counts the checks among those learned from here that made a version. `retry_after` has the hosts that
    must not be contacted for a while.
    """

    def __init__(self, store: Store, hosts: HostTable, size: int) -> None:
        self._store = store
        self.hosts = hosts
        self.table = PageTable(size)
        self.sequence = np.zeros(size, np.int32)
        self.failed = np.zeros(size, np.int32)
        self.retry_after = RetryAfterTable()
        self.versions = 0

    def __repr__(self) -> str:
        return f"<PageStats {self.table!r} {self.hosts!r} {self.retry_after!r}>"

    def truncate(self, size: int) -> None:
        """Keep only the first `size` pages: there were fewer than expected."""
        self.table.truncate(size)
        self.sequence, self.failed = self.sequence[:size], self.failed[:size]

    def reserve(self, size: int) -> None:
        """Make sure that there are places for `size` pages: there are more than expected."""
        if size > len(self.table):
            more = max(size - len(self.table), len(self.table) // 4)
            self.table.extend(more)
            self.sequence, self.failed = (np.pad(column, (0, more)) for column in (self.sequence, self.failed))

    def clamp_times(self, places: Places, clock_skew: ClockSkew, now: float) -> None:
        """Replace times of last checks in the future, which were recorded before the clock was set back."""
        self.table.checked[places] = clock_skew.clamp(self.table.checked[places], now)

    def merge(self, other: PageStats, page_ids: Sequence[int]) -> None:
        """Copy what another one learned about these pages from their checks while this one was being read.

        Hosts that became distrusted meanwhile are distrusted here, too.
        """
        table, theirs = self.table, other.table
        pages = np.intersect1d(table.page[self.places(page_ids)], theirs.page[other.places(page_ids)]).tolist()
        here, there = self.places(pages), other.places(pages)
        later = other.sequence[there] >= self.sequence[here]
        here, there = here[later], there[later]
        a, b = theirs.a[there].astype(np.float64), theirs.b[there].astype(np.float64)
        table.set_rates(here, a, b, theirs.checked[there], theirs.learned[there])
        for column, newer in (
            (table.lifetime, theirs.lifetime), (table.not_before, theirs.not_before),
            (table.failures, theirs.failures), (table.gone, theirs.gone), (self.sequence, other.sequence),
            (self.failed, other.failed),
        ):  # fmt: skip
            column[here] = newer[there]
        self.retry_after.merge(other.retry_after, table.page[here])
        self._ignore_broken_promises(np.arange(len(table)))

    def places(self, page_ids: Sequence[int] | Pages) -> Places:
        """Return the places of these pages, without those that are not in the table."""
        return self.find(page_ids)[0]

    def find(self, page_ids: Sequence[int] | Pages) -> tuple[Places, NDArray[np.bool_]]:
        """Return the places of those of these pages that are in the table, and a mask of which of them are."""
        known, given = self.table.page, np.array(page_ids, np.int64)
        found = np.searchsorted(known, given)
        here = found < len(known)
        here[here] = known[found[here]] == given[here]
        return found[here], here

    def pages_with_new_checks(self) -> list[int]:
        """Return the ids of pages in the table that have checks nothing was learned from yet."""
        found: list[int] = []
        for rows in read_sequences(self._store, self.table.page, self.sequence):
            places, here = self.find([row.page_id for row in rows])
            later = np.array([row.sequence for row in rows], np.int32)[here] > self.sequence[places]
            found += self.table.page[places[later]].tolist()
        return found

    def load_rows(self, places: Places, rows: dict[str, tuple[Any, ...]]) -> NDArray[np.bool_]:
        """Put these rows of the watch list at these places. Returns which of them have new checks to learn from."""
        table = self.table
        table.page[places] = rows["id"]
        table.host[places] = self.hosts.of(rows["url"])
        table.every[places] = [np.inf if every is None else every for every in rows["every"]]
        table.failures[places] = np.minimum(rows["failures"], MOST_FAILURES)
        self._load_rates(places, as_floats(RATE_COLUMNS, rows))
        late: NDArray[np.bool_] = np.array(rows["sequence"], np.int32) > self.sequence[places]
        return late

    def _load_rates(self, places: Places, rows: dict[str, Floats]) -> None:
        """Set the stored rates of these pages; NaN where none is stored."""
        stored = ~np.isnan(rows["a"])
        places = places[stored]
        a, b, at, learned, failed, seconds = (rows[name][stored] for name in RATE_COLUMNS)
        table = self.table
        # how often a page changes can be estimated from two successful checks on
        table.set_rates(places, a, b, np.where(np.isnan(at), -np.inf, at), learned - failed >= 2)
        table.lifetime[places] = np.where(self.hosts.distrusted[table.host[places]], 0.0, seconds)
        self.sequence[places], self.failed[places] = learned, failed

    def learn_from(
        self, page_ids: Sequence[int], now: float, lifetimes: dict[int, float]
    ) -> Iterator[tuple[Places, dict[str, Floats]]]:
        """Learn from the new checks of these pages, made by this process or another.

        `lifetimes` are the seconds for which the last responses declared their pages fresh, by page; the entries of
        these pages are removed. Yields the places of the pages and their FAILURE_COLUMNS, a part at a time.
        """
        promise_broken = False
        try:
            for some in in_batches(self.table.page[self.places(page_ids)].tolist(), _AT_ONCE):
                read: list[Pages] = []
                learned: list[Pages] = []
                states: list[dict[str, Floats]] = []
                early: list[int] = []
                latest = 0
                # a part of the checks at a time: there may be years of them
                for rows in read_unlearned_checks(self._store, some):
                    page = np.array(rows["page_id"], np.int64)
                    first = np.diff(page, prepend=latest) > 0  # the rows of a page are neighbours, also in two parts
                    latest = int(page[-1])
                    read.append(page[first])
                    states.append({name: column[first] for name, column in as_floats(FAILURE_COLUMNS, rows).items()})
                    rates = {name: column[first] for name, column in as_floats(RATE_COLUMNS, rows).items()}
                    self._load_rates(self.places(read[-1]), rates)
                    checked = np.array([sequence is not None for sequence in rows["sequence"]], np.bool_)
                    learned.append(page[checked])
                    early += self._learn({name: [*compress(column, checked)] for name, column in rows.items()})
                if not read:
                    continue  # all of them were removed
                pages = np.concatenate(read)
                if early:
                    self._distrust_hosts_of(early, now)
                    self._ignore_broken_promises(self.places(pages))
                    promise_broken = True
                promised = [(page, left) for page in pages.tolist() if (left := lifetimes.pop(page, None)) is not None]
                self._set_lifetimes(self.places([page for page, _ in promised]), [left for _, left in promised])
                self._save(np.unique(np.concatenate(learned)), [page for page, _ in promised])
                yield self.places(pages), {name: np.concatenate([one[name] for one in states]) for name in states[0]}
        finally:
            if promise_broken:  # once for all pages, of which there may be a million
                self._ignore_broken_promises(np.arange(len(self.table)))

    def _ignore_broken_promises(self, places: Places) -> None:
        """Clear the lifetimes of those of these pages whose host is distrusted."""
        self.table.lifetime[places[self.hosts.distrusted[self.table.host[places]]]] = 0.0

    def _learn(self, checks: Mapping[str, Sequence[Any]]) -> list[int]:
        """Learn from these checks, which are in order of page and time.

        The first checks of all pages are learned from at once, then the second ones, and so on. Returns the ids of
        pages that changed within their promised lifetime.
        """
        table = self.table
        place = self.places(checks["page_id"])
        sequence, at = np.array(checks["sequence"], np.int32), np.array(checks["at"], np.float64)
        failed = np.array([verdict == Verdict.FAILED for verdict in checks["verdict"]], np.bool_)
        # a page that is only put in another order or written in another way need not be checked more often
        minor = np.array([importance == Importance.MINOR for importance in checks["importance"]], np.bool_)
        changed = ~minor & np.array([verdict == Verdict.CHANGED for verdict in checks["verdict"]], np.bool_)
        made_version = np.array([headers is not None for headers in checks["headers"]], np.bool_)
        seconds = np.array([0.0 if headers is None else lifetime(headers) or 0.0 for headers in checks["headers"]])
        first = np.r_[True, place[1:] != place[:-1]] if len(place) else np.zeros(0, np.bool_)
        nth_of_page = np.arange(len(place)) - np.flatnonzero(first)[np.cumsum(first) - 1]
        by_nth = np.argsort(nth_of_page, kind="stable")
        early: list[int] = []
        for some in np.split(by_nth, np.cumsum(np.bincount(nth_of_page))[:-1]):
            good = some[~failed[some]]
            where = place[good]
            age = at[good] - table.checked[where]  # negative where the clock was set back
            too_early = where[changed[good] & (age >= 0) & (age < table.lifetime[where])]
            early += table.page[too_early].tolist()
            table.record_checks(where, at[good], changed[good])
            self.sequence[place[some]] = sequence[some]
            kept = some[made_version[some]]
            self._set_lifetimes(place[kept], seconds[kept])
        self.versions += int(made_version.sum())
        np.add.at(self.failed, place[failed], 1)
        return early

    def _set_lifetimes(self, places: Places, seconds: Sequence[float] | Floats) -> None:
        """Set for how long the servers of these pages promised not to change them."""
        distrusted = self.hosts.distrusted[self.table.host[places]]
        self.table.lifetime[places] = np.where(distrusted, 0.0, np.minimum(seconds, _LONGEST_LIFETIME))

    def _distrust_hosts_of(self, page_ids: Sequence[int], now: float) -> None:
        """Stop trusting the hosts of these pages, which changed within their promised lifetime."""
        names = sorted({host_of(url) for url in urls_of(self._store, page_ids).values()})
        _LOG.debug("pages changed within the lifetime in their headers, which is ignored from now on for: %s", names)
        self.hosts.distrusted[self.hosts.named(names)] = True
        save_distrusted_hosts(self._store, names, now)

    def _save(self, learned: Pages, promised: Sequence[int]) -> None:
        """Store what was learned about these pages, unless another process has learned from more checks.

        Pages with a newly `promised` lifetime are stored even if no more checks were learned from: the lifetime was in
        a response that only this process received.
        """
        pages = np.union1d(learned, np.array(promised, np.int64))
        if self._store.read_only or not len(pages):
            return
        table, places = self.table, self.places(pages)
        checked = [None if isinf(at) else at for at in table.checked[places].tolist()]
        before, after = (table.page, table.a, table.b), (self.sequence, self.failed, table.lifetime)
        rows = zip(
            *(column[places].tolist() for column in before), checked, *(column[places].tolist() for column in after),
            strict=True,
        )  # fmt: skip
        save_rates(self._store, [*rows], also_equal=set(promised))


def load_distrusted_hosts(store: Store, hosts: HostTable, now: float) -> None:
    """Distrust the hosts that broke a promise within the last half year, and trust all others."""
    numbers = hosts.named(distrusted_hosts(store, now - _DISTRUST))
    hosts.distrusted[:] = False
    hosts.distrusted[numbers] = True


def load_pauses(store: Store, stats: PageStats, now: float) -> None:
    """Hold back the hosts that are under Retry-After in the store, whichever process received it."""
    pauses = HostRecords(store).pauses(now)
    stats.retry_after.set_hosts(stats.hosts.named([*pauses]), [*pauses.values()])


def as_floats(names: Sequence[str], rows: Mapping[str, Sequence[Any]]) -> dict[str, Floats]:
    """Return these columns as arrays of numbers, NaN for None."""
    return {name: np.array(rows[name], np.float64) for name in names}
