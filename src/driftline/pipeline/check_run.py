"""One run: what there is to check goes through a pipeline, and what came of it is recorded."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from driftline.detection.worker_pool import WorkerPool
from driftline.errors import RunStalled, StoreError, StoreUnavailable
from driftline.fetch.failures import NOTHING
from driftline.fetch.politeness import PoliteLinks
from driftline.model import Change, Matter, Proof, Turned, Verdict
from driftline.pipeline import recorder as recording
from driftline.pipeline.browser_lane import BrowserLane
from driftline.pipeline.confirmer import Confirmer
from driftline.pipeline.consumer import Steps
from driftline.pipeline.grouping import changes_of, dangers_by, events_of, turned_by
from driftline.pipeline.recorder import Recorder
from driftline.pipeline.sources import LinkQueue
from driftline.pipeline.threads import Parts
from driftline.pipeline.topologies import Wired, cores, wire
from driftline.pipeline.watchdog import Stall, Watchdog
from driftline.runtime import at_full_speed
from driftline.store.locks import patiently

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from driftline.capacity import ResourceUse
    from driftline.detection.compare import Versions
    from driftline.fetch.failures import Blocked
    from driftline.fetch.link_source import Source
    from driftline.fetch.robots_cache import Records
    from driftline.model import Barred, Danger, Event, Failure, Link, Old, Outcome, Turned
    from driftline.pipeline.browser_lane import BrowserRecords, PageRenderer
    from driftline.pipeline.plan import Plan
    from driftline.pipeline.queue import QueueStatistics
    from driftline.pipeline.sources import Feed
    from driftline.pipeline.stop import Stop
    from driftline.settings import Settings
    from driftline.store.events import Group


class RunLedger(recording.OutcomeLedger, Protocol):
    """Where a run learns what is left to check, and where it is recorded."""

    def begin(self, page_ids: Sequence[int] | None, *, fresh: bool = False) -> tuple[int, bool]:
        """The run to work on, and whether it is one that was cut short and goes on now."""

    def found_before(self) -> tuple[list[Change], list[Turned], list[Danger]]:
        """What earlier runs over the same pages recorded and could not report, for they failed or were killed."""

    def begin_without_end(self, *, idle: bool = False) -> int:
        """A run that checks pages as they come; an `idle` one calls `take_turn` before it checks any."""

    def take_turn(self, run_id: int) -> bool:
        """Note that the run has the right to check, and return whether others may have sent requests before."""

    def remain(self, run_id: int, page_ids: Sequence[int] | None) -> int:
        """How many pages the run has not recorded yet."""

    def remaining(self, run_id: int, page_ids: Sequence[int] | None) -> Iterator[Link]:
        """The links of the pages that the run has not recorded yet."""

    def links(self, page_ids: Sequence[int]) -> list[Link]:
        """The links of these pages as they are now, without those that are watched no more."""

    def finish(self, run_id: int) -> None:
        """Mark the run as complete."""

    def note_interruption(self, run_id: int) -> None:
        """Note that requests were sent until now, and that the run goes on."""

    def publish(self, run_id: int, group: Group) -> None:
        """Add what the run found to the event log, with what `found_before` returns."""

    def end(self, run_id: int, *, reported: bool = False) -> None:
        """Note that the run sends no more requests, complete or not, and that what it recorded is `reported`."""


class RightToCheck(Protocol):
    """The right to check pages."""

    def holds(self) -> bool:
        """Whether it can be relied on now."""

    def regain(self, stopped: Callable[[], bool]) -> None:
        """Take it again, waiting for it; RunStopped if the run is stopped before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedPage:
    """A page whose check failed, and why."""

    url: str
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run found.

    `noisy` counts the unchanged pages that differ in noise, `left` those that a stopped run did not get to, or that
    were put off because their hosts want to be left alone: `quiet` names these, and until when. Those that are
    `blocked` as unsafe were not fetched. The `changes` and `events` include what earlier runs over the same pages had
    recorded when they failed or were killed, before they could report it. `resources` is how the bounded resources of
    the run were used: at its end none is in use.
    """

    pages: int
    new: int
    changed: int
    unchanged: int
    noisy: int
    failed: int
    left: int
    seconds: float
    effective_ms: float
    bytes: int
    pipeline: str
    producers: int
    slots: int
    consumers: int
    comparers: int
    continued: bool
    changes: list[Change] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    queues: list[QueueStatistics] = field(default_factory=list)
    quiet: dict[str, float] = field(default_factory=dict)
    blocked: list[Barred] = field(default_factory=list)
    failures: list[FailedPage] = field(default_factory=list)
    resources: list[ResourceUse] = field(default_factory=list)


class _PatientVersions:
    """Versions of a store that is waited for, until it is `stopped`: a lost session is no reason to fetch again."""

    def __init__(self, versions: Versions, stopped: Callable[[], bool]) -> None:
        self._versions = versions
        self._stopped = stopped

    def recall(self, page_ids: Sequence[int]) -> dict[int, Old]:
        return patiently(lambda: self._versions.recall(page_ids), self._stopped)

    def host_memories(self, hosts: Collection[str]) -> dict[str, bytes]:
        return patiently(lambda: self._versions.host_memories(hosts), self._stopped)


class Run:
    """The parts of a run, put together. It is used once."""

    def __init__(
        self, ledger: RunLedger, versions: Versions, rendered: BrowserRecords, records: Records, settings: Settings,
        plan: Plan, stop: Stop, clock: Callable[[], float] = time.time, blocked: Blocked = NOTHING,
        stalled: Callable[[Stall], None] = lambda _: None, excused: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        self._stalled = stalled
        self._excused = excused
        self._ledger = ledger
        self._rendered = rendered
        self._records = records
        self._blocked = blocked
        self._versions = versions
        self._settings = settings
        self._plan = plan
        self._stop = stop
        self._clock = clock

    def check(
        self, page_ids: Sequence[int] | None, right: RightToCheck, *, fresh: bool,
        told: Callable[[Sequence[Outcome]], None] | None,
        begun: Callable[[int, bool], None] | None, slow: Callable[[str, int, float], None] | None = None,
        barred: Mapping[int, Barred] | None = None,
    ) -> Report:  # fmt: skip
        """Check these pages, or all of them, but for those `barred`. The clock runs until the last is committed."""
        ledger, plan = self._ledger, self._plan
        started = time.perf_counter()
        run_id, continued = ledger.begin(page_ids, fresh=fresh)
        left_out = dict(barred or {})
        if left_out and page_ids is not None:
            left_out = {page_id: left_out[page_id] for page_id in page_ids if page_id in left_out}

        def remain() -> int:
            return max(0, ledger.remain(run_id, page_ids) - len(left_out))

        if begun is not None:
            begun(remain(), continued)
        tally = RunTally()
        tally.recall(*ledger.found_before())

        def tell(outcomes: Sequence[Outcome]) -> None:
            tally.add(outcomes)
            if told is not None:
                told(outcomes)

        def links() -> Iterator[Link]:
            return (link for link in ledger.remaining(run_id, page_ids) if link.page_id not in left_out)

        reported = False
        try:
            parts, wired = self._check_all(links, right, run_id, tell, slow)
            quiet = parts.links.paused_hosts
            left = remain() if self._stop.requested or quiet else 0
            with suppress(StoreError):
                ledger.publish(run_id, events_of)  # what is not published now is left to the next run
            if not left or not self._stop.requested:
                ledger.finish(run_id)  # those whose hosts want to be left alone must not hold up all others
            reported = True
        finally:
            ledger.end(run_id, reported=reported)
        seconds = time.perf_counter() - started
        counts = tally.counts
        pages = counts.total()
        return Report(
            pages=pages, new=counts[Verdict.NEW], changed=counts[Verdict.CHANGED], unchanged=counts[Verdict.UNCHANGED],
            noisy=tally.noisy, failed=counts[Verdict.FAILED], left=left, seconds=seconds,
            effective_ms=seconds / max(pages, 1) * 1000, bytes=tally.bytes, pipeline=plan.pipeline,
            producers=wired.producers, slots=wired.slots, consumers=wired.consumers, comparers=wired.comparers,
            continued=continued, changes=tally.changes(), events=tally.events(),
            queues=wired.queues, quiet=quiet, blocked=list(left_out.values()), failures=tally.failures,
            resources=parts.resources(),
        )  # fmt: skip

    def _check_all(
        self, links: Callable[[], Iterator[Link]], right: RightToCheck, run_id: int,
        tell: Callable[[Sequence[Outcome]], None], slow: Callable[[str, int, float], None] | None,
    ) -> tuple[Parts, Wired]:  # fmt: skip
        """Check every link, with another pipeline if an outage of the store cut one short."""
        while True:
            try:
                return self._wired(LinkQueue(links()), run_id, tell, right.holds, slow=slow)
            except StoreUnavailable:
                if self._stop.requested:
                    raise
                right.regain(lambda: self._stop.requested)
                self._ledger.note_interruption(run_id)  # the next pipeline knows nothing of what this one asked for

    def check_offered(
        self, feed: Feed, told: Callable[[Sequence[Outcome]], None],
        slow: Callable[[str, int, float], None] | None = None,
    ) -> None:  # fmt: skip
        """Check what the feed is offered, until it ends or the run is stopped; `told` as in `Recorder`."""

        def settle(outcomes: Sequence[Outcome]) -> None:
            feed.settle([outcome.document.link.page_id for outcome in outcomes])

        def follow_turns(links: PoliteLinks) -> None:
            def begin_turn() -> None:
                if self._ledger.take_turn(run_id):
                    links.delay_after_other_runs()

            patiently(lambda: feed.on_turn(begin_turn), lambda: self._stop.requested)

        run_id = self._ledger.begin_without_end(idle=True)
        try:
            self._wired(feed, run_id, told, feed.may_fetch, settle, slow, follow_turns)
            self._ledger.finish(run_id)
        finally:
            self._ledger.end(run_id)

    @contextmanager
    def _workers(self) -> Iterator[WorkerPool]:
        settings = self._settings
        workers = WorkerPool(most=cores(), deadline=settings.worker_deadline, memory=settings.worker_memory)
        try:
            yield workers
        finally:
            workers.close()

    def _renderer(self) -> PageRenderer:
        # most runs need no browser, and none of what drives it
        from driftline.fetch.browser.renderer import Renderer as Chromium

        return Chromium(self._settings, self._clock, blocked=self._blocked)

    def _wired(
        self, source: Source, run_id: int, told: Callable[[Sequence[Outcome]], None], may_fetch: Callable[[], bool],
        settled: Callable[[Sequence[Outcome]], None] | None = None,
        slow: Callable[[str, int, float], None] | None = None,
        follow_turns: Callable[[PoliteLinks], None] = lambda _: None,
    ) -> tuple[Parts, Wired]:  # fmt: skip
        """Put the parts together and let them work until the source is exhausted and all that came of it recorded.

        Before they do, `follow_turns` is called with the links, to have hosts rest after turns of other processes.
        StoreUnavailable if it `may_fetch` no more, RunStalled if nothing moves any more.
        """
        settings = self._settings

        def tell(outcomes: Sequence[Outcome]) -> None:
            watchdog.progress()
            told(outcomes)
            links.flush()

        with ExitStack() as watching, ExitStack() as ending:
            workers = ending.enter_context(self._workers())
            recorder = Recorder(self._ledger, run_id, tell, settled, lambda: self._stop.requested)
            ending.callback(recorder.close)
            links = PoliteLinks(
                source, settings, self._records, links=self._ledger.links, record=recorder.add, clock=self._clock,
                slow=slow, may_fetch=may_fetch,
            )  # fmt: skip
            # however the run ends: the pause that a host asked for may be in no outcome that is recorded
            ending.callback(links.end, lambda: self._stop.requested or recorder.given_up)
            follow_turns(links)
            versions = _PatientVersions(self._versions, lambda: self._stop.requested or bool(parts.cut_short))
            steps = Steps(versions, workers, settings.max_body, twice=settings.confirm)
            confirmer = Confirmer(steps, recorder, settings, links, self._blocked)
            ending.callback(confirmer.close)
            rendering = BrowserLane(
                steps, recorder, confirmer, links, settings, self._stop, self._rendered, self._renderer
            )
            ending.callback(rendering.close)
            parts = Parts(
                links=links,
                steps=steps,
                workers=workers,
                recorder=recorder,
                confirmer=confirmer,
                rendering=rendering,
                settings=settings,
                stop=self._stop,
                blocked=self._blocked,
                clock=self._clock,
            )

            def stalled(stall: Stall) -> None:
                # first of all: to report it takes the store, which may be what everybody waits for
                parts.cut(RunStalled(f"Nothing was recorded for {stall.seconds:.0f} s although there is work to do."))
                parts.let_go()
                self._stalled(stall)

            watchdog = Watchdog(parts, settings.stall_after, stalled, self._excused)
            watching.enter_context(watchdog.watching())
            with at_full_speed():
                wired = wire(self._plan, parts)
        if parts.cut_short:
            raise parts.cut_short[0]
        return parts, wired


class RunTally:
    """Counts outcomes and keeps their changes: for runs that end, since it grows with them."""

    def __init__(self) -> None:
        self.counts: Counter[Verdict] = Counter()
        self.bytes = 0  # of the documents, on the wire
        self.noisy = 0  # pages of which only noise changed
        self.failures: list[FailedPage] = []
        self._changes: list[Change] = []
        self._turned: list[Turned] = []
        self._dangers: list[Danger] = []

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """These outcomes are recorded."""
        self.counts.update([outcome.verdict for outcome in outcomes])
        self.bytes += sum([outcome.document.size for outcome in outcomes])
        self.noisy += sum([outcome.proof is Proof.NOISE for outcome in outcomes])
        self.failures += [
            FailedPage(url=outcome.document.link.url, failure=outcome.failure)
            for outcome in outcomes
            if outcome.failure is not None
        ]
        self._changes += changes_of(outcomes)
        self._turned += turned_by(outcomes)
        self._dangers += dangers_by(outcomes)

    def recall(self, changes: Sequence[Change], turned: Sequence[Turned], dangers: Sequence[Danger]) -> None:
        """Keep what earlier runs recorded and did not report. Its pages are not counted: they were checked then."""
        self._changes += changes
        self._turned += turned
        self._dangers += dangers

    def changes(self) -> list[Change]:
        """The changes that matter, in the order in which they were recorded."""
        return [change for change in self._changes if change.verdict is Matter.MEANINGFUL]

    def events(self) -> list[Event]:
        """What there is to tell: changes, those that matter first, then pages that fail or recovered, then warnings."""
        changes = sorted(self._changes, key=lambda change: change.verdict is not Matter.MEANINGFUL)
        return events_of(changes, self._turned, self._dangers)
