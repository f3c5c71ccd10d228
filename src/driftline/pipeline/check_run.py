"""Runs over watched pages: once (`check`), or for as long as pages are offered (`run`)."""

from __future__ import annotations

import logging
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from driftline.durations import utc
from driftline.errors import StoreError, StoreUnavailable
from driftline.fetch.failures import NOTHING
from driftline.model.change import Change, Importance
from driftline.model.outcome import Changed, Failed, Proof, Unchanged, Verdict
from driftline.pipeline.browser_lane import BrowserLane
from driftline.pipeline.confirmer import Confirmer
from driftline.pipeline.consumer import Steps
from driftline.pipeline.grouping import changes_of, events_of
from driftline.pipeline.pipeline import Pipeline, Stages, StallReporter, open_workers
from driftline.pipeline.sources import LinkQueue
from driftline.pipeline.stop import Ending
from driftline.store.locks import patiently

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from driftline.capacity import ResourceUse
    from driftline.detection.compare import Versions
    from driftline.detection.worker_pool import WorkerPool
    from driftline.fetch.failures import Blocked
    from driftline.fetch.origins import Source
    from driftline.fetch.politeness import PoliteLinks
    from driftline.fetch.robots_cache import Records
    from driftline.model.event import Danger, Event, Ignored, Turned
    from driftline.model.outcome import Link, Old, Outcome, Recorded
    from driftline.model.page import BlockedPage, Failure
    from driftline.pipeline.browser_lane import BrowserRecords, PageRenderer
    from driftline.pipeline.plan import PipelineName, Plan
    from driftline.pipeline.queue import QueueStatistics
    from driftline.pipeline.recorder import Recorder, Sink
    from driftline.pipeline.sources import Feed
    from driftline.pipeline.stop import Stop
    from driftline.pipeline.topologies import Topology
    from driftline.pipeline.watchdog import Stall
    from driftline.settings import Settings
    from driftline.store.events import Group
    from driftline.store.outbox import Unreported

_LOG = logging.getLogger(__name__)


class RunLedger(Protocol):
    """Knows what is left to check, and records outcomes."""

    def record(self, run_id: int, outcomes: Sequence[Outcome]) -> Recorded:
        """Commit these outcomes in one transaction. Returns those of them that were not recorded before."""

    def begin(self, page_ids: Sequence[int] | None, *, fresh: bool = False) -> tuple[int, bool]:
        """Return the run to work on, and whether it continues one that was interrupted."""

    def found_before(self) -> tuple[list[Change], list[Turned], list[Danger], list[Ignored]]:
        """Return what earlier runs over the same pages recorded and could not report, as they failed or were killed."""

    def begin_without_end(self, *, idle: bool = False) -> int:
        """Begin a run that checks pages as they come; an `idle` one calls `note_right_taken` before it checks any."""

    def note_right_taken(self, run_id: int) -> bool:
        """Note that the run has the right to check, and return whether others may have sent requests before."""

    def remain(self, run_id: int, page_ids: Sequence[int] | None) -> int:
        """Return how many pages the run has not recorded yet."""

    def remaining(self, run_id: int, page_ids: Sequence[int] | None) -> Iterator[Link]:
        """Return the links of the pages that the run has not recorded yet."""

    def links(self, page_ids: Sequence[int]) -> list[Link]:
        """Return the links of these pages as they are now, without those that are not watched any more."""

    def finish(self, run_id: int) -> None:
        """Mark the run as complete."""

    def note_interruption(self, run_id: int) -> None:
        """Note that requests were sent until now, and that the run continues."""

    def publish(self, run_id: int, group: Group, found: Unreported) -> None:
        """Add what the run found to the event log, with what `found_before` returns."""

    def end(self, run_id: int, *, reported: bool = False) -> None:
        """Note that the run sends no more requests, complete or not, and that what it recorded is `reported`."""


class RightToCheck(Protocol):
    """The right to check pages."""

    def holds(self) -> bool:
        """Return whether it can be relied on now."""

    def regain(self, stopped: Callable[[], bool]) -> None:
        """Take it again, waiting for it. Raises RunStopped if the run is `stopped` before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedPage:
    """A page whose check failed, and why."""

    url: str
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run found.

    `changed` counts pages with an important or a minor change, `minor` the latter alone, and `noisy` the unchanged
    pages that differ in noise. `left` counts those that a stopped run did not get to, or that were postponed because
    their hosts asked for a pause: `quiet` names these hosts, and until when. Pages that are
    `blocked` as unsafe were not fetched. The `changes` and `events` include what earlier runs over the same pages had
    recorded when they failed or were killed, before they could report it. `resources` is how the bounded resources of
    the run were used: at its end none is in use.
    """

    pages: int
    new: int
    changed: int
    minor: int
    unchanged: int
    noisy: int
    failed: int
    left: int
    seconds: float
    effective_ms: float
    bytes: int
    pipeline: PipelineName
    producers: int
    slots: int
    consumers: int
    comparers: int
    continued: bool
    changes: list[Change] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    queues: list[QueueStatistics] = field(default_factory=list)
    quiet: dict[str, datetime] = field(default_factory=dict)
    blocked: list[BlockedPage] = field(default_factory=list)
    failures: list[FailedPage] = field(default_factory=list)
    resources: list[ResourceUse] = field(default_factory=list)


