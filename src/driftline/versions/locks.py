"""What writers of one store wait for each other by, until the end of a transaction.

SQLite has one writer at a time; on PostgreSQL several write at once. Whoever takes several locks takes them in this
order: the addresses, the rows of pages, those of states, the blobs, the memories; of several pages, by their ids.

Another program may keep all of them waiting for longer than a database does by itself: `patiently` tries again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import text

from driftline.errors import StoreLocked

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

_Result = TypeVar("_Result")

_PAUSE = 0.1  # seconds before another try, for locks that are refused at once

# arbitrary numbers that name our locks in PostgreSQL
_MEMORIES = 0x44_52_49_48
_ADDRESSES = 0x44_52_49_49


def lock_blobs(connection: Connection) -> None:
    """Let whoever is about to refer to a blob be through, or come later: to be called before any is deleted."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE blobs IN SHARE ROW EXCLUSIVE MODE"))


def lock_addresses(connection: Connection) -> None:
    """Let nobody else give a page an address: to be called before it is looked whether one is watched already."""
    _lock(connection, _ADDRESSES)


def lock_memories(connection: Connection) -> None:
    """Let nobody else rewrite what was learned or said: to be called before a memory is read to be written again."""
    _lock(connection, _MEMORIES)


def patiently(do: Callable[[], _Result], stopped: Callable[[], bool]) -> _Result:
    """What `do` returns, tried again for as long as another program keeps the store locked and nobody stopped it."""
    while True:
        try:
            return do()
        except StoreLocked:
            if stopped():
                raise
        time.sleep(_PAUSE)


def _lock(connection: Connection, key: int) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})
