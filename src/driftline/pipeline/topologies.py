"""How the threads of a pipeline are arranged: the paper's three configurations and ours."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from driftline.errors import BadSetting, RunStopped
from driftline.fetch.curl import Transfers, fetch_link
from driftline.pipeline.plan import Plan, most_in_flight
from driftline.pipeline.queue import BoundedQueue, QueueStatistics
from driftline.pipeline.threads import LAST_WORK, LOOK, ConsumerThreads, ProducerThreads
from driftline.pipeline.tuner import Tuner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from driftline.model.outcome import Document, Pair
    from driftline.pipeline.pipeline import Pipeline

_PAIR_OVERHEAD = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """How the threads of a pipeline were arranged in the end, after tuning."""

    producers: int
    slots: int
    consumers: int
    comparers: int
    queues: list[QueueStatistics] = field(default_factory=list)


def run_topology(plan: Plan, pipeline: Pipeline[Any]) -> Topology:
    """Fetch and compare what every link leads to; returns when all is handed to the recorder."""
    if plan.pipeline == "sequential":
        return _sequential(pipeline)
    if plan.pipeline == "three-section":
        return _three_section(plan, pipeline)
    return _two_section(plan, pipeline)


def _sequential(pipeline: Pipeline[Any]) -> Topology:
    """Run configuration 1: one thread, one step after the other."""
    steps = pipeline.steps
    transfers = Transfers(pipeline.settings, pipeline.clock, blocked=pipeline.blocked)
    stopped_at: float | None = None

    def give_up() -> bool:
        nonlocal stopped_at
        if stopped_at is None and pipeline.ending.stop.requested:
            stopped_at = time.monotonic()
        stopped = stopped_at is not None and time.monotonic() - stopped_at > pipeline.settings.stop_grace
        return stopped or pipeline.ending.error is not None

    def end_reading() -> None:
        # this thread cannot watch for a stop while it waits for a worker to read a page
        while not over.wait(0.2):
            if give_up() or not pipeline.may_go_on():
                pipeline.abandon()
                return

    over = threading.Event()
    pipeline.links.listen(pipeline.ending.stop.bell.ring)
    watcher = threading.Thread(target=end_reading, name="watcher", daemon=True)
    watcher.start()
    try:
        while pipeline.may_go_on() and not (
            pipeline.ending.stop.requested or pipeline.recorder.failed or _broken(pipeline)
        ):
            links = pipeline.links.take(1)
            if links:
                for link in pipeline.divert(links):
                    documents = pipeline.links.done([fetch_link(link, transfers, give_up)])
                    pipeline.pass_on(steps.compare(steps.recall(documents)))
            elif pipeline.links.exhausted:
                break
            else:
                wait = pipeline.links.next_in()
                pipeline.ending.stop.bell.wait(LOOK if wait is None else min(LOOK, wait))
        _drain_stages(pipeline, stopped_at)
    except RunStopped:
        pass  # the current page is left to the next run
    finally:
        pipeline.links.close()
        pipeline.abandon_stages()
        pipeline.links.abandon(transfers.close())
        over.set()
        watcher.join()
    _raise_first(_broken(pipeline))
    return Topology(producers=1, slots=1, consumers=1, comparers=0)


def _two_section(plan: Plan, pipeline: Pipeline[Any]) -> Topology:
    """Run configuration 3, or with several queues the paper's future work."""
    queue = _document_queue(plan, pipeline)
    steps = pipeline.steps

    def work(documents: list[Document]) -> None:
        pipeline.pass_on(steps.compare(steps.recall(documents)))

    tuner = _tuner(plan)
    consumers = ConsumerThreads("consumer", queue, work, pipeline)
    producers = ProducerThreads(plan, pipeline, queue, tuner.in_flight)
    with _no_thread_left_behind(pipeline, producers, consumers):
        consumers.resize(tuner.consumers)
        producers.start()
        producers.supervise(tuner, consumers, lambda: consumers.error is not None or _broken(pipeline) is not None)
        consumers.drain(pipeline.ending.stop, producers.stopped_at)
        _drain_stages(pipeline, producers.stopped_at)
    _raise_first(producers.error, consumers.error, _broken(pipeline))
    return Topology(
        producers=producers.producers,
        slots=producers.slots,
        consumers=tuner.consumers,
        comparers=0,
        queues=[queue.statistics()],
    )


