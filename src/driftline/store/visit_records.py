"""The visit database: how often each address was visited, for how long, and how often it was available."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import bindparam, select, text

from driftline.model.visit import Visited
from driftline.store.locks import count_revision
from driftline.store.schema import pages, visit_keys, visits
from driftline.store.statements import in_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Connection

    from driftline.model.visit import Visit
    from driftline.store.engine import Store

_PORTION = 2_000  # rows that are read at a time
_SUMS = (
    visits.c.id,
    visits.c.url,
    visits.c.frequency,
    visits.c.weightage,
    visits.c.ttl,
    visits.c.first_at,
    visits.c.last_at,
)
_ALL = select(*_SUMS, pages.c.id.is_not(None)).outerjoin(pages, pages.c.url == visits.c.url).order_by(visits.c.id)
_ALL = _ALL.execution_options(yield_per=_PORTION)
_OF_PAGES = (
    select(pages.c.id, pages.c.url, *_SUMS)
    .outerjoin(visits, visits.c.url == pages.c.url)
    .where(pages.c.id.in_(bindparam("page_ids", expanding=True)))
)
_KNOWN = select(visit_keys.c.key, visit_keys.c.seconds).where(visit_keys.c.key.in_(bindparam("keys", expanding=True)))


class Visits:
    """The visits to addresses in canonical form. Any number of threads and processes may record them at once."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __repr__(self) -> str:
        return f"<Visits of {self._store!r}>"

    def record(self, url: str, *, at: float, seconds: float, available: bool) -> Visited:
        """Count one visit. Returns the totals of the visits to that address."""
        row = {
            "url": url, "frequency": 1, "weightage": seconds, "ttl": int(available), "first_at": at, "last_at": at,
        }  # fmt: skip
        watched = select(pages.c.id).where(pages.c.url == url)
        with self._store.write() as connection:
            counted = connection.execute(self._store.statements.visit.returning(*_SUMS), row).one()
            is_watched = connection.scalar(watched) is not None
            if is_watched:
                count_revision(connection)
            return Visited(*counted)._replace(watched=is_watched)

    def record_once(self, found: Iterable[Visit]) -> int:
        """Count those of these visits that were never counted, in one transaction. Returns how many they are.

        A visit that was counted before it ended, such as one to a page that was still open, now counts with its full
        duration.
        """
        batch = {visit.key: visit for visit in found}
        if not batch:
            return 0
        statements = self._store.statements
        with self._store.write() as connection:
            _lock_keys(connection)
            known = {row.key: row.seconds for row in connection.execute(_KNOWN, {"keys": list(batch)})}
            counted = [visit for key, visit in batch.items() if key not in known or visit.seconds > known[key]]
            statements.visit_key.many(connection, [(visit.key, visit.seconds) for visit in counted])
            statements.visits.many(connection, _sums(counted, known))
            count_revision(connection)
        return len(batch) - len(known)

    def all(self) -> list[Visited]:
        """Return the totals of the visits to every address, in the order of the first visits."""
        return list(self.each())

    def each(self) -> Iterator[Visited]:
        """Yield the totals of the visits to every address; they are read a portion at a time, from one snapshot."""
        with self._store.read() as connection:
            for rows in connection.execute(_ALL).partitions():
                yield from (Visited(*row) for row in rows)

    def with_values(self, page_ids: Iterable[int], values: Iterable[float]) -> Iterator[Visited]:
        """Yield the totals of the visits to these watched pages, with the value of a check of each, in this order.

        A page that was never visited has a `sno` of 0. Those no longer watched are left out.
        """
        for some in in_batches(zip(page_ids, values, strict=True)):
            with self._store.read() as connection:
                rows = connection.execute(_OF_PAGES, {"page_ids": [int(page_id) for page_id, _ in some]}).all()
            found = {page_id: (url, sums) for page_id, url, *sums in rows}
            for page_id, value in some:
                if page_id not in found:
                    continue
                url, sums = found[page_id]
                visited = Visited(0, url, 0, 0.0, 0) if sums[0] is None else Visited(*sums)
                yield visited._replace(watched=True, value=float(value))


def _lock_keys(connection: Connection) -> None:
    """Lock the keys, so that two imports do not both count a visit as new; SQLite has only one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE visit_keys IN SHARE ROW EXCLUSIVE MODE"))


def _sums(counted: Iterable[Visit], known: dict[int, float]) -> list[tuple[object, ...]]:
    """Return one row for each address: a statement must not change the same row twice."""
    sums: dict[str, tuple[int, float, int, float, float]] = {}
    for visit in counted:
        before = known.get(visit.key)
        one, seconds = (1, visit.seconds) if before is None else (0, visit.seconds - before)
        frequency, weightage, ttl, first_at, last_at = sums.get(visit.url, (0, 0.0, 0, visit.at, visit.at))
        sums[visit.url] = (
            frequency + one, weightage + seconds, ttl + (one if visit.available else 0),
            min(first_at, visit.at), max(last_at, visit.at),
        )  # fmt: skip
    return [(url, *row) for url, row in sums.items()]
