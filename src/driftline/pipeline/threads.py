"""The threads of the sections of a pipeline, as many as are wanted at the moment."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from driftline.pipeline.consumer import Consumer, fair_share
from driftline.pipeline.producer import Producer
from driftline.pipeline.tuner import Sample, Tuner

if TYPE_CHECKING:
    from collections.abc import Callable

    from driftline.model.outcome import Document, Pair
    from driftline.pipeline.pipeline import Pipeline
    from driftline.pipeline.plan import Plan
    from driftline.pipeline.queue import BoundedQueue
    from driftline.pipeline.stop import Stop

T = TypeVar("T")

LOOK = 0.25  # seconds between two looks of the tuner
LAST_WORK = 0.8  # seconds that consumers get for what the producers brought in after a stop


class ProducerThreads:
    """The producers of a pipeline, supervised by the thread that started it until there is nothing left to fetch."""

    def __init__(self, plan: Plan, pipeline: Pipeline[Any], queue: BoundedQueue[Document], in_flight: int) -> None:
        self._plan = plan
        self._pipeline = pipeline
        self._queue = queue
        self.producers = plan.producers or 1
        self.slots = max(1, in_flight // self.producers)
        self.stopped_at: float | None = None
        self._members: list[Producer] = []
        self._fit_queue()

    def __repr__(self) -> str:
        stopping = "" if self.stopped_at is None else " stopping"
        return f"<ProducerThreads producers={self.producers} slots={self.slots}{stopping} {self._queue!r}>"

    def start(self) -> None:
        """Let the producers begin."""
        pipeline = self._pipeline
        for _ in range(self.producers):
            producer = Producer(
                links=pipeline.links, queue=self._queue, settings=pipeline.settings, slots=self.slots,
                clock=pipeline.clock, ended=pipeline.ending.stop.bell.ring, blocked=pipeline.blocked,
                prove=None if self._plan.slots == 1 else self._prove_unchanged, divert=pipeline.divert,
            )  # fmt: skip
            self._members.append(producer)
            producer.thread.start()
        pipeline.links.listen(self._wake)

    def _wake(self) -> None:
        for producer in self._members:
            producer.wake()

    def _prove_unchanged(self, documents: list[Document]) -> list[Document]:
        """Record the pages that are proved unchanged, which costs less than to hand them over. Returns the others.

        The paper's producer, with one slot, leaves it to the consumers.
        """
        outcomes, left = self._pipeline.steps.prove_unchanged(documents)
        if outcomes:
            self._pipeline.recorder.add(outcomes)
        return left

    def abandon(self) -> None:
        """Give up what is in flight, and wait for the producers to end."""
        for producer in self._members:
            producer.stop(0.0)
        for producer in self._members:
            producer.thread.join(1.0)

    def supervise(self, tuner: Tuner, consumers: ConsumerThreads[Document], failed: Callable[[], bool]) -> None:
        """Tune and watch for a stop until every producer has ended; `failed` says that going on is pointless."""
        pipeline = self._pipeline
        bell = pipeline.ending.stop.bell
        last = time.monotonic()
        while any(producer.thread.at_work for producer in self._members):
            if self.stopped_at is not None or not pipeline.ending.stop.requested:
                bell.wait(LOOK)  # a stop that was requested before this run began may not ring again
            now = time.monotonic()
            broken = pipeline.recorder.failed or self.error is not None or failed() or not pipeline.may_go_on()
            if self.stopped_at is None and (pipeline.ending.stop.requested or broken):
                self.stopped_at = now
                pipeline.links.close()
                self._queue.refuse()  # so that no producer waits for room any more
                for producer in self._members:
                    producer.stop(0.0 if broken else pipeline.settings.stop_grace)
                if pipeline.ending.error:
                    pipeline.abandon()
            if pipeline.ending.error and self.stopped_at is not None and now > self.stopped_at + LAST_WORK:
                break  # a producer that does not end by now is stuck
            if self.stopped_at is None and now - last >= LOOK:
                tuner.observe(self._sample(now - last))
                last = now
                self._resize(tuner.in_flight)
                consumers.resize(tuner.consumers)
        for producer in self._members:
            producer.thread.join(1.0)
        self._queue.close()

    @property
    def error(self) -> Exception | None:
        """The exception that ended a producer, if one did."""
        return next((producer.thread.error for producer in self._members if producer.thread.error is not None), None)

    def _sample(self, seconds: float) -> Sample:
        figures = [producer.figures() for producer in self._members]
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
            for producer in self._members:
                producer.resize(slots)

    def _fit_queue(self) -> None:
        """Adapt the capacity of the queue, which holds what is queued and what is in flight, to the latter."""
        in_flight = self.producers * self.slots
        self._capacity = max(self._plan.capacity, in_flight + in_flight // 4)
        self._queue.resize(self._capacity)


class ConsumerThreads(Generic[T]):
    """The threads of one section, as many as are wanted at the moment."""

    def __init__(
        self, name: str, queue: BoundedQueue[T], work: Callable[[list[T]], None], pipeline: Pipeline[Any],
        onward: BoundedQueue[Pair] | None = None,
    ) -> None:  # fmt: skip
        self._name = name
        self._onward = onward
        self._queue = queue
        self._work = work
        self._pipeline = pipeline
        self._members: list[Consumer[T]] = []
        self._dismissed: list[Consumer[T]] = []

    def __repr__(self) -> str:
        return f"<ConsumerThreads {self._name!r} size={self.size} dismissed={len(self._dismissed)} {self._queue!r}>"

    @property
    def size(self) -> int:
        """The number of threads."""
        return len(self._members)

    @property
    def error(self) -> Exception | None:
        """The exception that ended a thread, if one did."""
        return next(
            (
                consumer.thread.error
                for consumer in (*self._members, *self._dismissed)
                if consumer.thread.error is not None
            ),
            None,
        )

    def resize(self, wanted: int) -> None:
        """Start or dismiss threads until there are so many."""
        while len(self._members) < wanted:
            consumer = Consumer(
                name=self._name, queue=self._queue, lane=len(self._members), share=self._share,
                work=self._work, ended=self._pipeline.ending.stop.bell.ring,
            )  # fmt: skip
            self._members.append(consumer)
            consumer.thread.start()
        self._dismissed = [
            consumer for consumer in self._dismissed if consumer.thread.at_work or consumer.thread.error is not None
        ]
        while len(self._members) > wanted:
            self._dismissed.append(self._members[-1])
            self._members.pop().dismiss()

    def abandon(self) -> None:
        """Wait for the threads to end, after `Pipeline.abandon`; what they are working on is lost."""
        for consumer in (*self._members, *self._dismissed):
            consumer.dismiss()
        for consumer in (*self._members, *self._dismissed):
            consumer.thread.join(1.0)

    def drain(self, stop: Stop, stopped_at: float | None) -> None:
        """Wait until the threads have emptied the queue and ended; after a stop, no longer than the grace allows.

        Once the run is cut short, what they wait for is given up at once.
        """
        self._queue.close()
        consumers = self._members + self._dismissed
        grace = self._pipeline.settings.stop_grace
        while any(consumer.thread.at_work for consumer in consumers):
            cut = not self._pipeline.may_go_on()
            if stopped_at is None and (stop.requested or cut):
                stopped_at = time.monotonic()
            if cut:
                grace = 0.0
                self._pipeline.abandon()
            if stopped_at is not None and time.monotonic() > stopped_at + grace + LAST_WORK:
                for consumer in consumers:
                    consumer.dismiss()
                self._pipeline.workers.stop()
                self._pipeline.abandon_stages()
                if self._onward is not None:
                    self._onward.refuse()
                break
            stop.bell.wait(0.05 if stopped_at is not None else 1.0)
        for consumer in consumers:
            consumer.thread.join(1.0)

    def _share(self) -> int:
        return fair_share(self._queue.depth, len(self._members))
