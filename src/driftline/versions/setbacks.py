"""When it was first seen that a clock had been set back, as kept in the store.

Whoever finds a time in the future has to count it as some moment of its own clock. If every program took the one at
which it started, that moment would move along, and what is due some time after it never would be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, func, insert, select

from driftline.versions.schema import setbacks

if TYPE_CHECKING:
    from driftline.versions.store import Store

STEP = 60.0  # seconds: clocks of two machines differ, and one that is put right by less keeps nobody waiting for long


def first_seen(store: Store) -> float | None:
    """When times in the future were first seen; None if there are none."""
    with store.read() as connection:
        found: float | None = connection.scalar(select(func.min(setbacks.c.seen_at)))
        return found


def remember(store: Store, seen_at: float | None) -> None:
    """Keep that moment, or that there are no such times any more. A store that can only be read stays as it is."""
    if store.read_only:
        return
    with store.write() as connection:
        connection.execute(delete(setbacks))
        if seen_at is not None:
            connection.execute(insert(setbacks).values(seen_at=seen_at))
