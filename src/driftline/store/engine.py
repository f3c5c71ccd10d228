"""The store: one schema on SQLite or PostgreSQL, upgraded when it is opened, with one writer at a time."""

from __future__ import annotations

import logging
import sqlite3
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sqlalchemy import inspect, text
from sqlalchemy.exc import DatabaseError, DBAPIError, IntegrityError

from driftline.errors import DamagedStore, NoTextSearch, StoreError, StoreLocked, StoreUnavailable, UnsupportedStore
from driftline.store.drivers import (
    SHRINKS_IN_STEPS,
    ServerWatch,
    file_identity,
    first_line,
    foreign,
    is_foreign,
    is_writable,
    locate,
    make_engine,
    means_damaged,
    means_full,
    means_locked,
    means_no_fts5,
    means_unavailable,
    read_only_url,
    waited_for_lock,
)
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
from driftline.urls import without_password

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection, Engine

    from driftline.store.process_locks import Having, Right

_LOG = logging.getLogger(__name__)

#: the revision of the last step in `migrations/steps`
NEWEST = "a001"
_LAST_WAIT = 1.0  # seconds that a process which is about to end waits for its other threads to write
_SHORT_LOCK_TIMEOUT = text("SET LOCAL lock_timeout = '1s'")  # the same, for writers in other processes
_PAGES_AT_ONCE = 256  # database pages freed in one step


