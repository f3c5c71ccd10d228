"""Rights that only one process has at a time, on stores of either kind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, text

import driftline
from driftline.api import workspace_of
from driftline.errors import RunStopped, StoreBusy, StoreError, StoreUnavailable
from driftline.store.engine import Store
from driftline.store.locks import Waits
from driftline.store.process_locks import (
    TO_BE_NEXT,
    TO_CHECK,
    TO_KEEP_CHECKING,
    Lease,
    LeaseKeeper,
    RegainedRight,
    Right,
)

HOLDER = """
import sys
from driftline.store.engine import Store
store = Store.open(sys.argv[1])
with getattr(store, sys.argv[2])():
    print("held", flush=True)
    sys.stdin.read()
"""
END = text(
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
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
        with pytest.raises(StoreBusy), store.right_to_check():
            pass
        with pytest.raises(StoreBusy), other.right_to_keep_checking():
            pass
    with store.right_to_check(), other.right_to_keep_checking(), pytest.raises(StoreBusy), other.right_to_check():
        pass


def test_it_can_be_seen_whether_is_process_waiting(store: Store, other: Store) -> None:
    assert not store.is_process_waiting()
    for _ in range(3):
        with store.right_to_check(), other.right_to_be_next():
            assert store.is_process_waiting()
            assert store.is_process_waiting(), "to look takes nothing away"
        assert not store.is_process_waiting()


def test_a_refusal_names_the_process(tmp_path: Path) -> None:
    where = str(tmp_path / "pages.db")
    one, two = Store.open(where), Store.open(where)
    with one.right_to_check(), pytest.raises(StoreBusy, match=f"process {os.getpid()}"), two.right_to_check():
        pass
    one.close()
    two.close()


@pytest.mark.parametrize(("method", "right"), RIGHTS)
def test_a_lock_file_that_cannot_be_opened_is_reported_and_means_that_no_process_waits(
    tmp_path: Path, method: str, right: Right
) -> None:
    store = Store.open(str(tmp_path / "pages.db"))
    lock = tmp_path / f"pages.db{right.ending}"
    lock.symlink_to(lock)  # not even the superuser can open that
    with pytest.raises(StoreError, match=rf"'{lock}'.* cannot be opened \("), getattr(store, method)():
        pass
    assert not store.is_process_waiting()
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
        with getattr(store, method)():
            pass


def test_who_was_killed_is_not_waited_for_as_the_next(where: str, store: Store) -> None:
    command = [sys.executable, "-c", HOLDER, where, "right_to_be_next"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert store.is_process_waiting()
        holder.kill()
        holder.wait()
        assert not store.is_process_waiting()


def end_all_sessions(store: Store) -> None:
    with store.engine.connect() as connection:
        connection.execute(END)


@pytest.mark.parametrize(("method", "right"), RIGHTS)
def test_a_right_outlives_the_sessions_of_its_holder(postgres: str, method: str, right: Right) -> None:
    store, other = Store.open(postgres), Store.open(postgres)
    with getattr(store, method)() as claim:
        end_all_sessions(other)
        assert claim.holds()
        with pytest.raises(StoreBusy), getattr(other, method)():
            pass
        with suppress(StoreUnavailable):  # its session is gone, and the next try has another one
            store_leases(store).renew()
        store_leases(store).renew()
        assert claim.holds()
    with getattr(other, method)():
        pass
    store.close()
    other.close()


def test_a_right_that_was_not_renewed_in_time_goes_to_another_and_its_holder_stops(postgres: str) -> None:
    store, other = Store.open(postgres), Store.open(postgres)
    with store.right_to_check() as claim:
        with other.write() as connection:
            connection.execute(text("UPDATE leases SET until = 0"))
        with other.right_to_check() as theirs:
            store_leases(store).renew()
            assert (claim.holds(), claim.lost, theirs.holds()) == (False, True, True)
        assert not claim.holds(), "it is lost for good"
    with store.right_to_check() as claim:
        assert claim.holds()
    store.close()
    other.close()


def test_a_right_does_not_hold_while_the_server_did_not_renew_it(postgres: str) -> None:
    store = Store.open(postgres)
    with store.right_to_check() as claim:
        assert isinstance(claim, Lease)
        claim.until = 0.0  # by now, if the server had been away for long enough
        assert not claim.holds()
        assert not claim.lost
        store_leases(store).renew()
        assert claim.holds()
    store.close()


def test_a_renewal_that_comes_after_the_right_was_given_back_does_not_revive_it(postgres: str) -> None:
    store, other = Store.open(postgres), Store.open(postgres)
    with store.right_to_check() as claim:
        assert isinstance(claim, Lease)
    store_leases(store)._renew(claim)  # the keeper may have listed it a moment before
    with other.right_to_check():
        pass
    store.close()
    other.close()


def test_two_threads_of_one_store_do_not_both_take_a_right(postgres: str) -> None:
    """The second one tries when the first has committed, and before it has noted what it took."""
    store = Store.open(postgres)
    refused: list[StoreBusy] = []
    steps: list[str] = []

    def on_commit(_connection: Connection) -> None:
        steps.append("committed")

    def on_checkin(_connection: object, _record: object) -> None:
        if steps == ["committed"]:
            steps.append("tried")
            try:
                with store.right_to_check():
                    pass
            except StoreBusy as error:
                refused.append(error)

    event.listen(store.engine, "commit", on_commit)
    event.listen(store.engine, "checkin", on_checkin)
    with store.right_to_check() as claim:
        store_leases(store).renew()
        assert (len(refused), claim.holds()) == (1, True)
    store.close()


def test_a_right_that_changed_hands_since_it_was_read_is_not_taken_over(postgres: str) -> None:
    """A lease of a commit of which nobody heard may be taken by another thread first."""
    store = Store.open(postgres)
    with store.right_to_check():
        pass
    with store.write() as connection:
        connection.execute(text("UPDATE leases SET until = 1e12"))  # as if its commit had not been heard of
    looked = False

    def on_checkin(_connection: object, _record: object) -> None:
        nonlocal looked
        if not looked:
            looked = True
            with store.write() as connection:
                connection.execute(text("UPDATE leases SET epoch = epoch + 1"))

    event.listen(store.engine, "checkin", on_checkin)
    with pytest.raises(StoreBusy), store.right_to_check():
        pass
    store.close()


def test_the_keeper_of_leases_outlives_whatever_goes_wrong_at_a_renewal(postgres: str, waits: Waits) -> None:
    """Whoever is told of an outage may fail, for its terminal is gone."""
    waits.renewal = 0.01
    renewed = threading.Event()

    class Interrupted(LeaseKeeper):
        renewals = 0

        def renew(self) -> None:
            self.renewals += 1
            if self.renewals == 1:
                raise OSError("The terminal is gone.")
            renewed.set()

    store = Store.open(postgres)
    keeper = Interrupted(store)
    with keeper.held(TO_CHECK):
        assert renewed.wait(30)
    keeper.close()
    store.close()


def test_a_right_that_was_lost_is_taken_again_when_the_other_is_done(postgres: str) -> None:
    store, other = Store.open(postgres), Store.open(postgres)
    with RegainedRight(store.right_to_check) as right:
        right.take()
        with other.write() as connection:
            connection.execute(text("UPDATE leases SET until = 0"))
        with other.right_to_check():
            store_leases(store).renew()
            assert not right.holds()
            with pytest.raises(RunStopped):
                right.regain(lambda: True)
        right.regain(lambda: False)
        assert right.holds()
    store.close()
    other.close()


def test_a_run_whose_place_was_taken_ends(postgres: str) -> None:
    other = Store.open(postgres)
    with (
        driftline.open(postgres) as pages,
        workspace_of(pages).runs.keep_running() as claim,
        workspace_of(pages).runs.keep_checking(lambda _: None, claim=claim) as run,
    ):
        run.wait(0.0)
        assert isinstance(claim, Lease)
        claim.lost = True
        with pytest.raises(StoreBusy, match="taken over"):
            run.wait(0.0)
    other.close()


def store_leases(store: Store) -> LeaseKeeper:
    assert store.leases is not None
    return store.leases
