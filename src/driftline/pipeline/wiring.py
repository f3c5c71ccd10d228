"""The wirings of the steps: the paper's three configurations and ours."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from driftline.errors import BadSetting, RunStopped
from driftline.fetching.transfers import Transfers, crawl
from driftline.pipeline.consumers import Consumer, fair_share
from driftline.pipeline.plan import Plan, most_in_flight
from driftline.pipeline.producers import Producer
from driftline.pipeline.queues import BoundedQueue, QueueStatistics
from driftline.pipeline.tuner import Sample, Tuner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from driftline.detection.workers import WorkerPool
    from driftline.model import Document, Pair
    from driftline.pipeline.confirmer import Confirmer
    from driftline.pipeline.consumers import Steps
    from driftline.pipeline.links import Links
    from driftline.pipeline.recorder import Recorder
    from driftline.pipeline.stopping import Stop
    from driftline.settings import Settings

T = TypeVar("T")

_LOOK = 0.25  # seconds between two looks of the tuner
_LAST_WORK = 0.8  # seconds that consumers get for what the producers brought in after a stop
_PAIR_OVERHEAD = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What every wiring is made of."""

    links: Links
    steps: Steps
    workers: WorkerPool
    recorder: Recorder
    confirmer: Confirmer
    settings: Settings
    stop: Stop
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True, kw_only=True)
class Wired:
    """How the run was wired in the end, after tuning."""

    producers: int
    slots: int
    consumers: int
    comparers: int
    queues: list[QueueStatistics] = field(default_factory=list)


def wire(plan: Plan, parts: Parts) -> Wired:
    """Check every link through the pipeline of the plan; returns when all is handed to the recorder."""
    if plan.pipeline == "sequential":
        return _sequential(parts)
    if plan.pipeline == "three-section":
        return _three_section(plan, parts)
    return _two_section(plan, parts)


def _sequential(parts: Parts) -> Wired:
    """Configuration 1: one thread, one step after the other."""
    steps = parts.steps
    transfers = Transfers(parts.settings, parts.clock)
    stopped_at: float | None = None

    def give_up() -> bool:
        nonlocal stopped_at
        if stopped_at is None and parts.stop.requested:
            stopped_at = time.monotonic()
        return stopped_at is not None and time.monotonic() - stopped_at > parts.settings.stop_grace

    def end_reading() -> None:
        # this thread cannot watch for a stop while it waits for a worker to read a page
        while not over.wait(0.2):
            if give_up():
                parts.workers.stop()
                parts.confirmer.abandon()
                return

    over = threading.Event()
    parts.links.listen(parts.stop.bell.ring)
    watcher = threading.Thread(target=end_reading, name="watcher", daemon=True)
    watcher.start()
    try:
        while not (parts.stop.requested or parts.recorder.failed or parts.confirmer.error):
            links = parts.links.take(1)
            if links:
                document = crawl(links[0], transfers, give_up)
                parts.confirmer.add(steps.compare(steps.recall([document])))
            elif parts.links.exhausted:
                break
            else:
                parts.stop.bell.wait(_LOOK)
        _confirm_the_rest(parts, stopped_at)
    except RunStopped:
        pass  # the page at hand is left for the next run
    finally:
        parts.confirmer.abandon()
        transfers.close()
        over.set()
        watcher.join()
    _raise_first(parts.confirmer.error)
    return Wired(producers=1, slots=1, consumers=1, comparers=0)


def _two_section(plan: Plan, parts: Parts) -> Wired:
    """Configuration 3, and with several queues the paper's future work."""
    queue: BoundedQueue[Document] = _document_queue(plan, parts.settings)
    confirmer, steps = parts.confirmer, parts.steps

    def work(documents: list[Document]) -> None:
        confirmer.add(steps.compare(steps.recall(documents)))

    tuner = _tuner(plan)
    crew = _Crew("consumer", queue, work, parts)
    crawlers = _Crawlers(plan, parts, queue, tuner.in_flight)
    with _no_thread_left_behind(parts, crawlers, queue):
        crew.resize(tuner.consumers)
        crawlers.start()
        crawlers.tend(tuner, crew, lambda: crew.error is not None or parts.confirmer.error is not None)
        crew.drain(parts.stop, crawlers.stopped_at)
        _confirm_the_rest(parts, crawlers.stopped_at)
    _raise_first(crawlers.error, crew.error, parts.confirmer.error)
    return Wired(
        producers=crawlers.producers,
        slots=crawlers.slots,
        consumers=tuner.consumers,
        comparers=0,
        queues=[queue.statistics()],
    )


