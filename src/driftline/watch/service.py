"""The watcher: it schedules, checks, records and publishes until it is stopped.

`EndlessRun` is its pipeline, in a thread of its own; `Watcher` is the loop around it; `watch_events` is the watcher of
the library, as an iterator of events. `retry_while_busy` waits for another process that checks pages of the same store.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, TypeVar

from driftline.errors import RunStalled, RunStopped, StoreBusy, StoreLocked, StoreUnavailable
from driftline.model.change import Importance
from driftline.runtime import MemoryTrimmer
from driftline.store.locks import patiently
from driftline.watch.publisher import EventListener, Publisher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from driftline.crawl.recrawl import Rounds
    from driftline.model.event import Event
    from driftline.model.outcome import Recorded, Verdict
    from driftline.pipeline.check_run import Run
    from driftline.pipeline.sources import Feed
    from driftline.pipeline.stop import Stop
    from driftline.schedule.scheduler import Scheduler
    from driftline.store.events import EventLog, EventReader
    from driftline.store.process_locks import Claim, Having
    from driftline.watch.planner import Planner

    #: opens the readers of the event log that live in this process, and closes them at the end of the block
    Readers: TypeAlias = Callable[[EventLog], AbstractContextManager[Sequence[EventListener]]]

_LOG = logging.getLogger(__name__)
_Result = TypeVar("_Result")

_CRAWL_SECONDS = 60.0  # of crawling before pages are checked again
_LONGEST_WAIT = 60.0  # seconds: commands that cron starts every few minutes must not pile up behind one that never ends


def retry_while_busy(
    do: Callable[[], _Result], stop: Stop, be_next: Callable[[], Having], remark: Callable[[str], None],
    ticks: Callable[[], float] = time.monotonic, *, pause: float = 0.1, patience: float = _LONGEST_WAIT,
) -> _Result:  # fmt: skip
    """Return what `do` returns, tried again for `patience` seconds while another process checks pages (StoreBusy).

    The first time it has to wait, `remark` gets a sentence that says why. While it waits it holds `be_next`, so that a
    watcher that always has something to check makes way. Raise StoreBusy if that is not enough, or once a stop is
    requested. There are `pause` seconds between two tries.
    """
    end: float | None = None
    bell = stop.listen()
    with ExitStack() as place:
        is_next = False
        while True:
            try:
                return do()
            except StoreBusy as error:
                if end is None:
                    end = ticks() + patience
                    remark(f"Waiting for {_in_words(patience)} at most: {error}")
                elif stop.requested or ticks() >= end:
                    raise
            if not is_next:
                with suppress(StoreBusy, StoreLocked, StoreUnavailable):  # then it waits without being the next
                    place.enter_context(be_next())
                    is_next = True
            bell.wait(pause)


def _in_words(seconds: float) -> str:
    return "a minute" if seconds == _LONGEST_WAIT else f"{seconds:.0f} seconds"


class EndlessRun:
    """Checks what its feed is offered, for the time of a `with` block, holding the `right` to be the only run.

    Two of them would share the pages, and each would report only what changed on its own share.

    At the end of the block what was offered is checked to the end, unless a stop was requested or the block raised:
    then requests in flight may finish for some seconds, and `left` counts the offered pages that were not checked.
    Those that are `put_off` belong to hosts that asked for a pause. What ended the run early is raised there.
    """

    def __init__(
        self, run: Run, feed: Feed, stop: Stop, recorded: Callable[[Recorded], None],
        right: Callable[[], Having], slow: Callable[[str, int, float], None] | None = None,
    ) -> None:  # fmt: skip
        self.feed = feed
        self.left = self.put_off = 0
        self._run = run
        self._stop = stop
        self._recorded = recorded
        self._slow = slow
        self._right = right
        self._rights = ExitStack()
        self._claim: Claim | None = None
        self._bell = stop.listen()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, name="pipeline", daemon=True)

    def __repr__(self) -> str:
        return f"<EndlessRun at_work={self.at_work} left={self.left} put_off={self.put_off} error={self._error!r}>"

    def __enter__(self) -> Self:
        self._claim = patiently(lambda: self._rights.enter_context(self._right()), lambda: self._stop.requested)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._stop.request()
        self.feed.end()
        self._thread.join()
        self.feed.give_up()
        self.left, self.put_off = len(self.feed), self.feed.put_off_for_now()
        self._rights.close()
        self._stop.unlisten(self._bell)
        if self._error is not None and kind is None:
            raise self._error

    @property
    def at_work(self) -> bool:
        """Return whether what is offered will be checked: not once a stop was requested or something failed."""
        return self._thread.is_alive() and not self._stop.requested

    def wait(self, seconds: float) -> None:
        """Wait for so long, or until it is not at work any more; raise StoreBusy if another run took over."""
        if self._claim is not None and self._claim.lost:
            raise StoreBusy("Another 'driftline run' has taken over while the database could not be reached.")
        self._bell.wait(seconds)

    def _work(self) -> None:
        try:
            self._check_offered()
        except RunStopped:
            pass
        except Exception as error:  # noqa: BLE001 raised at the end of the block: nobody else can see it
            self._error = error
        finally:
            self._bell.ring()

    def _check_offered(self) -> None:
        """Check what is offered; start another pipeline if the store was away for long, or if one stalled."""
        while True:
            try:
                self._run.check_offered(self.feed, self._recorded, self._slow)
            except (StoreUnavailable, RunStalled) as error:
                if self._stop.requested:
                    raise
                _LOG.warning("the pipeline is restarted: %s", error, extra={"cause": type(error).__name__})
                self.feed.restart(lambda: self._stop.requested)
            else:
                return


class WatchList(Protocol):
    """The watch list, as far as the watcher needs it: it makes the parts that work on its store."""

    def keep_running(self, stop: Stop) -> AbstractContextManager[Claim]:
        """Hold the right to be the only watcher of the store; raise StoreBusy if another process has it."""

    def event_log(self, stop: Stop) -> EventLog:
        """Return the event log."""

    def scheduler(
        self, *, every: str, budget: str | None, policy: str | None, once: bool
    ) -> Scheduler:  # fmt: skip
        """Return what decides which page is checked next."""

    def planner(
        self, scheduler: Scheduler, feed: Feed, stop: Stop, tell: Callable[[str], None], *,
        slow: Callable[[str, int, float], None],
    ) -> Planner:  # fmt: skip
        """Return what feeds the pipeline with the pages that the scheduler picks."""

    def keep_checking(
        self, recorded: Callable[[Recorded], None], *, claim: Claim, stop: Stop,
        slow: Callable[[str, int, float], None],
    ) -> EndlessRun:  # fmt: skip
        """Return a pipeline that checks what it is fed."""

    def rounds(self, stop: Stop, remark: Callable[[str], None], *, once: bool) -> Rounds:
        """Return what crawls watched sites again when they are due."""

    def shortages(self, budget: str | None) -> list[str]:
        """Return a sentence for each budget that is too small for the intervals of the pages."""

    def watched(self, urls: Sequence[str]) -> list[int]:
        """Return the ids of those of these pages that are watched."""

    def be_next(self) -> Having:
        """Hold the request that a watcher in another process makes way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """The options of a watcher.

    `every` is the average time between checks of pages without an interval of their own, `budget` limits the checks.
    With `once`, everything that is due or new is checked, and then it ends. Readers of the event log get what is at
    least as important as `least`.
    """

    every: str = "1h"
    budget: str | None = None
    policy: str | None = None
    once: bool = False
    least: Importance = Importance.IMPORTANT


