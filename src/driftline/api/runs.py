"""Starting what fetches pages: one check of them, a run without an end, a crawl. Internal, as `workspace` is."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from driftline.api.workspace import rate_of
from driftline.durations import parse_interval
from driftline.errors import BadSetting, StoreBusy, StoreUnavailable
from driftline.model.outcome import Failed, Verdict
from driftline.model.page import POLICIES
from driftline.pipeline.plan import Plan
from driftline.pipeline.stop import Stop
from driftline.store.history import RenderedVersions
from driftline.store.host_records import HostRecords
from driftline.store.locks import patiently
from driftline.store.process_locks import RegainedRight
from driftline.urls import without_password
from driftline.urls.tracking import Tracking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from driftline.api.workspace import Workspace
    from driftline.crawl.crawl_options import Options
    from driftline.crawl.recrawl import Rounds
    from driftline.crawl.report import CrawlReport
    from driftline.crawl.survey_steps import CrawlOutcome
    from driftline.model.change import Importance
    from driftline.model.outcome import Link, Outcome, Recorded
    from driftline.pipeline.check_run import Report, Run
    from driftline.pipeline.sources import Feed
    from driftline.schedule.scheduler import Scheduler
    from driftline.settings import Settings
    from driftline.store.crawls import Begun, Site
    from driftline.store.events import EventLog
    from driftline.store.ledger import Ledger
    from driftline.store.process_locks import Claim, Having
    from driftline.watch.planner import Planner
    from driftline.watch.service import EndlessRun

    OnRecorded = Callable[[Sequence[Outcome]], None]  # gets every batch of outcomes once it is committed
    SlowHost = Callable[[str, int, float], None]  # gets a host, its waiting pages, and the seconds between two of them

_LOG = logging.getLogger(__name__)
_EARLY = 0.1  # of an interval: a job that runs every hour finds the last check some seconds less than an hour old
_CRAWL_FIGURES = ("found", "fetched", "pages", "left", "seconds")


class Runs:
    """What checks and crawls the pages of a workspace. It is the `WatchList` of the watcher."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._store = workspace.store

    def __repr__(self) -> str:
        return f"<Runs of {self._store.where}>"

    @property
    def _settings(self) -> Settings:
        return self._workspace.settings

    def check(
        self, page_ids: Sequence[int] | None, *, plan: Plan | None = None, fresh: bool = False,
        stop: Stop | None = None, recorded: OnRecorded | None = None,
        started: Callable[[int, bool], None] | None = None, slow: SlowHost | None = None,
        least: Importance | None = None,
    ) -> Report:  # fmt: skip
        """Check these pages once, or all if None, and record what is found.

        A run that was interrupted is continued unless `fresh`. `started` gets the number of pages, and whether a run is
        continued. The report has what is at least as important as `least`, or as the settings say. StoreBusy if another
        process checks pages of the same store.
        """
        plan, stop = plan or Plan(capacity=self._settings.capacity), stop or Stop()
        unsafe = self._workspace.unsafe
        with RegainedRight(self._store.right_to_check) as right:
            patiently(right.take, lambda: stop.requested)
            run, _ = self._run(plan, stop, lambda: stop.requested or not right.holds())
            barred = patiently(lambda: unsafe.pages(page_ids), lambda: stop.requested)
            _LOG.info("check started", extra={"pages": "all" if page_ids is None else len(page_ids)})
            report = run.check(
                page_ids,
                right,
                fresh=fresh,
                recorded=_logging(recorded),
                begun=started,
                slow=slow,
                barred=barred,
                least=least,
            )
        figures = {
            name: getattr(report, name) for name in ("pages", "new", "changed", "minor", "unchanged", "failed", "left")
        }
        _LOG.info("check ended", extra=figures | {"seconds": round(report.seconds, 3)})
        return report

    def _run(self, plan: Plan, stop: Stop, reading_stopped: Callable[[], bool]) -> tuple[Run, Ledger]:
        from driftline.pipeline.check_run import Run
        from driftline.store.ledger import Ledger

        workspace, store, settings = self._workspace, self._store, self._settings
        ledger = Ledger(
            store, workspace.clock, lambda: stop.requested, settings.fail_after, reading_stopped=reading_stopped
        )
        run = Run(
            ledger, workspace.repository, RenderedVersions(store, workspace.clock, reading_stopped),
            HostRecords(store, reading_stopped), settings, plan, stop, workspace.clock, workspace.unsafe,
            workspace.record_stall, store.in_trouble,
        )  # fmt: skip
        return run, ledger

    def be_next(self) -> Having:
        """Ask a run in another process to pause, for a block that checks pages. StoreBusy if another waits already."""
        return self._store.right_to_be_next()

    @contextmanager
    def keep_running(self, stop: Stop | None = None) -> Iterator[Claim]:
        """Hold the right to be the only watcher of the store for a block; StoreBusy if another process has it."""
        stop = stop or Stop()
        with ExitStack() as rights:
            take = self._store.right_to_keep_checking
            claim = patiently(lambda: rights.enter_context(take()), lambda: stop.requested)
            _LOG.info("run started", extra={"store": self._store.where})
            try:
                yield claim
            finally:
                _LOG.info("run ended", extra={"stopped": stop.requested})

    def keep_checking(
        self, recorded: Callable[[Recorded], None], *, claim: Claim | None = None, plan: Plan | None = None,
        stop: Stop | None = None, slow: SlowHost | None = None,
    ) -> EndlessRun:  # fmt: skip
        """Return a pipeline without an end, for a `with` block: it checks the pages that its feed is offered.

        Entering the block raises StoreBusy while another process watches the same store, unless the `claim` of
        `keep_running` is given; `check` may be used meanwhile. `slow` gets a host once.
        """
        from driftline.pipeline.sources import Feed
        from driftline.watch.service import EndlessRun

        plan, stop = plan or Plan(capacity=self._settings.capacity), stop or Stop()
        unsafe = self._workspace.unsafe
        patiently(unsafe.refresh, lambda: stop.requested)
        run, ledger = self._run(plan, stop, lambda: stop.requested or not feed.may_fetch())

        def links(page_ids: Sequence[int]) -> list[Link]:
            return [link for link in ledger.links(page_ids) if unsafe.why(link.url) is None]

        feed = Feed(links, self._store.right_to_check, wanted=self._store.is_process_waiting)

        def right() -> Having:
            return self._store.right_to_keep_checking() if claim is None else nullcontext(claim)

        def record(batch: Recorded) -> None:
            _log_outcomes(batch.outcomes)
            recorded(batch)

        return EndlessRun(run, feed, stop, record, right, slow)

    def scheduler(
        self, *, every: str = "1h", budget: str | None = None, policy: str | None = None, once: bool = False,
        to_look: bool = False,
    ) -> Scheduler:  # fmt: skip
        """Return what decides which page is checked next; what is None is as the settings say.

        With `once`, it offers everything that is due or nearly due, whatever the policy and the budgets. With `to_look`
        a store that can only be read will do.
        """
        from driftline.schedule.scheduler import Scheduler

        settings = self._settings
        if not to_look:
            self._store.require_writable()
        usual = "fixed" if once else settings.policy
        chosen = [one for one in POLICIES if one == (usual if policy is None else policy)]
        if not chosen:
            raise BadSetting(f"There is no policy '{policy}': use {', '.join(POLICIES)}.")
        if once and chosen != ["fixed"]:
            raise BadSetting(f"A run --once checks all that is due or new: there is nothing to choose by '{policy}'.")
        rate = rate_of(settings.budget if budget is None else budget)
        host_rate = rate_of(settings.host_budget)
        if delay := settings.shortest_delay:  # picking more than the delay allows would only fill the queues of hosts
            host_rate = min(host_rate or 1 / delay, 1 / delay)
        return Scheduler(
            self._store, policy=chosen[0], budget=None if once else rate, host_budget=None if once else host_rate,
            every=parse_interval(every), threshold=settings.rank_threshold, early=_EARLY if once else 0.0,
            clock=self._workspace.clock, blocked=self._workspace.unsafe.pages,
        )  # fmt: skip

    def planner(
        self, scheduler: Scheduler, feed: Feed, stop: Stop, remark: Callable[[str], None],
        ticks: Callable[[], float] = time.monotonic, slow: SlowHost | None = None,
    ) -> Planner:  # fmt: skip
        """Return what feeds a run without an end with the scheduler's picks, and catches up while nothing is due.

        `remark` gets a sentence about the state of the run whenever that has changed.
        """
        from driftline.watch.planner import Planner

        delay, host_rate = self._settings.shortest_delay, rate_of(self._settings.host_budget)
        if not delay or (host_rate is not None and host_rate < 1 / delay):
            slow = None  # a user who limits the checks of a host knows that they take long
        catch_up = self._workspace.catch_up
        return Planner(scheduler, feed, stop, lambda enough: catch_up(stop, enough), remark, ticks, slow)

    def crawl(
        self, seeds: Sequence[str], options: Options, *, fresh: bool = False, plan: Plan | None = None,
        stop: Stop | None = None, started: Callable[[Begun, int], None] | None = None,
        recorded: Callable[[Sequence[CrawlOutcome], int], None] | None = None,
    ) -> CrawlReport:  # fmt: skip
        """Crawl a site, then check its watched pages that changed, so that they have a version.

        The report leaves out changed pages of which that check says that they are unchanged: only noise differed, or
        an earlier check reported it.
        """
        stop = stop or Stop()
        report = self._crawl(seeds, options, stop, plan=plan, fresh=fresh, started=started, recorded=recorded)
        if report.tag is None or not report.changed or stop.requested:
            return report
        watched = patiently(lambda: self.watched(report.changed), lambda: stop.requested)
        if not watched:
            return report
        same: set[str] = set()

        def keep(outcomes: Sequence[Outcome]) -> None:
            same.update(one.document.link.url for one in outcomes if one.verdict is Verdict.UNCHANGED)

        try:
            checked = self.check(watched, plan=plan, fresh=True, stop=stop, recorded=keep)
        except StoreBusy:  # another process checks pages by now, and will get to these
            return report
        return replace(
            report, changes=checked.changes, changed=[url for url in report.changed if url not in same]
        )  # fmt: skip

    def _crawl(
        self, seeds: Sequence[str], options: Options, stop: Stop, *, plan: Plan | None = None, fresh: bool = False,
        ends: bool = True, started: Callable[[Begun, int], None] | None = None,
        recorded: Callable[[Sequence[CrawlOutcome], int], None] | None = None,
    ) -> CrawlReport:  # fmt: skip
        from driftline.crawl.crawl import Crawl
        from driftline.urls.canonical import canonical

        workspace, settings = self._workspace, self._settings
        tracking = Tracking(settings.tracking)
        named = list(dict.fromkeys(canonical(seed, tracking) for seed in seeds))
        options.scope(named)
        plan = plan or Plan(capacity=settings.capacity)
        _LOG.info("crawl started", extra={"seeds": [without_password(seed) for seed in named]})
        with RegainedRight(self._store.right_to_check) as right:
            patiently(right.take, lambda: stop.requested)
            while True:
                try:
                    patiently(workspace.unsafe.refresh, lambda: stop.requested)
                    crawl = Crawl(
                        self._store, workspace.catalog, settings, plan, stop, workspace.unsafe, workspace.clock,
                        right.holds, workspace.record_stall,
                    )  # fmt: skip
                    report = crawl.run(named, options, fresh=fresh, ends=ends, begun=started, recorded=recorded)
                    break
                except StoreUnavailable:
                    if stop.requested:
                        raise
                    right.regain(lambda: stop.requested)
                    fresh = False  # what was crawled until then is recorded: continue from there
        _LOG.info("crawl ended", extra={name: getattr(report, name) for name in _CRAWL_FIGURES})
        return report

    def rounds(self, stop: Stop, remark: Callable[[str], None], *, once: bool = False) -> Rounds:
        """Return what crawls watched sites again when they are due, and publishes what each crawl found.

        With `once`, a site that is nearly due counts as due.
        """
        from driftline.crawl.crawl_options import Options
        from driftline.crawl.recrawl import Rounds
        from driftline.store.crawls import Sites

        def crawl(site: Site, pause: Stop) -> CrawlReport:
            return self._crawl(site.seeds, Options.of_kept(site.options, site.tag), pause, ends=False)

        recrawl = self._settings.recrawl
        every = None if recrawl == "never" else parse_interval(recrawl)
        early = _EARLY if once else 0.0
        clock = self._workspace.clock
        return Rounds(Sites(self._store), crawl, stop, remark, every=every, early=early, clock=clock)

    def event_log(self, stop: Stop | None = None) -> EventLog:
        """Return the event log, as `Workspace.event_log` does."""
        return self._workspace.event_log(stop)

    def shortages(self, budget: str | None = None) -> list[str]:
        """Return a sentence for each budget, or for this one, that is too small for the intervals of the pages."""
        from driftline.schedule.budget import shortages

        of_all = rate_of(self._settings.budget if budget is None else budget)
        return shortages(self._workspace.catalog.asked(), of_all, rate_of(self._settings.host_budget))

    def watched(self, urls: Sequence[str]) -> list[int]:
        """Return the ids of those of these pages that are watched."""
        catalog = self._workspace.catalog
        left_out = set(catalog.unwatched(urls))
        return [page.id for page in catalog.find_all(url for url in urls if url not in left_out)]


def _logging(recorded: OnRecorded | None) -> OnRecorded:
    def record(outcomes: Sequence[Outcome]) -> None:
        _log_outcomes(outcomes)
        if recorded is not None:
            recorded(outcomes)

    return record


def _log_outcomes(outcomes: Sequence[Outcome]) -> None:
    """Log failed pages as info, and all others for debugging."""
    for outcome in outcomes if _LOG.isEnabledFor(logging.INFO) else ():
        url = without_password(outcome.document.link.url)
        if isinstance(outcome, Failed):
            about = {"url": url, "kind": outcome.failure.kind.value}
            _LOG.info("page failed: %s: %s", url, outcome.failure.sentence, extra=about)
        else:
            about = {"url": url, "verdict": outcome.verdict.value}
            _LOG.debug("page checked: %s: %s", url, outcome.verdict.value, extra=about)
