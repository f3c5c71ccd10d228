"""A run without an end: pages are offered to one pipeline while it works. The server sees what it does."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import driftline
from driftline import Plan, Stop
from driftline.api import workspace_of
from driftline.api.runs import Runs
from driftline.errors import StoreBusy, StoreError, StoreLocked
from driftline.model.outcome import Outcome, Proof, Recorded, Unchanged, Verdict
from driftline.pipeline.stop import Bell
from driftline.schedule.scheduler import Scheduler
from driftline.store.events import EventLog
from driftline.watch.publisher import EventListener
from driftline.watch.service import EndlessRun, Watcher, WatchOptions
from support.processes import kill
from support.worlds import WIRINGS, World


class Listener:
    """What was recorded, waited for by the test."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self._more = threading.Condition()

    def told(self, recorded: Recorded) -> None:
        with self._more:
            self.outcomes += recorded.outcomes
            self._more.notify_all()

    def wait(self, count: int) -> list[Outcome]:
        """The outcomes, once there are so many."""
        with self._more:
            assert self._more.wait_for(lambda: len(self.outcomes) >= count, 60)
            return list(self.outcomes)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path, stop_grace=0.2) as made:
        yield made


@pytest.fixture
def listener() -> Listener:
    return Listener()


def ids(world: World) -> list[int]:
    return [page.id for page in world.pages.pages()]


def settle(run: EndlessRun, count: int) -> list[int]:
    """Wait until so many pages are recorded, and return their ids."""
    found: list[int] = []
    while len(found) < count:
        found += run.feed.settled()
        run.wait(0.01)
    return found


def bells() -> int:
    """How many there are."""
    gc.collect()
    return sum(isinstance(one, Bell) for one in gc.get_objects())


def test_a_second_one_on_the_same_store_is_refused_before_it_does_anything(world: World, listener: Listener) -> None:
    world.watch(1)
    with driftline.open(settings=world.settings) as other:
        with workspace_of(world.pages).runs.keep_checking(listener.told) as run:
            with pytest.raises(StoreBusy, match=f"Another 'driftline run' \\(process {os.getpid()}"):
                workspace_of(other).runs.keep_checking(listener.told).__enter__()
            assert other.check().new == 1, "a check by hand is possible while nothing is being checked"
            run.feed.offer(ids(world))
            settle(run, 1)
        with workspace_of(other).runs.keep_checking(listener.told) as run:
            run.feed.offer(ids(world))
    assert [one.verdict for one in listener.outcomes] == [Verdict.UNCHANGED, Verdict.UNCHANGED]


def test_one_after_the_other_leaves_nothing_behind_for_a_stop_to_wake(world: World, listener: Listener) -> None:
    stop = Stop()
    before = bells()
    for _ in range(2):
        with workspace_of(world.pages).runs.keep_checking(listener.told, stop=stop):
            pass
    assert bells() <= before


@pytest.mark.parametrize("plan", WIRINGS)
def test_pages_are_checked_as_they_are_offered(world: World, listener: Listener, plan: Plan) -> None:
    world.watch(6)
    pages = ids(world)
    with workspace_of(world.pages).runs.keep_checking(listener.told, plan=plan) as run:
        for page in pages:
            run.feed.offer([page])
            settle(run, 1)
        world.words["/2"] = "page 2 as it was never before"
        run.feed.offer(pages[:4])
    assert [one.document.link.page_id for one in listener.outcomes[:6]] == pages
    assert {one.verdict for one in listener.outcomes[:6]} == {Verdict.NEW}
    second = {one.document.link.page_id: one.verdict for one in listener.outcomes[6:]}
    assert second == {page: Verdict.CHANGED if page == pages[2] else Verdict.UNCHANGED for page in pages[:4]}
    assert (run.left, run.at_work) == (0, False)
    assert [page.checks for page in world.pages.pages()] == [2, 2, 2, 2, 1, 1]
    assert world.pages.maintenance.doctor() == []