class Store:
    """The database. Any thread may read; `write` lets one thread in at a time.

    What is committed survives the end of the process at any later moment, `kill -9` included. A file that cannot be
    written, for example on a read-only file system, can still be read. `on_outage` is called with a sentence when the
    database becomes unavailable, and when it is available again.
    """

    def __init__(self, engine: Engine, where: str, path: Path | None, *, read_only: bool = False) -> None:
        self.engine = engine
        self.where = where
        self.path = path
        self.read_only = read_only
        self.statements = Statements(engine)
        self.on_outage: Callable[[str], None] = lambda _: None
        self._outage = self._busy = False  # reset when the database answers any request
        self._unwritable = False  # full or locked; reset when something is written
        self._hurried = self._announced = False
        self._watch = ServerWatch(engine) if path is None else None
        self.leases = LeaseKeeper(self) if path is None else None
        self._closed = False
        self._file = file_identity(path)
        self._writing = threading.Lock()
        self._writer = engine.execution_options(driftline_writes=True)

    def __repr__(self) -> str:
        states = {"closed": self._closed, "read-only": self.read_only, "in trouble": self.in_trouble()}
        return f"<Store '{self.where}'{''.join(f' {name}' for name, so in states.items() if so)}>"

    @classmethod
    def open(cls, where: str) -> Self:
        """Open the store at a path or `postgresql://` URL; it is created, or its schema upgraded, where necessary."""
        url, path = locate(where)
        if path is None:
            where = without_password(url.set(drivername="postgresql").render_as_string(hide_password=True))
        read_only = path is not None and not is_writable(path)
        if path is not None and read_only:
            url = read_only_url(path)
        engine = make_engine(url, path, where, read_only=read_only)
        store = cls(engine, where, path, read_only=read_only)
        try:
            store._upgrade()
        except StoreError:
            engine.dispose()
            raise
        except (DatabaseError, OSError) as error:
            engine.dispose()
            cause = getattr(error, "orig", None) or error
            kind = StoreUnavailable if means_unavailable(cause) else _kind_of(cause)
            raise kind(f"The store '{where}' cannot be opened: {first_line(cause)}.") from None
        return store

    def close(self) -> None:
        """Close every connection; an SQLite store is left as a single file."""
        self._closed = True
        if self._watch is not None and self.leases is not None:
            self._watch.close()
            self.leases.close()
        self.engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a connection for a block that reads."""
        self._require_usable()
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
        self._require_usable()
        self.require_writable()
        try:
            with self._one_writer(), self._writer.begin() as connection:
                if self._hurried and self.path is None:
                    connection.execute(_SHORT_LOCK_TIMEOUT)
                yield connection
        except IntegrityError:
            raise
        except DBAPIError as error:
            raise self._trouble("written", error.orig, until_written=True) from None
        self._unwritable = False
        self._note_answer()

    @contextmanager
    def _one_writer(self) -> Iterator[None]:
        """Let one thread at a time into the block, which is a whole transaction.

        This is the one lock of ours that is held across I/O. SQLite has one writer at a time, and would make the others
        poll for it. PostgreSQL could let several in; they take turns there too, because they mostly want the same rows
        (states, the event log, the counter of `locks.count_revision`): a thread that waits here takes no connection,
        `locks.lock_events` never refuses a thread of the same process, and `hurry` ends the wait. Whoever must not
        wait for the others, such as the renewal of a lease, uses `write_aside`.
        """
        while not self._writing.acquire(timeout=_LAST_WAIT):
            if self._hurried:
                raise StoreLocked(f"The store '{self.where}' cannot be written: another thread still waits for it.")
        try:
            yield
        finally:
            self._writing.release()

    @contextmanager
    def write_aside(self) -> Iterator[Connection]:
        """Open a transaction for a block without waiting for another thread of this process that is in `write`.

        SQLite has one writer at a time: there it waits for the other transaction all the same.
        """
        self._require_usable()
        try:
            with self._writer.begin() as connection:
                yield connection
        except DBAPIError as error:
            raise self._trouble("written", error.orig) from None
        self._note_answer()  # `_unwritable` stays: a lease can be renewed although tables are locked or the disk full

    def hurry(self) -> None:
        """Fail soon instead of waiting for a server that does not answer, because the process is about to end."""
        self._hurried = True
        if self._watch is not None:
            self._watch.hurry()

    @property
    def hurried(self) -> bool:
        """Return whether `hurry` was called: the process is about to end."""
        return self._hurried

    def stamp(self) -> object:
        """Return a value that stays equal until the watch list changes, or a run begins or ends."""
        with self.read() as connection:
            return revision(connection)

    def right_to_check(self) -> Having:
        """Return a `with` block in which this process may check pages; StoreBusy if another process has that right.

        A process that is killed loses it: immediately to processes of the same machine, and to those of other machines,
        which share a PostgreSQL server, when its lease ends. It is also lost while the server does not answer: see
        `Claim`.
        """
        return self._hold(TO_CHECK)

    def right_to_be_next(self) -> Having:
        """Return a `with` block in which this process is the next to check pages; StoreBusy if another one is.

        A 'driftline run' that is checking pages gives the right to check up for it.
        """
        return self._hold(TO_BE_NEXT)

    def is_process_waiting(self) -> bool:
        """Return whether another process waits to check pages."""
        if self.leases is not None:
            return self.leases.is_held(TO_BE_NEXT)
        assert self.path is not None
        return is_held_by_file(TO_BE_NEXT, self.path)

    def right_to_keep_checking(self) -> Having:
        """Return a `with` block in which this process is the only 'driftline run'; StoreBusy if there is one already.

        It does not include the right to check pages, which other commands take in between.
        """
        return self._hold(TO_KEEP_CHECKING)

    def _hold(self, right: Right) -> Having:
        self.require_writable()
        if self.leases is not None:
            return self.leases.held(right)
        assert self.path is not None
        return held_by_file(right, self.path, self.where)

    def problems(self) -> list[str]:
        """Return the errors that an integrity check of the database finds; empty if there are none."""
        if self.path is None:
            return []
        with self.read() as connection:
            try:
                found = [row[0] for row in connection.execute(text("PRAGMA integrity_check")) if row[0] != "ok"]
            except DatabaseError as error:
                if means_locked(error.orig):
                    raise
                found = [str(error.orig)]  # the file is so damaged that the check itself fails
            if not found:
                found = [f"a row of {row[0]} refers to a missing row of {row[2]}"
                         for row in connection.execute(text("PRAGMA foreign_key_check"))]  # fmt: skip
        return found

    def require_intact(self) -> None:
        """Raise StoreError if the database is damaged: writing to it could lose more."""
        found = self.problems()
        if found:
            more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
            first = " ".join(found[0].split()).rstrip(".")
            raise DamagedStore(
                f"The store '{self.where}' is damaged ({first}{more}), and nothing was done: restore a backup, or move "
                "the file away to start anew."
            )

    def size(self) -> int:
        """Return the size of the database in bytes, with its indexes and free space."""
        with self.read() as connection:
            if self.path is None:
                return connection.scalar(text("SELECT pg_database_size(current_database())")) or 0
            pages = connection.scalar(text("PRAGMA page_count")) or 0
            return pages * (connection.scalar(text("PRAGMA page_size")) or 0)

    def shrink(self) -> None:
        """Return the free space of an SQLite file to the file system, in steps so that no writer waits long."""
        if self.path is None:
            return  # PostgreSQL does that itself
        self._require_usable()
        self.require_writable()
        raw = self.engine.raw_connection()
        try:
            cursor = raw.cursor()
            if cursor.execute("PRAGMA auto_vacuum").fetchone() == (0,):
                # a file made without incremental vacuum is rewritten once
                with self.right_to_check():
                    cursor.execute(SHRINKS_IN_STEPS)
                    cursor.execute("VACUUM")
            while cursor.execute("PRAGMA freelist_count").fetchone() != (0,):
                cursor.execute(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})").fetchall()
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"The store '{self.where}' cannot be made smaller: {error}.") from None
        finally:
            raw.close()

    def _require_usable(self) -> None:
        """Raise StoreError unless the store is open and its file still in place: writes to a deleted file are lost."""
        if self._closed:
            raise StoreError(f"The store '{self.where}' is closed.")
        if self._hurried and self._outage:
            raise StoreUnavailable(f"The store '{self.where}' cannot be used at the moment.")
        if self._file != file_identity(self.path):
            raise StoreError(f"The store '{self.where}' was removed or replaced while it was in use.")

    def require_writable(self) -> None:
        """Raise StoreError if the store is read-only."""
        if self.read_only:
            raise StoreError(
                f"The store '{self.where}' is read-only, and this would change it: look at it with list, changes, "
                "history, show, diff and search, or copy it to a place where you may write."
            )

    def _trouble(self, done: str, cause: BaseException | None, *, until_written: bool = False) -> StoreError:
        """Remember what is wrong with the store, and return the error to raise.

        An outage is over when the server answers anything. A full or locked database can still be read, so only a
        successful write shows that that is over.
        """
        reason = first_line(cause)
        locked = means_locked(cause)
        if means_no_fts5(cause):
            return NoTextSearch(
                "Searching needs SQLite with FTS5, and the SQLite of this Python was built without it: "
                "use another build of Python, or a postgresql:// store."
            )
        if not locked and not means_unavailable(cause):
            return _kind_of(cause)(f"The store '{self.where}' cannot be {done}: {reason}.")
        if not locked and not means_full(cause):
            self._outage = True
        elif until_written:
            self._unwritable = True
        else:
            self._busy = True
        # a conflict between transactions is over at once, and not worth a message
        if not locked or waited_for_lock(cause):
            self._announce(done, reason)
        if locked:
            return StoreLocked(f"The store '{self.where}' cannot be {done}: {reason}.")
        return StoreUnavailable(f"The store '{self.where}' cannot be {done} at the moment: {reason}.")

    def _announce(self, done: str, reason: str) -> None:
        if not self._announced:
            self._announced = True
            _LOG.info("the store cannot be %s: %s", done, reason, extra={"store": self.where})
            self.on_outage(f"The store '{self.where}' cannot be {done} at the moment ({reason}): waiting for it.")

    def _note_answer(self) -> None:
        self._outage = self._busy = False
        if self._announced and not self._unwritable:
            self._announced = False
            _LOG.info("the store can be used again", extra={"store": self.where})
            self.on_outage(f"The store '{self.where}' can be used again.")

    def in_trouble(self) -> bool:
        """Return whether the store was locked, full or unreachable at its last use."""
        return self._outage or self._busy or self._unwritable

    def _upgrade(self) -> None:
        with self.engine.connect() as connection:
            tables = inspect(connection)
            has_schema = tables.has_table("alembic_version")
            found = connection.scalar(text("SELECT version_num FROM alembic_version")) if has_schema else None
            if found == NEWEST:
                return
            if has_schema and is_foreign(tables.get_table_names()):
                raise foreign(self.where)
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
        with self._writing, self._writer.begin() as connection:
            if self.path is None:
                # another process may be upgrading it, which takes long
                connection.execute(text("SET LOCAL lock_timeout = 0"))
            _run_steps(connection)
        _LOG.debug("brought the schema of '%s' from %s to %s", self.where, found or "nothing", NEWEST)


def _kind_of(cause: BaseException | None) -> type[StoreError]:
    return DamagedStore if means_damaged(cause) else StoreError


def _run_steps(connection: Connection) -> None:
    """Run the missing steps of `migrations`, inside the caller's transaction."""
    # imported only here because it is slow, and most commands find the schema up to date
    from alembic import command
    from alembic.config import Config

    here = Path(__file__).parent / "migrations"
    config = Config()
    config.set_main_option("script_location", str(here).replace("%", "%%"))
    config.set_main_option("version_locations", str(here / "steps").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
