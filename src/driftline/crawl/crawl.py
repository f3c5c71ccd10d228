"""A crawl: it finds the pages of a site through a pipeline whose source is a frontier, and reports them."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from driftline.crawl.classify import Judge
from driftline.crawl.crawl_options import limits_of, site_key
from driftline.crawl.crawl_recorder import Recording
from driftline.crawl.frontier import Frontier, PageFilter
from driftline.crawl.report import news_of, read_report, round_figures
from driftline.crawl.scope import Focus, keywords_of
from driftline.crawl.survey_steps import SurveySteps
from driftline.crawl.traps import Traps
from driftline.durations import utc
from driftline.http.credentials import CredentialScope
from driftline.model.event import EventSource
from driftline.model.outcome import Link
from driftline.model.page import AddressKind, AddressState, PageNote
from driftline.pipeline.pipeline import Pipeline, StallReporter, open_workers
from driftline.pipeline.stop import Ending
from driftline.settings import host_policy
from driftline.store.access_records import Accesses
from driftline.store.crawls import Sites
from driftline.store.host_records import HostRecords
from driftline.store.ledger import Ledger
from driftline.store.locks import patiently
from driftline.urls import without_password

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.crawl.crawl_options import Limits, Options
    from driftline.crawl.report import CrawlReport
    from driftline.crawl.scope import Scope
    from driftline.crawl.survey_steps import CrawlOutcome, Surveyed
    from driftline.detection.worker_pool import WorkerPool
    from driftline.fetch.failures import Blocked
    from driftline.http.credentials import Access
    from driftline.model.outcome import New
    from driftline.pipeline.plan import Plan
    from driftline.pipeline.stop import Stop
    from driftline.pipeline.watchdog import Stall
    from driftline.settings import Settings
    from driftline.store.crawls import Address, Begun
    from driftline.store.engine import Store
    from driftline.store.pages import Catalog


class Entry:
    """The credentials, headers and proxy of a tag in a crawl from these seeds.

    Pages lead a crawl to any host, and a tag has no origin of its own. So secrets are sent to the origins that the user
    named: those of the seeds. All other requests go through the same proxy, without secrets.
    """

    def __init__(self, access: Access | None, seeds: Sequence[str]) -> None:
        self._access = access or None
        self._only_proxy = access.only_proxy() or None if access else None
        self._homes = [CredentialScope(seed) for seed in seeds] if access else []

    def of(self, address: Address) -> Access | None:
        """Return what is sent along to this address; for a robots.txt no more than a check sends."""
        at_home = address.kind is not AddressKind.ROBOTS and any(home.covers(address.url) for home in self._homes)
        return self._access if at_home else self._only_proxy


_WORKER = "driftline.crawl.survey"
_FOCUSED = 16  # links that are handed out before what they lead to is known
_PROBE = "driftline-asks-for-no-page"
_LOG = logging.getLogger(__name__)


class Crawl:
    """Crawls a site through a pipeline. It is used once."""

    def __init__(
        self, store: Store, catalog: Catalog, settings: Settings, plan: Plan, stop: Stop, blocked: Blocked,
        clock: Callable[[], float] = time.time, may_fetch: Callable[[], bool] = lambda: True,
        stalled: Callable[[Stall], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._stalls = StallReporter(stalled, store.in_trouble)
        self._may_fetch = may_fetch
        self._store = store
        self._blocked = blocked
        self._sites = Sites(store, self._is_stopped)
        self._catalog = catalog
        self._settings = settings
        self._plan = plan
        self._stop = stop
        self._clock = clock
        self._ledger = Ledger(store, clock, self._is_stopped, settings.fail_after)

    def __repr__(self) -> str:
        return f"<Crawl of {self._store!r} stopped={self._stop.requested}>"

    def run(
        self, seeds: Sequence[str], options: Options, *, fresh: bool = False, ends: bool = True,
        begun: Callable[[Begun, int], None] | None = None,
        recorded: Callable[[Sequence[CrawlOutcome], int], None] | None = None, limits: Limits | None = None,
    ) -> CrawlReport:  # fmt: skip
        """Crawl from these seeds, in canonical form, until nothing is left. Returns what was found.

        A crawl that was interrupted is continued, unless `fresh`. Its round `ends` with it if nothing is left, or is
        left open for the caller to end. `begun` gets the number of addresses that wait, and `recorded` every batch of
        outcomes once it is committed, with the number of those that still wait. The `limits` are in proportion to
        `options.most` unless they are given.
        """
        started = time.perf_counter()
        scope = options.scope(seeds)
        limits = limits or limits_of(options.most)
        run_id = self._ledger.begin_without_end()
        site = self._sites.begin(
            site_key(seeds, options), seeds, options.kept(), options.tag, self._clock(), fresh=fresh,
            unwatched=options.unwatched,
        )  # fmt: skip
        about = {"seed": without_password(seeds[0]), "round": site.number}
        _LOG.info("round %s", "continued" if site.continued else "begun", extra=about)
        asked_before = self._sites.asked(site) if site.continued else 0
        records = HostRecords(self._store, self._is_stopped)
        access = None if site.tag is None else Accesses(self._store).of_tag(site.tag)
        recording = Recording(
            self._sites, site, self._judge(site, scope, options, records, limits), Entry(access, seeds),
            watch=_FirstVersions(self._catalog, self._ledger, site.tag, run_id, self._is_stopped).watch,
            waiting=limits.waiting, stopped=self._is_stopped, recorded=recorded,
        )  # fmt: skip
        frontier = Frontier(recording.links, most=limits.pages, ahead=_FOCUSED if options.keywords else None)
        try:
            with open_workers(self._settings, _WORKER) as workers:
                steps = self._steps(workers, records, recording, options, kept=site.tag is not None)
                with self._pipeline(frontier, steps, recording, workers) as pipeline:
                    recording.start(frontier, pipeline.links.flush, seeds)
                    if begun is not None:
                        begun(site, len(frontier))
                    pipeline.run()
        finally:
            self._ledger.end(run_id)  # the next process that contacts the same hosts has to know when that was
        self._ledger.finish(run_id)
        watched = recording.watched + (self._adopt(site, site.tag) if site.adopts and site.tag else 0)
        report = read_report(
            self._sites, site, list(seeds), asked_before=asked_before, watched=watched,
            seconds=time.perf_counter() - started, requests=recording.requests, bytes=recording.bytes, tag=site.tag,
            quiet={host: utc(until) for host, until in pipeline.links.paused_hosts.items()},
            limit=limits.pages if frontier.limited else None,
        )  # fmt: skip
        if report.left:
            _LOG.info("round left open", extra=about | {"left": report.left})
        if ends and not report.left:
            now = self._clock()
            is_news = report.number > 1 and report.tag is not None
            found = news_of(report, now, EventSource.CRAWL) if is_news else []
            self._sites.finish(site.site_id, site.number, now, found)
            _LOG.info("round ended", extra=round_figures(report))
        return report

    def _judge(self, site: Begun, scope: Scope, options: Options, records: HostRecords, limits: Limits) -> Judge:
        traps = Traps(datetime.fromtimestamp(self._clock(), UTC).year)
        keywords = keywords_of(options.keywords)
        return Judge(
            pages=PageFilter(scope, traps, options.depth, self._blocked), traps=traps,
            focus=Focus(keywords) if keywords else None, records=records, tracking=self._settings.tracking,
            hops=self._settings.max_redirects, probe=f"{_PROBE}-{site.number}",
            lists=limits.lists,
        )  # fmt: skip

    def _steps(
        self, workers: WorkerPool, records: HostRecords, recording: Recording, options: Options, *, kept: bool
    ) -> SurveySteps:
        settings = self._settings
        tags = records.tagged(settings.tags)
        return SurveySteps(
            workers, settings.max_body, kind=recording.kind,
            obeys=lambda host: host_policy(host, settings, tags).robots, tracking=settings.tracking,
            keywords=keywords_of(options.keywords), kept=kept,
        )  # fmt: skip

    def _pipeline(
        self, frontier: Frontier, steps: SurveySteps, recording: Recording, workers: WorkerPool
    ) -> Pipeline[CrawlOutcome]:
        """Return a pipeline without a browser, and without a second fetch: nothing is compared that could change."""
        return Pipeline(
            frontier, steps, recording, plan=self._plan, settings=self._settings, ending=Ending(self._stop),
            workers=workers, hosts=HostRecords(self._store, lambda: self._stop.requested or not self._may_fetch()),
            relink=recording.links, may_fetch=self._may_fetch, in_a_hurry=lambda: self._store.hurried,
            stalls=self._stalls, blocked=self._blocked, clock=self._clock,
        )  # fmt: skip

    def _is_stopped(self) -> bool:
        return self._stop.requested

    def _adopt(self, site: Begun, tag: str) -> int:
        """Watch the pages too that were found before the site was to be watched. Returns how many were added."""
        found = self._sites.rows(site, [AddressState.PAGE])
        urls = [row.url for row in found if row.note is not PageNote.SAME]
        added = self._catalog.add(urls, tags=[tag], stopped=self._is_stopped)
        if not self._stop.requested:
            self._sites.note_adopted(site.site_id)
        return len(added)


class _FirstVersions:
    """Puts pages on the watch list under a tag, with what was just fetched as their first version."""

    def __init__(
        self, catalog: Catalog, ledger: Ledger, tag: str | None, run_id: int, stopped: Callable[[], bool]
    ) -> None:
        self._catalog = catalog
        self._ledger = ledger
        self._tag = tag
        self._run_id = run_id
        self._stopped = stopped

    def watch(self, found: Sequence[Surveyed]) -> int:
        """Watch these pages. Returns how many were not watched before."""
        if self._tag is None:
            return 0
        by_url = {one.document.link.url: one.first for one in found}
        added = self._catalog.add(by_url, tags=[self._tag], stopped=self._stopped)
        pages = patiently(lambda: self._catalog.find_all(added), self._stopped) if added else []
        found_first = [(page.id, by_url.get(page.url)) for page in pages]
        self._ledger.record(
            self._run_id, [_as_first_check(first, page_id) for page_id, first in found_first if first is not None]
        )
        return len(added)


def _as_first_check(found: New, page_id: int) -> New:
    """Return what a crawl found of a page as the outcome of its first check."""
    document = replace(found.document, link=Link(page_id, found.document.link.url, 1, None))
    return replace(found, document=document)