def _three_section(plan: Plan, pipeline: Pipeline[Any]) -> Topology:
    """Run configuration 2: the recalling and the comparing consumers have a queue between them."""
    queue = _document_queue(plan, pipeline)
    pairs: BoundedQueue[Pair] = BoundedQueue(
        plan.capacity, pipeline.settings.capacity_bytes, _pair_size, name="pair queue"
    )
    pipeline.queues.append(pairs)
    steps = pipeline.steps

    def work_recall(documents: list[Document]) -> None:
        recalled = steps.recall(documents)
        with pairs.slots() as slots:
            while recalled:
                room = slots.reserve(len(recalled), wait=True)
                if not room:
                    return
                slots.put(recalled[:room])
                recalled = recalled[room:]

    def work_compare(waiting: list[Pair]) -> None:
        pipeline.pass_on(steps.compare(waiting))

    tuner = _tuner(plan)
    recallers = ConsumerThreads("recaller", queue, work_recall, pipeline, onward=pairs)
    comparers = ConsumerThreads("comparer", pairs, work_compare, pipeline)
    producers = ProducerThreads(plan, pipeline, queue, tuner.in_flight)
    with _no_thread_left_behind(pipeline, producers, recallers, comparers):
        recallers.resize(tuner.consumers)
        comparers.resize(plan.comparers or cores())
        producers.start()
        producers.supervise(tuner, recallers, lambda: any([recallers.error, comparers.error, _broken(pipeline)]))
        recallers.drain(pipeline.ending.stop, producers.stopped_at)
        comparers.drain(pipeline.ending.stop, producers.stopped_at)
        _drain_stages(pipeline, producers.stopped_at)
    _raise_first(producers.error, recallers.error, comparers.error, _broken(pipeline))
    return Topology(
        producers=producers.producers, slots=producers.slots, consumers=tuner.consumers, comparers=comparers.size,
        queues=[queue.statistics(), pairs.statistics()],
    )  # fmt: skip


def _drain_stages(pipeline: Pipeline[Any], stopped_at: float | None) -> None:
    """Wait until what is left is rendered, and unconfirmed changes are fetched again.

    After a stop, no longer than the grace allows; not at all once the right to check pages is lost, which no other
    thread watches when the producers have ended.
    """

    def give_up_at() -> float | None:
        nonlocal stopped_at
        if stopped_at is None and pipeline.ending.stop.requested:
            stopped_at = time.monotonic()
        if not pipeline.may_go_on():
            pipeline.abandon()
            return 0.0
        return None if stopped_at is None else stopped_at + pipeline.settings.stop_grace + LAST_WORK

    for stage in pipeline.stages:
        stage.drain(give_up_at, pipeline.workers.stop)


@contextmanager
def _no_thread_left_behind(
    pipeline: Pipeline[Any], *sections: ProducerThreads | ConsumerThreads[Any]
) -> Iterator[None]:
    """End every thread of the pipeline when the block ends in an exception, KeyboardInterrupt included.

    What a stop left in the queues is dropped: the next run checks it.
    """
    try:
        yield
    except BaseException:
        pipeline.abandon()
        for section in sections:
            section.abandon()
        raise
    finally:
        pipeline.links.close()
        for queue in pipeline.queues:
            queue.discard()


def _tuner(plan: Plan) -> Tuner:
    in_flight = None if plan.slots is None else plan.slots * (plan.producers or 1)
    most = most_in_flight()
    if max(in_flight or 0, plan.producers or 0) > most:
        raise BadSetting(f"The system allows {most:,} transfers at once here: ask for fewer, or raise 'ulimit -n'.")
    return Tuner(in_flight=in_flight, consumers=plan.consumers, most_in_flight=most, most_consumers=cores())


def _broken(pipeline: Pipeline[Any]) -> Exception | None:
    """Return the exception that ended a stage, or cut the pipeline short; None if none did."""
    errors = [stage.error for stage in pipeline.stages if stage.error is not None]
    return errors[0] if errors else pipeline.ending.error


def _raise_first(*errors: Exception | None) -> None:
    for error in errors:
        if error is not None:
            raise error


def _document_queue(plan: Plan, pipeline: Pipeline[Any]) -> BoundedQueue[Document]:
    queue: BoundedQueue[Document] = BoundedQueue(
        plan.capacity, pipeline.settings.capacity_bytes, _document_size, plan.queues, name="document queue"
    )
    pipeline.queues.append(queue)
    return queue


def _document_size(document: Document) -> int:
    return document.size


def _pair_size(pair: Pair) -> int:
    return pair.held_bytes() + _PAIR_OVERHEAD


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))
