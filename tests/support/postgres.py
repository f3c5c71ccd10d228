"""A PostgreSQL server of the tests' own behind a socket file; where none can be started, its tests are skipped.

The fixture `postgres` is the address of a database that no other test has. Tests in several processes have a server
each: a socket file, unlike a port, cannot be taken by somebody else in the meantime.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest

_OWNER = "driftline"
_INSTALLED = Path("/usr/lib/postgresql")
_IN_MEMORY = Path("/dev/shm")
_ROOM = 500_000_000  # bytes: some hundred for the server, and for the database of one test at a time
_NUMBERS = count(1)
# nothing here is to survive the machine, and none of it lasts long enough to be tidied up
_OPTIONS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
}


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Path]:
    """The folder with the socket of the server, started by the first test that needs it and stopped after the last."""
    if find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed: pip install 'driftline[postgres]'")
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed")
    user = _user()
    # the folder that pytest gives may be closed to the user that the server runs as
    folder = Path(tempfile.mkdtemp(prefix="driftline-postgres-", dir=_roomy()))
    try:
        if user is not None:
            shutil.chown(folder, user)
        data = folder / "data"
        setup = ["--username", _OWNER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync"]
        _run([programs / "initdb", "--pgdata", data, *setup], user, folder)
        options = " ".join(f"-c {name}={value}" for name, value in _OPTIONS.items())
        options += f" -c unix_socket_directories={folder}"
        log = folder / "log"
        _run([programs / "pg_ctl", "start", "--wait", "-D", data, "-l", log, "-o", options], user, folder)
        try:
            yield folder
        finally:
            _run([programs / "pg_ctl", "stop", "--wait", "-D", data, "-m", "immediate"], user, folder)
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def postgres(postgres_server: Path) -> Iterator[str]:
    """The URL of an empty database, which is gone after the test."""
    import psycopg

    name = f"test{next(_NUMBERS)}"
    with psycopg.connect(host=str(postgres_server), user=_OWNER, dbname="postgres", autocommit=True) as connection:
        # what older servers did anyway; newer ones write all of it to their log as well
        how = " STRATEGY file_copy" if connection.info.server_version >= 150_000 else ""
        connection.execute(f"CREATE DATABASE {name}{how}".encode())
        yield f"postgresql://{_OWNER}@/{name}?host={postgres_server}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _roomy() -> Path | None:
    """Where files are made and removed fast: PostgreSQL has hundreds for each database. None for the usual place."""
    try:
        return _IN_MEMORY if shutil.disk_usage(_IN_MEMORY).free > _ROOM else None
    except OSError:
        return None


def _programs() -> Path | None:
    """Where the newest server's programs are; Debian keeps them out of the path."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    folders = [initdb.parent for initdb in _INSTALLED.glob("*/bin/initdb")]
    return max(folders, key=lambda folder: int(folder.parent.name), default=None)


def _user() -> str | None:
    """Whom the server runs as: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no user 'postgres'")


def _run(command: list[str | Path], user: str | None, folder: Path) -> None:
    # what pg_ctl starts keeps the streams open, so they must not be pipes that are read to their end
    with (folder / "output").open("ab") as output:
        done = subprocess.run(command, user=user, cwd=folder, stdout=output, stderr=output, check=False)
    assert done.returncode == 0, (folder / "output").read_text()
