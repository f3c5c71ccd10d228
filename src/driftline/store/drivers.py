"""The databases behind a store, SQLite and PostgreSQL: where they are, how connections are set up, what errors mean.

`ServerWatch` detects a server that hangs: its machine still answers, so that no time-out of TCP ever expires. A query
may take long for good reasons, so none is aborted for its age alone. When one takes long, another connection is tried:
if the server does not accept that either, every connection in use is shut down, which raises an error in the threads
that wait for an answer.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sqlite3
import struct
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import URL, BigInteger, Double, Integer, LargeBinary, Text, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from driftline.errors import MissingExtra, StoreError
from driftline.store.locks import WAITS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sqlalchemy import Connection, Dialect, Engine
    from sqlalchemy.types import TypeEngine

_LOG = logging.getLogger(__name__)

_LOOK = 0.5  # seconds between two checks
_LONG = 4.0  # seconds that a connection is in use before the server is tried
_LONG_IN_A_HURRY = 0.5
_AGAIN = 4.0  # seconds after which a server that answered is tried again
_GREETING = 3  # seconds that the server has to accept another connection

SHRINKS_IN_STEPS = "PRAGMA auto_vacuum=INCREMENTAL"
_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=NORMAL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA cache_size=-4000",
    "PRAGMA wal_autocheckpoint=16000",  # pages of 4 kB; one that is written often until then reaches the file once
)
_LOCK_TIMED_OUT = "55P03"
_LOCKED_STATES = ("40001", "40P01", _LOCK_TIMED_OUT)  # PostgreSQL: a conflict, a deadlock, a lock time-out
_DISK_FULL = "53100"
# SQLite, besides SQLITE_FULL: a quota is used up, or the index of the journal cannot be created
_NO_ROOM = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
# PostgreSQL: a connection failed; the server stops, starts, ended an idle session or has no more connections; its disk
# is full
_UNAVAILABLE_STATES = ("08", "57P01", "57P02", "57P03", "57P05", "53300", _DISK_FULL)
# time-outs that detect a server whose machine is gone, in seconds, the last one in milliseconds; `ServerWatch` detects
# a server that hangs
_CONNECT = {
    "connect_timeout": "3",
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
# a statement with a list of ids is another one for each length, and takes 100 kB: the default of 128 takes much memory
_SQLITE_CONNECT = {"cached_statements": 24}
_AS_NOTHING: dict[None, None] = {}
_MAGIC = b"SQLite format 3\0"
_HEAD = 105  # bytes of a database file, up to how many entries its first page has
_OUR_TABLES = ("alembic_version", "pages", "states", "checks")  # some of those that every store has
_READING = ("PRAGMA query_only=ON", "PRAGMA cache_size=-4000")


def make_engine(url: URL, path: Path | None, where: str, *, read_only: bool) -> Engine:
    """Return an engine for the database at a URL that `locate` returned, with its connections set up."""
    try:
        options = _SQLITE_CONNECT if path else {key: value for key, value in _CONNECT.items() if key not in url.query}
        # the connection used last is used next: its server process has everything in its caches
        engine = create_engine(url, pool_size=32, max_overflow=-1, pool_use_lifo=True, connect_args=options)
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        raise StoreError(f"The store '{where}' is not a path or a postgresql:// URL: {error}.") from None
    except ModuleNotFoundError:
        raise MissingExtra("A PostgreSQL store", "postgres") from None
    if path is not None:
        _prepare_sqlite(engine, _READING if read_only else _PRAGMAS, where)
    else:
        _prepare_postgresql(engine)
    return engine


def first_line(cause: BaseException | None) -> str:
    """Return the first line of a driver's message, without a full stop."""
    return str(cause).strip().partition("\n")[0].rstrip(".")


def file_identity(path: Path | None) -> tuple[int, int] | None:
    """Return device and inode of a file, which tell it from another one of the same name; None if it is missing."""
    if path is None:
        return None
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def means_locked(cause: BaseException | None) -> bool:
    """Return whether a driver's error means that another program has the database locked."""
    if isinstance(cause, sqlite3.Error):
        # the last byte of an extended code is its basic code; errors of the driver itself have none
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return getattr(cause, "sqlstate", None) in _LOCKED_STATES


