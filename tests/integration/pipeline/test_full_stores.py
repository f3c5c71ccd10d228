"""SQLite on a full disk, and a file that another program keeps locked: `check`, `run` and `crawl` wait and go on."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest
from sqlalchemy import event

import driftline
from driftline.api import workspace_of
from driftline.errors import StoreLocked, StoreUnavailable
from driftline.lab.bench.faults_bench import filled, small_disk
from driftline.model.outcome import Recorded
from driftline.store.engine import Store
from driftline.store.locks import Waits, patiently
from support.events import published_urls
from support.worlds import World

PAGES = 12
_NO_LIMIT = 1_073_741_823


class Fault(Protocol):
    """What keeps a store from being written."""

    def begin(self) -> None: ...
    def end(self) -> None: ...


class FullDisk:
    """Keeps a SQLite store from growing, as a full disk does."""

    def __init__(self, store: Store) -> None:
        self._full = threading.Event()
        event.listen(store.engine, "begin", self._on_begin)

    def begin(self) -> None:
        self._full.set()

    def end(self) -> None:
        self._full.clear()

    def _on_begin(self, connection: Any) -> None:
        # set to less than there is, it becomes what there is
        connection.exec_driver_sql(f"PRAGMA max_page_count={1 if self._full.is_set() else _NO_LIMIT}")


class AnotherProgram:
    """Writes to the store without an end."""

    def __init__(self, store: Store) -> None:
        self._connection = sqlite3.connect(store.path or "", isolation_level=None, check_same_thread=False)

    def begin(self) -> None:
        patiently(self._lock, lambda: False)

    def _lock(self) -> None:
        try:
            self._connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise StoreLocked(str(error)) from None

    def end(self) -> None:
        self._connection.execute("ROLLBACK")


FAULTS: list[Callable[[Store], Fault]] = [FullDisk, AnotherProgram]


@pytest.fixture(autouse=True)
def hasty(impatient_store: None, waits: Waits) -> None:
    waits.locked = waits.outage = 0.01


class Interrupted:
    """A world whose store fails from some request on, until the run has said that it waits."""

    def __init__(self, world: World, fault: Fault, at: int) -> None:
        self.said: list[str] = []
        self._world = world
        self._fault = fault
        self._at = at
        self._asked = 0
        self._lock = threading.Lock()
        world.asked = self._on_request
        workspace_of(world.pages).on_trouble(self._on_trouble)

    def _on_request(self, _path: str) -> None:
        with self._lock:
            self._asked += 1
            if self._asked == self._at:
                self._fault.begin()

    def _on_trouble(self, sentence: str) -> None:
        self.said.append(sentence)
        if "waiting for it" in sentence:
            self._fault.end()


@contextmanager
def interrupted(folder: Path, fault: Callable[[Store], Fault], at: int) -> Iterator[tuple[World, Interrupted]]:
    with World(folder) as world:
        world.watch(PAGES)
        world.pages.check()
        for number in range(PAGES):
            # long and different, so that the file has to grow
            words = " ".join(f"{number * 7919 + one * 104729:x}" for one in range(3_000))
            world.words[f"/{number}"] = f"page {number} says something else by now: {words}"
        yield world, Interrupted(world, fault(workspace_of(world.pages).store), at)


def assert_all_recorded(world: World, reports: Interrupted) -> None:
    assert [len(world.pages.history.checks(page.url)) for page in world.pages.pages()] == [2] * PAGES
    assert world.pages.maintenance.doctor() == []
    assert "waiting for it" in reports.said[0]
    assert "can be used again" in reports.said[-1]


@pytest.mark.parametrize("at", [1, 5, 2 * PAGES])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_check_waits_for_its_store(tmp_path: Path, fault: Callable[[Store], Fault], at: int) -> None:
    with interrupted(tmp_path, fault, at) as (world, reports):
        told: Counter[int] = Counter()
        runs = workspace_of(world.pages).runs
        report = runs.check(None, recorded=lambda found: told.update(one.document.link.page_id for one in found))
        assert (report.changed, report.failed, report.left, len(report.changes)) == (PAGES, 0, 0, PAGES)
        assert sorted(told.values()) == [1] * PAGES
        assert_all_recorded(world, reports)


@pytest.mark.parametrize("at", [1, 5, 2 * PAGES])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_waits_for_its_store(tmp_path: Path, fault: Callable[[Store], Fault], at: int) -> None:
    told: Counter[int] = Counter()
    complete = threading.Event()

    def tell(recorded: Recorded) -> None:
        told.update(outcome.document.link.page_id for outcome in recorded.outcomes)
        if len(told) == PAGES:
            complete.set()

    with interrupted(tmp_path, fault, at) as (world, reports):
        ids = [page.id for page in world.pages.pages()]
        with workspace_of(world.pages).runs.keep_checking(tell) as run:
            patiently(lambda: run.feed.offer(ids), lambda: False)
            assert complete.wait(60)
        assert len(published_urls(world.pages)) == PAGES
        assert sorted(told.values()) == [1] * PAGES
        assert_all_recorded(world, reports)


@pytest.mark.parametrize("at", [1, 3, PAGES])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_crawl_waits_for_its_store(tmp_path: Path, fault: Callable[[Store], Fault], at: int) -> None:
    with World(tmp_path) as world:
        for number in range(PAGES):
            words = " ".join(f"{number * 7919 + one * 104729:x}" for one in range(3_000))
            world.words[f"/{number}"] = f'<a href="/{number + 1}">next</a> page {number} says {words}'
        reports = Interrupted(world, fault(workspace_of(world.pages).store), at)
        report = world.pages.crawl(world.server.url("/0"), tag="site")
        assert (report.pages, report.left, report.number) == (PAGES, 0, 1)
        assert [page.versions for page in world.pages.pages()] == [1] * PAGES
        assert world.pages.maintenance.doctor() == []
        assert "waiting for it" in reports.said[0]
        assert "can be used again" in reports.said[-1]


def test_a_store_on_a_full_disk_is_waited_for_when_it_is_opened(tmp_path: Path) -> None:
    with small_disk(tmp_path, 4) as disk:
        if disk is None:
            pytest.skip("only the administrator can mount a small disk")
        store = str(disk / "pages.db")
        driftline.open(store).close()
        with filled(disk), pytest.raises(StoreUnavailable):
            driftline.open(store)
        driftline.open(store).close()
