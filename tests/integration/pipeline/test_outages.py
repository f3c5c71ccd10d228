"""A database that goes away in the middle of a run, and comes back."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from sqlalchemy import event, text
from sqlalchemy.engine import ExceptionContext

from driftline import Stop
from driftline.api import workspace_of
from driftline.durations import utc
from driftline.errors import RunStalled, StoreError, StoreLocked, StoreUnavailable
from driftline.model.outcome import Outcome, Recorded
from driftline.store.engine import Store
from driftline.store.host_records import HostRecords
from driftline.store.ledger import Stalls
from driftline.store.locks import patiently
from support.events import published_urls
from support.worlds import World

BEFORE, AFTER = "before", "after"


class FaultyCommits:
    """Ends the connection at some commits, before the server hears of them or before it can say that it did."""

    def __init__(self, store: Store, *at: int, when: str) -> None:
        self._dialect = store.engine.dialect
        self._commit = self._dialect.do_commit
        self._at = at
        self._when = when
        self._lock = threading.Lock()
        self.seen = 0
        self.faults = 0

    def __enter__(self) -> FaultyCommits:
        self._dialect.do_commit = self._faulty  # type: ignore[method-assign,assignment]
        return self

    def __exit__(self, *_: object) -> None:
        self._dialect.do_commit = self._commit  # type: ignore[method-assign]

    def _faulty(self, connection: Any) -> None:
        with self._lock:
            self.seen += 1
            fault = self.seen in self._at
            self.faults += fault
        if fault and self._when == BEFORE:
            connection.driver_connection.close()
        if not fault or self._when == AFTER:
            self._commit(connection)
        if fault:
            connection.driver_connection.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")


@contextmanager
def world_on(postgres: str, tmp_path: Path, pages: int) -> Iterator[World]:
    with World(tmp_path, store=postgres) as world:
        world.watch(pages)
        world.pages.check()
        for number in range(pages):
            world.words[f"/{number}"] = f"page {number} says something else by now, at some length"
        yield world


def recorded(world: World) -> list[int]:
    """How many checks each page has."""
    return [len(world.pages.history.checks(page.url)) for page in world.pages.pages()]


@pytest.mark.parametrize("when", [BEFORE, AFTER])
@pytest.mark.parametrize("commit", range(1, 12))
def test_a_connection_that_is_lost_at_any_commit_of_a_check_loses_and_doubles_nothing(
    postgres: str, tmp_path: Path, when: str, commit: int
) -> None:
    said: list[str] = []
    with world_on(postgres, tmp_path, 25) as world:
        workspace_of(world.pages).on_trouble(said.append)
        told: Counter[int] = Counter()
        with FaultyCommits(workspace_of(world.pages).store, commit, when=when) as faulty:
            runs = workspace_of(world.pages).runs
            report = runs.check(None, recorded=lambda found: told.update(one.document.link.page_id for one in found))
        assert (report.changed, report.failed, report.left) == (25, 0, 0)
        assert not report.continued
        assert sorted(told.values()) == [1] * 25
        assert len({change.url for change in report.changes}) == 25
        assert recorded(world) == [2] * 25
        assert world.pages.maintenance.doctor() == []
        assert [use for use in report.resources if use.in_use] == []
    if faulty.faults:
        assert "waiting for it" in said[0]
        assert "can be used again" in said[-1]


@pytest.mark.parametrize("when", [BEFORE, AFTER])
@pytest.mark.parametrize("commit", range(1, 10, 2))
def test_a_connection_that_is_lost_at_any_commit_of_a_run_leaves_no_event_unreported(
    postgres: str, tmp_path: Path, when: str, commit: int
) -> None:
    told: Counter[int] = Counter()
    all_told = threading.Event()

    def tell(recorded: Recorded) -> None:
        told.update(outcome.document.link.page_id for outcome in recorded.outcomes)
        if len(told) == 25:
            all_told.set()

    with world_on(postgres, tmp_path, 25) as world:
        ids = [page.id for page in world.pages.pages()]
        with FaultyCommits(workspace_of(world.pages).store, commit, when=when):
            with workspace_of(world.pages).runs.keep_checking(tell) as run:
                patiently(lambda: run.feed.offer(ids), lambda: False)
                assert all_told.wait(60)
            published = published_urls(world.pages)
        assert sorted(told.values()) == [1] * 25
        assert recorded(world) == [2] * 25
        assert len(published) == 25, "each change is published once"


def test_sessions_that_the_server_ends_cost_nothing(postgres: str, tmp_path: Path) -> None:
    with world_on(postgres, tmp_path, 60) as world, psycopg.connect(postgres, autocommit=True) as admin:
        asked = 0

        def end_sessions(_path: str) -> None:
            nonlocal asked
            asked += 1
            if asked % 20 == 0:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

        world.asked = end_sessions
        report = world.pages.check()
        assert (report.changed, report.failed, report.left) == (60, 0, 0)
        assert recorded(world) == [2] * 60


@contextmanager
def limited_role(postgres: str) -> Iterator[str]:
    """The address of the database for a user who may have few connections, unlike the owner of the server."""
    name = f"limited_{secrets.token_hex(4)}"
    parts = urlsplit(postgres)
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN CONNECTION LIMIT 30".encode())
        admin.execute(f"GRANT ALL ON SCHEMA public TO {name}".encode())
        yield parts._replace(netloc=f"{name}@").geturl()
        admin.execute(f"DROP OWNED BY {name} CASCADE".encode())
        admin.execute(f"DROP ROLE {name}".encode())


class Crowd:
    """Takes every connection of a role, those that others have included, until it has to let go."""

    def __init__(self, admin: str, address: str) -> None:
        self._admin = admin
        self._address = address
        self._connections: list[psycopg.Connection[Any]] = []
        self._complete = threading.Event()

    def take_all(self) -> None:
        with psycopg.connect(self._admin, autocommit=True) as admin:
            while True:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s AND NOT pid = ANY(%s)",
                    [urlsplit(self._address).username, [one.info.backend_pid for one in self._connections]],
                )
                try:
                    self._connections.append(psycopg.connect(self._address))
                except psycopg.OperationalError:
                    if len(self._connections) == 30:
                        self._complete.set()
                        return

    def let_go(self) -> None:
        self._complete.wait(60)
        while self._connections:
            self._connections.pop().close()


@pytest.mark.parametrize("command", ["check", "run", "crawl"])
def test_a_server_without_free_connections_is_waited_for(postgres: str, tmp_path: Path, command: str) -> None:
    said: list[str] = []
    with limited_role(postgres) as address, world_on(address, tmp_path, 12) as world:
        crowd = Crowd(postgres, address)
        asked, refused = count(1), count(1)

        def interrupt(_path: str) -> None:
            if next(asked) == 6:
                crowd.take_all()

        def on_error(context: ExceptionContext) -> None:
            if "too many connections" in str(context.original_exception) and next(refused) == 3:
                crowd.let_go()

        workspace_of(world.pages).on_trouble(said.append)
        world.asked = interrupt
        event.listen(workspace_of(world.pages).store.engine, "handle_error", on_error)
        COMMANDS[command](world)
        assert next(refused) > 3
        assert recorded(world) == [2] * 12
        assert "waiting for it" in said[0]
        assert "can be used again" in said[-1]


def _check(world: World) -> None:
    report = world.pages.check()
    assert (report.changed, report.failed, report.left) == (12, 0, 0)


def _run(world: World) -> None:
    ids = [page.id for page in world.pages.pages()]
    told: Counter[int] = Counter()
    complete = threading.Event()

    def tell(recorded: Recorded) -> None:
        told.update(outcome.document.link.page_id for outcome in recorded.outcomes)
        if len(told) == 12:
            complete.set()

    with workspace_of(world.pages).runs.keep_checking(tell) as run:
        patiently(lambda: run.feed.offer(ids), lambda: False)
        assert complete.wait(60)
    assert len(published_urls(world.pages)) == 12
    assert sorted(told.values()) == [1] * 12


def _crawl(world: World) -> None:
    seeds = [page.url for page in world.pages.pages()]
    report = world.pages.crawl(*seeds, tag="site")
    assert (report.pages, report.left, report.number) == (12, 0, 1)
    _check(world)


COMMANDS: dict[str, Callable[[World], None]] = {"check": _check, "run": _run, "crawl": _crawl}


def test_hosts_rest_after_an_outage_that_cut_a_check_short(postgres: str, tmp_path: Path) -> None:
    clock = Moments()
    with World(tmp_path, store=postgres, host_delay=0.5, host_connections=1) as world:
        world.watch(4)
        world.pages.check()
        for number in range(4):
            world.words[f"/{number}"] = f"page {number} says something else by now, at some length"
        asked = count(1)

        def take_the_right_away(path: str) -> None:
            clock.note(path)
            if next(asked) == 3:
                with psycopg.connect(postgres, autocommit=True) as admin:
                    admin.execute("UPDATE leases SET epoch = epoch + 1, until = 0")
                leases = workspace_of(world.pages).store.leases
                assert leases is not None
                leases.renew()

        world.asked = take_the_right_away
        report = world.pages.check()
        assert (report.changed, report.left) == (4, 0)
    assert min(after - before for before, after in pairwise(clock.noted)) > 0.45


class LostWhileReading:
    """The right to check pages, and a store that goes away when a producer reads links until the right is taken again.

    `producers` is how many of them were at work by then.
    """

    def __init__(self, store: Store) -> None:
        self.taken = self.producers = 0
        self.lost = False
        self._read = store.read
        store.read = self.read  # type: ignore[method-assign]
        store.right_to_check = self.take  # type: ignore[method-assign]

    @contextmanager
    def take(self) -> Iterator[LostWhileReading]:
        self.taken += 1
        self.lost = False
        self.producers += sum(thread.name == "producer" for thread in threading.enumerate())
        yield self

    def holds(self) -> bool:
        return not self.lost

    @contextmanager
    def read(self) -> Iterator[Any]:
        if self.taken == 1 and threading.current_thread().name == "producer":
            self.lost = True
            raise StoreUnavailable("The database is away.")
        with self._read() as connection:
            yield connection


@pytest.mark.parametrize("command", ["check", "run"])
def test_producers_that_wait_for_the_store_end_when_the_right_to_check_is_lost(tmp_path: Path, command: str) -> None:
    with World(tmp_path) as world:
        world.watch(3)
        ids = [page.id for page in world.pages.pages()]
        right = LostWhileReading(workspace_of(world.pages).store)
        if command == "check":
            assert world.pages.check().new == 3
        else:
            with workspace_of(world.pages).runs.keep_checking(lambda _: None) as run:
                run.feed.offer(ids)
        assert recorded(world) == [1] * 3
        assert (right.taken, right.producers) == (2, 0)


def test_a_pause_that_a_host_asked_for_holds_for_the_pipeline_after_an_outage(tmp_path: Path) -> None:
    tries = count(1)

    def lose_the_store(_outcomes: Sequence[Outcome]) -> None:
        if next(tries) == 1:
            raise StoreUnavailable("The database is away.")

    with World(tmp_path, host_delay=0.01, host_connections=1) as world:
        world.watch(2)
        world.busy = dict.fromkeys(world.words, 3_600)
        report = workspace_of(world.pages).runs.check(None, recorded=lose_the_store)
        assert next(tries) == 2
        assert (report.left, len(world.server.requests)) == (1, 1)


@pytest.mark.parametrize("command", ["check", "crawl"])
def test_a_pause_that_a_host_asked_for_is_kept_when_a_run_fails(tmp_path: Path, command: str) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with World(tmp_path) as world:
        urls = world.watch(1)
        world.busy = {"/0": 50}  # so short that pages wait for it in the same run
        run = world.pages.check if command == "check" else world.pages.crawl
        with pytest.raises(ZeroDivisionError):
            run(*urls, progress=fail)
        assert len(HostRecords(workspace_of(world.pages).store).pauses(time.time())) == 1


def test_a_crawl_that_cannot_begin_leaves_no_thread(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        urls = world.watch(1)
        with workspace_of(world.pages).store.write() as connection:
            connection.execute(text("ALTER TABLE pauses RENAME TO damaged"))
        with pytest.raises(StoreError):
            world.pages.crawl(*urls)
        assert "recorder" not in {thread.name for thread in threading.enumerate()}


class Moments:
    """When something happened."""

    def __init__(self) -> None:
        self.noted: list[float] = []

    def note(self, _what: str) -> None:
        self.noted.append(time.monotonic())


def test_a_stop_does_not_wait_for_a_database_that_is_away(postgres: str, tmp_path: Path) -> None:
    stop = Stop()
    with world_on(postgres, tmp_path, 5) as world:
        store = workspace_of(world.pages).store

        class Away(FaultyCommits):
            def _faulty(self, connection: Any) -> None:
                stop.request()
                connection.driver_connection.close()
                raise psycopg.OperationalError("server closed the connection unexpectedly")

        away = Away(store, when=BEFORE)

        def go_away(_path: str) -> None:
            away.__enter__()

        world.asked = go_away
        with pytest.raises(StoreUnavailable):
            world.pages.check(stop=stop)
        away.__exit__()


def test_a_run_that_stalls_reports_who_waits_and_starts_anew(tmp_path: Path) -> None:
    said: list[str] = []
    told: Counter[int] = Counter()
    frozen, all_told = threading.Event(), threading.Event()

    def tell(recorded: Recorded) -> None:
        if not frozen.is_set():
            frozen.set()
            never.wait()  # as a reader would that has hung up its terminal
        told.update(outcome.document.link.page_id for outcome in recorded.outcomes)
        if len(told) >= 29:
            all_told.set()

    never = threading.Event()
    with World(tmp_path, stall_after=1.0) as world:
        world.watch(30)
        workspace_of(world.pages).on_trouble(said.append)
        ids = [page.id for page in world.pages.pages()]
        with workspace_of(world.pages).runs.keep_checking(tell) as run:
            run.feed.offer(ids[:1])
            assert frozen.wait(60)
            run.feed.offer(ids[1:])
            assert all_told.wait(60)
            never.set()
        assert recorded(world)[1:] == [1] * 29
        assert "Nothing was recorded for" in said[0]
        assert "recorder: in " in said[0]
        assert "recorder: bytes" in said[0]
        stall = world.pages.maintenance.last_stall()
        assert stall is not None
        assert stall.report == said[0]


def test_a_run_that_stalls_is_cut_short_before_anybody_is_told(tmp_path: Path) -> None:
    """Whoever is told may wait for the same as the run does."""
    never, told = threading.Event(), threading.Event()
    cut_short: list[bool] = []

    def freeze(_recorded: Recorded) -> None:
        never.wait()

    with World(tmp_path, stall_after=1.0) as world:
        world.watch(3)
        with workspace_of(world.pages).runs.keep_checking(freeze) as run:

            def tell(_sentence: str) -> None:
                cut_short.append(run.feed.exhausted)
                told.set()

            workspace_of(world.pages).on_trouble(tell)
            run.feed.offer([page.id for page in world.pages.pages()])
            assert told.wait(60)
            never.set()
        assert cut_short[0]


def test_a_stall_is_recorded_while_another_thread_is_in_a_transaction(postgres: str) -> None:
    entered, leave = threading.Event(), threading.Event()
    store = Store.open(postgres)

    def write() -> None:
        with store.write():
            entered.set()
            leave.wait(60)

    with ThreadPoolExecutor(2) as threads:
        writing = threads.submit(write)
        entered.wait(60)
        recording = threads.submit(Stalls(store).record, 1.0, 60.0, "as it was")
        try:
            recording.result(30)
        finally:
            leave.set()
        writing.result(60)
    assert Stalls(store).last() == (utc(1.0), 60.0, "as it was")
    store.close()


def test_a_process_that_is_to_end_does_not_wait_for_its_other_writers(tmp_path: Path) -> None:
    entered, leave = threading.Event(), threading.Event()
    store = Store.open(str(tmp_path / "pages.db"))

    def write() -> None:
        with store.write():
            entered.set()
            leave.wait(60)

    def write_last() -> None:
        with store.write():
            pass

    with ThreadPoolExecutor(2) as threads:
        writing = threads.submit(write)
        entered.wait(60)
        store.hurry()
        last = threads.submit(write_last)
        try:
            with pytest.raises(StoreLocked):
                last.result(30)
        finally:
            leave.set()
        writing.result(60)
    store.close()


@pytest.mark.parametrize("command", ["check", "run", "crawl"])
def test_a_table_that_another_program_keeps_locked_is_waited_for(
    impatient_store: None, postgres: str, tmp_path: Path, command: str
) -> None:
    said: list[str] = []
    with world_on(postgres, tmp_path, 12) as world, psycopg.connect(postgres) as admin:
        unlocked = threading.Event()

        def say(sentence: str) -> None:
            said.append(sentence)
            if not unlocked.is_set():
                unlocked.set()
                admin.commit()

        workspace_of(world.pages).on_trouble(say)
        admin.execute("LOCK TABLE runs, checks IN SHARE ROW EXCLUSIVE MODE")
        COMMANDS[command](world)
        assert recorded(world) == [2] * 12
    assert "lock timeout): waiting for it" in said[0]
    assert "can be used again" in said[1]


def test_a_check_that_stalls_ends_and_says_so(tmp_path: Path) -> None:
    never = threading.Event()
    with World(tmp_path, stall_after=1.0) as world:
        world.watch(3)

        def freeze(_outcomes: Sequence[Outcome]) -> None:
            never.wait()

        with pytest.raises(RunStalled, match="Nothing was recorded"):
            workspace_of(world.pages).runs.check(None, recorded=freeze)
        never.set()
