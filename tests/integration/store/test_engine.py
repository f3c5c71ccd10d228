from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from driftline.errors import MissingExtra, StoreError
from driftline.store.engine import NEWEST, Store
from driftline.store.schema import metadata


def test_a_store_is_made_with_its_folders_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "pages.db"
    Store.open(str(path)).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_closed_store_is_one_file(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "pages.db"))
    with store.write() as connection:
        connection.execute(text("INSERT INTO runs (scope, started_at) VALUES ('all', 1)"))
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["pages.db"]


def test_a_store_opens_again_with_what_it_holds(tmp_path: Path) -> None:
    where = str(tmp_path / "pages.db")
    first = Store.open(where)
    with first.write() as connection:
        connection.execute(text("INSERT INTO runs (scope, started_at) VALUES ('all', 1)"))
    first.close()
    second = Store.open(f"sqlite:///{where}")
    with second.read() as connection:
        assert connection.scalar(text("SELECT count(*) FROM runs")) == 1
    second.close()


def test_the_migrations_make_exactly_the_schema_of_the_code(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "pages.db"))
    with store.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, metadata) == []
        tables = set(inspect(connection).get_table_names()) - {"alembic_version", "sqlite_sequence"}
    assert tables == set(metadata.tables)
    assert store.problems() == []
    store.close()


def test_the_migrations_make_the_same_schema_on_postgresql(postgres: str) -> None:
    store = Store.open(postgres)
    with store.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, metadata) == []
    store.close()


def test_a_folder_is_not_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder"):
        Store.open(str(tmp_path))


@pytest.mark.parametrize("garbage", [b"this is not a database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 4_096])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(garbage)
    with pytest.raises(StoreError, match="cannot be opened"):
        Store.open(str(path))
    assert path.read_bytes() == garbage


def test_a_store_of_a_newer_driftline_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pages.db"
    Store.open(str(path)).close()
    database = sqlite3.connect(path)
    database.execute("UPDATE alembic_version SET version_num = ?", (f"{int(NEWEST) + 1:04}",))
    database.commit()
    database.close()
    with pytest.raises(StoreError, match="newer Driftline"):
        Store.open(str(path))


def test_a_store_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be made"):
        Store.open(str(tmp_path / "file" / "pages.db"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_in_a_folder_without_permission_cannot_be_made(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="cannot be made"):
        Store.open(str(tmp_path / "pages.db"))


@pytest.mark.parametrize("where", ["mysql://host/name", "http://example.com/", "postgresql//x://"])
def test_an_address_of_no_store_is_refused_with_a_sentence(where: str) -> None:
    with pytest.raises((StoreError, MissingExtra)) as refused:
        Store.open(where)
    assert str(refused.value).endswith(".")


def test_a_transaction_that_raises_leaves_nothing_behind(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "pages.db"))

    def write_and_raise() -> None:
        with store.write() as connection:
            connection.execute(text("INSERT INTO runs (scope, started_at) VALUES ('all', 1)"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_raise()
    with store.read() as connection:
        assert connection.scalar(text("SELECT count(*) FROM runs")) == 0
    store.close()


def test_what_was_committed_is_there_after_the_process_was_killed(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom sqlalchemy import text\nfrom driftline.store.engine import Store\n"
        "store = Store.open(sys.argv[1])\n"
        "with store.write() as connection:\n"
        "    connection.execute(text(\"INSERT INTO runs (scope, started_at) VALUES ('all', 1)\"))\n"
        "print('done', flush=True)\nsys.stdin.read()\n"
    )
    where = str(tmp_path / "pages.db")
    with subprocess.Popen([sys.executable, "-c", program, where], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        assert one.stdout is not None
        assert one.stdout.readline() == b"done\n"
        one.kill()
    store = Store.open(where)
    with store.read() as connection:
        assert connection.scalar(text("SELECT count(*) FROM runs")) == 1
    assert store.problems() == []
    store.close()