class _PatientVersions:
    """Waits for a store that cannot be reached until the pipeline is to end, instead of fetching the pages again."""

    def __init__(self, versions: Versions, ending: Ending) -> None:
        self._versions = versions
        self._ending = ending

    def recall(self, page_ids: Sequence[int]) -> dict[int, Old]:
        return patiently(lambda: self._versions.recall(page_ids), self._is_over)

    def recall_contents(self, old: Mapping[int, Old], hosts: Mapping[int, str]) -> dict[int, Old]:
        return patiently(lambda: self._versions.recall_contents(old, hosts), self._is_over)

    def _is_over(self) -> bool:
        return self._ending.requested


class _CheckSink:
    """Records the outcomes of a check, and counts them for its report."""

    def __init__(
        self, ledger: RunLedger, run_id: int, tally: RunTally, recorded: Callable[[Sequence[Outcome]], None] | None
    ) -> None:
        self._ledger = ledger
        self._run_id = run_id
        self._tally = tally
        self._recorded = recorded

    def record(self, outcomes: Sequence[Outcome]) -> None:
        recorded = self._ledger.record(self._run_id, outcomes)
        self._tally.add(recorded)
        if self._recorded is not None:
            self._recorded(recorded.outcomes)

    def settle(self, outcomes: Sequence[Outcome]) -> None:
        """Do nothing: what is recorded is not among the links that remain."""


class _FeedSink:
    """Records the outcomes of pages that were offered to a feed, and lets the feed offer them again."""

    def __init__(self, ledger: RunLedger, run_id: int, feed: Feed, recorded: Callable[[Recorded], None]) -> None:
        self._ledger = ledger
        self._run_id = run_id
        self._feed = feed
        self._recorded = recorded

    def record(self, outcomes: Sequence[Outcome]) -> None:
        self._recorded(self._ledger.record(self._run_id, outcomes))

    def settle(self, outcomes: Sequence[Outcome]) -> None:
        self._feed.settle([outcome.document.link.page_id for outcome in outcomes])


class _DelaysAfterOthers:
    """Begins the delays of hosts whenever another process had the right to check: it may have contacted them."""

    def __init__(self, ledger: RunLedger, run_id: int, links: PoliteLinks) -> None:
        self._ledger = ledger
        self._run_id = run_id
        self._links = links

    def right_taken(self) -> None:
        if self._ledger.note_right_taken(self._run_id):
            self._links.delay_after_other_runs()