def test_a_page_that_never_answers_holds_up_no_other(world: World, listener: Listener) -> None:
    world.watch(2)
    hanging, other = ids(world)
    world.held.add("/0")
    asked = threading.Event()
    world.asked = lambda path: asked.set() if path == "/0" else None
    stop = Stop()
    with workspace_of(world.pages).runs.keep_checking(listener.told, stop=stop) as run:
        run.feed.offer([hanging])
        assert asked.wait(60)
        for _ in range(3):
            run.feed.offer([hanging, other])
            assert settle(run, 1) == [other]
        assert [request.path for request in world.server.requests] == ["/0", "/1", "/1", "/1"]
        stop.request()
    assert [one.document.link.page_id for one in listener.outcomes] == [other] * 3


@pytest.mark.parametrize("plan", WIRINGS)
def test_a_page_is_never_in_flight_twice(world: World, listener: Listener, plan: Plan) -> None:
    """Pages are offered over and over, without regard to what is in flight."""
    world.watch(12)
    pages = ids(world)
    lock = threading.Lock()
    in_flight: set[str] = set()
    twice: list[str] = []

    def asked(path: str) -> None:
        with lock:
            if path in in_flight:
                twice.append(path)
            in_flight.add(path)

    def told(recorded: Recorded) -> None:
        with lock:
            in_flight.difference_update(f"/{pages.index(one.document.link.page_id)}" for one in recorded.outcomes)
        listener.told(recorded)

    world.asked = asked
    with workspace_of(world.pages).runs.keep_checking(told, plan=plan) as run:
        while len(listener.outcomes) < 60:
            run.feed.offer(pages)
            run.feed.settled()
            run.wait(0.001)
    assert twice == []
    assert sum(page.checks for page in world.pages.pages()) == len(listener.outcomes)


def test_one_connection_serves_the_checks_of_a_host(world: World, listener: Listener) -> None:
    world.watch(1)
    with workspace_of(world.pages).runs.keep_checking(listener.told) as run:
        for _ in range(5):
            run.feed.offer(ids(world))
            settle(run, 1)
    assert {request.connection for request in world.server.requests} == {1}
    assert [isinstance(one, Unchanged) and one.proof is Proof.WIRE for one in listener.outcomes] == [False] + [True] * 4


def test_what_was_recorded_meanwhile_is_what_the_next_check_goes_by(world: World, listener: Listener) -> None:
    [url] = world.watch(1)
    with workspace_of(world.pages).runs.keep_checking(listener.told) as run:
        run.feed.offer(ids(world))
        settle(run, 1)
        world.words["/0"] = "other words"
        world.pages.check()
        run.feed.offer(ids(world))
        settle(run, 1)
    assert [one.verdict for one in listener.outcomes] == [Verdict.NEW, Verdict.UNCHANGED]
    assert [check.sequence for check in world.pages.history.checks(url)] == [3, 2, 1]


def test_other_processes_can_check_while_there_is_nothing_to_do(world: World, listener: Listener) -> None:
    world.watch(1)
    gate = threading.Event()

    def hold(_path: str) -> None:
        gate.wait(60)

    world.asked = hold
    with workspace_of(world.pages).runs.keep_checking(listener.told) as run:
        run.feed.offer(ids(world))
        assert world.server.asked.wait(60)
        with pytest.raises(StoreBusy):
            world.pages.check()
        gate.set()
        settle(run, 1)
        assert world.pages.check().pages == 1


def test_pages_that_cannot_be_checked_now_are_not_taken_over(world: World, listener: Listener) -> None:
    world.watch(1)
    world.held.add("/0")
    stop = Stop()
    by_hand = threading.Thread(target=lambda: world.pages.check(stop=stop))
    by_hand.start()
    assert world.server.asked.wait(60)
    with workspace_of(world.pages).runs.keep_checking(listener.told) as run:
        with pytest.raises(StoreBusy):
            run.feed.offer(ids(world))
        world.held.clear()
        stop.request()
        by_hand.join()
        run.feed.offer(ids(world))
    assert [one.verdict for one in listener.outcomes] == [Verdict.NEW]


