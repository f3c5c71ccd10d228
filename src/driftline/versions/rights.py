"""What one process may do at a time: check the pages of a store, be the next to do so, and be the run that goes on.

A right ends with the process that has it, however that ends: nothing is left behind to be cleaned up, or to be taken
for a run that goes on. Who has one is given what insists on it: on PostgreSQL the server may have ended it unnoticed.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from driftline.errors import StoreBusy, StoreError
from driftline.versions.locks import Number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Connection, Engine

    #: a block in which one has a right, and is given what insists on it
    Having = AbstractContextManager[Callable[[], None]]


_HELD = text(
    "SELECT EXISTS (SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
    " WHERE locktype = 'advisory' AND classid = 0 AND objid = :key AND objsubid = 1 AND datname = current_database())"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """A right by its name: the ending of the file beside an embedded store, and an arbitrary number in PostgreSQL.

    `refusal` is what is said to who cannot have it, of `holder`, the process that has it, and `where` the store is.
    """

    ending: str
    number: Number
    refusal: str


TO_CHECK = Right(
    ending=".lock",
    number=Number.TO_CHECK,
    refusal="Another run{holder} is checking the pages of {where}; its turn ends soon if it is a 'driftline run' that "
    "goes on, else when nothing is left to check, or when it is stopped.",
)
TO_BE_NEXT = Right(
    ending=".next.lock",
    number=Number.TO_BE_NEXT,
    refusal="Another process{holder} waits to check the pages of {where}, and is the next.",
)
TO_KEEP_CHECKING = Right(
    ending=".run.lock",
    number=Number.TO_KEEP_CHECKING,
    refusal="Another 'driftline run'{holder} keeps checking the pages of {where}, and tells what changes: "
    "stop it first, or leave it to that one.",
)


@contextmanager
def held_by_file(right: Right, store: Path, where: str) -> Iterator[Callable[[], None]]:
    """Have the right by a lock on a file beside the store, which ends with the process; StoreBusy if another has it."""
    # a store of several names has one lock: what a name points to is what counts
    path = f"{store.resolve()}{right.ending}"
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(
            f"The file '{path}', by which processes take turns, cannot be opened ({error.strerror}): if it is another "
            "user's, start this as that user, or remove it while nobody uses the store."
        ) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(lock, 32).decode("ascii", "replace").strip()
            raise StoreBusy(right.refusal.format(holder=f" (process {holder or 'unknown'})", where=where)) from None
        os.ftruncate(lock, 0)
        os.write(lock, str(os.getpid()).encode())
        yield lambda: None  # nobody can take it away
    finally:
        os.close(lock)


def is_held_by_file(right: Right, store: Path) -> bool:
    """Whether some process has the right by a lock on its file, which is not made for that.

    Nobody has it as far as can be seen if the file is another user's: that is no reason to end a run.
    """
    try:
        lock = os.open(f"{store.resolve()}{right.ending}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def is_held_by_session(right: Right, connection: Connection) -> bool:
    """Whether some session has the right: a key of 64 bits is listed in two parts."""
    return bool(connection.scalar(_HELD, {"key": int(right.number)}))


@contextmanager
def held_by_session(right: Right, engine: Engine, where: str) -> Iterator[Callable[[], None]]:
    """Have the right by a lock that the server ends with the connection; StoreBusy if another process has it.

    What it gives raises StoreError once the connection is gone: then somebody else may have the right.
    """
    # one connection for all of the time, taken out of the pool: the lock belongs to it
    with engine.connect() as connection:
        if not connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": int(right.number)}):
            raise StoreBusy(right.refusal.format(holder="", where=where))
        connection.commit()

        def insist() -> None:
            try:
                connection.execute(text("SELECT 1"))
                connection.commit()
            except SQLAlchemyError as error:
                raise StoreError(
                    f"The server of {where} ended the connection that kept others from checking its pages "
                    f"({_first_line(error)}): start again."
                ) from None

        try:
            yield insist
        finally:
            # a connection that is only closed keeps its lock until the server notices, and the next run is refused
            try:
                connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": int(right.number)})
                connection.commit()
            except SQLAlchemyError:
                connection.invalidate()


def _first_line(error: SQLAlchemyError) -> str:
    return str(getattr(error, "orig", error)).strip().partition("\n")[0].rstrip(".")
