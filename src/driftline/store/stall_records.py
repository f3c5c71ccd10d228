"""Reports of stalled runs, kept for later diagnosis."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import delete, insert, select

from driftline.store.schema import stalls

if TYPE_CHECKING:
    from driftline.store.engine import Store

_KEPT = 20  # newest stalls, enough to see a pattern


class Stalled(NamedTuple):
    """When a run stalled, for how many seconds nothing had been recorded by then, and the report."""

    at: float
    seconds: float
    report: str


class Stalls:
    """The stalls in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def record(self, at: float, seconds: float, report: str) -> None:
        """Store a stall and remove the oldest, also while another thread waits for the database in a transaction."""
        with self._store.write_aside() as connection:
            made = insert(stalls).values(at=at, seconds=seconds, report=report).returning(stalls.c.id)
            newest = connection.execute(made).scalar_one()
            connection.execute(delete(stalls).where(stalls.c.id <= newest - _KEPT))

    def last(self) -> Stalled | None:
        """Return the newest stall; None if there is none."""
        query = select(stalls.c.at, stalls.c.seconds, stalls.c.report).order_by(stalls.c.id.desc()).limit(1)
        with self._store.read() as connection:
            row = connection.execute(query).first()
        return None if row is None else Stalled(*row)