@pytest.mark.parametrize("plan", WIRINGS)
def test_a_stop_gives_up_what_hangs_and_keeps_what_finished(world: World, listener: Listener, plan: Plan) -> None:
    world.watch(6)
    pages = ids(world)
    world.held.add("/5")
    asked = threading.Event()
    world.asked = lambda path: asked.set() if path == "/5" else None
    stop = Stop()
    with workspace_of(world.pages).runs.keep_checking(listener.told, plan=plan, stop=stop) as run:
        run.feed.offer(pages[:5])
        settle(run, 5)
        run.feed.offer(pages[5:])
        assert asked.wait(60)
        stop.request()
        assert not run.at_work
    assert run.left == 1
    assert [page.checks for page in world.pages.pages()] == [1, 1, 1, 1, 1, 0]
    assert world.pages.check(world.server.url("/1")).pages == 1, "the right to check is given back"
    assert {thread.name for thread in threading.enumerate()} & {"producer", "consumer", "recorder", "pipeline"} == set()


def test_a_page_removed_while_it_waits_or_is_in_flight_is_settled(world: World, listener: Listener) -> None:
    urls = world.watch(3)
    pages = ids(world)

    def remove(path: str) -> None:
        if path == "/1":
            world.pages.remove(urls[1])

    world.asked = remove
    with workspace_of(world.pages).runs.keep_checking(listener.told, plan=Plan(slots=1)) as run:
        run.feed.offer(pages)
        assert sorted(settle(run, 3)) == pages
        world.pages.remove(urls[2])
        run.feed.offer([pages[2], pages[0]])
        assert sorted(settle(run, 2)) == [pages[0], pages[2]]
    assert [one.document.link.page_id for one in listener.outcomes].count(pages[0]) == 2
    assert pages[1] not in [one.document.link.page_id for one in listener.outcomes]
    assert world.pages.maintenance.doctor() == []


def test_a_page_added_while_it_runs_is_checked(world: World, listener: Listener) -> None:
    world.watch(1)
    with workspace_of(world.pages).runs.keep_checking(listener.told) as run:
        run.feed.offer(ids(world))
        settle(run, 1)
        world.words["/later"] = "a page that came later"
        [url] = world.pages.add(world.server.url("/later"))
        run.feed.offer(ids(world))
        settle(run, 2)
    assert world.pages.history.version(url).text == b"a page that came later"


def test_a_worker_that_is_killed_between_two_pages_costs_nothing(world: World, listener: Listener) -> None:
    world.watch(1)
    with workspace_of(world.pages).runs.keep_checking(listener.told) as run:
        for number in range(3):
            world.words["/0"] = f"words of the number {number}"
            run.feed.offer(ids(world))
            settle(run, 1)
            for process in workers():
                kill(process)
    assert [one.verdict for one in listener.outcomes] == [Verdict.NEW, Verdict.CHANGED, Verdict.CHANGED]


def workers() -> list[int]:
    """The worker processes of this one, which its fork server started."""
    known = {one: Path(f"/proc/{one}/cmdline").read_bytes() for one in children(os.getpid())}
    servers = [process for process, line in known.items() if b"driftline.detection.worker" in line]
    return [process for server in servers for process in children(server)]


def children(of: int) -> list[int]:
    listed = " ".join(tasks.read_text() for tasks in Path(f"/proc/{of}/task").glob("*/children"))
    return [int(word) for word in listed.split()]


def test_a_change_is_fetched_twice_before_it_is_reported(world: World, listener: Listener) -> None:
    world.watch(1)
    with workspace_of(world.pages).runs.keep_checking(listener.told) as run:
        run.feed.offer(ids(world))
        settle(run, 1)
        world.words["/0"] = "other words"
        run.feed.offer(ids(world))
        settle(run, 1)
    assert [one.verdict for one in listener.outcomes] == [Verdict.NEW, Verdict.CHANGED]
    assert len(world.server.requests) == 3


def test_a_failure_says_how_many_came_before_it(world: World, listener: Listener) -> None:
    world.watch(1)
    words = world.words.pop("/0")
    with workspace_of(world.pages).runs.keep_checking(listener.told) as run:
        for number in range(4):
            if number == 2:
                world.words["/0"] = words
            run.feed.offer(ids(world))
            settle(run, 1)
    assert [one.document.link.failures for one in listener.outcomes] == [0, 1, 2, 0]


def test_a_listener_that_raises_ends_the_run_with_its_error(world: World) -> None:
    def told(_: Recorded) -> None:
        raise StoreError("torn")

    world.watch(3)
    run = workspace_of(world.pages).runs.keep_checking(told).__enter__()
    run.feed.offer(ids(world))
    while run.at_work:
        run.wait(0.1)
    with pytest.raises(StoreError, match="torn"):
        run.__exit__(None, None, None)
    assert world.pages.check(fresh=True).pages == 3


