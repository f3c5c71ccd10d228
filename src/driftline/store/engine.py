"""Opening the store: one schema on SQLite or PostgreSQL, brought up to date, with one writer at a time."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from sqlalchemy import URL, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError, IntegrityError, NoSuchModuleError

from driftline.errors import MissingExtra, StoreError, StoreLocked, StoreUnavailable, UnsupportedStore
from driftline.store.hung_server import ServerWatch
from driftline.store.locks import revision
from driftline.store.process_locks import (
    TO_BE_NEXT,
    TO_CHECK,
    TO_KEEP_CHECKING,
    LeaseKeeper,
    held_by_file,
    is_held_by_file,
)
from driftline.store.statements import Statements
from driftline.store.tunables import WAITS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import Connection, Engine

    from driftline.store.process_locks import Having, Right

_LOG = logging.getLogger(__name__)

#: the revision of the last step in `migrations/steps`
NEWEST = "a001"
_SHRINKS_IN_STEPS = "PRAGMA auto_vacuum=INCREMENTAL"
_PAGES_AT_ONCE = 256
_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA cache_size=-4000",
    "PRAGMA wal_autocheckpoint=16000",  # of 4 kB each: what is written twice until then goes into the file once
)
_LOCK_TIMED_OUT = "55P03"
_LOCKED_STATES = ("40001", "40P01", _LOCK_TIMED_OUT)  # PostgreSQL: a conflict, a deadlock, a lock time-out
_DISK_FULL = "53100"
# SQLite, besides SQLITE_FULL: a quota is used up, or the index of the journal cannot be created
_NO_ROOM = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
# PostgreSQL: a connection failed; the server stops, starts, ended an idle session or has no more connections; its disk
# is full
_UNAVAILABLE_STATES = ("08", "57P01", "57P02", "57P03", "57P05", "53300", _DISK_FULL)
# seconds, and milliseconds for the last, after which a server whose machine is gone is noticed; `ServerWatch` notices
# one that only hangs
_CONNECT = {
    "connect_timeout": "3",
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
# a statement with a list of ids is a new one for each length, and takes 100 kB: the default of 128 took much memory
_SQLITE_CONNECT = {"cached_statements": 24}
_LAST_WAIT = 1.0  # seconds that a process about to end waits for its other writers
_WAIT_BRIEFLY = text("SET LOCAL lock_timeout = '1s'")  # the same, for writers in other processes
_AS_NOTHING: dict[None, None] = {}
_READING = ("PRAGMA query_only=ON", "PRAGMA cache_size=-4000")


class Store:
    """The database behind everything. Any thread may read; `write` admits one thread at a time.

    A commit survives the end of the process at any moment after it, `kill -9` included. A file that cannot be written,
    for example on a read-only file system, can still be read. `on_outage` is called with a sentence when the database
    becomes unavailable, and when it is back.
    """

    def __init__(self, engine: Engine, where: str, path: Path | None, *, read_only: bool = False) -> None:
        self.engine = engine
        self.where = where
        self.path = path
        self.read_only = read_only
        self.statements = Statements(engine)
        self.on_outage: Callable[[str], None] = lambda _: None
        self._outage = self._busy = False  # until the database answers any request
        self._unwritable = False  # full or locked, until something is written
        self._hurried = self._announced = False
        self._watch = ServerWatch(engine) if path is None else None
        self.leases = LeaseKeeper(self) if path is None else None
        self._closed = False
        self._file = _identity(path)
        self._writing = threading.Lock()
        self._writer = engine.execution_options(driftline_writes=True)

    def __repr__(self) -> str:
        states = {"closed": self._closed, "read-only": self.read_only, "in trouble": self.in_trouble()}
        return f"<Store '{self.where}'{''.join(f' {name}' for name, so in states.items() if so)}>"

    @classmethod
    def open(cls, where: str) -> Self:
        """Open the store at a path or `postgresql://` URL, creating it or bringing its schema up to date."""
        url, path = _locate(where)
        where = where if path else url.set(drivername="postgresql").render_as_string(hide_password=True)
        read_only = path is not None and not _may_be_written(path)
        if path is not None and read_only:
            url = _only_read(path)
        try:
            options = (
                _SQLITE_CONNECT if path else {key: value for key, value in _CONNECT.items() if key not in url.query}
            )
            engine = create_engine(url, pool_size=32, max_overflow=-1, connect_args=options)
        except (ArgumentError, NoSuchModuleError, ValueError) as error:
            raise StoreError(f"The store '{where}' is not a path or a postgresql:// URL: {error}.") from None
        except ModuleNotFoundError:
            raise MissingExtra("A PostgreSQL store", "postgres") from None
        if path is not None:
            _prepare_sqlite(engine, _READING if read_only else _PRAGMAS)
        else:
            _prepare_postgresql(engine)
        store = cls(engine, where, path, read_only=read_only)
        try:
            store._upgrade()
        except StoreError:
            engine.dispose()
            raise
        except (DatabaseError, OSError) as error:
            engine.dispose()
            cause = getattr(error, "orig", None) or error
            kind = StoreUnavailable if _means_unavailable(cause) else StoreError
            raise kind(f"The store '{where}' cannot be opened: {_first_line(cause)}.") from None
        return store

    def close(self) -> None:
        """Close every connection; an embedded store is left as one file."""
        self._closed = True
        if self._watch is not None and self.leases is not None:
            self._watch.close()
            self.leases.close()
        self.engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a connection for a block that reads."""
        self._insist()
        try:
            with self.engine.connect() as connection:
                yield connection
        except IntegrityError:
            raise
        except DBAPIError as error:
            raise self._trouble("read", error.orig) from None
        self._note_answer()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction for a block: committed at its end, rolled back if anything is raised."""
        self._insist()
        self.insist_on_writing()
        try:
            with self._one_writer(), self._writer.begin() as connection:
                if self._hurried and self.path is None:
                    connection.execute(_WAIT_BRIEFLY)
                yield connection
        except IntegrityError:
            raise
        except DBAPIError as error:
            raise self._trouble("written", error.orig, until_written=True) from None
        self._unwritable = False
        self._note_answer()

    @contextmanager
    def _one_writer(self) -> Iterator[None]:
        while not self._writing.acquire(timeout=_LAST_WAIT):
            if self._hurried:
                raise StoreLocked(f"The store '{self.where}' cannot be written: another thread still waits for it.")
        try:
            yield
        finally:
            self._writing.release()

    @contextmanager
    def write_aside(self) -> Iterator[Connection]:
        """Open a transaction on a server for a block, also while another thread of this process is in `write`.

        A file has one writer at a time: there it waits until that one is done.
        """
        self._insist()
        try:
            with self._writer.begin() as connection:
                yield connection
        except DBAPIError as error:
            raise self._trouble("written", error.orig) from None
        self._note_answer()  # only that: a lease can be renewed although tables are locked, or the disk is full

    def hurry(self) -> None:
        """Stop waiting for a server that does not answer, because the process is about to end: fail soon instead."""
        self._hurried = True
        if self._watch is not None:
            self._watch.hurry()

    @property
    def hurried(self) -> bool:
        """Whether the process is about to end."""
        return self._hurried

    def stamp(self) -> object:
        """Return a value that stays equal as long as the watch list does not change and no run begins or ends."""
        with self.read() as connection:
            return revision(connection)

    def right_to_check(self) -> Having:
        """Hold the right to check pages for a block; StoreBusy if another process has it.

        A process that is killed loses it: at once for processes of the same machine, and for others, which can only
        share a server, when its lease ends. It is also lost while a server does not answer: see `Claim`.
        """
        return self._have(TO_CHECK)

    def right_to_be_next(self) -> Having:
        """Be the process that checks pages next, for a block; StoreBusy if another one waits for that already.

        A 'driftline run' that checks pages makes way for it.
        """
        return self._have(TO_BE_NEXT)

    def somebody_is_next(self) -> bool:
        """Return whether another process waits to check pages."""
        if self.leases is not None:
            return self.leases.is_held(TO_BE_NEXT)
        assert self.path is not None
        return is_held_by_file(TO_BE_NEXT, self.path)

    def right_to_keep_checking(self) -> Having:
        """Be the only 'driftline run' for a block; StoreBusy if there is one. Others may check pages in turn."""
        return self._have(TO_KEEP_CHECKING)

    def _have(self, right: Right) -> Having:
        self.insist_on_writing()
        if self.leases is not None:
            return self.leases.held(right)
        assert self.path is not None
        return held_by_file(right, self.path, self.where)

    def problems(self) -> list[str]:
        """Return what the database finds wrong with its own files and references; empty if nothing is."""
        if self.path is None:
            return []
        with self.read() as connection:
            try:
                found = [row[0] for row in connection.execute(text("PRAGMA integrity_check")) if row[0] != "ok"]
            except DatabaseError as error:
                if _means_locked(error.orig):
                    raise
                found = [str(error.orig)]  # so damaged that the check itself fails
            if not found:
                found = [f"a row of {row[0]} refers to a missing row of {row[2]}"
                         for row in connection.execute(text("PRAGMA foreign_key_check"))]  # fmt: skip
        return found

    def require_intact(self) -> None:
        """Raise StoreError if the database finds itself damaged: writing to it could lose more."""
        found = self.problems()
        if found:
            more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
            first = " ".join(found[0].split()).rstrip(".")
            raise StoreError(
                f"The store '{self.where}' is damaged ({first}{more}), and nothing was done: restore a backup, or move "
                "the file away to start anew."
            )

    def size(self) -> int:
        """Return the bytes that the database takes, with its indexes and free space."""
        with self.read() as connection:
            if self.path is None:
                return connection.scalar(text("SELECT pg_database_size(current_database())")) or 0
            pages = connection.scalar(text("PRAGMA page_count")) or 0
            return pages * (connection.scalar(text("PRAGMA page_size")) or 0)

    def shrink(self) -> None:
        """Give the free space of an embedded store back to the file system, in steps so that no writer waits long."""
        if self.path is None:
            return  # PostgreSQL does that by itself
        self._insist()
        self.insist_on_writing()
        raw = self.engine.raw_connection()
        try:
            cursor = raw.cursor()
            if cursor.execute("PRAGMA auto_vacuum").fetchone() == (0,):
                # a file that cannot shrink in steps is rewritten, once
                with self.right_to_check():
                    cursor.execute(_SHRINKS_IN_STEPS)
                    cursor.execute("VACUUM")
            while cursor.execute("PRAGMA freelist_count").fetchone() != (0,):
                cursor.execute(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})").fetchall()
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"The store '{self.where}' cannot be made smaller: {error}.") from None
        finally:
            raw.close()

    def _insist(self) -> None:
        """Raise StoreError unless the store is open and its file still in place: writes to a deleted file are lost."""
        if self._closed:
            raise StoreError(f"The store '{self.where}' is closed.")
        if self._hurried and self._outage:
            raise StoreUnavailable(f"The store '{self.where}' cannot be used at the moment.")
        if self._file != _identity(self.path):
            raise StoreError(f"The store '{self.where}' was removed or replaced while it was in use.")

    def insist_on_writing(self) -> None:
        """Raise StoreError if the store is read-only."""
        if self.read_only:
            raise StoreError(
                f"The store '{self.where}' is read-only, and this would change it: look at it with list, changes, "
                "history, show, diff and search, or copy it to a place where you may write."
            )

    def _trouble(self, done: str, cause: BaseException | None, *, until_written: bool = False) -> StoreError:
        """Note what is wrong with the store, and return the error to raise.

        A server that was gone is back once it answers; one that is full or locked can still be read, so that only a
        successful write shows that it is well again.
        """
        reason = _first_line(cause)
        locked = _means_locked(cause)
        if not locked and not _means_unavailable(cause):
            return StoreError(f"The store '{self.where}' cannot be {done}: {reason}.")
        if not locked and not _means_full(cause):
            self._outage = True
        elif until_written:
            self._unwritable = True
        else:
            self._busy = True
        # a lock was waited for, unless it was a conflict on a server, which is over at once and not worth a message
        if not locked or getattr(cause, "sqlstate", _LOCK_TIMED_OUT) == _LOCK_TIMED_OUT:
            self._announce(done, reason)
        if locked:
            return StoreLocked(f"The store '{self.where}' cannot be {done}: {reason}.")
        return StoreUnavailable(f"The store '{self.where}' cannot be {done} at the moment: {reason}.")

    def _announce(self, done: str, reason: str) -> None:
        if not self._announced:
            self._announced = True
            _LOG.debug("the store '%s' cannot be %s: %s", self.where, done, reason)
            self.on_outage(f"The store '{self.where}' cannot be {done} at the moment ({reason}): waiting for it.")

    def _note_answer(self) -> None:
        self._outage = self._busy = False
        if self._announced and not self._unwritable:
            self._announced = False
            _LOG.debug("the store '%s' can be used again", self.where)
            self.on_outage(f"The store '{self.where}' can be used again.")

    def in_trouble(self) -> bool:
        """Return whether the store was locked, full or unreachable when it was last used."""
        return self._outage or self._busy or self._unwritable

    def _upgrade(self) -> None:
        with self.engine.connect() as connection:
            has_schema = inspect(connection).has_table("alembic_version")
            found = connection.scalar(text("SELECT version_num FROM alembic_version")) if has_schema else None
        if found == NEWEST:
            return
        if found is not None and str(found).isdecimal():  # the revisions before the first release were numbers
            instead = "use another database" if self.path is None else "move the file away"
            raise UnsupportedStore(
                f"The store '{self.where}' was made by a development version of Driftline that this one cannot read: "
                f"{instead} and add your pages again."
            )
        if found is not None and str(found) > NEWEST:
            raise UnsupportedStore(
                f"The store '{self.where}' was made by a newer Driftline: upgrade Driftline to open it."
            )
        if self.read_only:
            raise UnsupportedStore(
                f"The store '{self.where}' was made by an older Driftline, and is read-only: copy it to a place where "
                "you may write, to bring it up to date."
            )
        # imported only here because it is slow, and most commands find the schema up to date
        from driftline.store.migrations import upgrade

        with self._writing, self._writer.begin() as connection:
            if self.path is None:
                connection.execute(
                    text("SET LOCAL lock_timeout = 0")
                )  # another process may be upgrading it, which takes long
            upgrade(connection)
        _LOG.debug("brought the schema of '%s' from %s to %s", self.where, found or "nothing", NEWEST)


def _first_line(cause: BaseException | None) -> str:
    return str(cause).strip().partition("\n")[0].rstrip(".")


def _identity(path: Path | None) -> tuple[int, int] | None:
    """Return what distinguishes a file from another one of the same name."""
    if path is None:
        return None
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _means_locked(cause: BaseException | None) -> bool:
    """Return whether a driver's error means that another program has the database locked."""
    if isinstance(cause, sqlite3.Error):
        # the last byte of an extended code is its basic code; errors of the driver itself have none
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return getattr(cause, "sqlstate", None) in _LOCKED_STATES


