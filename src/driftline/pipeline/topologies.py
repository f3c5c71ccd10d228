"""The wirings of the steps: the paper's three configurations and ours."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from driftline.errors import BadSetting, RunStopped
from driftline.fetch.curl import Transfers, crawl
from driftline.pipeline.plan import Plan, most_in_flight
from driftline.pipeline.queue import BoundedQueue, QueueStatistics
from driftline.pipeline.threads import LAST_WORK, LOOK, Crawlers, Crew
from driftline.pipeline.tuner import Tuner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from driftline.model import Document, Pair
    from driftline.pipeline.threads import Parts

_PAIR_OVERHEAD = 500


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
    transfers = Transfers(parts.settings, parts.clock, blocked=parts.blocked)
    stopped_at: float | None = None

    def give_up() -> bool:
        nonlocal stopped_at
        if stopped_at is None and parts.stop.requested:
            stopped_at = time.monotonic()
        stopped = stopped_at is not None and time.monotonic() - stopped_at > parts.settings.stop_grace
        return stopped or bool(parts.cut_short)

    def end_reading() -> None:
        # this thread cannot watch for a stop while it waits for a worker to read a page
        while not over.wait(0.2):
            if give_up() or not parts.may_go_on():
                parts.let_go()
                return

    over = threading.Event()
    parts.links.listen(parts.stop.bell.ring)
    watcher = threading.Thread(target=end_reading, name="watcher", daemon=True)
    watcher.start()
    try:
        while parts.may_go_on() and not (parts.stop.requested or parts.recorder.failed or _broken(parts)):
            links = parts.links.take(1)
            if links:
                for link in parts.rendering.divert(links):
                    documents = parts.links.done([crawl(link, transfers, give_up)])
                    parts.compared(steps.compare(steps.recall(documents)))
            elif parts.links.exhausted:
                break
            else:
                wait = parts.links.next_in()
                parts.stop.bell.wait(LOOK if wait is None else min(LOOK, wait))
        _confirm_the_rest(parts, stopped_at)
    except RunStopped:
        pass  # the page at hand is left for the next run
    finally:
        parts.links.close()
        parts.rendering.abandon()
        parts.confirmer.abandon()
        parts.links.abandon(transfers.close())
        over.set()
        watcher.join()
    _raise_first(_broken(parts))
    return Wired(producers=1, slots=1, consumers=1, comparers=0)


def _two_section(plan: Plan, parts: Parts) -> Wired:
    """Configuration 3, and with several queues the paper's future work."""
    queue = _document_queue(plan, parts)
    steps = parts.steps

    def work(documents: list[Document]) -> None:
        parts.compared(steps.compare(steps.recall(documents)))

    tuner = _tuner(plan)
    crew = Crew("consumer", queue, work, parts)
    crawlers = Crawlers(plan, parts, queue, tuner.in_flight)
    with _no_thread_left_behind(parts, crawlers):
        crew.resize(tuner.consumers)
        crawlers.start()
        crawlers.tend(tuner, crew, lambda: crew.error is not None or _broken(parts) is not None)
        crew.drain(parts.stop, crawlers.stopped_at)
        _confirm_the_rest(parts, crawlers.stopped_at)
    _raise_first(crawlers.error, crew.error, _broken(parts))
    return Wired(
        producers=crawlers.producers,
        slots=crawlers.slots,
        consumers=tuner.consumers,
        comparers=0,
        queues=[queue.statistics()],
    )


def _three_section(plan: Plan, parts: Parts) -> Wired:
    """Configuration 2: the recalling and the comparing consumers have a queue between them."""
    queue = _document_queue(plan, parts)
    pairs: BoundedQueue[Pair] = BoundedQueue(
        plan.capacity, parts.settings.capacity_bytes, _pair_size, name="pair queue"
    )
    parts.queues.append(pairs)
    steps = parts.steps

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
        parts.compared(steps.compare(waiting))

    tuner = _tuner(plan)
    recallers = Crew("recaller", queue, work_recall, parts, onward=pairs)
    comparers = Crew("comparer", pairs, work_compare, parts)
    crawlers = Crawlers(plan, parts, queue, tuner.in_flight)
    with _no_thread_left_behind(parts, crawlers):
        recallers.resize(tuner.consumers)
        comparers.resize(plan.comparers or cores())
        crawlers.start()
        crawlers.tend(tuner, recallers, lambda: any([recallers.error, comparers.error, _broken(parts)]))
        recallers.drain(parts.stop, crawlers.stopped_at)
        comparers.drain(parts.stop, crawlers.stopped_at)
        _confirm_the_rest(parts, crawlers.stopped_at)
    _raise_first(crawlers.error, recallers.error, comparers.error, _broken(parts))
    return Wired(
        producers=crawlers.producers, slots=crawlers.slots, consumers=tuner.consumers, comparers=comparers.size,
        queues=[queue.statistics(), pairs.statistics()],
    )  # fmt: skip


def _confirm_the_rest(parts: Parts, stopped_at: float | None) -> None:
    """Let what is left be rendered, and the changes that are still unconfirmed be fetched again.

    After a stop, no longer than the grace allows; not at all once the right to check pages is lost, for nobody else
    looks whether it is when the producers have ended.
    """

    def give_up_at() -> float | None:
        nonlocal stopped_at
        if stopped_at is None and parts.stop.requested:
            stopped_at = time.monotonic()
        if not parts.may_go_on():
            parts.let_go()
            return 0.0
        return None if stopped_at is None else stopped_at + parts.settings.stop_grace + LAST_WORK

    parts.rendering.drain(give_up_at, parts.workers.stop)
    parts.confirmer.drain(give_up_at, parts.workers.stop)


@contextmanager
def _no_thread_left_behind(parts: Parts, crawlers: Crawlers) -> Iterator[None]:
    """End every thread of the pipeline when the block ends in an exception, KeyboardInterrupt included.

    What a stop left in the queues is dropped: the next run checks it.
    """
    try:
        yield
    except BaseException:
        parts.let_go()
        crawlers.abandon()
        raise
    finally:
        parts.links.close()
        for queue in parts.queues:
            queue.discard()


def _tuner(plan: Plan) -> Tuner:
    in_flight = None if plan.slots is None else plan.slots * (plan.producers or 1)
    most = most_in_flight()
    if max(in_flight or 0, plan.producers or 0) > most:
        raise BadSetting(f"The system allows {most:,} transfers at once here: ask for fewer, or raise 'ulimit -n'.")
    return Tuner(in_flight=in_flight, consumers=plan.consumers, most_in_flight=most, most_consumers=cores())


def _broken(parts: Parts) -> Exception | None:
    """What ended one of those who fetch again, though it should not have ended, or the run as a whole."""
    return parts.rendering.error or parts.confirmer.error or next(iter(parts.cut_short), None)


def _raise_first(*errors: Exception | None) -> None:
    for error in errors:
        if error is not None:
            raise error


def _document_queue(plan: Plan, parts: Parts) -> BoundedQueue[Document]:
    queue: BoundedQueue[Document] = BoundedQueue(
        plan.capacity, parts.settings.capacity_bytes, _document_size, plan.queues, name="document queue"
    )
    parts.queues.append(queue)
    return queue


def _document_size(document: Document) -> int:
    return document.size


def _pair_size(pair: Pair) -> int:
    recalled = 0 if pair.old is None else sum([len(blob.data) for blob in pair.old.blobs.values()])
    return len(pair.document.body) + recalled + _PAIR_OVERHEAD


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))