def _three_section(plan: Plan, parts: Parts) -> Wired:
    """Configuration 2: the recalling and the comparing consumers have a queue between them."""
    queue: BoundedQueue[Document] = _document_queue(plan, parts.settings)
    pairs: BoundedQueue[Pair] = BoundedQueue(plan.capacity, parts.settings.capacity_bytes, _pair_size)
    confirmer, steps = parts.confirmer, parts.steps

    def work_recall(documents: list[Document]) -> None:
        recalled = steps.recall(documents)
        while recalled:
            room = pairs.reserve(len(recalled), wait=True)
            if not room:
                return
            pairs.put(recalled[:room])
            recalled = recalled[room:]

    def work_compare(waiting: list[Pair]) -> None:
        confirmer.add(steps.compare(waiting))

    tuner = _tuner(plan)
    recallers = _Crew("recaller", queue, work_recall, parts, onward=pairs)
    comparers = _Crew("comparer", pairs, work_compare, parts)
    crawlers = _Crawlers(plan, parts, queue, tuner.in_flight)
    with _no_thread_left_behind(parts, crawlers, queue, pairs):
        recallers.resize(tuner.consumers)
        comparers.resize(plan.comparers or cores())
        crawlers.start()
        crawlers.tend(tuner, recallers, lambda: any([recallers.error, comparers.error, parts.confirmer.error]))
        recallers.drain(parts.stop, crawlers.stopped_at)
        comparers.drain(parts.stop, crawlers.stopped_at)
        _confirm_the_rest(parts, crawlers.stopped_at)
    _raise_first(crawlers.error, recallers.error, comparers.error, parts.confirmer.error)
    return Wired(
        producers=crawlers.producers, slots=crawlers.slots, consumers=tuner.consumers, comparers=comparers.size,
        queues=[queue.statistics(), pairs.statistics()],
    )  # fmt: skip


def _confirm_the_rest(parts: Parts, stopped_at: float | None) -> None:
    """Let the changes that are still unconfirmed be fetched again; after a stop, no longer than the grace allows."""

    def give_up_at() -> float | None:
        nonlocal stopped_at
        if stopped_at is None and parts.stop.requested:
            stopped_at = time.monotonic()
        return None if stopped_at is None else stopped_at + parts.settings.stop_grace + _LAST_WORK

    parts.confirmer.drain(give_up_at, parts.workers.stop)


class _Crawlers:
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
                    clock=parts.clock, ended=parts.stop.bell.ring,
                    settle=None if self._plan.slots == 1 else self._settle,
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

    def tend(self, tuner: Tuner, crew: _Crew[Document], failed: Callable[[], bool]) -> None:
        """Tune and watch for a stop until every producer has ended; `failed` says that going on is pointless."""
        parts = self._parts
        bell = parts.stop.bell
        last = time.monotonic()
        while any(thread.at_work for thread in self._threads):
            bell.wait(_LOOK)
            now = time.monotonic()
            broken = parts.recorder.failed or self.error is not None or failed()
            if self.stopped_at is None and (parts.stop.requested or broken):
                self.stopped_at = now
                parts.links.close()
                self._queue.refuse()  # a producer that waits for room must hear of it too
                for thread in self._threads:
                    thread.stop(0.0 if broken else parts.settings.stop_grace)
            if self.stopped_at is None and now - last >= _LOOK:
                tuner.observe(self._sample(now - last))
                last = now
                self._resize(tuner.in_flight)
                crew.resize(tuner.consumers)
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


class _Crew(Generic[T]):
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
        """Let the threads empty the queue and end; after a stop, for no longer than the grace allows."""
        self._queue.close()
        threads = self._members + self._dismissed
        while any(thread.at_work for thread in threads):
            if stop.requested and stopped_at is None:
                stopped_at = time.monotonic()
            if stopped_at is not None and time.monotonic() > stopped_at + self._parts.settings.stop_grace + _LAST_WORK:
                for thread in threads:
                    thread.dismiss()
                self._parts.workers.stop()
                self._parts.confirmer.abandon()
                if self._onward is not None:
                    self._onward.refuse()
                break
            stop.bell.wait(0.05 if stopped_at is not None else 1.0)
        for thread in threads:
            thread.join(1.0)

    def _share(self) -> int:
        return fair_share(self._queue.depth, len(self._members))


@contextmanager
def _no_thread_left_behind(
    parts: Parts, crawlers: _Crawlers, *queues: BoundedQueue[Document] | BoundedQueue[Pair]
) -> Iterator[None]:
    """End every thread of the pipeline when the block ends in an exception, KeyboardInterrupt included."""
    try:
        yield
    except BaseException:
        parts.links.close()
        for queue in queues:
            queue.close()
        parts.workers.stop()
        parts.confirmer.abandon()
        crawlers.abandon()
        raise


def _tuner(plan: Plan) -> Tuner:
    in_flight = None if plan.slots is None else plan.slots * (plan.producers or 1)
    most = most_in_flight()
    if max(in_flight or 0, plan.producers or 0) > most:
        raise BadSetting(f"The system allows {most:,} transfers at once here: ask for fewer, or raise 'ulimit -n'.")
    return Tuner(in_flight=in_flight, consumers=plan.consumers, most_in_flight=most, most_consumers=cores())


def _raise_first(*errors: Exception | None) -> None:
    for error in errors:
        if error is not None:
            raise error


def _document_queue(plan: Plan, settings: Settings) -> BoundedQueue[Document]:
    return BoundedQueue(plan.capacity, settings.capacity_bytes, _document_size, plan.queues)


def _document_size(document: Document) -> int:
    return document.size


def _pair_size(pair: Pair) -> int:
    recalled = 0 if pair.old is None else sum([len(blob.data) for blob in pair.old.blobs.values()])
    return len(pair.document.body) + recalled + _PAIR_OVERHEAD


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))
