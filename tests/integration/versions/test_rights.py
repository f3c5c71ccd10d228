"""What only one process may do at a time, on stores of either kind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

import driftline
from driftline.errors import StoreBusy, StoreError
from driftline.versions.rights import TO_BE_NEXT, TO_CHECK, TO_KEEP_CHECKING, Right
from driftline.versions.store import Store

HOLDER = """
import sys
from driftline.versions.store import Store
store = Store.open(sys.argv[1])
with getattr(store, sys.argv[2])():
    print("held", flush=True)
    sys.stdin.read()
"""
END = text("SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND objid = :key")
RIGHTS = [
    pytest.param("right_to_check", TO_CHECK),
    pytest.param("right_to_be_next", TO_BE_NEXT),
    pytest.param("right_to_keep_checking", TO_KEEP_CHECKING),
]


@pytest.fixture
def other(where: str, store: Store) -> Iterator[Store]:
    made = Store.open(where)
    yield made
    made.close()


@pytest.mark.parametrize(("method", "right"), RIGHTS)
def test_only_one_has_a_right_and_the_next_may_follow_at_once(
    store: Store, other: Store, method: str, right: Right
) -> None:
    refusal = right.refusal.partition("{")[0]
    for _ in range(20):
        with getattr(store, method)(), pytest.raises(StoreBusy, match=refusal), getattr(other, method)():
            pass
        with getattr(other, method)():
            pass


def test_who_keeps_checking_leaves_others_the_right_to_check(store: Store, other: Store) -> None:
    with store.right_to_keep_checking(), other.right_to_check():
        pass
    with store.right_to_check(), other.right_to_keep_checking():
        pass


def test_it_can_be_seen_whether_somebody_is_next(store: Store, other: Store) -> None:
    assert not store.somebody_is_next()
    for _ in range(3):
        with store.right_to_check(), other.right_to_be_next():
            assert store.somebody_is_next()
            assert store.somebody_is_next(), "to look takes nothing away"
        assert not store.somebody_is_next()


def test_a_refusal_names_the_process(tmp_path: Path) -> None:
    where = str(tmp_path / "pages.db")
    one, two = Store.open(where), Store.open(where)
    with one.right_to_check(), pytest.raises(StoreBusy, match=f"process {os.getpid()}"), two.right_to_check():
        pass
    one.close()
    two.close()


@pytest.mark.parametrize(("method", "right"), RIGHTS)
def test_a_file_that_cannot_be_opened_is_told_of_and_says_of_nobody_that_it_is_next(
    tmp_path: Path, method: str, right: Right
) -> None:
    store = Store.open(str(tmp_path / "pages.db"))
    lock = tmp_path / f"pages.db{right.ending}"
    lock.symlink_to(lock)  # not even the superuser can open that
    with pytest.raises(StoreError, match=rf"'{lock}'.* cannot be opened \("), getattr(store, method)():
        pass
    assert not store.somebody_is_next()
    store.close()


def test_a_store_of_two_names_is_one(tmp_path: Path) -> None:
    (tmp_path / "other.db").symlink_to(tmp_path / "pages.db")
    one, two = Store.open(str(tmp_path / "pages.db")), Store.open(str(tmp_path / "other.db"))
    with one.right_to_keep_checking(), pytest.raises(StoreBusy), two.right_to_keep_checking():
        pass
    one.close()
    two.close()


@pytest.mark.parametrize(("method", "right"), RIGHTS)
def test_a_right_of_another_process_ends_when_that_is_killed(
    where: str, store: Store, method: str, right: Right
) -> None:
    command = [sys.executable, "-c", HOLDER, where, method]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreBusy), getattr(store, method)():
            pass
        holder.kill()
        holder.wait()
        if store.path is None:
            _until_noticed(store, right)
        with getattr(store, method)():
            pass


def _until_noticed(store: Store, right: Right) -> None:
    """Wait until the server has noticed that a process is no more: it hears of it from the system a moment later."""
    with store.engine.connect() as connection:
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": right.number})
        connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": right.number})


@pytest.mark.parametrize(("method", "right"), RIGHTS)
def test_who_loses_a_right_to_the_server_is_told(postgres: str, method: str, right: Right) -> None:
    store, other = Store.open(postgres), Store.open(postgres)
    with getattr(store, method)() as insist:
        insist()
        with other.write() as connection:
            assert connection.scalars(END, {"key": right.number}).all() == [True]
        with getattr(other, method)(), pytest.raises(StoreError, match=r"ended the connection .* start again\.$"):
            insist()
        with pytest.raises(StoreError, match="ended the connection"):
            insist()
    store.close()
    other.close()


@pytest.mark.parametrize("method", ["right_to_check", "right_to_keep_checking"])
def test_who_has_a_right_may_insist_on_it(store: Store, method: str) -> None:
    with getattr(store, method)() as insist:
        insist()


def test_a_run_that_loses_its_right_ends(postgres: str) -> None:
    other = Store.open(postgres)
    with (
        driftline.open(postgres) as pages,
        pages.outbox() as outbox,
        pages.keep_checking(lambda _: None, outbox=outbox) as run,
    ):
        run.wait(0.0)
        with other.write() as connection:
            assert connection.scalars(END, {"key": TO_KEEP_CHECKING.number}).all() == [True]
        with pytest.raises(StoreError, match="ended the connection"):
            run.wait(0.0)
    other.close()


def test_pages_can_be_added_while_others_have_every_right(store: Store, where: str) -> None:
    with (
        store.right_to_keep_checking(),
        store.right_to_check(),
        store.right_to_be_next(),
        driftline.open(where) as pages,
    ):
        pages.add("http://a.example/")
        assert len(pages.pages()) == 1
