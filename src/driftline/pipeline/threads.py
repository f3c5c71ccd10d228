"""The threads of the sections of a pipeline, as many as are wanted, and what they work with."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from driftline.errors import RunStalled, StoreUnavailable
from driftline.fetch.failures import NOTHING
from driftline.pipeline.consumer import Consumer, fair_share
from driftline.pipeline.producer import Producer
from driftline.pipeline.tuner import Sample, Tuner

if TYPE_CHECKING:
    from collections.abc import Callable

    from driftline.capacity import ResourceUse
    from driftline.detection.worker_pool import WorkerPool
    from driftline.fetch.failures import Blocked
    from driftline.fetch.politeness import PoliteLinks
    from driftline.model import Document, Outcome, Pair
    from driftline.pipeline.browser_lane import BrowserLane
    from driftline.pipeline.confirmer import Confirmer
    from driftline.pipeline.consumer import ConsumerSteps
    from driftline.pipeline.plan import Plan
    from driftline.pipeline.queue import BoundedQueue
    from driftline.pipeline.recorder import Recorder
    from driftline.pipeline.stop import Stop
    from driftline.settings import Settings

T = TypeVar("T")

LOOK = 0.25  # seconds between two looks of the tuner
LAST_WORK = 0.8  # seconds that consumers get for what the producers brought in after a stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What every wiring is made of."""

    links: PoliteLinks
    steps: ConsumerSteps
    workers: WorkerPool
    recorder: Recorder
    confirmer: Confirmer
    rendering: BrowserLane
    settings: Settings
    stop: Stop
    blocked: Blocked = NOTHING
    clock: Callable[[], float] = time.time
    queues: list[BoundedQueue[Any]] = field(default_factory=list)
    cut_short: list[Exception] = field(default_factory=list)

    def resources(self) -> list[ResourceUse]:
        """Return how much of each bounded resource is in use: none of any, once the run has ended."""
        holders = (self.rendering, self.confirmer, self.recorder, self.workers, self.links)
        return [use for queue in self.queues for use in queue.resources()] + [one.statistics() for one in holders]

    def cut(self, error: Exception) -> None:
        """End the run early with this error: nothing more is fetched, and nobody waits for anything any more."""
        self.cut_short.append(error)
        self.stop.bell.ring()

    def may_go_on(self) -> bool:
        """Whether the run may fetch pages: not once it was cut short, or lost the right to check pages."""
        if not self.cut_short and not self.links.may_fetch():
            self.cut(StoreUnavailable("The right to check pages was lost while the database did not answer."))
        return not self.cut_short

    def let_go(self) -> None:
        """Give up what is being fetched, read, rendered and confirmed, so that no thread waits for it."""
        self.links.close()
        for queue in self.queues:
            queue.close()
        self.workers.stop()
        self.rendering.abandon()
        self.confirmer.abandon()
        if any(isinstance(error, RunStalled) for error in self.cut_short):
            self.recorder.give_up()

    def compared(self, outcomes: list[Outcome]) -> None:
        """Send on what was found: to a browser what shows nothing without one, the rest to be confirmed and kept."""
        self.confirmer.add(self.rendering.sift(outcomes))


