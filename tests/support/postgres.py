"""A PostgreSQL server of the tests' own behind a socket file; where none can be started, its tests are skipped.

The fixture `postgres` is the address of a database that no other test has. Tests in several processes have a server
each: a socket file, unlike a port, cannot be taken by somebody else in the meantime.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest

from driftline.lab.servers.postgres_server import OWNER, NoPostgres, served

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Path]:
    """The folder with the socket of the server, started by the first test that needs it and stopped after the last."""
    if find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed: pip install 'driftline[postgres]'")
    server = served()
    try:
        running = server.__enter__()
    except NoPostgres as error:
        pytest.skip(str(error))
    yield running.folder
    server.__exit__(None, None, None)


@pytest.fixture
def postgres(postgres_server: Path) -> Iterator[str]:
    """The URL of an empty database, which is gone after the test."""
    import psycopg

    name = f"test{next(_NUMBERS)}"
    with psycopg.connect(host=str(postgres_server), user=OWNER, dbname="postgres", autocommit=True) as connection:
        # what older servers did anyway; newer ones write all of it to their log as well
        how = " STRATEGY file_copy" if connection.info.server_version >= 150_000 else ""
        connection.execute(f"CREATE DATABASE {name}{how}".encode())
        yield f"postgresql://{OWNER}@/{name}?host={postgres_server}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
