"""A store that cannot be used for a while: how that is reported, and when it is over."""

from __future__ import annotations

import gc
import resource
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text

from driftline.errors import StoreLocked, StoreUnavailable
from driftline.store.engine import Store

END_OWN_SESSION = text("SELECT pg_terminate_backend(pg_backend_pid())")


def opened(where: str) -> tuple[Store, list[str]]:
    """A store, and what it says."""
    store, said = Store.open(where), list[str]()
    store.on_outage = said.append
    return store, said


def read(store: Store) -> None:
    with store.read() as connection:
        connection.scalar(text("SELECT count(*) FROM pages"))


def write(store: Store) -> None:
    with store.write() as connection:
        connection.execute(text("INSERT INTO runs (scope, started_at) VALUES ('all', 1)"))


def write_aside(store: Store) -> None:
    with store.write_aside() as connection:
        connection.execute(text("UPDATE leases SET until = 0"))


def fill(store: Store) -> None:
    with store.write() as connection:
        pages = connection.scalar(text("PRAGMA page_count"))
        connection.execute(text(f"PRAGMA max_page_count={pages}"))
        connection.execute(text("CREATE TABLE large (content BLOB)"))
        connection.execute(text("INSERT INTO large VALUES (zeroblob(100000))"))


def test_a_full_disk_is_announced_once_until_something_is_written(tmp_path: Path) -> None:
    store, said = opened(str(tmp_path / "pages.db"))
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            fill(store)
        read(store)
        assert store.in_trouble()
    assert len(said) == 1
    assert "cannot be written" in said[0]
    write(store)
    assert not store.in_trouble()
    assert "can be used again" in said[1]
    store.close()


def test_a_locked_file_is_announced_once_until_something_is_written(impatient_store: None, tmp_path: Path) -> None:
    store, said = opened(str(tmp_path / "pages.db"))
    with closing(sqlite3.connect(tmp_path / "pages.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        for _ in range(3):
            with pytest.raises(StoreLocked):
                write(store)
            read(store)
        other.execute("ROLLBACK")
    assert (len(said), store.in_trouble()) == (1, True)
    write(store)
    assert (len(said), store.in_trouble()) == (2, False)
    store.close()


def test_a_locked_table_is_announced_once_while_leases_are_renewed(impatient_store: None, postgres: str) -> None:
    store, said = opened(postgres)
    with store.engine.connect() as other:
        other.execute(text("LOCK TABLE runs IN SHARE ROW EXCLUSIVE MODE"))
        for _ in range(3):
            with pytest.raises(StoreLocked):
                write(store)
            write_aside(store)
    assert (len(said), store.in_trouble()) == (1, True)
    write(store)
    assert (len(said), store.in_trouble()) == (2, False)
    store.close()


@pytest.mark.parametrize("use", [read, write, write_aside])
def test_a_full_disk_does_not_keep_a_process_that_is_to_end_from_reading_and_writing(
    tmp_path: Path, use: Callable[[Store], None]
) -> None:
    store, _ = opened(str(tmp_path / "pages.db"))
    with pytest.raises(StoreUnavailable):
        fill(store)
    store.hurry()
    use(store)
    store.close()


@pytest.mark.parametrize("use", [read, write, write_aside])
def test_an_outage_is_over_once_the_server_answers_any_query(postgres: str, use: Callable[[Store], None]) -> None:
    store, said = opened(postgres)
    with pytest.raises(StoreUnavailable), store.write_aside() as connection:
        connection.execute(END_OWN_SESSION)
    assert (len(said), store.in_trouble()) == (1, True)
    use(store)
    assert (len(said), store.in_trouble()) == (2, False)
    store.hurry()
    write(store)
    store.close()


def test_a_session_that_the_server_ends_for_it_was_idle_is_an_outage(postgres: str) -> None:
    store, said = opened(postgres)
    with store.read() as connection:
        number = connection.scalar(text("SELECT pg_backend_pid()"))
        connection.execute(text("SET idle_session_timeout = 1"))
        connection.commit()
    with psycopg.connect(postgres, autocommit=True) as admin:
        while admin.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [number]).fetchone() is not None:
            pass
    with pytest.raises(StoreUnavailable):
        read(store)
    read(store)
    assert len(said) == 2
    store.close()


def test_a_file_that_may_not_grow_is_waited_for_as_a_full_disk_is(tmp_path: Path) -> None:
    """By a quota, or by a limit of the process as here."""
    store, said = opened(str(tmp_path / "pages.db"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, limits[1]))
    try:
        with pytest.raises(StoreUnavailable):
            write(store)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert store.in_trouble()
    write(store)
    assert len(said) == 2
    store.close()


def test_a_process_that_is_to_end_waits_briefly_for_locks_of_others(postgres: str) -> None:
    store, _ = opened(postgres)
    waits: list[str] = []
    for _ in range(2):
        with store.write() as connection:
            waits.append(str(connection.scalar(text("SHOW lock_timeout"))))
        store.hurry()
    assert waits == ["10s", "1s"]
    store.close()


def test_a_connection_that_a_hung_server_does_not_answer_is_closed(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / ".s.PGSQL.5432"))
        server.listen()
        server.settimeout(10)
        gc.collect()
        gc.disable()  # garbage is collected too rarely to count on it
        try:
            with pytest.raises(StoreUnavailable, match="timeout expired"):
                Store.open(f"postgresql://someone@/pages?host={tmp_path}&connect_timeout=2")
            accepted, _ = server.accept()
            with accepted:
                accepted.settimeout(2)
                while accepted.recv(1_000):
                    pass  # until the end, which comes only if the other side closed the connection
        finally:
            gc.enable()
