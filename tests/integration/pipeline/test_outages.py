"""A database that goes away in the middle of a run, and comes back."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from driftline import Stop
from driftline.errors import RunStalled, StoreUnavailable
from driftline.model import Outcome
from driftline.versions.locks import patiently
from driftline.versions.store import Store
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
    return [len(world.pages.history(page.url)) for page in world.pages.pages()]


@pytest.mark.parametrize("when", [BEFORE, AFTER])
@pytest.mark.parametrize("commit", range(1, 12))
def test_a_connection_that_is_lost_at_any_commit_of_a_check_loses_and_doubles_nothing(
    postgres: str, tmp_path: Path, when: str, commit: int
) -> None:
    said: list[str] = []
    with world_on(postgres, tmp_path, 25) as world:
        world.pages.on_trouble(said.append)
        told: Counter[int] = Counter()
        with FaultyCommits(world.pages._store, commit, when=when) as faulty:
            report = world.pages.check(told=lambda found: told.update(one.document.link.page_id for one in found))
        assert (report.changed, report.failed, report.left) == (25, 0, 0)
        assert sorted(told.values()) == [1] * 25
        assert len({change.url for change in report.changes}) == 25
        assert recorded(world) == [2] * 25
        assert world.pages.doctor() == []
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

    def tell(outcomes: Any) -> None:
        told.update(outcome.document.link.page_id for outcome in outcomes)
        if len(told) == 25:
            all_told.set()

    with world_on(postgres, tmp_path, 25) as world:
        ids = [page.id for page in world.pages.pages()]
        with FaultyCommits(world.pages._store, commit, when=when), world.pages.outbox() as outbox:
            with world.pages.keep_checking(tell, outbox=outbox) as run:
                patiently(lambda: run.feed.offer(ids), lambda: False)
                assert all_told.wait(60)
            left = outbox.left()
        assert sorted(told.values()) == [1] * 25
        assert recorded(world) == [2] * 25
        assert len(left[0]) == 25, "each change waits in the outbox until it is published"


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


def test_a_stop_does_not_wait_for_a_database_that_is_away(postgres: str, tmp_path: Path) -> None:
    stop = Stop()
    with world_on(postgres, tmp_path, 5) as world:
        store = world.pages._store

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

    def tell(outcomes: Any) -> None:
        found: list[Outcome] = list(outcomes)
        if not frozen.is_set():
            frozen.set()
            never.wait()  # as a reader would that has hung up its terminal
        told.update(outcome.document.link.page_id for outcome in found)
        if len(told) >= 29:
            all_told.set()

    never = threading.Event()
    with World(tmp_path, stall_after=1.0) as world:
        world.watch(30)
        world.pages.on_trouble(said.append)
        ids = [page.id for page in world.pages.pages()]
        with world.pages.keep_checking(tell) as run:
            run.feed.offer(ids[:1])
            assert frozen.wait(60)
            run.feed.offer(ids[1:])
            assert all_told.wait(60)
            never.set()
        assert recorded(world)[1:] == [1] * 29
        assert "Nothing was recorded for" in said[0]
        assert "recorder: in " in said[0]
        assert "recorder: bytes" in said[0]
        stall = world.pages.last_stall
        assert stall is not None
        assert stall.report == said[0]


def test_a_check_that_stalls_ends_and_says_so(tmp_path: Path) -> None:
    never = threading.Event()
    with World(tmp_path, stall_after=1.0) as world:
        world.watch(3)

        def freeze(_outcomes: Sequence[Outcome]) -> None:
            never.wait()

        with pytest.raises(RunStalled, match="Nothing was recorded"):
            world.pages.check(told=freeze)
        never.set()