class Crawlers:
    """The producers of a run, tended by the thread that started it until there is nothing left to crawl."""

    def __init__(self, plan: Plan, parts: Parts, queue: BoundedQueue[Document], in_flight: int) -> None:
        self._plan = plan
        self._parts = parts
        self._queue = queue
        self.producers = plan.producers or 1
        self.slots = max(1, in_flight // self.producers)
        self.stopped_at: float | None = None
        self._threads: list[Producer] = []
        self._fit_queue()

    def start(self) -> None:
        """Let the producers begin."""
        parts = self._parts
        for _ in range(self.producers):
            self._threads.append(
                Producer(
                    links=parts.links, queue=self._queue, settings=parts.settings, slots=self.slots,
                    clock=parts.clock, ended=parts.stop.bell.ring, blocked=parts.blocked,
                    settle=None if self._plan.slots == 1 else self._settle, divert=parts.rendering.divert,
                )
            )  # fmt: skip
        parts.links.listen(self._wake)

    def _wake(self) -> None:
        for thread in self._threads:
            thread.wake()

    def _settle(self, documents: list[Document]) -> list[Document]:
        """What a producer with many slots does at once: handing over a page that is unchanged costs more than proof.

        The paper's producer, with one slot, leaves it to the consumers.
        """
        outcomes, left = self._parts.steps.settle(documents)
        if outcomes:
            self._parts.recorder.add(outcomes)
        return left

    def abandon(self) -> None:
        """Give up what is in flight, and wait for the producers to end."""
        for thread in self._threads:
            thread.stop(0.0)
        for thread in self._threads:
            thread.join(1.0)

    def tend(self, tuner: Tuner, crew: Crew[Document], failed: Callable[[], bool]) -> None:
        """Tune and watch for a stop until every producer has ended; `failed` says that going on is pointless."""
        parts = self._parts
        bell = parts.stop.bell
        last = time.monotonic()
        while any(thread.at_work for thread in self._threads):
            bell.wait(LOOK)
            now = time.monotonic()
            broken = parts.recorder.failed or self.error is not None or failed() or not parts.may_go_on()
            if self.stopped_at is None and (parts.stop.requested or broken):
                self.stopped_at = now
                parts.links.close()
                self._queue.refuse()  # a producer that waits for room must hear of it too
                for thread in self._threads:
                    thread.stop(0.0 if broken else parts.settings.stop_grace)
                if parts.cut_short:
                    parts.let_go()
            if parts.cut_short and self.stopped_at is not None and now > self.stopped_at + LAST_WORK:
                break  # whoever does not end by now is stuck
            if self.stopped_at is None and now - last >= LOOK:
                tuner.observe(self._sample(now - last))
                last = now
                self._resize(tuner.in_flight)
                crew.resize(tuner.consumers)
        for thread in self._threads:
            thread.join(1.0)
        self._queue.close()

    @property
    def error(self) -> Exception | None:
        """What ended a producer that should not have ended."""
        return next((thread.error for thread in self._threads if thread.error is not None), None)

    def _sample(self, seconds: float) -> Sample:
        figures = [thread.figures() for thread in self._threads]
        finished, settled, troubled, hungry, latency = (sum(column) for column in zip(*figures, strict=True))
        statistics = self._queue.statistics()
        return Sample(
            seconds=seconds, finished=int(finished), troubled=int(troubled), latency=latency,
            taken=int(settled) + statistics.taken, depth=statistics.depth, room=self._capacity,
            starved=statistics.empty_seconds, hungry=int(hungry),
        )  # fmt: skip

    def _resize(self, in_flight: int) -> None:
        slots = max(1, in_flight // self.producers)
        if slots != self.slots:
            self.slots = slots
            self._fit_queue()
            for thread in self._threads:
                thread.resize(slots)

    def _fit_queue(self) -> None:
        """The capacity holds what is queued and what is in flight, so it grows with the latter."""
        in_flight = self.producers * self.slots
        self._capacity = max(self._plan.capacity, in_flight + in_flight // 4)
        self._queue.resize(self._capacity)


class Crew(Generic[T]):
    """The threads of one section, as many as are wanted at the moment."""

    def __init__(
        self, name: str, queue: BoundedQueue[T], work: Callable[[list[T]], None], parts: Parts,
        onward: BoundedQueue[Pair] | None = None,
    ) -> None:  # fmt: skip
        self._name = name
        self._onward = onward
        self._queue = queue
        self._work = work
        self._parts = parts
        self._members: list[Consumer[T]] = []
        self._dismissed: list[Consumer[T]] = []

    @property
    def size(self) -> int:
        """How many threads there are."""
        return len(self._members)

    @property
    def error(self) -> Exception | None:
        """What ended a thread that should not have ended."""
        return next((thread.error for thread in (*self._members, *self._dismissed) if thread.error is not None), None)

    def resize(self, wanted: int) -> None:
        """Start threads, or let some go, until there are so many."""
        while len(self._members) < wanted:
            self._members.append(
                Consumer(
                    name=self._name, queue=self._queue, lane=len(self._members), share=self._share,
                    work=self._work, ended=self._parts.stop.bell.ring,
                )
            )  # fmt: skip
        self._dismissed = [thread for thread in self._dismissed if thread.at_work or thread.error is not None]
        while len(self._members) > wanted:
            member = self._members.pop()
            member.dismiss()
            self._dismissed.append(member)

    def drain(self, stop: Stop, stopped_at: float | None) -> None:
        """Let the threads empty the queue and end; after a stop, for no longer than the grace allows.

        Once the run is cut short, what they wait for is given up at once.
        """
        self._queue.close()
        threads = self._members + self._dismissed
        grace = self._parts.settings.stop_grace
        while any(thread.at_work for thread in threads):
            cut = not self._parts.may_go_on()
            if stopped_at is None and (stop.requested or cut):
                stopped_at = time.monotonic()
            if cut:
                grace = 0.0
                self._parts.let_go()
            if stopped_at is not None and time.monotonic() > stopped_at + grace + LAST_WORK:
                for thread in threads:
                    thread.dismiss()
                self._parts.workers.stop()
                self._parts.rendering.abandon()
                self._parts.confirmer.abandon()
                if self._onward is not None:
                    self._onward.refuse()
                break
            stop.bell.wait(0.05 if stopped_at is not None else 1.0)
        for thread in threads:
            thread.join(1.0)

    def _share(self) -> int:
        return fair_share(self._queue.depth, len(self._members))
