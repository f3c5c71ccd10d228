"""How the writers of a store share it: the order of locks, retries, exactly-once commits, and the change counter.

SQLite has one writer at a time; on PostgreSQL several write at once. A transaction that takes several locks takes them
in this order, or two could wait for each other: the addresses, the rows of pages, those of states, the blobs, the
memories, and last the counter of `count_revision`; several pages or states by page id, several blobs by digest, and
several rows of any other table by their key. The one exception is recording checks (`statements.record_checks`), which
locks states in any order because that takes a third less time: PostgreSQL ends one of two transactions that wait for
each other, and what was recorded is recorded again.

Another program may keep the store locked for longer than the database itself waits, and a server may be restarted:
`patiently` tries again, and `write_once` also makes sure that nothing is committed twice.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import IntEnum, unique
from typing import TYPE_CHECKING, Generic, TypeVar

from sqlalchemy import select, text, update

from driftline.errors import StoreLocked, StoreUnavailable
from driftline.store.schema import CONTINUED, counters, pages, runs, states

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from sqlalchemy import Connection

    from driftline.store.engine import Store

_Result = TypeVar("_Result")


@dataclass(slots=True, kw_only=True)
class Waits:
    """Seconds to wait, for all stores of this process; tests use shorter ones. A store reads `lock` when it opens."""

    lock: float = 10.0  # for another writer: within the database, before StoreLocked
    locked: float = 0.1  # before another try, after StoreLocked
    outage: float = 0.5  # before another try at a server that does not answer
    right: float = 0.3  # between two tries to take a right again
    renewal: float = 3.0  # between two renewals of a lease


WAITS = Waits()


_TRANSACTION = text("SELECT txid_current()")
_STATUS = text("SELECT txid_status(:number)")

_AT_ONCE = 500  # values in the list of a statement
_WATCH_LIST = counters.c.name == "watch_list"
_INCREMENT = update(counters).where(_WATCH_LIST).values(number=counters.c.number + 1)
_NUMBER = select(counters.c.number).where(_WATCH_LIST).scalar_subquery()
_REVISION = select(_NUMBER, runs.c.id, runs.c.finished_at).where(runs.c.scope != CONTINUED)
_REVISION = _REVISION.order_by(runs.c.id.desc()).limit(1)


@unique
class Number(IntEnum):
    """The keys of our advisory locks in PostgreSQL: arbitrary numbers, all here so that no two are the same."""

    INDEX = 0x44_52_49_47
    MEMORIES = 0x44_52_49_48
    ADDRESSES = 0x44_52_49_4A
    EVENTS = 0x44_52_49_4B


def lock_blobs(connection: Connection) -> None:
    """Lock all blobs against new references. Call it before deleting one."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE blobs IN SHARE ROW EXCLUSIVE MODE"))


def lock_pages(connection: Connection, page_ids: Collection[int]) -> None:
    """Lock these pages against removal in order of id: rows that refer to them lock them one by one, in any order."""
    if connection.dialect.name == "postgresql":
        ids = sorted(page_ids)
        for start in range(0, len(ids), _AT_ONCE):
            these = select(pages.c.id).where(pages.c.id.in_(ids[start : start + _AT_ONCE])).order_by(pages.c.id)
            connection.execute(these.with_for_update(read=True, key_share=True))


def lock_states(connection: Connection, page_ids: Collection[int]) -> None:
    """Lock the states of these pages in order of id: an UPDATE of several rows locks them in any order."""
    if connection.dialect.name == "postgresql":
        these = select(states.c.page_id).where(states.c.page_id.in_(page_ids)).order_by(states.c.page_id)
        connection.execute(these.with_for_update(key_share=True))


def lock_addresses(connection: Connection) -> None:
    """Lock the addresses of pages. Call it before testing whether one is watched already."""
    _lock(connection, Number.ADDRESSES)


def lock_memories(connection: Connection) -> None:
    """Lock what was learned about noise, and feedback. Call it before reading a memory to write it again."""
    _lock(connection, Number.MEMORIES)


def lock_index(connection: Connection) -> None:
    """Lock the search index and the texts of versions."""
    _lock(connection, Number.INDEX)


def lock_events(connection: Connection) -> None:
    """Lock the event log until the transaction ends, so that ids of events increase in the order of commits.

    Raises StoreLocked at once if another process has it locked: other writers of this process must not wait for that.
    """
    if connection.dialect.name == "postgresql":
        locked = connection.scalar(text("SELECT pg_try_advisory_xact_lock(:key)"), {"key": int(Number.EVENTS)})
        if not locked:
            raise StoreLocked("Another process is publishing events.")


def _lock(connection: Connection, number: Number) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": int(number)})


def patiently(do: Callable[[], _Result], stopped: Callable[[], bool]) -> _Result:
    """Return what `do` returns, calling it again while the store is locked or cannot be reached, until `stopped`."""
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


def write_once(
    store: Store, do: Callable[[Connection], _Result], stopped: Callable[[], bool] = lambda: True
) -> _Result:
    """Return what `do` returned in a transaction that was committed exactly once, trying again as `patiently` does.

    If the connection is lost at the commit, PostgreSQL is queried for the status of the transaction, and what was
    committed is not done again. With SQLite the result of a commit is always known.
    """
    attempt = _Attempt(store, do)
    return patiently(attempt.make, stopped)


class _Attempt(Generic[_Result]):
    """One transaction, tried until it is known to be committed."""

    def __init__(self, store: Store, do: Callable[[Connection], _Result]) -> None:
        self._store = store
        self._do = do
        self._unsure: tuple[int, _Result] | None = None  # id and result of a transaction that may be committed

    def make(self) -> _Result:
        if self._unsure is not None:
            number, result = self._unsure
            if _was_committed(self._store, number):
                return result
            self._unsure = None
        with self._store.write() as connection:
            on_server = self._store.path is None
            number = connection.scalar(_TRANSACTION) if on_server else 0
            result = self._do(connection)
            if on_server:
                self._unsure = number, result
        return result


def _was_committed(store: Store, number: int) -> bool:
    """Return whether this transaction was committed; StoreLocked while the server has not finished it."""
    with store.read() as connection:
        status = connection.scalar(_STATUS, {"number": number})
    if status == "in progress":
        raise StoreLocked(f"The store '{store.where}' is still busy with a commit of a connection that was lost.")
    return bool(status == "committed")


def count_revision(connection: Connection) -> None:
    """Increment the counter of changes to the watch list: pages, their intervals, visits, runs.

    Call it once, after everything else in a transaction: other writers of the watch list wait from here on.
    """
    connection.execute(_INCREMENT)


def revision(connection: Connection) -> tuple[object, ...]:
    """Return a value that changes when the watch list changes, or a run begins, is continued or ends.

    A counter of all writes would not do: during a run there are several a second. A process that checks pages begins a
    run first, so the newest run shows that others may have checked pages; continuing and ending a run increment the
    counter.
    """
    newest = connection.execute(_REVISION).first()
    return tuple(newest) if newest is not None else (connection.scalar(select(_NUMBER)),)
