"""Whatever becomes of the pages of a run, everything that it took of its bounded resources is given back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from driftline import Plan, Stop
from driftline.capacity import Capacity, ResourceUse
from driftline.errors import RunStalled, RunStopped, StoreError, StoreUnavailable
from driftline.fetch.politeness import PoliteLinks
from driftline.model.outcome import Blob, Changed, Document, Failed, Link, New, Outcome, Pair
from driftline.model.page import Render, RenderMode
from driftline.pipeline.browser_lane import BrowserLane
from driftline.pipeline.confirmer import Confirmer
from driftline.pipeline.pipeline import Pipeline, open_workers
from driftline.pipeline.recorder import Recorder
from driftline.pipeline.sources import LinkQueue
from driftline.pipeline.stop import Ending
from driftline.pipeline.watchdog import Stall, threads_at
from driftline.settings import Settings
from support import making
from support.hosts import Records
from support.servers import Answer, Request, Server, answer, html, redirect
from support.worlds import WIRINGS, Painter, StagesWith, World

#: what becomes of a page, on the way or at a step
FATES = (
    "same", "changed", "failed", "shell", "rendered", "rendered changed", "hung up", "busy", "redirected",
    "settle raises", "recall raises", "compare raises", "confirm raises", "store fails", "recorder fails",
    "browser raises", "reading stopped", "held", "held when confirmed", "stop", "right lost", "stalled",
)  # fmt: skip


CHANGED = ("changed", "rendered changed", "held when confirmed", "confirm raises")


class RightToCheck:
    """The right to check pages, which a test takes away.

    If it `ends_in` a function, that is when the run is in there, and until then nothing is fetched a second time.
    """

    def __init__(self, ends_in: str = "") -> None:
        self.lost = False
        self._ends_in = ends_in
        self._looks = threading.Event()

    def holds(self) -> bool:
        if self._ends_in and threading.current_thread().name in ("confirmer", "renderer"):
            while not self.lost and not any(self._ends_in in place for place in threads_at()):
                self._looks.wait(0.01)
            self.lost = True
        return not self.lost


class Fates:
    """The steps of a pipeline, with what becomes of each page decided beforehand."""

    def __init__(self, fates: Sequence[str], stop: Stop) -> None:
        self.fates = fates
        self.stop = stop

    def of(self, document: Document) -> str:
        return self.fates[document.link.page_id]

    def prove_unchanged(self, documents: list[Document]) -> tuple[list[Outcome], list[Document]]:
        same = [document for document in documents if self.of(document) == "same"]
        return [making.unchanged(one) for one in same], [
            document for document in documents if self.of(document) != "same"
        ]

    def recall(self, documents: list[Document]) -> list[Pair]:
        if any(self.of(document) == "store fails" for document in documents):
            raise StoreError("The disk is full.")
        if any(self.of(document) == "recall raises" for document in documents):
            raise ZeroDivisionError
        return [Pair(document, b"") for document in documents]

    def compare(self, pairs: list[Pair]) -> list[Outcome]:
        if any(self.of(pair.document) == "reading stopped" for pair in pairs):
            self.stop.request()
            raise RunStopped("The run was stopped.")
        if any(self.of(pair.document) == "compare raises" for pair in pairs):
            raise ZeroDivisionError
        return [self._outcome(pair) for pair in pairs]

    def _outcome(self, pair: Pair) -> Outcome:
        document, fate = pair.document, self.of(pair.document)
        if document.failure is not None:
            return Failed(document, document.failure)
        version = making.new_version(Blob(b"", None, 0, 0, bytes(2_000)))
        examined = replace(making.EXAMINED, wants_script=fate == "shell")
        if fate in CHANGED:
            return Changed(document, examined, version, making.change_of(), pair)
        return New(document, examined, version)

    def confirm(self, found: list[tuple[Changed, Document]]) -> list[Outcome]:
        if any(self.of(outcome.document) == "confirm raises" for outcome, _ in found):
            raise ZeroDivisionError
        for outcome, _ in found:  # as it is done in earnest: nobody needs these any more
            outcome.document.release_body()
        return [replace(outcome, pair=None, version=making.new_version()) for outcome, _ in found]


class Failing:
    """A sink that fails at a page of that fate."""

    def __init__(self, fates: Fates) -> None:
        self.fates = fates
        self.recorded: list[int] = []

    def record(self, outcomes: Sequence[Outcome]) -> None:
        if any(self.fates.of(outcome.document) == "recorder fails" for outcome in outcomes):
            raise StoreError("The disk is full.")
        self.recorded += [outcome.document.link.page_id for outcome in outcomes]

    def settle(self, outcomes: Sequence[Outcome]) -> None:
        """Nobody waits for it."""


class _Painter(Painter):
    """A painter that fails at pages of that fate."""

    def __init__(self, fates: Fates, drawn: dict[str, bytes]) -> None:
        super().__init__(drawn)
        self._fates = fates

    def render(self, link: Link) -> Document:
        if self._fates.fates[link.page_id] == "browser raises":
            raise ZeroDivisionError
        return super().render(link)


def run_through(
    plan: Plan, fates: Sequence[str], robots: str = "ignore", connections: int = 1_000,
    right: RightToCheck | None = None, raised: Callable[[Exception], None] = lambda _: None,
) -> tuple[list[ResourceUse], list[int]]:  # fmt: skip
    """Let a page for each fate go through a pipeline; how its resources were used in the end, and what was recorded."""
    stop = Stop()
    right = right or RightToCheck()

    def reply(request: Request) -> Answer:
        name = request.path.rpartition("/")[2]
        fate = fates[int(name)] if name.isdigit() else "same"
        if request.path == "/robots.txt":
            return answer(b"", "404 Not Found")
        if fate == "stop":
            stop.request()
        if fate == "right lost":
            right.lost = True
        if fate == "stalled":
            pipeline.end_stalled(Stall(seconds=1.0, threads=(), resources=()))
        if fate == "held" or (fate == "held when confirmed" and len(server.asked_for(request.path)) > 1):
            stop.request()  # or nothing would ever end it
            return answer(b"", length=10, hold=True)
        if fate == "hung up":
            return Answer(data=b"", close=True)
        if fate == "busy":
            return answer(b"", "503 Service Unavailable", "Retry-After: 3600")
        if fate == "redirected" and "/elsewhere/" not in request.path:
            return redirect(f"/elsewhere/{name}")
        return html("Some words. " * 200)

    steps = Fates(fates, stop)
    given = making.settings(
        capacity_bytes=6_000, stop_grace=0.1, render_slots=2, robots=robots, host_connections=connections
    )
    with Server(reply) as server:
        render = {
            "rendered": Render(),
            "rendered changed": Render(),
            "browser raises": Render(),
            "shell": Render(mode=RenderMode.AUTO),
        }
        links = [Link(n, server.url(f"/{n}"), 1, None, render=render.get(fate)) for n, fate in enumerate(fates)]
        sink = Failing(steps)
        painter = _Painter(steps, {link.url: b"<p>drawn</p>" for link in links[::2]})
        with open_workers(given) as workers:
            pipeline = Pipeline(
                LinkQueue(iter(links)), steps, sink, plan=plan, settings=given, ending=Ending(stop), workers=workers,
                hosts=Records(), relink=lambda _: [], stages=StagesWith(steps, given, stop, painter),
                may_fetch=right.holds,
            )  # fmt: skip
            try:
                with pipeline:
                    pipeline.run()
            except (StoreError, RunStalled, ZeroDivisionError) as error:
                raised(error)
        return pipeline.resources(), sink.recorded


def left_over(uses: Sequence[ResourceUse]) -> list[str]:
    return [str(use) for use in uses if use.in_use or use.acquired != use.released]


@pytest.mark.parametrize("plan", WIRINGS)
@pytest.mark.parametrize("fate", FATES)
def test_whatever_becomes_of_every_page_all_that_was_taken_is_given_back(plan: Plan, fate: str) -> None:
    for connections in (1_000, 2):
        uses, _ = run_through(plan, ["same", *[fate] * 12, "changed"], connections=connections)
        assert left_over(uses) == []


@pytest.mark.parametrize("plan", WIRINGS)
@settings(max_examples=25)
@given(fates=st.lists(st.sampled_from(FATES), min_size=1, max_size=40), robots=st.sampled_from(["obey", "ignore"]))
@example(fates=["changed"] * 40, robots="ignore")
@example(fates=["changed", "rendered", "shell", "redirected"] * 8 + ["stop"], robots="obey")
def test_whatever_happens_together_all_that_was_taken_is_given_back(plan: Plan, fates: list[str], robots: str) -> None:
    uses, _ = run_through(plan, fates, robots)
    assert left_over(uses) == []


@pytest.mark.parametrize("plan", WIRINGS)
@settings(max_examples=10)
@given(fates=st.lists(st.sampled_from(["same", "changed", "shell", "rendered changed", "redirected"]), max_size=40))
def test_a_run_that_nothing_disturbs_records_every_page_once(plan: Plan, fates: list[str]) -> None:
    uses, recorded = run_through(plan, fates, connections=2)
    assert left_over(uses) == []
    assert sorted(recorded) == list(range(len(fates)))


@pytest.mark.parametrize("plan", WIRINGS)
@pytest.mark.parametrize(
    ("fates", "ends_in"),
    [
        pytest.param(["changed"] * 4, "ConsumerThreads.drain", id="while changes wait for room"),
        pytest.param(["shell"], "BrowserLane.drain", id="while pages wait for a browser"),
        pytest.param(["changed"], "Confirmer.drain", id="while changes wait to be confirmed"),
    ],
)
def test_a_right_that_is_lost_when_all_is_fetched_once_ends_the_run(
    plan: Plan, fates: Sequence[str], ends_in: str
) -> None:
    if plan.pipeline == "sequential" and ends_in == "ConsumerThreads.drain":
        ends_in = "Capacity.acquire"
    raised: list[Exception] = []
    uses, recorded = run_through(plan, fates, right=RightToCheck(ends_in), raised=raised.append)
    assert [type(error) for error in raised] == [StoreUnavailable]
    assert left_over(uses) == []
    assert recorded == [], "the next run finds the changes again"


def test_second_fetches_that_had_not_begun_when_a_run_gives_up_give_back_their_permits() -> None:
    given = making.settings(robots="ignore", host_connections=1_000)
    steps, waits = Fates(["changed"] * 40, Stop()), threading.Event()
    recorder: Recorder[Outcome] = Recorder(Failing(steps))
    with Server(lambda _: answer(b"", length=10, hold=True)) as server:
        documents = [making.document(Link(n, server.url(f"/{n}"), 1, None), b"", 200) for n in range(40)]
        polite = PoliteLinks(LinkQueue(iter([])), given, Records(), links=lambda _: [], record=recorder.add)
        confirmer = Confirmer(steps, recorder, given, polite)
        confirmer.add([making.changed(document) for document in documents])
        while polite.statistics().in_use < 40:  # more than the confirmer fetches at once
            waits.wait(0.01)
        confirmer.close()
        recorder.close()
    assert left_over([polite.statistics(), confirmer.statistics()]) == []


def test_pages_that_come_to_a_browser_lane_that_gave_up_give_back_their_permits() -> None:
    given = making.settings(robots="ignore", host_connections=1_000)
    steps, stop = Fates(["rendered"] * 3, Stop()), Stop()
    recorder: Recorder[Outcome] = Recorder(Failing(steps))
    links = [Link(number, f"http://page.example/{number}", 1, None, render=Render()) for number in range(3)]
    polite = PoliteLinks(LinkQueue(iter(links)), given, Records(), links=lambda _: [], record=recorder.add)
    painter = Painter({})
    lane = BrowserLane(steps, recorder, recorder, polite, given, stop, painter, lambda: painter)
    lane.abandon()
    taken = polite.take(3)
    assert polite.statistics().in_use == len(taken) == 3
    assert lane.divert(taken) == []
    assert left_over([polite.statistics(), lane.statistics()]) == []
    recorder.close()


def test_a_change_that_comes_while_the_confirmer_gives_up_gives_back_its_room() -> None:
    given = making.settings(robots="ignore", host_connections=1_000)
    steps = Fates(["changed"], Stop())
    recorder: Recorder[Outcome] = Recorder(Failing(steps))

    class GivingUp:
        """Settings that are read between the moment when room was found and that when the change is queued."""

        def __getattr__(self, name: str) -> object:
            if name == "allow_networks":
                confirmer.abandon()
            return getattr(given, name)

    polite = PoliteLinks(LinkQueue(iter([])), given, Records(), links=lambda _: [], record=recorder.add)
    confirmer = Confirmer(steps, recorder, cast("Settings", GivingUp()), polite)
    confirmer.add([making.changed(making.document(Link(0, "http://page.example/", 1, None), b"", 200))])
    recorder.close()
    assert confirmer.statistics().acquired == 1
    assert left_over([confirmer.statistics()]) == []


def test_the_report_of_a_check_lists_its_resources_with_none_in_use(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.watch(20)
        world.pages.check()
        for path in world.words:
            world.words[path] = "other words than before, and quite a few of them"
        uses = {use.name: use for use in world.pages.check().resources}
    assert left_over([*uses.values()]) == []
    taken = {name: use.acquired for name, use in uses.items()}
    assert taken["document queue: items"] == taken["unconfirmed changes: bytes"] == 20
    assert taken["host permits"] == 40, "each page was fetched twice"
    assert uses.keys() == {
        "document queue: reserved places", "document queue: items", "document queue: bytes", "browser lane: bytes",
        "unconfirmed changes: bytes", "recorder: bytes", "worker processes", "host permits",
    }  # fmt: skip


def test_a_reservation_is_released_once() -> None:
    capacity = Capacity("bytes", 10)
    reservation = capacity.acquire(7)
    assert reservation is not None
    with reservation:
        assert capacity.statistics().in_use == 7
    assert capacity.statistics().in_use == 0
    with pytest.raises(RuntimeError, match="twice"):
        reservation.release()
    assert capacity.statistics().in_use == 0


def test_something_larger_than_the_limit_gets_through_alone_and_a_closed_capacity_gives_nothing() -> None:
    capacity = Capacity("bytes", 10)
    assert capacity.acquire(25) is not None
    capacity.close()
    assert capacity.acquire(1) is None