@dataclass(slots=True)
class WatchResult:
    """How a watcher ended.

    `found` counts its outcomes, `left` the pages that were due and not checked, `postponed` those whose hosts asked for
    a pause. `scheduler` knows what is next.
    """

    scheduler: Scheduler
    found: Counter[Verdict] = field(default_factory=Counter)
    left: int = 0
    postponed: int = 0
    stopped: bool = False


class Watcher:
    """Keeps checking the pages of a watch list, in the order of the scheduler, until it is stopped.

    Everything that it finds goes to the event log, and from there to the `readers`. Watched sites are crawled again in
    between. `remark` gets a sentence about its state whenever that has changed, `slow` the first host whose pages take
    long because of its delay, `recorded` every batch of outcomes once it is committed.
    """

    def __init__(
        self, watch_list: WatchList, options: WatchOptions, readers: Readers, stop: Stop, *,
        remark: Callable[[str], None], slow: Callable[[str, int, float], None] = lambda *_: None,
        recorded: Callable[[Recorded], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._watch_list = watch_list
        self._options = options
        self._readers = readers
        self._stop = stop
        self._remark = Remarks(remark).add
        self._slow = _FirstSlowHost(slow).report
        self._recorded = recorded

    def __repr__(self) -> str:
        options = self._options
        state = f"once={options.once} stopped={self._stop.requested}"
        return f"<Watcher every={options.every} budget={options.budget} {state}>"

    def run(self) -> WatchResult:
        """Watch until stopped, or check once what is due. Raise StoreBusy if another process watches the same store."""
        options, watch_list, stop = self._options, self._watch_list, self._stop
        scheduler = watch_list.scheduler(
            every=options.every, budget=options.budget, policy=options.policy, once=options.once
        )
        result = WatchResult(scheduler)
        with watch_list.keep_running(stop) as claim:
            log = watch_list.event_log(stop)
            with self._readers(log) as listeners, Publisher(log, listeners, stop) as publisher:
                planner = self._watch(claim, scheduler, publisher, result)
                result.stopped = stop.requested
                if result.stopped:
                    planner.end(once=options.once)
                    # counted now: what becomes due while the readers finish is for the next run anyway
                    with suppress(StoreUnavailable):
                        result.left = planner.left(once=options.once)
        if not result.stopped:
            planner.end(once=options.once)
        return result

    def _watch(self, claim: Claim, scheduler: Scheduler, publisher: Publisher, result: WatchResult) -> Planner:
        """Check pages, and crawl sites in between: two pipelines would not know of each other's requests to a host."""
        watch_list, stop, once = self._watch_list, self._stop, self._options.once

        def pass_on(batch: Recorded) -> None:
            scheduler.record_lifetimes(batch.outcomes)
            publisher.note_findings(batch)
            result.found.update([outcome.verdict for outcome in batch.outcomes])
            self._recorded(batch)

        for sentence in () if once else watch_list.shortages(self._options.budget):
            self._remark(sentence)
        rounds = watch_list.rounds(stop, self._remark, once=once)
        changed = retry_while_busy(rounds.go, stop, watch_list.be_next, self._remark) if once else []
        publisher.wake()
        planner: Planner | None = None
        memory = MemoryTrimmer()
        while True:
            with watch_list.keep_checking(pass_on, claim=claim, stop=stop, slow=self._slow) as running:
                if planner is None:
                    planner = watch_list.planner(scheduler, running.feed, stop, self._remark, slow=self._slow)
                else:
                    planner.continue_with(running.feed)
                if changed:
                    # if it fails they are checked all the same, when they are due
                    with suppress(StoreBusy, StoreLocked, StoreUnavailable):
                        running.feed.offer(watch_list.watched(changed))
                if once:
                    retry_while_busy(planner.offer_patiently, stop, watch_list.be_next, self._remark)
                while not once and running.at_work and not rounds.due():
                    running.wait(planner.tick())
                    memory.trim()
                if not once and not stop.requested:
                    planner.withdraw()
            result.postponed = running.put_off
            if once or stop.requested:
                return planner
            changed = []
            with suppress(StoreBusy, StoreUnavailable):
                changed = rounds.go(_CRAWL_SECONDS)
            publisher.wake()


class _FirstSlowHost:
    """Reports the first host whose pages take long, and no other: one example explains it."""

    def __init__(self, report: Callable[[str, int, float], None]) -> None:
        self._report = report
        self._done = False

    def report(self, host: str, waiting: int, delay: float) -> None:
        if not self._done:
            self._done = True
            self._report(host, waiting, delay)


class Remarks:
    """Logs and passes on a sentence unless it was the last one: the state of a watcher stays the same for long."""

    def __init__(self, remark: Callable[[str], None]) -> None:
        self._remark = remark
        self._last = ""

    def __repr__(self) -> str:
        return f"<Remarks last={self._last!r}>"

    def add(self, sentence: str) -> None:
        """Pass on a sentence about the state of a watcher, if that has changed."""
        if sentence != self._last:
            self._last = sentence
            _LOG.info("state of the run: %s", sentence)
            self._remark(sentence)


READER = "library"  # the name of this reader of the event log


class _Events:
    """A watcher in a thread of its own, and the reader of its events."""

    def __init__(self, watch_list: WatchList, options: WatchOptions, stop: Stop) -> None:
        self.reader: EventReader | None = None
        self.error: Exception | None = None
        self._ended = False
        self._least = options.least
        self._changed = threading.Event()
        self._watcher = Watcher(watch_list, options, self._opened, stop, remark=lambda _: None)
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)
        self._thread.start()

    @contextmanager
    def _opened(self, log: EventLog) -> Iterator[Sequence[EventListener]]:
        self.reader = log.reader(READER, self._least)
        yield [self]

    def wake(self) -> None:
        self._changed.set()

    def _run(self) -> None:
        try:
            self._watcher.run()
        except Exception as error:  # noqa: BLE001 raised where the events are read
            self.error = error
        finally:
            self._ended = True
            self._changed.set()

    def wait(self) -> bool:
        """Wait until there may be new events; return whether the watcher is still at work."""
        self._changed.wait()
        self._changed.clear()
        return not self._ended

    def join(self) -> None:
        self._thread.join()


def watch_events(watch_list: WatchList, options: WatchOptions, stop: Stop) -> Iterator[Event]:
    """Yield the events of a watcher until it is stopped or the iterator is closed; raise what ended it otherwise."""
    events = _Events(watch_list, options, stop)
    try:
        at_work = True
        while at_work:
            at_work = events.wait()
            while events.reader is not None and (found := events.reader.read()):
                for event in found:
                    yield event
                    events.reader.advance(event)
                    if stop.requested:
                        at_work = False
                        break
                if stop.requested:
                    break
    finally:
        stop.request()
        events.join()
    if events.error is not None:
        raise events.error
