"""Which requests of a crawl are let in by what is set for the tag that its pages are watched under."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from driftline.crawl.classify import Judge
from driftline.crawl.crawl_options import limits_of, site_key
from driftline.crawl.crawl_recorder import Recording
from driftline.crawl.focus import Focus, keywords_of
from driftline.crawl.frontier import Frontier
from driftline.crawl.page_filter import PageFilter
from driftline.crawl.report import news_of, read_report
from driftline.crawl.survey_steps import SurveySteps
from driftline.crawl.traps import Traps
from driftline.detection.worker_pool import WorkerPool
from driftline.fetch.politeness import PoliteLinks
from driftline.http.credentials import CredentialScope
from driftline.model import Link, Outcome, Verdict
from driftline.pipeline.browser_lane import BrowserLane
from driftline.pipeline.confirmer import Confirmer
from driftline.pipeline.recorder import Recorder
from driftline.pipeline.threads import Parts
from driftline.pipeline.topologies import cores, wire
from driftline.runtime import at_full_speed
from driftline.settings import host_policy
from driftline.store.access_records import Accesses
from driftline.store.crawls import Sites
from driftline.store.host_records import HostRecords
from driftline.store.ledger import Ledger
from driftline.store.locks import patiently
from driftline.store.screenshots import RenderedVersions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.crawl.crawl_options import Limits, Options
    from driftline.crawl.report import CrawlReport
    from driftline.crawl.scope import Scope
    from driftline.crawl.survey_steps import Surveyed
    from driftline.fetch.failures import Blocked
    from driftline.http.credentials import Access
    from driftline.pipeline.browser_lane import PageRenderer
    from driftline.pipeline.plan import Plan
    from driftline.pipeline.stop import Stop
    from driftline.settings import Settings
    from driftline.store.crawls import Address, Begun
    from driftline.store.engine import Store
    from driftline.store.pages import Catalog


class Entry:
    """The access of a tag in a crawl from these seeds.

    Pages lead a crawl to wherever they like, and a tag has no origin of its own. So secrets go to the origins that
    somebody named: those of the seeds. All else takes the same way, by the proxy, and is shown nothing.
    """

    def __init__(self, access: Access | None, seeds: Sequence[str]) -> None:
        self._access = access or None
        self._only_proxy = access.only_proxy() or None if access else None
        self._homes = [CredentialScope(seed) for seed in seeds] if access else []

    def of(self, address: Address) -> Access | None:
        """What is sent along for this address; for a robots.txt no more than the other requests for it send."""
        at_home = address.kind != "robots" and any(home.covers(address.url) for home in self._homes)
        return self._access if at_home else self._only_proxy


_WORKER = "driftline.crawl.survey_worker"
_FOCUSED = 16  # links that are handed out before what they lead to is known
_PROBE = "driftline-asks-for-no-page"


class Crawl:
    """The parts of a crawl, put together. It is used once."""

    def __init__(
        self, store: Store, catalog: Catalog, settings: Settings, plan: Plan, stop: Stop, blocked: Blocked,
        clock: Callable[[], float] = time.time, may_fetch: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        self._may_fetch = may_fetch
        self._store = store
        self._blocked = blocked
        self._sites = Sites(store, self._is_stopped)
        self._catalog = catalog
        # a page is read once, and what is new needs no second look
        self._settings = settings.model_copy(update={"confirm": False})
        self._plan = plan
        self._stop = stop
        self._clock = clock
        self._ledger = Ledger(store, clock, lambda: stop.requested, settings.fail_after)

    def run(
        self, seeds: Sequence[str], options: Options, *, fresh: bool = False, ends: bool = True,
        begun: Callable[[Begun, int], None] | None = None, told: Callable[[Sequence[Outcome], int], None] | None = None,
    ) -> CrawlReport:  # fmt: skip
        """Crawl from these seeds, in canonical form, until nothing is left; what was found.

        A crawl that was cut short goes on, unless `fresh`. Its round `ends` with it if nothing is left, or is left open
        for somebody else to end. `begun` is told how many addresses wait, and `told` every
        batch of outcomes right after it is committed, with the number of those that still wait.
        """
        started = time.perf_counter()
        scope = options.scope(seeds)
        limits = limits_of(options.most)
        run_id = self._ledger.begin_without_end()
        site = self._sites.begin(
            site_key(seeds, options), seeds, options.kept(), options.tag, self._clock(), fresh=fresh,
            unwatched=options.unwatched,
        )  # fmt: skip
        asked_before = self._sites.asked(site) if site.continued else 0
        records = HostRecords(self._store, lambda: self._stop.requested)
        access = None if site.tag is None else Accesses(self._store).of_tag(site.tag)
        recording = Recording(
            self._sites, site, self._judge(site, scope, options, records, limits), Entry(access, seeds),
            watch=self._watch_with(site.tag, run_id), waiting=limits.waiting, stopped=lambda: self._stop.requested,
        )  # fmt: skip
        frontier = Frontier(recording.links, most=limits.pages, ahead=_FOCUSED if options.keywords else None)
        requests = size = 0

        def tell(outcomes: Sequence[Outcome]) -> None:
            nonlocal requests, size
            requests += sum(outcome.document.status > 0 for outcome in outcomes)
            size += sum(outcome.document.size for outcome in outcomes)
            if told is not None:
                told(outcomes, len(frontier))

        with ExitStack() as ending:
            ending.callback(self._ledger.end, run_id)  # whoever asks the same hosts next has to know when that was
            recorder = Recorder(recording, 0, tell, stopped=lambda: self._store.hurried)
            ending.callback(recorder.close)
            polite_records = HostRecords(self._store, lambda: self._stop.requested or not self._may_fetch())
            links = PoliteLinks(
                frontier, self._settings, polite_records, links=recording.links, record=recorder.add, clock=self._clock,
                may_fetch=self._may_fetch,
            )  # fmt: skip
            # however the crawl ends: the pause that a host asked for may be in no outcome that is recorded
            ending.callback(links.end, self._is_stopped)
            recording.start(frontier, links.flush, seeds)
            if begun is not None:
                begun(site, len(frontier))
            self._fetch(links, records, recording, recorder, options, kept=site.tag is not None)
        self._ledger.finish(run_id)
        watched = recording.watched + (self._adopt(site, site.tag) if site.adopts and site.tag else 0)
        report = read_report(
            self._sites, site, list(seeds), asked_before=asked_before, watched=watched,
            seconds=time.perf_counter() - started, requests=requests, bytes=size, tag=site.tag,
            quiet=links.paused_hosts, limit=limits.pages if frontier.limited else None,
        )  # fmt: skip
        if ends and not report.left:
            now = self._clock()
            found = news_of(site.site_id, report, now) if report.number > 1 and report.tag is not None else []
            self._sites.finish(site.site_id, site.number, now, [replace(event, source="crawl") for event in found])
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

    def _fetch(
        self, links: PoliteLinks, records: HostRecords, recording: Recording, recorder: Recorder, options: Options, *,
        kept: bool,
    ) -> None:  # fmt: skip
        """Let everything through the pipeline that the frontier hands out."""
        settings = self._settings
        workers = WorkerPool(
            most=cores(), deadline=settings.worker_deadline, memory=settings.worker_memory, program=_WORKER
        )
        tags = records.tagged(settings.tags)
        steps = SurveySteps(
            workers, settings.max_body, kind=recording.kind,
            obeys=lambda host: host_policy(host, settings, tags).robots, tracking=settings.tracking,
            keywords=keywords_of(options.keywords), kept=kept,
        )  # fmt: skip
        confirmer = Confirmer(steps, recorder, settings, links)
        rendered = RenderedVersions(self._store, self._clock, lambda: self._stop.requested)
        parts = Parts(
            links=links, steps=steps, workers=workers, recorder=recorder, confirmer=confirmer,
            rendering=BrowserLane(steps, recorder, confirmer, links, settings, self._stop, rendered, _no_browser),
            settings=settings, stop=self._stop, clock=self._clock, blocked=self._blocked,
        )  # fmt: skip
        try:
            with at_full_speed():
                wire(self._plan, parts)
        finally:
            workers.close()

    def _is_stopped(self) -> bool:
        return self._stop.requested

    def _adopt(self, site: Begun, tag: str) -> int:
        """Watch the pages too that were found before the site was to be watched; how many were not."""
        found = self._sites.rows(site, ["page"])
        urls = [row.url for row in found if row.reason != "same"]
        added = self._catalog.add(urls, tags=[tag], stopped=self._is_stopped)
        if not self._stop.requested:
            self._sites.note_adopted(site.site_id)
        return len(added)

    def _watch_with(self, tag: str | None, run_id: int) -> Callable[[Sequence[Surveyed]], int]:
        """What puts pages on the watch list under this tag, with what was just fetched as their first version."""

        def watch(found: Sequence[Surveyed]) -> int:
            if tag is None:
                return 0
            by_url = {outcome.document.link.url: outcome for outcome in found}
            added = self._catalog.add(by_url, tags=[tag], stopped=self._is_stopped)
            pages = patiently(lambda: self._catalog.find_all(added), self._is_stopped) if added else []
            first = [_first_check(by_url[page.url], page.id) for page in pages if page.url in by_url]
            self._ledger.record(run_id, [one for one in first if one.version is not None])
            return len(added)

        return watch


def _no_browser() -> PageRenderer:
    raise AssertionError("no link of a crawl asks for a browser")


def _first_check(outcome: Surveyed, page_id: int) -> Outcome:
    """What a crawl found of a page, as its first check would have recorded it."""
    document = replace(outcome.document, link=Link(page_id, outcome.document.link.url, 1, None))
    return Outcome(
        document, Verdict.NEW, None, outcome.wire, outcome.body, outcome.version, reading=outcome.reading
    )  # fmt: skip