def means_damaged(cause: BaseException | None) -> bool:
    """Return whether a driver's error means that a file is damaged, or no database at all."""
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    return isinstance(cause, sqlite3.Error) and code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def means_no_fts5(cause: BaseException | None) -> bool:
    """Return whether an error means that SQLite was built without FTS5; it has no error code, only a message."""
    return isinstance(cause, sqlite3.Error) and "no such module" in str(cause)


def waited_for_lock(cause: BaseException | None) -> bool:
    """Return whether an error that `means_locked` was raised after waiting; a conflict on PostgreSQL is not."""
    return getattr(cause, "sqlstate", _LOCK_TIMED_OUT) == _LOCK_TIMED_OUT


def means_unavailable(cause: BaseException | None) -> bool:
    """Return whether a driver's error is temporary: the server cannot be reached, or its disk is full."""
    if means_full(cause):
        return True
    if isinstance(cause, sqlite3.Error):
        return False
    state = getattr(cause, "sqlstate", None)
    if state is None:
        # raised by the driver itself: the connection was lost, or could not be opened
        return type(cause).__name__ in ("OperationalError", "InterfaceError", "ConnectionTimeout")
    return str(state).startswith(_UNAVAILABLE_STATES)


def means_full(cause: BaseException | None) -> bool:
    """Return whether a driver's error means that the disk is full."""
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", 0)
        return code & 0xFF == sqlite3.SQLITE_FULL or code in _NO_ROOM
    return getattr(cause, "sqlstate", None) == _DISK_FULL


def is_there(where: str) -> bool:
    """Return whether the file of a store exists and has anything in it; True for a store on a server.

    A database without any table counts as missing: a command that only reads must not create ours in it. A file of no
    bytes does not: it was made to become a store.
    """
    try:
        if _is_url(where):
            return True
        path = _path_of(where)
        return path.exists() and not _is_without_tables(path)
    except (OSError, StoreError):
        return True  # opening it will raise an error with the reason


def _is_url(where: str) -> bool:
    return "://" in where and not where.startswith("sqlite:")


def _path_of(where: str) -> Path:
    """Return the path of the file of a store; StoreError for a name that only looks like one to SQLite."""
    name = where.removeprefix("sqlite:///")
    if not name.strip():
        raise StoreError("The store has no name: give the path of a file, or a postgresql:// URL.")
    if "\0" in name:
        raise StoreError(f"The store {name!r} cannot be a file, because its name has a NUL character: give a path.")
    if name == ":memory:":
        raise StoreError("The store ':memory:' would be lost at the end: give the path of a file.")
    if name.startswith(("sqlite:", "file:")):
        plain = name.partition(":")[2].lstrip("/").partition("?")[0] or "pages.db"
        raise StoreError(f"The store '{where}' is neither a path nor a postgresql:// URL: write a path, as '{plain}'.")
    try:
        return Path(name).expanduser().absolute()
    except FileNotFoundError:
        raise StoreError(
            f"The store '{where}' cannot be found, because the current folder was removed: change to another one."
        ) from None
    except RuntimeError as error:  # there is no such user
        raise StoreError(f"The store '{where}' cannot be found: {str(error).rstrip('.')}.") from None


def _is_without_tables(path: Path) -> bool:
    """Return whether a file is an SQLite database without tables, by its first page, so that nothing is written."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD)
    journal = path.with_name(f"{path.name}-wal")  # what is in it is not in the file yet
    in_journal = journal.exists() and journal.stat().st_size > 0
    # after the header of the database, that of the first page, a leaf (13), where bytes 3 and 4 count its entries
    return len(head) == _HEAD and head.startswith(_MAGIC) and head[100] == 13 and not any(head[103:]) and not in_journal


def locate(where: str) -> tuple[URL, Path | None]:
    """Return the URL of the database of a store, and the path of its file, which is created if it is missing.

    The path is None for a database on a server. Raises StoreError if `where` is neither a path nor a postgresql:// URL.
    """
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
    try:
        if path.is_dir():
            raise StoreError(f"The store '{where}' is a folder: give the path of a file in it.")
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.touch(mode=0o600)
    except OSError as error:
        raise StoreError(f"The store '{where}' cannot be made ({error.strerror}): choose another path.") from None
    if not path.is_file():
        raise StoreError(f"The store '{where}' is not a regular file: give the path of one, or of a new one.")
    if not os.access(path, os.R_OK):
        raise StoreError(f"The store '{where}' cannot be read (permission denied): have its owner allow it.")
    return URL.create("sqlite", database=str(path)), path


def is_writable(path: Path) -> bool:
    """Return whether this file can be written, and its folder, where SQLite writes a journal."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def read_only_url(path: Path) -> URL:
    """Return the URL for opening a file read-only."""
    in_use = path.with_name(f"{path.name}-wal").exists()  # another process may be writing to it
    query = {"mode": "ro", "uri": "true"} | ({} if in_use else {"immutable": "1"})
    return URL.create("sqlite", database=f"file:{quote(str(path))}", query=query)