def test_an_error_in_the_block_ends_the_run(world: World, listener: Listener) -> None:
    world.watch(2)
    world.held.add("/1")

    def feed() -> None:
        with workspace_of(world.pages).runs.keep_checking(listener.told) as run:
            run.feed.offer(ids(world))
            listener.wait(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        feed()
    assert world.pages.check(world.server.url("/0")).pages == 1


def test_a_run_without_an_end_is_never_continued_and_continues_none(world: World, listener: Listener) -> None:
    world.watch(4)
    pages = ids(world)
    world.held.add("/2")
    stop = Stop()
    world.asked = lambda path: stop.request() if path == "/2" else None
    assert world.pages.check(plan=Plan(pipeline="sequential"), stop=stop).left == 2
    world.held.clear()
    with workspace_of(world.pages).runs.keep_checking(listener.told) as run:
        run.feed.offer(pages[:1])
        settle(run, 1)
    rest = world.pages.check()
    assert (rest.continued, rest.pages) == (True, 3), "those that were left, and the one that another run checked since"
    assert not world.pages.check().continued


def test_hosts_get_their_delay_after_a_check_of_another_process(tmp_path: Path, listener: Listener) -> None:
    with World(tmp_path, host_delay=3_600.0, host_connections=1) as world:
        world.watch(3)
        here, *there = world.words
        elsewhere = [world.server.url(path).replace("127.0.0.1", "localhost") for path in there]
        world.pages.remove(*[world.server.url(path) for path in there])
        world.pages.add(*elsewhere)
        first, second, third = ids(world)
        hasty = world.settings.model_copy(update={"host_delay": 0.0})
        with (
            workspace_of(world.pages).runs.keep_checking(listener.told) as run,
            driftline.open(settings=hasty) as other,
        ):
            run.feed.offer([first])
            settle(run, 1)
            assert workspace_of(other).runs.check([second]).new == 1
            run.feed.offer([third])
        assert run.put_off == 1, "the other process has just contacted its host"
        assert [page.checks for page in world.pages.pages()] == [1, 1, 0]
        assert world.server.asked_for(here)


class ForgetfulScheduler:
    """A scheduler whose store is locked whenever it should learn from a check."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.refused = 0

    def learn_from(self, page_ids: Sequence[int]) -> None:
        if page_ids:
            self.refused += 1
            raise StoreLocked("The store is locked.")
        self._scheduler.learn_from(page_ids)

    def __len__(self) -> int:
        return len(self._scheduler)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheduler, name)


class ForgetfulWatchList:
    """A watch list with such a scheduler."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self.made: ForgetfulScheduler | None = None

    def scheduler(self, **options: Any) -> ForgetfulScheduler:
        self.made = ForgetfulScheduler(self._runs.scheduler(**options))
        return self.made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)


@contextmanager
def no_readers(_log: EventLog) -> Iterator[Sequence[EventListener]]:
    yield []


def test_what_cannot_be_learned_in_the_end_is_no_failure(world: World) -> None:
    world.watch(1)
    forgetful = ForgetfulWatchList(workspace_of(world.pages).runs)
    watch_list: Any = forgetful
    watcher = Watcher(watch_list, WatchOptions(once=True), no_readers, Stop(), remark=lambda _: None)
    assert watcher.run().found == {Verdict.NEW: 1}
    assert forgetful.made is not None
    assert forgetful.made.refused


def test_a_single_pass_checks_nothing_that_another_process_checked_while_it_waited(world: World) -> None:
    """The other process begins before it, and ends while it waits."""
    world.watch(1)
    runs = workspace_of(world.pages).runs
    with driftline.open(settings=world.pages.settings) as other, ExitStack() as turn:
        turn.enter_context(workspace_of(other).store.right_to_check())
        said: list[str] = []

        def be_done(sentence: str) -> None:
            if not said:
                turn.close()
                other.check()
            said.append(sentence)

        watcher = Watcher(runs, WatchOptions(once=True), no_readers, Stop(), remark=be_done)
        assert watcher.run().found == {}
        assert other.pages()[0].checks == 1
    assert said[0].startswith("Waiting for a minute at most: ")
