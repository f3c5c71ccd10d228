from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect, text

from driftline.cli.main import main_with
from driftline.errors import MissingExtra, StoreError
from driftline.store.engine import Store
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


def test_the_migrations_make_exactly_the_schema_of_the_code(where: str) -> None:
    store = Store.open(where)
    with store.read() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
        migrated = described(connection)
    assert store.problems() == []
    with store.write() as connection:
        metadata.drop_all(connection)
        metadata.create_all(connection)
        assert described(connection) == migrated
    store.close()


def described(connection: Connection) -> dict[str, object]:
    """Return what the database says of each table: its columns and constraints, with names, and its indexes.

    The conditions of partial indexes are left out: `schema` names them for SQLite only.
    """
    found = inspect(connection)
    names = set(found.get_table_names()) - {"alembic_version", "sqlite_sequence"}
    return {
        name: (
            [{key: str(value) for key, value in column.items()} for column in found.get_columns(name)],
            found.get_pk_constraint(name),
            sorted(found.get_foreign_keys(name), key=str),
            sorted(found.get_unique_constraints(name), key=str),
            sorted((index["name"], index["column_names"], index["unique"]) for index in found.get_indexes(name)),
            found.get_table_options(name),
        )
        for name in names
    }


def test_a_folder_is_not_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder"):
        Store.open(str(tmp_path))


@pytest.mark.parametrize("garbage", [b"this is not a database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 4_096])
def test_a_file_that_is_no_database_is_refused_and_not_changed(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(garbage)
    with pytest.raises(StoreError, match="cannot be opened"):
        Store.open(str(path))
    assert path.read_bytes() == garbage


def test_a_store_of_a_newer_driftline_is_refused(where: str) -> None:
    made_at_revision("a999", where)
    with pytest.raises(StoreError, match="newer Driftline"):
        Store.open(where)


def test_a_store_of_a_development_version_is_refused_with_what_to_do(where: str) -> None:
    made_at_revision("0023", where)
    with pytest.raises(StoreError) as refused:
        Store.open(where)
    what_to_do = "use another database" if where.startswith("postgresql:") else "move the file away"
    assert str(refused.value).endswith(
        f" was made by a development version of Driftline that this one cannot read: {what_to_do} and add your pages "
        "again."
    )


def test_every_command_refuses_a_store_of_a_development_version(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    made_at_revision("0001", where)
    page = "https://a.example/"
    for words in [
        ("add", page), ("list",), ("edit", page, "--every", "1h"), ("remove", page, "--yes"), ("check",),
        ("run", "--once"), ("history", page), ("show", page), ("diff", page), ("search", "words"), ("visit", page),
        ("rank",), ("schedule",), ("crawl", page), ("blocklist", "list"), ("compact",), ("doctor", "--quick"),
    ]:  # fmt: skip
        assert main_with([*words, "--store", where]) == 1, words
        said = "".join(capsys.readouterr())
        assert said.count("was made by a development version of Driftline") == 1, words
        assert said.count("again.") == 1, "what to do is said once"


def made_at_revision(revision: str, where: str) -> None:
    """Leave a store behind that says that its schema is of this revision."""
    store = Store.open(where)
    with store.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
    store.close()


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


ODD_NAMES = ["", " ", ":memory:", "sqlite:///:memory:", "sqlite://x.db", "sqlite:x.db", "file:x.db", "a\0b"]


@pytest.mark.parametrize("where", [*ODD_NAMES, "x" * 300, "/dev/null", "~nosuchuser/pages.db"])
def test_a_name_that_is_not_that_of_a_file_is_refused_and_makes_none(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=r"^The store .*: \w.*\.$"):
        Store.open(where)
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_a_removed_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(StoreError, match="the current folder was removed: change to another one"):
        Store.open("pages.db")


def test_a_named_pipe_is_no_store(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="is not a regular file"):
        Store.open(str(tmp_path / "pipe"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_store_that_may_not_be_read_is_refused_as_such(tmp_path: Path) -> None:
    Store.open(str(tmp_path / "pages.db")).close()
    (tmp_path / "pages.db").chmod(0)
    with pytest.raises(StoreError, match="permission denied"):
        Store.open(str(tmp_path / "pages.db"))


def make_foreign(path: Path, *statements: str) -> bytes:
    with closing(sqlite3.connect(path)) as other:
        for statement in statements:
            other.execute(statement)
        other.commit()
    return path.read_bytes()


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE bookmarks (url TEXT)", "INSERT INTO bookmarks VALUES ('https://a.example/')"),
        ("CREATE TABLE alembic_version (version_num TEXT)", "INSERT INTO alembic_version VALUES ('a001')"),
        ("PRAGMA journal_mode=WAL", "CREATE TABLE pages (url TEXT)"),
        ("PRAGMA application_id=7",),
        ("PRAGMA user_version=7",),
    ],
)
def test_a_database_of_another_program_is_refused_and_stays_as_it_is(
    statements: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "foreign.db"
    before = make_foreign(path, *statements)
    with pytest.raises(StoreError, match="is a database of another program, and nothing was written to it"):
        Store.open(str(path))
    page = "https://a.example/"
    for words in [("add", page), ("list",), ("check",), ("run", "--once"), ("show", page), ("compact",), ("doctor",)]:
        assert main_with([*words, "--store", str(path)]) in (1, 2), words
        capsys.readouterr()
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["foreign.db"]


def test_a_database_without_tables_becomes_a_store_only_when_something_is_added(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "blank.db"
    before = make_foreign(path, "CREATE TABLE t (a)", "DROP TABLE t")
    assert main_with(["list", "--store", str(path)]) == 2
    assert f"There is no store '{path}'" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert main_with(["add", "https://a.example/", "--store", str(path)]) == 0
    assert main_with(["list", "--store", str(path)]) == 0


def test_a_new_file_without_a_byte_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "new.db").touch()
    assert main_with(["list", "--store", str(tmp_path / "new.db")]) == 0


def test_the_doctor_advises_a_backup_only_for_a_damaged_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.db").write_text("no database at all, but long enough to be taken for one by its size" * 20)
    make_foreign(tmp_path / "foreign.db", "CREATE TABLE bookmarks (url TEXT)")
    for where, advised in [("text.db", True), ("foreign.db", False), (".", False), ("/dev/null", False)]:
        assert main_with(["doctor", "--quick", "--store", str(tmp_path / where)]) == 1
        assert ("restore a backup" in capsys.readouterr().out) is advised, where


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
