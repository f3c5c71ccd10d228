from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import driftline
from driftline import Plan, Report, Stop
from driftline.api import workspace_of
from driftline.errors import FailureKind, StoreBusy
from driftline.fetch.host import Permit
from driftline.model.outcome import Changed, Document, Failed, Link, New, Outcome, Pair, Proof, Unchanged, Verdict
from driftline.pipeline.sources import LinkQueue
from support.making import known, link
from support.servers import Server, html
from support.worlds import WIRINGS, Untrustworthy, World, wire_up


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as made:
        yield made


def tally(report: Report) -> tuple[int, int, int, int]:
    return report.new, report.changed, report.unchanged, report.failed


def objects_of_pages() -> Counter[str]:
    """What is there of pages in the whole process, other tests' included."""
    kinds = (Document, Link, New, Unchanged, Changed, Failed, Pair, Permit)
    return Counter(type(found).__name__ for found in gc.get_objects() if type(found) in kinds)


@pytest.mark.parametrize("plan", WIRINGS)
def test_pages_are_new_then_unchanged_then_changed_or_failed(world: World, plan: Plan) -> None:
    urls = world.watch(40)
    assert tally(world.pages.check(plan=plan)) == (40, 0, 0, 0)
    assert tally(world.pages.check(plan=plan)) == (0, 0, 40, 0)
    for number in range(10):
        world.words[f"/{number}"] = f"page {number} as it was never before"
    for number in range(10, 15):
        del world.words[f"/{number}"]
    report = world.pages.check(plan=plan)
    assert tally(report) == (0, 10, 25, 5)
    assert (report.pages, report.left, report.continued, report.pipeline) == (40, 0, False, plan.pipeline)
    assert {change.url for change in report.changes} == set(urls[:10])
    assert world.pages.history.version(urls[3]).text == b"page 3 as it was never before"
    assert world.pages.history.version(urls[3], 1).text == b"page 3 as it is"
    assert "+page 3 as it was never before" in world.pages.diff(urls[3])
    assert [check.verdict for check in world.pages.history.checks(urls[12])] == [
        Verdict.FAILED, Verdict.UNCHANGED, Verdict.NEW,
    ]  # fmt: skip
    assert world.pages.maintenance.doctor() == []


@pytest.mark.parametrize("plan", WIRINGS)
def test_nothing_of_a_page_is_left_to_the_garbage_collector(world: World, plan: Plan) -> None:
    world.watch(20)
    world.pages.check(plan=plan)
    gc.collect()
    gc.disable()
    try:
        before = objects_of_pages()
        for number in range(10):
            world.words[f"/{number}"] = f"page {number} as it was never before"
        del world.words["/19"]
        report = world.pages.check(plan=plan)
        left = objects_of_pages() - before
    finally:
        gc.enable()
    assert tally(report) == (0, 10, 9, 1)
    assert left == Counter()


@pytest.mark.parametrize("plan", WIRINGS)
def test_every_page_gets_its_own_words(world: World, plan: Plan) -> None:
    urls = world.watch(120)
    world.pages.check(plan=plan)
    assert [world.pages.history.version(url).text.decode() for url in urls] == [
        f"page {n} as it is" for n in range(120)
    ]


@pytest.mark.parametrize("plan", WIRINGS)
def test_an_empty_watch_list_is_checked_at_once(world: World, plan: Plan) -> None:
    assert tally(world.pages.check(plan=plan)) == (0, 0, 0, 0)


def test_only_the_pages_that_are_named_are_checked(world: World) -> None:
    urls = world.watch(5)
    assert world.pages.check(urls[1], urls[3]).pages == 2
    assert [page.checks for page in world.pages.pages()] == [0, 1, 0, 1, 0]


