"""What writers of one store wait for each other by, until the end of a transaction.

SQLite has one writer at a time; on PostgreSQL several write at once. Whoever takes several locks takes them in this
order: the addresses, the rows of pages, those of states, the blobs, the memories, and last the counter of `revisions`;
of several pages or states by the page's id, of several blobs by digest, and of several rows of any other table by their
key.

Another program may keep all of them waiting for longer than a database does by itself, and a server may be restarted:
`patiently` tries again.
"""

from __future__ import annotations

import time
from enum import IntEnum, unique
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import select, text

from driftline.errors import StoreLocked, StoreUnavailable
from driftline.store.schema import states
from driftline.store.tunables import WAITS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sqlalchemy import Connection

_Result = TypeVar("_Result")


@unique
class Number(IntEnum):
    """What names our locks in PostgreSQL: arbitrary numbers, all of them here, so that no two are the same."""

    INDEX = 0x44_52_49_47
    MEMORIES = 0x44_52_49_48
    ADDRESSES = 0x44_52_49_4A
    EVENTS = 0x44_52_49_4B


def lock_blobs(connection: Connection) -> None:
    """Let whoever is about to refer to a blob be through, or come later: to be called before any is deleted."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE blobs IN SHARE ROW EXCLUSIVE MODE"))


def lock_states(connection: Connection, page_ids: Collection[int]) -> None:
    """Lock the states of these pages in order: an UPDATE of several rows locks them in any order that suits it."""
    if connection.dialect.name == "postgresql":
        these = select(states.c.page_id).where(states.c.page_id.in_(page_ids)).order_by(states.c.page_id)
        connection.execute(these.with_for_update(key_share=True))


def lock_addresses(connection: Connection) -> None:
    """Let nobody else give a page an address: to be called before it is looked whether one is watched already."""
    _lock(connection, Number.ADDRESSES)


def lock_memories(connection: Connection) -> None:
    """Let nobody else rewrite what was learned or said: to be called before a memory is read to be written again."""
    _lock(connection, Number.MEMORIES)


def lock_index(connection: Connection) -> None:
    """Let nobody else add words to the index, or say that texts are others now."""
    _lock(connection, Number.INDEX)


def lock_events(connection: Connection) -> None:
    """Let nobody else publish events until this is committed, so that their ids grow in the order of commits."""
    _lock(connection, Number.EVENTS)


def patiently(do: Callable[[], _Result], stopped: Callable[[], bool]) -> _Result:
    """Return what `do` returns, tried again while the store is locked or cannot be reached, until `stopped`."""
    while True:
        pause = WAITS.locked
        try:
            return do()
        except StoreLocked:
            if stopped():
                raise
        except StoreUnavailable:
            if stopped():
                raise
            pause = WAITS.outage
        time.sleep(pause)


def _lock(connection: Connection, number: Number) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": int(number)})
