"""What was learned of each page from its checks, in step with the store.

Learning follows the checks that are recorded, whoever made them, and remembers of each page up to which one: a run that
was stopped, or a `check` by hand, costs nothing of it. A store that can only be read keeps what it has.
"""

from __future__ import annotations

from itertools import compress
from math import isinf
from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.http.headers import lifetime
from driftline.model import Verdict
from driftline.schedule.host_table import RetryAfterTable
from driftline.schedule.page_table import DAY, MOST_FAILURES, Index
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
from driftline.urls.parts import host_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from driftline.schedule.clock_skew import Ahead
    from driftline.schedule.host_table import HostTable
    from driftline.schedule.page_table import Floats, Places
    from driftline.store.engine import Store

    Pages = NDArray[np.int64]

_AT_ONCE = 2_000  # pages that are learned from at a time
_LONGEST_LIFETIME = DAY  # seconds: servers promise years
_DISTRUST = 180 * DAY  # seconds for which a host is not believed that was caught


class Learned:
    """So many pages of the watch list, as an index, with what was learned of them.

    `upto` is the check of each page up to which it was learned from, and `failed` how many of those had failed.
    `versions` counts the checks among those that it followed which made a version. `asked` are those of the `hosts`
    that want to be left alone.
    """

    def __init__(self, store: Store, hosts: HostTable, size: int) -> None:
        self._store = store
        self.hosts = hosts
        self.index = Index(size)
        self.upto = np.zeros(size, np.int32)
        self.failed = np.zeros(size, np.int32)
        self.asked = RetryAfterTable()
        self.versions = 0

    def cut(self, size: int) -> None:
        """Keep the first so many pages: there were fewer to be read than had been expected."""
        self.index.cut(size)
        self.upto, self.failed = self.upto[:size], self.failed[:size]

    def make_room(self, size: int) -> None:
        """Let there be places for so many pages at least: there are more than had been expected."""
        if size > len(self.index):
            more = max(size - len(self.index), len(self.index) // 4)
            self.index.grow(more)
            self.upto, self.failed = (np.pad(facts, (0, more)) for facts in (self.upto, self.failed))

    def settle(self, places: Places, ahead: Ahead, now: float) -> None:
        """Let no last good check of these pages be in the future, from before the clock was set back."""
        self.index.checked[places] = ahead.settled(self.index.checked[places], now)

    def take_over(self, other: Learned, page_ids: Sequence[int]) -> None:
        """Of these pages, what the other one has learned counts, which followed their checks while this one was read.

        A host that was caught meanwhile is not believed here either.
        """
        index, told = self.index, other.index
        pages = np.intersect1d(index.page[self.places(page_ids)], told.page[other.places(page_ids)]).tolist()
        here, there = self.places(pages), other.places(pages)
        later = other.upto[there] >= self.upto[here]
        here, there = here[later], there[later]
        a, b = told.a[there].astype(np.float64), told.b[there].astype(np.float64)
        index.remember(here, a, b, told.checked[there], told.learned[there])
        for facts, newer in (
            (index.lifetime, told.lifetime), (index.not_before, told.not_before), (index.failures, told.failures),
            (index.gone, told.gone), (self.upto, other.upto), (self.failed, other.failed),
        ):  # fmt: skip
            facts[here] = newer[there]
        self.asked.take_over(other.asked, index.page[here])
        self._doubt(np.arange(len(index)))

    def places(self, page_ids: Sequence[int] | Pages) -> Places:
        """Where these pages are, of those that are here."""
        return self.find(page_ids)[0]

    def find(self, page_ids: Sequence[int] | Pages) -> tuple[Places, NDArray[np.bool_]]:
        """Where those of these pages are that are here, and which they are."""
        known, wanted = self.index.page, np.array(page_ids, np.int64)
        found = np.searchsorted(known, wanted)
        here = found < len(known)
        here[here] = known[found[here]] == wanted[here]
        return found[here], here

    def overtaken(self) -> list[int]:
        """The pages that are here and have checks which nothing was learned from yet."""
        found: list[int] = []
        for rows in read_sequences(self._store, self.index.page, self.upto):
            places, here = self.find([row.page_id for row in rows])
            later = np.array([row.sequence for row in rows], np.int32)[here] > self.upto[places]
            found += self.index.page[places[later]].tolist()
        return found

    def take(self, places: Places, rows: dict[str, tuple[Any, ...]]) -> NDArray[np.bool_]:
        """Put these rows of the watch list at these places; of which of them there are checks to learn from."""
        index = self.index
        index.page[places] = rows["id"]
        index.host[places] = self.hosts.of(rows["url"])
        index.every[places] = [np.inf if every is None else every for every in rows["every"]]
        index.failures[places] = np.minimum(rows["failures"], MOST_FAILURES)
        self.remember(places, columns(RATE_COLUMNS, rows))
        late: NDArray[np.bool_] = np.array(rows["sequence"], np.int32) > self.upto[places]
        return late

    def remember(self, places: Places, told: dict[str, Floats]) -> None:
        """Take over what is stored of these pages; one good check says nothing yet of how often a page changes."""
        known = ~np.isnan(told["a"])
        places = places[known]
        a, b, at, learned, failed, lasts = (told[name][known] for name in RATE_COLUMNS)
        index = self.index
        index.remember(places, a, b, np.where(np.isnan(at), -np.inf, at), learned - failed >= 2)
        index.lifetime[places] = np.where(self.hosts.distrusted[index.host[places]], 0.0, lasts)
        self.upto[places], self.failed[places] = learned, failed

    def follow(
        self, page_ids: Sequence[int], now: float, heard: dict[int, float]
    ) -> Iterator[tuple[Places, dict[str, Floats]]]:
        """Learn from what was recorded of these pages since the last time, by this program or another.

        `heard` is what servers said last of how long their pages last, and is taken from it. A part at a time: where
        these pages are, and how they stand.
        """
        surprised = False
        try:
            for some in in_batches(self.index.page[self.places(page_ids)].tolist(), _AT_ONCE):
                met: list[Pages] = []
                late: list[Pages] = []
                stands: list[dict[str, Floats]] = []
                caught: list[int] = []
                latest = 0
                # a part of the checks at a time: there may be years of them
                for rows in read_unlearned_checks(self._store, some):
                    page = np.array(rows["page_id"], np.int64)
                    first = np.diff(page, prepend=latest) > 0  # the rows of a page are neighbours, also in two parts
                    latest = int(page[-1])
                    met.append(page[first])
                    stands.append({name: facts[first] for name, facts in columns(FAILURE_COLUMNS, rows).items()})
                    known = {name: facts[first] for name, facts in columns(RATE_COLUMNS, rows).items()}
                    self.remember(self.places(met[-1]), known)
                    found = np.array([sequence is not None for sequence in rows["sequence"]], np.bool_)
                    late.append(page[found])
                    caught += self._learn({name: [*compress(column, found)] for name, column in rows.items()})
                if not met:
                    continue  # all of them were removed
                pages = np.concatenate(met)
                if caught:
                    self._distrust(caught, now)
                    self._doubt(self.places(pages))
                    surprised = True
                told = [(page, lasts) for page in pages.tolist() if (lasts := heard.pop(page, None)) is not None]
                self._believe(self.places([page for page, _ in told]), [lasts for _, lasts in told])
                self._keep(np.unique(np.concatenate(late)), [page for page, _ in told])
                yield (
                    self.places(pages),
                    {name: np.concatenate([one[name] for one in stands]) for name in FAILURE_COLUMNS},
                )
        finally:
            if surprised:  # once for all pages: they may be a million, and learned from a few at a time
                self._doubt(np.arange(len(self.index)))

    def _doubt(self, places: Places) -> None:
        """Believe none of these pages whose host was caught."""
        self.index.lifetime[places[self.hosts.distrusted[self.index.host[places]]]] = 0.0

    def _learn(self, found: Mapping[str, Sequence[Any]]) -> list[int]:
        """Learn from these checks, in order of page and of time: of each page the first, then the second, and so on.

        The pages that changed before their time are returned.
        """
        index = self.index
        place = self.places(found["page_id"])
        sequence, at = np.array(found["sequence"], np.int32), np.array(found["at"], np.float64)
        failed = np.array([verdict == Verdict.FAILED for verdict in found["verdict"]], np.bool_)
        changed = np.array([verdict == Verdict.CHANGED for verdict in found["verdict"]], np.bool_)
        made = np.array([headers is not None for headers in found["headers"]], np.bool_)
        lasts = np.array([0.0 if headers is None else lifetime(headers) or 0.0 for headers in found["headers"]])
        first = np.r_[True, place[1:] != place[:-1]] if len(place) else np.zeros(0, np.bool_)
        turn = np.arange(len(place)) - np.flatnonzero(first)[np.cumsum(first) - 1]
        by_turn = np.argsort(turn, kind="stable")
        caught: list[int] = []
        for some in np.split(by_turn, np.cumsum(np.bincount(turn))[:-1]):
            good = some[~failed[some]]
            where = place[good]
            age = at[good] - index.checked[where]  # less than nothing where the clock was set back
            early = where[changed[good] & (age >= 0) & (age < index.lifetime[where])]
            caught += index.page[early].tolist()
            index.learn(where, at[good], changed[good])
            self.upto[place[some]] = sequence[some]
            kept = some[made[some]]
            self._believe(place[kept], lasts[kept])
        self.versions += int(made.sum())
        np.add.at(self.failed, place[failed], 1)
        return caught

    def _believe(self, places: Places, lasts: Sequence[float] | Floats) -> None:
        """The servers of these pages say that they last for so many seconds."""
        doubted = self.hosts.distrusted[self.index.host[places]]
        self.index.lifetime[places] = np.where(doubted, 0.0, np.minimum(lasts, _LONGEST_LIFETIME))

    def _distrust(self, page_ids: Sequence[int], now: float) -> None:
        """Believe the hosts of these pages no more, which changed one before its time."""
        names = sorted({host_of(url) for url in urls_of(self._store, page_ids).values()})
        self.hosts.distrusted[self.hosts.named(names)] = True
        save_distrusted_hosts(self._store, names, now)

    def _keep(self, late: Pages, told: Sequence[int]) -> None:
        """Store what was learned of these pages, unless another program has learned more meanwhile.

        Of those that something was `told` of, also where as much was learned before: only who heard it knows of it.
        """
        pages = np.union1d(late, np.array(told, np.int64))
        if self._store.read_only or not len(pages):
            return
        index, places = self.index, self.places(pages)
        checked = [None if isinf(at) else at for at in index.checked[places].tolist()]
        facts = (self.upto, self.failed, index.lifetime)
        rows = zip(
            *(one[places].tolist() for one in (index.page, index.a, index.b)), checked,
            *(one[places].tolist() for one in facts), strict=True,
        )  # fmt: skip
        save_rates(self._store, [*rows], also_equal=set(told))


def recall_distrust(store: Store, hosts: HostTable, now: float) -> None:
    """Believe no host that was caught within the last half year, whoever noticed."""
    numbers = hosts.named(distrusted_hosts(store, now - _DISTRUST))
    hosts.distrusted[:] = False
    hosts.distrusted[numbers] = True


def recall_pauses(store: Store, known: Learned, now: float) -> None:
    """Leave the hosts alone that asked for it, whoever they told."""
    pauses = HostRecords(store).pauses(now)
    known.asked.recall(known.hosts.named([*pauses]), [*pauses.values()])


def columns(names: Sequence[str], told: Mapping[str, Sequence[Any]]) -> dict[str, Floats]:
    """These columns as numbers, and what is missing as none."""
    return {name: np.array(told[name], np.float64) for name in names}
