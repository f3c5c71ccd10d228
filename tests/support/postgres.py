"""A PostgreSQL server of the tests' own on the loopback interface; where none can be started, its tests are skipped.

The fixture `postgres` is the address of a database that no other test has.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest

_OWNER = "driftline"
_INSTALLED = Path("/usr/lib/postgresql")
_NUMBERS = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresServer:
    """A server that is running, and makes databases."""

    programs: Path
    port: int

    def make_database(self) -> str:
        """The `postgresql://` URL of a database that is new and empty."""
        name = f"test{next(_NUMBERS)}"
        where = ["--host", "127.0.0.1", "--port", str(self.port), "--username", _OWNER]
        subprocess.run([self.programs / "createdb", *where, name], check=True, capture_output=True)
        return f"postgresql://{_OWNER}@127.0.0.1:{self.port}/{name}"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The server, started by the first test that needs it and stopped after the last."""
    if find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed: pip install 'driftline[postgres]'")
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed")
    user = _user()
    # the folder that pytest gives may be closed to the user that the server runs as
    folder = Path(tempfile.mkdtemp(prefix="driftline-postgres-"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        data, port = folder / "data", _free_port()
        setup = ["--username", _OWNER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync"]
        _run([programs / "initdb", "--pgdata", data, *setup], user, folder)
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories= -c fsync=off"
        log = folder / "log"
        _run([programs / "pg_ctl", "start", "--wait", "-D", data, "-l", log, "-o", options], user, folder)
        try:
            yield PostgresServer(programs=programs, port=port)
        finally:
            _run([programs / "pg_ctl", "stop", "--wait", "-D", data, "-m", "immediate"], user, folder)
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> str:
    """The URL of an empty database."""
    return postgres_server.make_database()


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


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def _run(command: list[str | Path], user: str | None, folder: Path) -> None:
    # what pg_ctl starts keeps the streams open, so they must not be pipes that are read to their end
    with (folder / "output").open("ab") as output:
        done = subprocess.run(command, user=user, cwd=folder, stdout=output, stderr=output, check=False)
    assert done.returncode == 0, (folder / "output").read_text()
