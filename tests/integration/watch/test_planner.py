"""What `run` does from one second to the next, with the scheduler, a pipeline and a server that are real.

The clock is the test's own: it goes on only when the test says so.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import ExceptionContext, event

from driftline import Driftline, Stop
from driftline.api import workspace_of
from driftline.errors import StoreBusy
from driftline.model.outcome import Outcome, Recorded, Verdict
from driftline.schedule.scheduler import Scheduler
from driftline.store.engine import Store
from driftline.store.statements import Batches
from driftline.watch.planner import Planner
from driftline.watch.service import EndlessRun, Remarks
from support.worlds import World


class Watched(World):
    """A small web, and a run over it whose time passes in steps."""

    def __init__(self, folder: Path, store: str | None = None, **given: Any) -> None:
        super().__init__(folder, store, stop_grace=0.2, **given)
        self.ahead = 0.0
        self.looks = 0.0  # the seconds by which the watch list is looked at again
        self.slowness = 0.0  # by which each look at the clock is later than the last
        self.pages.close()
        self.pages = Driftline(Store.open(self.settings.store), self.settings, self._clock)
        self.outcomes: list[Outcome] = []
        self.remarks: list[str] = []
        self.run: EndlessRun
        self.scheduler: Scheduler

    @contextmanager
    def running(self) -> Iterator[Planner]:
        self.scheduler = workspace_of(self.pages).runs.scheduler(every="1h")
        stop = Stop()
        with workspace_of(self.pages).runs.keep_checking(self._told, stop=stop) as self.run:
            yield workspace_of(self.pages).runs.planner(
                self.scheduler, self.run.feed, stop, Remarks(self.remarks.append).add, self._ticks
            )
            stop.request()

    def _ticks(self) -> float:
        self.looks += self.slowness
        return self.looks

    def _clock(self) -> float:
        return time.time() + self.ahead

    def _told(self, recorded: Recorded) -> None:
        self.outcomes += recorded.outcomes

    def quiet(self, but: int = 0) -> None:
        """Wait until nothing is being checked, but for so many pages."""
        while len(self.run.feed) > but or not (but or self.run.feed.idle):
            self.run.wait(0.01)

    def paths(self) -> list[str]:
        """What was requested from the server, in order."""
        return [request.path for request in self.server.requests]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Watched]:
    with Watched(tmp_path) as made:
        yield made


def test_a_page_that_never_answers_holds_up_no_deadline_of_another(world: Watched) -> None:
    world.words = {"/hangs": "text", "/often": "text"}
    world.held.add("/hangs")
    world.pages.add(*map(world.server.url, world.words), every="1m")
    with world.running() as planner:
        planner.tick()
        world.quiet(but=1)
        for _ in range(3):
            world.ahead += 61
            planner.tick()
            world.quiet(but=1)
        assert sorted(world.paths()[:2]) == ["/hangs", "/often"]
        assert world.paths()[2:] == ["/often"] * 3, "the page that is in flight is not requested again"


def test_what_was_checked_before_another_process_is_known_after_it(world: Watched) -> None:
    world.words = {"/a": "text"}
    world.pages.add(world.server.url("/a"), every="1h")
    scheduler, stop = workspace_of(world.pages).runs.scheduler(every="1h"), Stop()
    with workspace_of(world.pages).runs.keep_checking(world._told, stop=stop) as world.run:
        planner = workspace_of(world.pages).runs.planner(
            scheduler, world.run.feed, stop, world.remarks.append, world._ticks
        )
        planner.tick()
    assert world.paths() == ["/a"]
    world.slowness = 1.0  # so that the watch list is not read to its end at once, as a long one is not
    with workspace_of(world.pages).runs.keep_checking(world._told, stop=stop) as world.run:
        planner.continue_with(world.run.feed)
        planner.tick()
    assert world.paths() == ["/a"]


def test_a_run_that_steps_aside_waits_only_for_what_is_in_flight(tmp_path: Path) -> None:
    with Watched(tmp_path, host_delay=50.0, host_connections=1) as world:
        world.words = {f"/{number}": "text" for number in range(20)}
        world.pages.add(*map(world.server.url, world.words))
        scheduler, stop = workspace_of(world.pages).runs.scheduler(every="1h"), Stop()
        with workspace_of(world.pages).runs.keep_checking(world._told, stop=stop) as world.run:
            planner = workspace_of(world.pages).runs.planner(
                scheduler, world.run.feed, stop, world.remarks.append, world._ticks
            )
            planner.tick()
            while not world.paths():
                world.run.wait(0.01)
            planner.withdraw()
        assert len(world.paths()) == 1
        assert len(world.outcomes) == 1


def test_a_page_is_checked_again_when_its_time_comes_and_not_before(world: Watched) -> None:
    world.words = {"/a": "text"}
    world.pages.add(world.server.url("/a"), every="1m")
    with world.running() as planner:
        for _ in range(12):
            planner.tick()
            world.quiet()
            world.ahead += 20
    assert len(world.paths()) == 4
    assert {request.connection for request in world.server.requests} == {1}, "kept alive from check to check"


def test_pages_that_are_added_edited_or_removed_are_picked_up(world: Watched) -> None:
    world.words = {"/a": "text", "/b": "text", "/c": "text"}
    a, b, c = map(world.server.url, world.words)
    world.pages.add(a, every="1h")
    with world.running() as planner:
        planner.tick()
        world.quiet()
        world.pages.add(b, every="1h")
        world.looks += 3
        planner.tick()
        world.quiet()
        workspace_of(world.pages).catalog.edit(a, every=10)
        world.pages.remove(b)
        world.pages.add(c)
        world.ahead += 11
        world.looks += 11
        planner.tick()
        world.quiet()
    assert world.paths()[:2] == ["/a", "/b"]
    assert sorted(world.paths()[2:]) == ["/a", "/c"]


def test_no_page_waits_for_a_long_list_to_be_read(world: Watched, batches: Batches) -> None:
    world.words = {"/often": "text"}
    world.pages.add(world.server.url("/often"), every="1m")
    with world.running() as planner:
        planner.tick()
        world.quiet()
        world.pages.add(*[world.server.url(f"/{number}") for number in range(30)], every="1h")
        batches.pages = 1
        world.slowness = 0.02
        world.looks += 3
        for _ in range(3):
            world.ahead += 61
            planner.tick()
            world.quiet()
        assert world.paths() == ["/often"] * 4, "none of the others is known yet"
        while len(world.paths()) < 34:
            planner.tick()
            world.quiet()
    assert {*world.paths()} == {"/often", *[f"/{number}" for number in range(30)]}


def test_a_page_removed_in_flight_ends_nothing(world: Watched) -> None:
    world.words = {"/a": "text", "/b": "text"}
    a, b = map(world.server.url, world.words)
    asked, gate = threading.Event(), threading.Event()

    def hold(path: str) -> None:
        if path == "/a":
            asked.set()
            gate.wait(60)

    world.asked = hold
    world.pages.add(a, b, every="1m")
    with world.running() as planner:
        planner.tick()
        assert asked.wait(60)
        world.pages.remove(a)
        gate.set()
        world.quiet()
        world.ahead += 61
        planner.tick()
        world.quiet()
    assert sorted(world.paths()[:2]) == ["/a", "/b"]
    assert world.paths()[2:] == ["/b"]
    assert [page.url for page in world.pages.pages()] == [b]


def test_what_is_due_waits_while_another_process_checks(world: Watched) -> None:
    world.words = {"/a": "text"}
    world.pages.add(world.server.url("/a"))
    other = Store.open(world.settings.store)
    with world.running() as planner:
        with other.right_to_check():
            pauses = [planner.tick() for _ in range(3)]
            assert world.paths() == []
        planner.tick()
        world.quiet()
    other.close()
    assert min(pauses) > 0
    assert [remark.startswith("Waiting: Another run") for remark in world.remarks].count(True) == 1
    assert [one.verdict for one in world.outcomes] == [Verdict.NEW]


def test_what_another_process_checked_meanwhile_is_not_checked_again(world: Watched) -> None:
    world.words = {"/a": "text", "/b": "text"}
    a, _ = map(world.server.url, world.words)
    world.pages.add(*map(world.server.url, world.words), every="1h")
    other = Driftline(Store.open(world.settings.store), world.settings, world._clock)
    gate = threading.Event()

    def hold(_path: str) -> None:
        gate.wait(60)

    world.asked = hold
    with world.running() as planner:
        by_hand = threading.Thread(target=other.check, args=(a,))
        by_hand.start()
        assert world.server.asked.wait(60)
        planner.tick()
        gate.set()
        by_hand.join()
        planner.tick()  # although the watch list was looked at just now
        world.quiet()
    other.close()
    assert world.paths() == ["/a", "/b"]


def test_the_right_to_check_is_not_asked_for_while_nothing_is_due(world: Watched) -> None:
    world.words = {"/a": "text"}
    world.pages.add(world.server.url("/a"), every="1h")
    other = Store.open(world.settings.store)
    with world.running() as planner:
        planner.tick()
        world.quiet()
        with other.right_to_check():
            assert not planner.offer()
    other.close()


def test_a_store_that_another_program_keeps_locked_ends_nothing(impatient_store: None, world: Watched) -> None:
    world.words = {"/a": "text"}
    world.pages.add(world.server.url("/a"), every="1m")
    with world.running() as planner:
        planner.tick()
        world.quiet()
        other = sqlite3.connect(world.settings.store, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        pauses = [planner.tick() for _ in range(3)]  # what came of the check cannot be learned
        other.close()
        for _ in range(2):
            planner.tick()
            world.quiet()
            world.ahead += 61
    assert min(pauses) > 0
    assert ["is locked" in remark for remark in world.remarks].count(True) == 1
    assert [one.verdict for one in world.outcomes] == [Verdict.NEW, Verdict.UNCHANGED]


def test_what_cannot_be_recorded_for_a_while_is_recorded_after_it(impatient_store: None, world: Watched) -> None:
    world.words = {"/a": "text"}
    world.pages.add(world.server.url("/a"), every="1m")
    with world.running() as planner:
        planner.tick()
        world.quiet()
        planner.tick()
        other = sqlite3.connect(world.settings.store, isolation_level=None, check_same_thread=False)
        refused: list[str] = []

        def let_go_in_the_end(context: ExceptionContext) -> None:
            refused.append(str(context.original_exception))
            if len(refused) == 3:
                other.close()

        def lock(_path: str) -> None:
            other.execute("BEGIN IMMEDIATE")

        event.listen(workspace_of(world.pages).store.engine, "handle_error", let_go_in_the_end)
        world.asked = lock
        world.ahead += 61
        planner.tick()
        while len(world.run.feed) and world.run.at_work:
            world.run.wait(0.01)
    assert refused == ["database is locked"] * 3
    assert [one.verdict for one in world.outcomes] == [Verdict.NEW, Verdict.UNCHANGED]


def test_what_came_of_a_check_is_learned_with_the_next_pick(world: Watched) -> None:
    world.words = {"/a": "text"}
    world.pages.add(world.server.url("/a"), every="12h")
    rates: list[float] = []
    with world.running() as planner:
        for number in range(4):
            world.words["/a"] = f"text of the number {number}"
            planner.tick()
            rates += [one.rate for one in world.scheduler.upcoming()]
            world.quiet()
            world.ahead += 43_201
    assert [one.verdict for one in world.outcomes] == [Verdict.NEW] + [Verdict.CHANGED] * 3
    assert rates[0] == rates[1] < rates[2] < rates[3]


def test_a_run_that_always_has_pages_to_check_makes_way(tmp_path: Path, where: str) -> None:
    """One page hangs until the test lets it go; the others of its host wait for it."""
    with Watched(tmp_path, where, host_connections=1) as world, Driftline(Store.open(where), world.settings) as other:
        urls = world.watch(5)
        gate, asked = threading.Event(), threading.Event()

        def hold(_path: str) -> None:
            asked.set()
            gate.wait(60)

        world.asked = hold
        with world.running() as planner:
            planner.tick()
            assert asked.wait(60)
            with pytest.raises(StoreBusy):
                other.check(urls[4])
            with workspace_of(other).runs.be_next():
                pause = planner.tick()
                assert pause > 0
                gate.set()
                world.quiet()
                planner.tick()
                assert len(world.paths()) == 1, "nothing more is begun"
                assert other.check(urls[4]).new == 1
                planner.tick()
            world.quiet()
            planner.tick()
            world.quiet()
    assert len(world.paths()) == 5, "what waited is checked after it, and what the other checked is not"
    assert {*world.paths()} == {f"/{number}" for number in range(5)}
    assert [remark for remark in world.remarks if remark.startswith("Waiting: another process is checking pages")]


def test_a_single_pass_leaves_what_it_did_not_check_and_not_what_is_due_again(world: Watched) -> None:
    world.words = {"/often": "text"}
    world.held.add("/hangs")
    world.pages.add(world.server.url("/often"), world.server.url("/hangs"), every="1m")
    with world.running() as planner:
        planner.offer()
        world.quiet(but=1)
        world.ahead += 61
    planner.end(once=True)
    assert (planner.left(once=True), planner.left(once=False)) == (1, 2)


def test_a_single_pass_catches_up_for_some_seconds_and_leaves_the_rest_to_the_next(world: Watched) -> None:
    world.words = {f"/{number}": "text" for number in range(70)}
    world.pages.add(*map(world.server.url, world.words))

    def indexed() -> int:
        with sqlite3.connect(world.settings.store) as database:
            (found,) = database.execute("SELECT count(*) FROM indexed").fetchone()
        database.close()
        return int(found)

    with world.running() as planner:
        planner.offer()
        world.quiet()
        world.slowness = 3.0  # seconds: the second look at the clock is too late
        planner.end(once=True)
    left = 70 - indexed()
    assert 0 < left < 70
    world.slowness = 0.0
    with world.running() as planner:
        planner.offer()
        planner.end(once=True)
    assert indexed() == 70


def test_all_of_it_works_on_either_database(tmp_path: Path, where: str) -> None:
    with Watched(tmp_path, where) as world, Driftline(Store.open(where), world.settings) as other:
        world.words = {"/a": "page one as it is", "/b": "page two as it is"}
        a, b = map(world.server.url, world.words)
        world.pages.add(a, b, every="1m")
        with world.running() as planner:
            planner.tick()
            world.quiet()
            with pytest.raises(StoreBusy, match="Another 'driftline run'"):
                workspace_of(other).runs.keep_checking(lambda _: None).__enter__()
            assert other.check(b).unchanged == 1
            other.remove(b)
            world.words |= {"/a": "page one as it was never before", "/c": "page three"}
            other.add(world.server.url("/c"), every="1m")
            world.ahead += 61
            world.looks += 3
            planner.tick()
            world.quiet()
            planner.tick()
        found = [(one.document.link.url, one.verdict) for one in world.outcomes]
        assert sorted(found[:2]) == [(a, Verdict.NEW), (b, Verdict.NEW)]
        assert sorted(found[2:]) == [(a, Verdict.CHANGED), (world.server.url("/c"), Verdict.NEW)]
        assert [one.change.reason for one in other.history.checks(a) if one.change] == [
            "3 words added and 1 word removed in one place: page one as it is → page one as it was never before."
        ]
        assert (world.run.left, world.run.at_work) == (0, False)
        with workspace_of(other).runs.keep_checking(lambda _: None):
            pass  # nothing holds it back any more