class _CheckStages:
    """Builds the browser lane, and the confirming fetch if it is set, of a pipeline that checks pages."""

    def __init__(
        self, steps: Steps, settings: Settings, stop: Stop, rendered: BrowserRecords, blocked: Blocked,
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self._steps = steps
        self._settings = settings
        self._stop = stop
        self._rendered = rendered
        self._blocked = blocked
        self._clock = clock

    def build(self, recorder: Recorder[Outcome], links: PoliteLinks) -> Stages[Outcome]:
        settings = self._settings
        confirmer = Confirmer(self._steps, recorder, settings, links, self._blocked) if settings.confirm else None
        browser = BrowserLane(
            self._steps, recorder, confirmer or recorder, links, settings, self._stop, self._rendered, self._renderer
        )
        return Stages(browser=browser, confirmer=confirmer)

    def _renderer(self) -> PageRenderer:
        # most runs need no browser, and none of what drives it
        from driftline.fetch.browser.renderer import Renderer

        return Renderer(self._settings, self._clock, blocked=self._blocked)


class Run:
    """Checks watched pages through a pipeline. It is used once."""

    def __init__(
        self, ledger: RunLedger, versions: Versions, rendered: BrowserRecords, records: Records, settings: Settings,
        plan: Plan, stop: Stop, clock: Callable[[], float] = time.time, blocked: Blocked = NOTHING,
        stalled: Callable[[Stall], None] = lambda _: None, excused: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        self._stalls = StallReporter(stalled, excused)
        self._ledger = ledger
        self._rendered = rendered
        self._records = records
        self._blocked = blocked
        self._versions = versions
        self._settings = settings
        self._plan = plan
        self._stop = stop
        self._clock = clock
        self._pipelines = 0  # begun; more than one after an outage of the store

    def __repr__(self) -> str:
        return f"<Run {self._plan.pipeline} pipelines={self._pipelines} {self._stop!r}>"

    def check(
        self, page_ids: Sequence[int] | None, right: RightToCheck, *, fresh: bool,
        recorded: Callable[[Sequence[Outcome]], None] | None = None,
        begun: Callable[[int, bool], None] | None = None, slow: Callable[[str, int, float], None] | None = None,
        barred: Mapping[int, BlockedPage] | None = None, least: Importance | None = None,
    ) -> Report:  # fmt: skip
        """Check these pages, or all of them, but for those `barred`. The clock runs until the last is committed.

        `recorded` gets every batch of outcomes once it is committed. The report has what is at least as important as
        `least`, or as the settings say.
        """
        ledger = self._ledger
        started = time.perf_counter()
        run_id, continued = ledger.begin(page_ids, fresh=fresh)
        left_out = dict(barred or {})
        if left_out and page_ids is not None:
            left_out = {page_id: left_out[page_id] for page_id in page_ids if page_id in left_out}
        pages = _PagesOfRun(ledger, run_id, page_ids, left_out)
        if begun is not None:
            begun(pages.count(), continued)
        tally = RunTally(least or Importance(self._settings.min_importance))
        tally.recall(*ledger.found_before())
        sink = _CheckSink(ledger, run_id, tally, recorded)
        reported = False
        try:
            ended = self._check_all(pages, right, run_id, sink, slow)
            left = pages.count() if self._stop.requested or ended.quiet else 0
            with suppress(StoreError):
                # what is not published now is left to the next run
                ledger.publish(run_id, events_of, tally.found())
            if not left or not self._stop.requested:
                ledger.finish(run_id)  # pages whose hosts asked for a pause must not hold up all others
            reported = True
        finally:
            ledger.end(run_id, reported=reported)
        seconds = time.perf_counter() - started
        return tally.report(
            ended, plan=self._plan, left=left, seconds=seconds, continued=continued, blocked=list(left_out.values())
        )

    def _check_all(
        self, pages: _PagesOfRun, right: RightToCheck, run_id: int, sink: Sink[Outcome],
        slow: Callable[[str, int, float], None] | None,
    ) -> _Ended:  # fmt: skip
        """Check every page, with another pipeline if an outage of the store cut one short."""
        while True:
            try:
                with open_workers(self._settings) as workers:
                    pipeline = self._pipeline(LinkQueue(pages.links()), sink, workers, right.holds, slow)
                    with pipeline:
                        topology = pipeline.run()
            except StoreUnavailable:
                if self._stop.requested:
                    raise
                right.regain(lambda: self._stop.requested)
                self._ledger.note_interruption(run_id)  # the next pipeline does not know when this one sent requests
                _LOG.info("pipeline starts again: the store can be used", extra={"run": run_id})
            else:
                return _Ended(topology, pipeline.links.paused_hosts, pipeline.resources())

    def check_offered(
        self, feed: Feed, recorded: Callable[[Recorded], None], slow: Callable[[str, int, float], None] | None = None
    ) -> None:
        """Check what the feed is offered, until it ends or the run is stopped. `recorded` gets every batch."""
        run_id = self._ledger.begin_without_end(idle=True)
        try:
            sink = _FeedSink(self._ledger, run_id, feed, recorded)
            with (
                open_workers(self._settings) as workers,
                self._pipeline(feed, sink, workers, feed.may_fetch, slow) as pipeline,
            ):
                delays = _DelaysAfterOthers(self._ledger, run_id, pipeline.links)
                patiently(lambda: feed.notify_of_right(delays), lambda: self._stop.requested)
                pipeline.run()
            self._ledger.finish(run_id)
        finally:
            self._ledger.end(run_id)

    def _pipeline(
        self, source: Source, sink: Sink[Outcome], workers: WorkerPool, may_fetch: Callable[[], bool],
        slow: Callable[[str, int, float], None] | None,
    ) -> Pipeline[Outcome]:  # fmt: skip
        self._pipelines += 1
        settings, ending = self._settings, Ending(self._stop)
        steps = Steps(_PatientVersions(self._versions, ending), workers, settings.max_body, twice=settings.confirm)
        stages = _CheckStages(steps, settings, self._stop, self._rendered, self._blocked, self._clock)
        return Pipeline(
            source, steps, sink, plan=self._plan, settings=settings, ending=ending, workers=workers,
            hosts=self._records, relink=self._ledger.links, stages=stages, may_fetch=may_fetch, slow=slow,
            stalls=self._stalls, blocked=self._blocked, clock=self._clock,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Ended:
    """What a pipeline leaves behind for the report."""

    topology: Topology
    quiet: dict[str, float]
    resources: list[ResourceUse]


class _PagesOfRun:
    """The pages that a run has not recorded yet, without those that are left out as unsafe."""

    def __init__(
        self, ledger: RunLedger, run_id: int, page_ids: Sequence[int] | None, left_out: Collection[int]
    ) -> None:
        self._ledger = ledger
        self._run_id = run_id
        self._page_ids = page_ids
        self._left_out = left_out

    def count(self) -> int:
        return max(0, self._ledger.remain(self._run_id, self._page_ids) - len(self._left_out))

    def links(self) -> Iterator[Link]:
        remaining = self._ledger.remaining(self._run_id, self._page_ids)
        return (link for link in remaining if link.page_id not in self._left_out)


class RunTally:
    """Counts outcomes and keeps their changes: for runs that end, since it grows with them.

    It reports what is at least as important as `least`.
    """

    def __init__(self, least: Importance = Importance.IMPORTANT) -> None:
        self._least = least
        self.counts: Counter[Verdict] = Counter()
        self.bytes = 0  # of the documents, on the wire
        self.minor = 0  # changed pages whose change is a minor one
        self.noisy = 0  # pages of which only noise changed
        self.failures: list[FailedPage] = []
        self._changes: list[Change] = []
        self._turned: list[Turned] = []
        self._dangers: list[Danger] = []
        self._ignored: list[Ignored] = []

    def add(self, recorded: Recorded) -> None:
        """Count outcomes that were recorded."""
        outcomes = recorded.notable
        self.counts[Verdict.UNCHANGED] += len(recorded.outcomes) - len(outcomes)
        self.counts.update([outcome.verdict for outcome in outcomes])
        self.bytes += sum([outcome.document.size for outcome in recorded.outcomes])
        self.noisy += sum([isinstance(one, Unchanged) and one.proof is Proof.NOISE for one in outcomes])
        changes = [one.change for one in outcomes if isinstance(one, Changed)]
        self.minor += sum([change.importance is Importance.MINOR for change in changes])
        failed = [outcome for outcome in outcomes if isinstance(outcome, Failed)]
        self.failures += [FailedPage(url=one.document.link.url, failure=one.failure) for one in failed]
        self._changes += changes_of(outcomes)
        self._turned += recorded.turned
        self._dangers += recorded.dangers
        self._ignored += recorded.ignored

    def found(self) -> Unreported:
        """Return what was recorded, and what `recall` added."""
        return self._changes, self._turned, self._dangers, self._ignored

    def recall(
        self, changes: Sequence[Change], turned: Sequence[Turned], dangers: Sequence[Danger],
        ignored: Sequence[Ignored],
    ) -> None:  # fmt: skip
        """Keep what earlier runs recorded and did not report. Its pages are not counted: they were checked then."""
        self._changes += changes
        self._turned += turned
        self._dangers += dangers
        self._ignored += ignored

    def report(
        self, ended: _Ended, *, plan: Plan, left: int, seconds: float, continued: bool, blocked: list[BlockedPage]
    ) -> Report:
        """Return the report of a run that ended so."""
        counts, topology = self.counts, ended.topology
        pages = counts.total()
        return Report(
            pages=pages, new=counts[Verdict.NEW], changed=counts[Verdict.CHANGED], minor=self.minor,
            unchanged=counts[Verdict.UNCHANGED], noisy=self.noisy, failed=counts[Verdict.FAILED], left=left,
            seconds=seconds, effective_ms=seconds / max(pages, 1) * 1000, bytes=self.bytes, pipeline=plan.pipeline,
            producers=topology.producers, slots=topology.slots, consumers=topology.consumers,
            comparers=topology.comparers, continued=continued, changes=self.changes(), events=self.events(),
            queues=topology.queues, quiet={host: utc(until) for host, until in ended.quiet.items()},
            blocked=blocked, failures=self.failures, resources=ended.resources,
        )  # fmt: skip

    def changes(self) -> list[Change]:
        """Return the changes that are important enough, in the order in which they were recorded."""
        return [change for change in self._changes if change.importance.reaches(self._least)]

    def events(self) -> list[Event]:
        """Return the events that are important enough: changes, the important ones first, then what else was found."""
        changes = sorted(self._changes, key=lambda change: change.importance.rank)
        found = events_of(changes, self._turned, self._dangers, self._ignored)
        return [event for event in found if event.importance.reaches(self._least)]
