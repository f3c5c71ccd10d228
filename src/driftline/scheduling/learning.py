"""What was learned of each page from its checks, in step with the store.

Learning follows the checks that are recorded, whoever made them, and remembers of each page up to which one: a run that
was stopped, or a `check` by hand, costs nothing of it. A store that can only be read keeps what it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.headers import lifetime
from driftline.model import Verdict, host_of
from driftline.scheduling.asked import Asked
from driftline.scheduling.index import DAY, MOST_FAILURES, Index
from driftline.scheduling.queries import LEARNED, STANDING, addresses, checked, distrusted_since, stored, unlearned
from driftline.versions.batches import in_batches
from driftline.versions.hosts import HostRecords

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from sqlalchemy import Row

    from driftline.scheduling.ahead import Ahead
    from driftline.scheduling.hosts import Hosts
    from driftline.scheduling.index import Floats, Places
    from driftline.versions.store import Store

_AT_ONCE = 2_000  # pages that are learned from at a time
_LONGEST_LIFETIME = DAY  # seconds: servers promise years
_DISTRUST = 180 * DAY  # seconds for which a host is not believed that was caught


class Learned:
    """So many pages of the watch list, as an index, with what was learned of them.

    `upto` is the check of each page up to which it was learned from, and `failed` how many of those had failed.
    `versions` counts the checks among those that it followed which made a version. `asked` are those of the `hosts`
    that want to be left alone.
    """

    def __init__(self, store: Store, hosts: Hosts, size: int) -> None:
        self._store = store
        self.hosts = hosts
        self.index = Index(size)
        self.upto = np.zeros(size, np.int32)
        self.failed = np.zeros(size, np.int32)
        self.asked = Asked()
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
        index.lifetime[self.hosts.distrusted[index.host]] = 0.0

    def places(self, page_ids: Sequence[int]) -> Places:
        """Where these pages are, of those that are here."""
        return self.find(page_ids)[0]

    def find(self, page_ids: Sequence[int]) -> tuple[Places, NDArray[np.bool_]]:
        """Where those of these pages are that are here, and which they are."""
        known, wanted = self.index.page, np.array(page_ids, np.int64)
        found = np.searchsorted(known, wanted)
        here = found < len(known)
        here[here] = known[found[here]] == wanted[here]
        return found[here], here

    def overtaken(self) -> list[int]:
        """The pages that are here and have checks which nothing was learned from yet."""
        found: list[int] = []
        for rows in checked(self._store, self.index.page, self.upto):
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
        self.remember(places, columns(LEARNED, [rows[name] for name in LEARNED]))
        late: NDArray[np.bool_] = np.array(rows["sequence"], np.int32) > self.upto[places]
        return late

    def remember(self, places: Places, told: dict[str, Floats]) -> None:
        """Take over what is stored of these pages; one good check says nothing yet of how often a page changes."""
        known = ~np.isnan(told["a"])
        places = places[known]
        a, b, at, learned, failed, lasts = (told[name][known] for name in LEARNED)
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
        for some in in_batches(self.index.page[self.places(page_ids)].tolist(), _AT_ONCE):
            stands: dict[int, Row[Any]] = {}
            late: set[int] = set()
            caught: list[int] = []
            with self._store.read() as connection:
                # a part of the checks at a time: there may be years of them
                for rows in connection.execute(unlearned(some)).partitions():
                    met = {row.page_id: row for row in rows if row.page_id not in stands}
                    self.remember(self.places(list(met)), _columns_of(LEARNED, met))
                    stands |= met
                    found = [row for row in rows if row.sequence is not None]
                    late.update(row.page_id for row in found)
                    caught += self._learn(found)
            if not stands:
                continue  # all of them were removed
            if caught:
                self._distrust(caught, now)
            places = self.places(list(stands))
            told: set[int] = set()
            for page, place in zip(stands, places.tolist(), strict=True):
                if (lasts := heard.pop(page, None)) is not None:
                    self._believe(place, lasts)
                    told.add(page)
            self._keep(late, told)
            yield places, _columns_of(STANDING, stands)

    def _learn(self, found: Sequence[Row[Any]]) -> list[int]:
        """Learn from these checks, in order of page and of time: of each page the first, then the second, and so on.

        The pages that changed before their time are returned.
        """
        index = self.index
        place = self.places([row.page_id for row in found])
        at = np.array([row.at for row in found])
        failed = np.array([row.verdict == Verdict.FAILED for row in found], np.bool_)
        changed = np.array([row.verdict == Verdict.CHANGED for row in found], np.bool_)
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
            for row, where_it_is in zip([found[which] for which in some], place[some].tolist(), strict=True):
                self.upto[where_it_is] = row.sequence
                if row.headers is not None:
                    self.versions += 1
                    self._believe(where_it_is, lifetime(row.headers) or 0.0)
        np.add.at(self.failed, place[failed], 1)
        return caught

    def _believe(self, place: int, lasts: float) -> None:
        """The server of this page says that it lasts for so many seconds."""
        believed = not self.hosts.distrusted[self.index.host[place]]
        self.index.lifetime[place] = min(lasts, _LONGEST_LIFETIME) if believed else 0.0

    def _distrust(self, page_ids: Sequence[int], now: float) -> None:
        """Believe the hosts of these pages no more, which changed one before its time; not their other pages either."""
        names = sorted({host_of(url) for url in addresses(self._store, page_ids).values()})
        self.hosts.distrusted[self.hosts.named(names)] = True
        self.index.lifetime[self.hosts.distrusted[self.index.host]] = 0.0
        if not self._store.read_only:
            with self._store.write() as connection:
                self._store.statements.distrust.many(connection, [(name, now) for name in names])

    def _keep(self, late: set[int], told: set[int]) -> None:
        """Store what was learned of these pages, unless another program has learned more meanwhile.

        Of those that something was `told` of, also where as much was learned before: only who heard it knows of it.
        """
        if self._store.read_only or not late | told:
            return
        index = self.index
        rows = [
            (int(index.page[place]), float(index.a[place]), float(index.b[place]),
             None if np.isinf(index.checked[place]) else float(index.checked[place]), int(self.upto[place]),
             int(self.failed[place]), float(index.lifetime[place]))
            for place in self.places(sorted(late | told))
        ]  # fmt: skip
        with self._store.write() as connection:
            others = {row.id: row.learned or 0 for row in connection.execute(stored([row[0] for row in rows]))}
            there = [row for row in rows if row[0] in others]
            fresh = [row for row in there if row[4] - others[row[0]] >= (0 if row[0] in told else 1)]
            self._store.statements.rate.many(connection, fresh)


def recall_distrust(store: Store, hosts: Hosts, now: float) -> None:
    """Believe no host that was caught within the last half year, whoever noticed."""
    with store.read() as connection:
        names = list(connection.scalars(distrusted_since(now - _DISTRUST)))
    numbers = hosts.named(names)
    hosts.distrusted[:] = False
    hosts.distrusted[numbers] = True


def recall_pauses(store: Store, known: Learned, now: float) -> None:
    """Leave the hosts alone that asked for it, whoever they told."""
    pauses = HostRecords(store).pauses(now)
    known.asked.recall(known.hosts.named([*pauses]), [*pauses.values()])


def columns(names: Sequence[str], told: Any) -> dict[str, Floats]:
    """These columns as numbers, and what is missing as none."""
    return {name: np.array(column, np.float64) for name, column in zip(names, told, strict=True)}


def _columns_of(names: Sequence[str], rows: dict[int, Row[Any]]) -> dict[str, Floats]:
    return columns(names, [[getattr(row, name) for row in rows.values()] for name in names])
