"""A PostgreSQL server of our own in a temporary folder, behind a socket file, to be restarted, stopped and frozen."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import create_engine, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError

from driftline.errors import BadSetting, MissingExtra, StoreError
from driftline.lab.bench.local_watch_lists import LabError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


OWNER = "driftline"
_INSTALLED = Path("/usr/lib/postgresql")
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 a folder of our own is made in it
_ROOM = 500_000_000  # bytes: some hundred for the server, and for one database at a time
# nothing here is to survive the machine, and none of it lasts long enough to be tidied up
_OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
}


class NoPostgres(LabError):
    """No PostgreSQL server can be run here."""


class PostgresServer:
    """A server that runs. Its folder, which has its socket, belongs to the user that it runs as."""

    def __init__(self, programs: Path, folder: Path, user: str | None, options: str) -> None:
        self.folder = folder
        self._programs = programs
        self._user = user
        self._options = options

    def url(self, database: str) -> str:
        """Return the URL of a database."""
        return f"postgresql://{OWNER}@/{database}?host={self.folder}"

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        self._control("start", "-l", str(self.folder / "log"), "-o", self._options)

    def stop(self, how: str = "immediate") -> None:
        """Stop the server: `fast` ends the sessions first, `immediate` is like a crash."""
        self._control("stop", "-m", how)

    def freeze(self) -> None:
        """Suspend all of its processes, with every connection open."""
        for pid in self._processes():
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume the suspended processes."""
        for pid in reversed(self._processes()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _processes(self) -> list[int]:
        """Return the ids of the server's main process and its children."""
        first = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, children)]

    def _control(self, what: str, *words: str) -> None:
        _run([self._programs / "pg_ctl", what, "--wait", "-D", self.folder / "data", *words], self._user, self.folder)


@contextmanager
def served(more: Mapping[str, str] | None = None) -> Iterator[PostgresServer]:
    """Run a server for the time of the `with` block, with `more` options. Raise NoPostgres if none is installed."""
    programs = _programs()
    if programs is None:
        raise NoPostgres("No PostgreSQL server is installed.")
    user = _user()
    folder = Path(tempfile.mkdtemp(prefix="driftline-postgres-", dir=_roomy()))
    try:
        if user is not None:
            shutil.chown(folder, user)
        setup = ["--username", OWNER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync"]
        _run([programs / "initdb", "--pgdata", folder / "data", *setup], user, folder)
        given = _OPTIONS | {"unix_socket_directories": str(folder)} | dict(more or {})
        server = PostgresServer(programs, folder, user, " ".join(f"-c {name}={value}" for name, value in given.items()))
        server.start()
        try:
            yield server
        finally:
            with suppress(OSError, ValueError):
                server.thaw()
            server.stop()
    finally:
        shutil.rmtree(folder)


def _roomy() -> Path | None:
    """Return a folder in memory if it has room, else None: PostgreSQL makes hundreds of files for each database."""
    try:
        return _IN_MEMORY if shutil.disk_usage(_IN_MEMORY).free > _ROOM else None
    except OSError:
        return None


def _programs() -> Path | None:
    """Return the folder of the newest server's programs, which Debian keeps out of the path."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    folders = [initdb.parent for initdb in _INSTALLED.glob("*/bin/initdb")]
    return max(folders, key=lambda folder: int(folder.parent.name), default=None)


def _user() -> str | None:
    """Return the user to run the server as, because it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        raise NoPostgres("PostgreSQL does not run as root, and there is no user 'postgres'.") from None


def _run(command: list[str | Path], user: str | None, folder: Path) -> None:
    # what pg_ctl starts keeps the streams open, so they must not be pipes that are read to their end
    with (folder / "output").open("ab") as output:
        done = subprocess.run(command, user=user, cwd=folder, stdout=output, stderr=output, check=False)
    if done.returncode:
        raise LabError(f"The PostgreSQL server: {(folder / 'output').read_text().strip()}")


@contextmanager
def temporary_database(url: str, template: str | None = None) -> Iterator[str]:
    """Create a database on the server of `url` and drop it after the block, which is given the URL of the new one.

    `template` is the URL of a database to copy, which must have no connections. The user needs the right to create
    databases.
    """
    name = f"driftline_lab_{secrets.token_hex(4)}"
    try:
        at = make_url(url)
        if at.get_backend_name() not in ("postgresql", "postgres"):
            raise BadSetting("--store takes a postgresql:// URL: databases are made on its server, and dropped again.")
        engine = create_engine(at.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    except (ArgumentError, NoSuchModuleError, ValueError):
        raise BadSetting("--store takes a postgresql:// URL.") from None
    except ModuleNotFoundError:
        raise MissingExtra("A PostgreSQL store", "postgres") from None
    try:
        with engine.connect() as connection:
            copied = "" if template is None else f" TEMPLATE {make_url(template).database}"
            connection.exec_driver_sql(f"CREATE DATABASE {name}{copied}")
            try:
                yield at.set(database=name).render_as_string(hide_password=False)
            finally:
                connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    except DatabaseError as error:
        raise StoreError(f"A database for the benchmark could not be created or dropped: {error.orig}.") from None
    finally:
        engine.dispose()


def vacuum(url: str) -> None:
    """Vacuum and analyse a database, as the server does by itself within a minute after many rows were written."""
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("VACUUM (ANALYZE)")
    finally:
        engine.dispose()