def _prepare_postgresql(engine: Engine) -> None:
    from psycopg.adapt import Dumper
    from psycopg.pq import Format

    milliseconds = max(round(1_000 * WAITS.lock), 50)  # 0 would wait for ever

    class BinaryArrayDumper(Dumper):
        """Sends a `BinaryArray` as it is."""

        format = Format.BINARY

        def dump(self, obj: BinaryArray) -> bytes:
            return obj

    @event.listens_for(engine, "do_connect")
    def _on_connecting(dialect: Dialect, _record: object, arguments: Any, options: Any) -> Any:
        return _connect(dialect.import_dbapi(), arguments, options)

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _record: object) -> None:
        # not as a connection option, which poolers refuse; a time-out that the administrator set is kept
        connection.adapters.register_dumper(BinaryArray, BinaryArrayDumper)
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


def _connect(driver: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Return a new connection of the driver psycopg; what is left of a failed one is closed at once.

    The error of an attempt that timed out is part of a reference cycle with its open socket. A server that was hung
    gives each of those one of its few connections, and garbage is collected too rarely to wait for that.
    """
    try:
        return driver.connect(*arguments, **options)
    except driver.Error as error:
        traceback.clear_frames(error.__traceback__)
        raise


class BinaryArray(bytes):
    """An array as PostgreSQL takes it in binary, for a parameter that the statement casts to the type of the array."""


# the numbers of PostgreSQL's types, and the formats of those that are numbers
_ELEMENTS: dict[type[TypeEngine[Any]], tuple[int, str]] = {
    Integer: (23, "i"), BigInteger: (20, "q"), Double: (701, "d"), Text: (25, ""), LargeBinary: (17, ""),
}  # fmt: skip
_NULL = struct.pack(">i", -1)


def encode_array(kind: TypeEngine[Any], values: Sequence[Any]) -> BinaryArray | list[Any]:
    """Return these values of a column, at least one, as an array for PostgreSQL; an empty one if all are null.

    `unnest` fills up arrays that are shorter than others. The driver would take six times as long, most of what
    recording a check costs this process.
    """
    number, code = _ELEMENTS[type(kind)]
    if values[0] is None and all(value is None for value in values):
        return BinaryArray(struct.pack(">iii", 0, 0, number))
    try:
        elements = _encode_elements(code, values)
    except struct.error:
        return [*values]  # a number is too large for the column: the server says so
    # one dimension; some may be null; the type of the elements; how many there are; the number of the first one
    return BinaryArray(struct.pack(">iiiii", 1, 1, number, len(values), 1) + elements)


def _encode_elements(code: str, values: Sequence[Any]) -> bytes:
    if values.count(values[0]) == len(values):  # as most columns of checks are
        return _encode_element(code, values[0]) * len(values)
    if not code or None in values:
        return b"".join([_encode_element(code, value) for value in values])
    pairs = [struct.calcsize(f">{code}")] * (2 * len(values))
    pairs[1::2] = values
    return struct.pack(">" + f"i{code}" * len(values), *pairs)


def _encode_element(code: str, value: Any) -> bytes:
    if value is None:
        return _NULL
    data = struct.pack(f">{code}", value) if code else value.encode() if isinstance(value, str) else value
    return struct.pack(">i", len(data)) + data


def is_foreign(tables: Collection[str]) -> bool:
    """Return whether a database with these tables belongs to another program. One without tables may become a store."""
    return bool(tables) and not set(tables).issuperset(_OUR_TABLES)


def foreign(where: str) -> StoreError:
    """Return the error for a database of another program."""
    return StoreError(
        f"'{where}' is a database of another program, and nothing was written to it: name a store of Driftline, or a "
        "new one."
    )


def _is_foreign_file(connection: Any) -> bool:
    """Return whether an SQLite file belongs to another program: by its tables and views, or by numbers of its own."""
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
    marks = [connection.execute(f"PRAGMA {mark}").fetchone()[0] for mark in ("application_id", "user_version")]
    return is_foreign(names) if names else any(marks)


def _prepare_sqlite(engine: Engine, pragmas: Sequence[str], where: str) -> None:
    # without adapters for these two types the driver searches for one for every value, which is slower than writing it
    sqlite3.register_adapter(type(None), _AS_NOTHING.get)
    sqlite3.register_adapter(bytes, bytes)
    milliseconds = round(1_000 * WAITS.lock)

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _record: object) -> None:
        # the driver must not begin transactions by itself: '_on_begin' decides of which kind they are
        connection.isolation_level = None
        if _is_foreign_file(connection):
            connection.close()
            raise foreign(where)
        if pragmas is _PRAGMAS and connection.execute("PRAGMA page_count").fetchone() == (0,):
            connection.execute(SHRINKS_IN_STEPS)  # must be set before anything is in the file
        for pragma in pragmas:
            connection.execute(pragma)
        if pragmas is _PRAGMAS:
            connection.execute(f"PRAGMA busy_timeout={milliseconds}")

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("driftline_writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


class ServerWatch:
    """Watches the connections of an engine that are in use, in a thread that starts with the first of them.

    `hurry` is for a process that is about to end: the server is tried at once, and has less time.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._in_use: dict[object, tuple[Any, float]] = {}  # by the pool's record, which outlives its connection
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._hurried = False
        event.listen(engine, "checkout", self._on_checkout)
        event.listen(engine, "checkin", self._on_checkin)

    def __repr__(self) -> str:
        return f"<ServerWatch connections_in_use={len(self._in_use)}>"

    def hurry(self) -> None:
        """Try the server as soon as a connection is in use for half a second."""
        self._hurried = True

    def close(self) -> None:
        """End the thread."""
        self._closed.set()

    def _on_checkout(self, connection: Any, record: object, _proxy: object) -> None:
        with self._lock:
            self._in_use[record] = (connection, time.monotonic())
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._work, name="server watch", daemon=True)
                self._thread.start()

    def _on_checkin(self, _connection: Any, record: object) -> None:
        with self._lock:
            self._in_use.pop(record, None)

    def _work(self) -> None:
        answered_at = 0.0
        while not self._closed.wait(_LOOK):
            now = time.monotonic()
            long = _LONG_IN_A_HURRY if self._hurried else _LONG
            with self._lock:
                waiting = any(since < now - long for _, since in self._in_use.values())
            if not waiting or (now < answered_at + _AGAIN and not self._hurried):
                continue
            if self._greets():
                answered_at = time.monotonic()
            else:
                self._hang_up()

    def _greets(self) -> bool:
        """Return whether the server accepts another connection. One that refuses it with an error is alive, too."""
        dialect = self._engine.dialect
        arguments, options = dialect.create_connect_args(self._engine.url)
        timeout = 2 if self._hurried else _GREETING
        options["connect_timeout"] = timeout
        driver: Any = dialect.import_dbapi()
        started = time.monotonic()
        try:
            _connect(driver, arguments, options).close()
        except driver.Error:
            return time.monotonic() - started < timeout
        return True

    def _hang_up(self) -> None:
        with self._lock:
            connections = [connection for connection, _ in self._in_use.values()]
        _LOG.debug("the database server hangs: shutting down %d connections", len(connections))
        driver: Any = self._engine.dialect.import_dbapi()
        for connection in connections:
            # a connection closed meanwhile has no socket, or one that is shut
            with contextlib.suppress(OSError, driver.Error):
                _shut_down(connection.fileno())


def _shut_down(descriptor: int) -> None:
    """Shut a connection down in both directions, also while a thread reads from it; the descriptor stays open."""
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        copy.shutdown(socket.SHUT_RDWR)
