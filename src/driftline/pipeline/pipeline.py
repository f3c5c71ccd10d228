"""One pipeline: links of a source go through the steps, and their outcomes to a sink.

`check`, `run` and `crawl` differ in these three only, and in the stages that they leave out. How the threads of a
pipeline are arranged is decided by its plan: see `topologies`.
"""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self

from driftline.detection.worker_pool import PROGRAM, WorkerPool
from driftline.errors import RunStalled, StoreUnavailable
from driftline.fetch.failures import NOTHING
from driftline.fetch.politeness import PoliteLinks
from driftline.pipeline.recorder import Recorder, T, T_contra
from driftline.pipeline.topologies import cores, run_topology
from driftline.pipeline.watchdog import Watchdog
from driftline.runtime import at_full_speed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from driftline.capacity import ResourceUse
    from driftline.fetch.failures import Blocked
    from driftline.fetch.origins import Source
    from driftline.fetch.robots_cache import Records
    from driftline.model.outcome import Failed, Link
    from driftline.pipeline.consumer import ConsumerSteps
    from driftline.pipeline.plan import Plan
    from driftline.pipeline.queue import BoundedQueue
    from driftline.pipeline.recorder import Sink
    from driftline.pipeline.stop import Ending
    from driftline.pipeline.topologies import Topology
    from driftline.pipeline.watchdog import Stall
    from driftline.settings import Settings

_LOG = logging.getLogger(__name__)


class OptionalStage(Protocol):
    """An optional part of a pipeline, with threads of its own that start when there is something to do."""

    @property
    def error(self) -> Exception | None:
        """Return what ended one of its threads that should not have ended."""

    def drain(self, give_up_at: Callable[[], float | None], given_up: Callable[[], None]) -> None:
        """Wait until all is done, or until the time that `give_up_at` returns: then `given_up` is called."""

    def abandon(self) -> None:
        """Give up what is not done yet."""

    def close(self) -> None:
        """Give up what is left, and wait for the threads to end."""

    def statistics(self) -> ResourceUse:
        """Return how much of its bounded resource is in use."""


class BrowserStage(OptionalStage, Protocol[T]):
    """Fetches pages through a browser that need one."""

    def divert(self, links: list[Link]) -> list[Link]:
        """Take over those of these links that need a browser. Returns the others."""

    def sift(self, outcomes: Sequence[T | Failed]) -> Sequence[T | Failed]:
        """Take over the pages that turned out to need a browser. Returns the other outcomes."""