def _means_unavailable(cause: BaseException | None) -> bool:
    """Return whether a driver's error will pass: the server is gone, or its disk is full."""
    if _means_full(cause):
        return True
    if isinstance(cause, sqlite3.Error):
        return False
    state = getattr(cause, "sqlstate", None)
    if state is None:
        # the driver itself noticed that the connection is gone, or could not connect
        return type(cause).__name__ in ("OperationalError", "InterfaceError", "ConnectionTimeout")
    return str(state).startswith(_UNAVAILABLE_STATES)


def _means_full(cause: BaseException | None) -> bool:
    """Return whether a driver's error means that its disk is full."""
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0)
        return code & 0xFF == sqlite3.SQLITE_FULL or code in _NO_ROOM
    return getattr(cause, "sqlstate", None) == _DISK_FULL


def is_there(where: str) -> bool:
    """Return whether there is a file at the path of a store; True for one on a server."""
    try:
        return _is_url(where) or _path_of(where).exists()
    except OSError:
        return True  # opening it will raise the reason


def _is_url(where: str) -> bool:
    return "://" in where and not where.startswith("sqlite://")


def _path_of(where: str) -> Path:
    return Path(where.removeprefix("sqlite:///")).expanduser().absolute()


def _locate(where: str) -> tuple[URL, Path | None]:
    if _is_url(where):
        try:
            url = make_url(where)
        except (ArgumentError, ValueError):
            raise StoreError("The store is not a path or a postgresql:// URL that can be read.") from None
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        if url.get_backend_name() != "postgresql":
            shown = url.render_as_string(hide_password=True)
            raise StoreError(f"The store '{shown}' is not a path or a postgresql:// URL.")
        return url, None
    path = _path_of(where)
    if path.is_dir():
        raise StoreError(f"The store '{where}' is a folder: give the path of a file in it.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.touch(mode=0o600)
    except OSError as error:
        raise StoreError(f"The store '{where}' cannot be made: {error.strerror}.") from None
    return URL.create("sqlite", database=str(path)), path


def _may_be_written(path: Path) -> bool:
    """Return whether this file can be written; also its folder, because SQLite keeps a journal beside it."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _only_read(path: Path) -> URL:
    """Return the URL of a file that is only read; a log beside it means that another process may be writing."""
    in_use = path.with_name(f"{path.name}-wal").exists()
    query = {"mode": "ro", "uri": "true"} | ({} if in_use else {"immutable": "1"})
    return URL.create("sqlite", database=f"file:{quote(str(path))}", query=query)


def _prepare_postgresql(engine: Engine) -> None:
    milliseconds = max(round(1_000 * WAITS.lock), 50)  # 0 would wait for ever

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _record: object) -> None:
        # not as a connection option, which poolers refuse; a time-out set by the server's owner is kept
        connection.autocommit = True
        connection.execute(
            "SELECT set_config('lock_timeout', %s, false) WHERE current_setting('lock_timeout') = '0'",
            [f"{milliseconds}ms"],
        )
        connection.autocommit = False

    @event.listens_for(engine, "before_cursor_execute")
    def _choose_format(_connection: object, cursor: Any, _text: str, _values: object, context: Any, _: bool) -> None:
        if context is not None and context.execution_options.get("driftline_binary"):
            cursor.format = type(cursor.format).BINARY


def _prepare_sqlite(engine: Engine, pragmas: Sequence[str]) -> None:
    # without adapters for these two types the driver looks for one with every value, which takes longer than writing it
    sqlite3.register_adapter(type(None), _AS_NOTHING.get)
    sqlite3.register_adapter(bytes, bytes)
    milliseconds = round(1_000 * WAITS.lock)

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _record: object) -> None:
        # the driver must not begin transactions by itself: '_on_begin' decides of which kind they are
        connection.isolation_level = None
        if pragmas is _PRAGMAS and connection.execute("PRAGMA page_count").fetchone() == (0,):
            connection.execute(_SHRINKS_IN_STEPS)  # must be set before anything is in the file
        for pragma in pragmas:
            connection.execute(pragma)
        if pragmas is _PRAGMAS:
            connection.execute(f"PRAGMA busy_timeout={milliseconds}")

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("driftline_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