def test_outcomes_are_told_after_they_are_committed(world: World) -> None:
    urls = world.watch(30)
    seen: list[str] = []

    def told(outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            url = outcome.document.link.url
            assert world.pages.history.checks(url)[0].verdict is outcome.verdict
            seen.append(url)

    begun: list[tuple[int, bool]] = []
    workspace_of(world.pages).runs.check(None, recorded=told, started=lambda *given: begun.append(given))
    assert sorted(seen) == sorted(urls)
    assert begun == [(30, False)]


def test_a_page_that_did_not_change_is_proved_by_its_wire_bytes(world: World) -> None:
    url = world.watch(1)[0]
    world.pages.check()
    world.pages.check()
    assert world.pages.history.checks(url)[0].proof is Proof.WIRE


@pytest.mark.parametrize("plan", WIRINGS[1:3])
def test_a_stopped_run_keeps_what_finished_and_the_next_one_goes_on(tmp_path: Path, plan: Plan) -> None:
    with World(tmp_path, stop_grace=0.2) as world:
        urls = world.watch(60)
        world.held.add("/3")
        stop = Stop()
        seen: list[str] = []

        def stop_at_first(outcomes: Sequence[Outcome]) -> None:
            seen.extend(outcome.document.link.url for outcome in outcomes)
            stop.request()

        report = workspace_of(world.pages).runs.check(None, plan=plan, stop=stop, recorded=stop_at_first)
        assert report.left >= 1
        assert report.failed == 0
        assert report.pages == len(seen) == 60 - report.left
        assert urls[3] not in seen
        assert {page.url for page in world.pages.pages() if page.checks} == set(seen)
        world.held.clear()
        rest = world.pages.check(plan=plan)
        assert (rest.continued, rest.new, rest.left) == (True, report.left, 0)
        assert {page.checks for page in world.pages.pages()} == {1}
        assert not world.pages.check(plan=plan).continued


def test_a_run_stopped_between_two_pages_goes_on_in_sequence_too(world: World) -> None:
    world.watch(6)
    stop = Stop()
    plan = Plan(pipeline="sequential")
    report = workspace_of(world.pages).runs.check(None, plan=plan, stop=stop, started=lambda *_: stop.request())
    assert (report.pages, report.left) == (0, 6)
    assert tally(world.pages.check(plan=plan)) == (6, 0, 0, 0)


def test_a_run_stopped_at_its_last_page_is_complete(world: World) -> None:
    world.watch(1)
    stop = Stop()
    report = workspace_of(world.pages).runs.check(None, stop=stop, recorded=lambda _: stop.request())
    assert (report.pages, report.left) == (1, 0)
    again = world.pages.check()
    assert (again.pages, again.continued) == (1, False)


def test_a_page_removed_while_it_is_checked_is_neither_counted_nor_told(world: World) -> None:
    urls = world.watch(3)
    seen: list[str] = []

    def remove(path: str) -> None:
        if path == "/1":
            world.pages.remove(urls[1])

    world.asked = remove
    runs = workspace_of(world.pages).runs
    report = runs.check(None, recorded=lambda some: seen.extend(one.document.link.url for one in some))
    assert report.pages == 2
    assert sorted(seen) == [urls[0], urls[2]]


def test_a_second_check_of_the_same_store_is_kept_out(world: World) -> None:
    world.watch(1)
    other = driftline.open(settings=world.settings)

    def check_too(_total: int, _continued: bool) -> None:
        with pytest.raises(StoreBusy):
            other.check()

    workspace_of(world.pages).runs.check(None, started=check_too)
    other.close()


@pytest.mark.parametrize("plan", WIRINGS)
def test_a_listener_that_raises_ends_the_run_with_its_error(world: World, plan: Plan) -> None:
    world.watch(50)

    def listener(_: Sequence[Outcome]) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        workspace_of(world.pages).runs.check(None, plan=plan, recorded=listener)


@pytest.mark.parametrize("plan", WIRINGS)
def test_a_step_that_raises_at_a_page_fails_that_page_only(plan: Plan) -> None:
    with Server(lambda request: html(request.path)) as server:
        bad = known(body=b"the bad one")
        links = [link(server.url(f"/{n}"), page_id=n, known=bad if n == 7 else None) for n in range(30)]
        outcomes = wire_up(plan, LinkQueue(iter(links)), Untrustworthy(bad=7))
    assert sorted(one.document.link.page_id for one in outcomes) == list(range(30))
    failed = [one for one in outcomes if isinstance(one, Failed)]
    assert [one.document.link.page_id for one in failed] == [7]
    assert failed[0].failure.kind is FailureKind.INTERNAL


@pytest.mark.parametrize("plan", WIRINGS)
def test_a_run_leaves_no_thread_behind(world: World, plan: Plan) -> None:
    world.watch(10)
    before = set(threading.enumerate())
    world.pages.check(plan=plan)
    ours = {"producer", "consumer", "recaller", "comparer", "recorder"}
    assert [thread.name for thread in set(threading.enumerate()) - before if thread.name in ours] == []


def test_the_statistics_of_the_queues_add_up(world: World) -> None:
    world.watch(50)
    report = world.pages.check(plan=Plan(pipeline="three-section", slots=4, consumers=1, comparers=1, capacity=6))
    assert len(report.queues) == 2
    for statistics in report.queues:
        assert (statistics.put, statistics.taken, statistics.depth, statistics.reserved) == (50, 50, 0, 0)
        assert statistics.deepest <= 6


@pytest.mark.parametrize(("slots", "queued"), [(1, 20), (4, 0)])
def test_only_a_producer_with_many_slots_settles_what_is_unchanged_itself(
    world: World, slots: int, queued: int
) -> None:
    world.watch(20)
    world.pages.check()
    report = world.pages.check(plan=Plan(producers=2, slots=slots, consumers=1))
    assert report.unchanged == 20
    assert [(queue.put, queue.taken, queue.reserved) for queue in report.queues] == [(queued, queued, 0)]


def test_a_page_that_fails_keeps_its_last_version_and_comes_back_unchanged(world: World) -> None:
    url = world.watch(1)[0]
    world.pages.check()
    words = world.words.pop("/0")
    assert world.pages.check().failed == 1
    page = world.pages.pages()[0]
    assert (page.failures, page.versions) == (1, 1)
    world.words["/0"] = words
    assert world.pages.check().unchanged == 1
    assert world.pages.history.version(url).number == 1


@pytest.mark.parametrize("plan", WIRINGS)
def test_more_bytes_change_than_may_wait_to_be_confirmed_and_every_change_is_found(tmp_path: Path, plan: Plan) -> None:
    with World(tmp_path, capacity_bytes=20_000) as world:
        world.watch(30)
        assert tally(world.pages.check(plan=plan)) == (30, 0, 0, 0)
        for news in ("apples are cheap", "the bridge is closed", "a train is late"):
            for number in range(30):
                world.words[f"/{number}"] = f"Today {news} near house {number}. " * 100
            assert tally(world.pages.check(plan=plan)) == (0, 30, 0, 0)


@pytest.mark.parametrize("plan", WIRINGS)
def test_what_a_check_recorded_before_it_failed_is_in_the_report_of_the_next_one(world: World, plan: Plan) -> None:
    urls = world.watch(6)
    world.pages.check(plan=plan)
    for path in world.words:
        world.words[path] = f"the page {path} says something else by now, at some length"
    recorded: list[str] = []

    def fail(outcomes: Sequence[Outcome]) -> None:
        recorded.extend(outcome.document.link.url for outcome in outcomes)
        raise RuntimeError("the one who listens is gone")

    with pytest.raises(RuntimeError, match="is gone"):
        workspace_of(world.pages).runs.check(None, plan=plan, recorded=fail)
    assert recorded
    report = world.pages.check(plan=plan)
    assert sorted(change.url for change in report.changes) == sorted(urls)
    assert world.pages.check(plan=plan).changes == []