class ConfirmingStage(OptionalStage, Protocol[T_contra]):
    """Fetches changed pages once more before they are recorded."""

    def add(self, outcomes: Sequence[T_contra | Failed]) -> None:
        """Record these outcomes, the changes among them once they are confirmed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages(Generic[T]):
    """The optional stages of a pipeline; None leaves a stage out."""

    browser: BrowserStage[T] | None = None
    confirmer: ConfirmingStage[T] | None = None

    def __iter__(self) -> Iterator[OptionalStage]:
        """Return the stages that there are, in the order in which a page passes them."""
        return (stage for stage in (self.browser, self.confirmer) if stage is not None)


class StageBuilder(Protocol[T]):
    """Builds the optional stages of a pipeline from the parts that they share with it."""

    def build(self, recorder: Recorder[T], links: PoliteLinks) -> Stages[T]:
        """Return the stages, which record with this recorder and fetch with permits of these links."""


@dataclass(frozen=True, slots=True)
class StallReporter:
    """What to do when nothing moves in a pipeline any more.

    `report` is called once the pipeline was made to end; `is_excused` returns True while something else is to blame:
    the store is locked by another program, or cannot be reached.
    """

    report: Callable[[Stall], None]
    is_excused: Callable[[], bool]


class Pipeline(Generic[T]):
    """Fetches what a source yields, in a `with` block that ends all of its threads. It is used once.

    `steps` turn documents into outcomes, which `sink` records. `hosts` are the records of hosts and their robots.txt,
    and `relink` makes new links of pages that had to wait for long. `workers` read the pages. No request is sent
    once `may_fetch` returns False: that ends the pipeline with StoreUnavailable. `slow` is called for a host whose
    pages will take long (see `PoliteLinks`). With `stalls`, a pipeline in which nothing moves any more ends with
    RunStalled. Its last commit is not waited for long once `in_a_hurry` returns True, which by default it does after a
    stop.
    """

    def __init__(
        self, source: Source, steps: ConsumerSteps[T], sink: Sink[T], *, plan: Plan, settings: Settings, ending: Ending,
        workers: WorkerPool, hosts: Records, relink: Callable[[Sequence[int]], list[Link]],
        stages: StageBuilder[T] | None = None, may_fetch: Callable[[], bool] = lambda: True,
        slow: Callable[[str, int, float], None] | None = None, stalls: StallReporter | None = None,
        in_a_hurry: Callable[[], bool] | None = None, blocked: Blocked = NOTHING,
        clock: Callable[[], float] = time.time, ticks: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.steps = steps
        self.settings = settings
        self.ending = ending
        self.workers = workers
        self.blocked = blocked
        self.clock = clock
        self.queues: list[BoundedQueue[Any]] = []
        self._plan = plan
        self._sink = sink
        self._stalls = stalls
        self._exits = ExitStack()
        self._watchdog = Watchdog(self, settings.stall_after, ticks)
        self.recorder: Recorder[T] = Recorder(self, in_a_hurry or (lambda: ending.stop.requested))
        self.links = PoliteLinks(
            source, settings, hosts, links=relink, record=self.recorder.add, clock=clock, slow=slow, may_fetch=may_fetch
        )
        self.stages: Stages[T] = Stages() if stages is None else stages.build(self.recorder, self.links)

    def __repr__(self) -> str:
        return f"<Pipeline {self._plan.pipeline} {self.recorder!r} {self.links!r}>"

    def __enter__(self) -> Self:
        exits = self._exits
        if self._stalls is not None:
            exits.enter_context(self._watchdog.watching())
        exits.callback(self.recorder.close)
        # however the run ends: the pause that a host asked for may be in no outcome that is recorded
        exits.callback(self.links.end, lambda: self.ending.stop.requested or self.recorder.given_up)
        for stage in (self.stages.confirmer, self.stages.browser):
            if stage is not None:
                exits.callback(stage.close)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.__exit__(kind, error, trace)
        if kind is None and self.ending.error is not None:
            raise self.ending.error

    def run(self) -> Topology:
        """Fetch, compare and hand to the recorder all that the source yields. Returns how the threads were arranged."""
        _LOG.debug("pipeline started", extra={"pipeline": self._plan.pipeline})
        if self.ending.stop.requested:  # before this run began, perhaps for another one: nothing is fetched
            self.links.close()
        with at_full_speed():
            topology = run_topology(self._plan, self)
        sizes = {"producers": topology.producers, "slots": topology.slots, "consumers": topology.consumers}
        stopped = self.ending.stop.requested
        _LOG.debug("pipeline ended", extra={"pipeline": self._plan.pipeline, **sizes, "stopped": stopped})
        return topology

    def record(self, outcomes: Sequence[T | Failed]) -> None:
        """Record a batch of outcomes: called by the recorder."""
        self._watchdog.progress()  # a crawl may have a hundred thousand addresses to commit at once
        self._sink.record(outcomes)
        self._watchdog.progress()
        self.links.flush()

    def settle(self, outcomes: Sequence[T | Failed]) -> None:
        """Pass on that these outcomes are recorded: called by the recorder."""
        self._sink.settle(outcomes)

    def divert(self, links: list[Link]) -> list[Link]:
        """Hand links that need a browser to that stage. Returns the others."""
        browser = self.stages.browser
        return links if browser is None else browser.divert(links)

    def pass_on(self, outcomes: Sequence[T | Failed]) -> None:
        """Hand outcomes to the stages that come after the comparison, and to the recorder."""
        if self.stages.browser is not None:
            outcomes = self.stages.browser.sift(outcomes)
        (self.stages.confirmer or self.recorder).add(outcomes)

    def resources(self) -> list[ResourceUse]:
        """Return how much of each bounded resource is in use: none of any, once the pipeline has ended."""
        holders = (*self.stages, self.recorder, self.workers, self.links)
        return [use for queue in self.queues for use in queue.resources()] + [one.statistics() for one in holders]

    def may_go_on(self) -> bool:
        """Return whether pages may be fetched: not once the right to check pages was lost, or an error came up."""
        if self.ending.error is None and not self.links.may_fetch():
            self.ending.cut_short(
                StoreUnavailable("The right to check pages was lost while the database did not answer.")
            )
        return self.ending.error is None

    def abandon(self) -> None:
        """Give up what is being fetched, read, rendered and confirmed, so that no thread waits for it."""
        self.links.close()
        for queue in self.queues:
            queue.close()
        self.workers.stop()
        self.abandon_stages()

    def abandon_stages(self) -> None:
        """Give up what is being rendered and confirmed."""
        for stage in self.stages:
            stage.abandon()

    def is_excused(self) -> bool:
        """Return whether something else is to blame if nothing is recorded: called by the watchdog."""
        return self._stalls is not None and self._stalls.is_excused()

    def end_stalled(self, stall: Stall) -> None:
        """End with RunStalled, and report it: called by the watchdog."""
        # first of all: to report it takes the store, which may be what all threads wait for
        self.ending.cut_short(RunStalled(stall.headline))
        self.abandon()
        self.recorder.give_up()
        if self._stalls is not None:
            self._stalls.report(stall)


@contextmanager
def open_workers(settings: Settings, program: str = PROGRAM) -> Iterator[WorkerPool]:
    """Return worker processes that read pages, one for each core, and end them at the end of the block."""
    workers = WorkerPool(
        most=cores(), deadline=settings.worker_deadline, memory=settings.worker_memory, program=program
    )
    try:
        yield workers
    finally:
        workers.close()
