"""Driftline for Python programs: watch pages, check them, look back.

What only some of the methods need, most of all the parsers and the network, is imported there: a command that lists the
pages must not wait for what checks them.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Self

from driftline.durations import parse_interval, parse_moment
from driftline.errors import (
    BadSetting,
    NoTextSearch,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    UnknownChange,
    UnknownVersion,
    UsageError,
)
from driftline.model import POLICIES, Safety, Verdict
from driftline.pipeline.plan import Plan
from driftline.pipeline.stop import Stop
from driftline.settings import Settings, load_settings, parse_rate
from driftline.store.engine import Store
from driftline.store.feedback import all_said, find_change, remember, withdraw
from driftline.store.history import Repository
from driftline.store.host_records import HostRecords
from driftline.store.ledger import Stalls
from driftline.store.locks import patiently
from driftline.store.pages import Catalog
from driftline.store.process_locks import RegainedRight
from driftline.store.screenshots import RenderedVersions, Screenshots
from driftline.store.visit_records import Visits
from driftline.urls.parts import host_of, without_password
from driftline.urls.tracking import Tracking
from driftline.visits.rank import By, order_named, rank

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from types import TracebackType

    from driftline.crawl.crawl_options import Options
    from driftline.crawl.recrawl import Rounds
    from driftline.crawl.report import CrawlReport
    from driftline.crawl.survey_steps import CrawlOutcome
    from driftline.detection.diff.markup import Kind
    from driftline.detection.diff.tables import ChangedCell
    from driftline.detection.diff.text_diff import Piece
    from driftline.detection.extract.outline import Outlined
    from driftline.model import (
        Check,
        Event,
        Link,
        Matter,
        Mention,
        Outcome,
        Page,
        PageState,
        Recorded,
        Render,
        Said,
        Version,
        Visited,
    )
    from driftline.pipeline.check_run import Report
    from driftline.pipeline.reread import Reread
    from driftline.pipeline.sources import Feed
    from driftline.pipeline.watchdog import Stall
    from driftline.safety.blocking import Reports, UnsafePages
    from driftline.safety.blocklists import Blocklists
    from driftline.schedule.scheduler import Scheduler
    from driftline.store.access_records import Accesses
    from driftline.store.compaction import Compacted
    from driftline.store.crawls import Begun, Site
    from driftline.store.events import EventLog
    from driftline.store.ledger import Stalled
    from driftline.store.process_locks import Claim, Having
    from driftline.store.rereads import Readings
    from driftline.store.safety_records import Reported
    from driftline.visits.importer import Imported
    from driftline.watch.planner import Planner
    from driftline.watch.service import EndlessRun

_EARLY = 0.1  # of an interval: who comes every hour finds the check of the last hour some seconds less than one old


class Driftline:
    """A watch list with its history. Use it in a `with` block, or call `close` in the end."""

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self.settings = settings
        self.catalog = Catalog(store, clock, settings.tracking)
        self.repository = Repository(store)
        self.screenshots = Screenshots(store)
        self._visits = Visits(store)
        self._stalls = Stalls(store)
        self._tell_trouble: Callable[[str], None] = lambda _: None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def where(self) -> str:
        """Where the store is, without its password."""
        return self._store.where

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    @cached_property
    def unsafe(self) -> UnsafePages:
        """Which pages are blocked, by lists and by votes, and why: nothing is fetched from them."""
        from driftline.safety.blocking import UnsafePages

        return UnsafePages(self._store, self.settings.unsafe_votes)

    @cached_property
    def blocklists(self) -> Blocklists:
        """The lists of unsafe hosts and addresses."""
        from driftline.safety.blocklists import Blocklists, download

        return Blocklists(self._store, self._clock, partial(download, self.settings))

    @cached_property
    def reports(self) -> Reports:
        """What users reported as unsafe."""
        from driftline.safety.blocking import Reports

        return Reports(self._store, self._clock)

    @cached_property
    def _readings(self) -> Readings:
        from driftline.detection.extract.filters import how_read
        from driftline.store.rereads import Readings

        return Readings(self._store, how_read, self._clock)

    def add(
        self, *urls: str, every: str | None = None, tags: Sequence[str] = (), filters: Sequence[tuple[str, str]] = (),
        render: Render | None = None,
    ) -> list[str]:  # fmt: skip
        """Watch pages; those that were not watched before, in canonical form.

        A filter is a pair such as `("select", "main")` or `("ignore", "online now")`; they work in their order.
        With `render`, the pages are fetched through Chromium.
        """
        from driftline.detection.extract.filters import check_filters

        _insist_on_lists(tags=tags, filters=filters)
        seconds = None if every is None else parse_interval(every)
        if render is not None:
            _check_render(render)
        if seconds is not None:  # pages that are watched already keep the intervals they have
            self.insist_on_room(seconds, self.catalog.unwatched(urls))
        return self.catalog.add(urls, every=seconds, tags=tags, filters=check_filters(filters), render=render)

    def edit(
        self, url: str, *, every: str | None = None, tags: Sequence[str] | None = None,
        filters: Sequence[tuple[str, str]] | None = None, render: Render | None = None, move_to: str | None = None,
    ) -> Page:  # fmt: skip
        """Change how a page is watched, and return it; its history stays. What is None stays as it is.

        `tags` and `filters` replace those it has. `every="default"` takes its own interval away. With `move_to` the
        page is watched at another address from now on.
        """
        from driftline.detection.extract.filters import check_filters

        _insist_on_lists(tags=tags or (), filters=filters or ())
        page = self.catalog.find(url)
        clear = every == "default"
        seconds = None if every is None or clear else parse_interval(every)
        if seconds is not None:
            self.insist_on_room(seconds, [page.url])
        if render is not None:
            _check_render(render)
        return self.catalog.edit(
            url, every=seconds, clear_every=clear, tag=tags or (),
            untag=() if tags is None else [tag for tag in page.tags if tag not in tags], move_to=move_to,
            filters=() if filters is None else check_filters(filters), clear_filters=filters is not None,
            render=lambda kept: kept if render is None else render,
        )  # fmt: skip

    def insist_on_room(self, every: float, urls: Sequence[str]) -> None:
        """BadSetting if these pages at this interval would take too much of a budget that was set, with all others.

        The interval is instead of the one that a page has. A page that asks for no more than before is not refused.
        """
        from driftline.schedule.budget import shortages

        budget, host_budget = self.settings.budget, self.settings.host_budget
        if budget is None and host_budget is None:
            return
        asked = self.catalog.asked()
        more = {url: 1 / every for url in urls if 1 / every > asked.get(url, 0.0)}
        if not more:
            return
        hosts = set(map(host_of, more))
        if found := shortages(asked | more, _rate(budget), _rate(host_budget), hosts):
            raise BadSetting(found[0])

    def shortages(self, budget: str | None = None) -> list[str]:
        """What is wrong if the intervals of all pages take too much of this budget, or of those that were set."""
        from driftline.schedule.budget import shortages

        of_all = _rate(self.settings.budget if budget is None else budget)
        return shortages(self.catalog.asked(), of_all, _rate(self.settings.host_budget))

    def remove(self, *urls: str) -> list[str]:
        """Stop watching pages and forget their history."""
        return self.catalog.remove(urls)

    def pages(self, tag: str | None = None) -> list[Page]:
        """The pages that are watched, in the order in which they were added."""
        return self.catalog.all(tag)

    def iter_pages(
        self, tag: str | None = None, states: Collection[PageState] = (), limit: int | None = None, offset: int = 0
    ) -> Iterator[Page]:  # fmt: skip
        """Yield the watched pages that carry a tag and are in one of these states, `limit` of them after `offset`.

        They come in the order in which they were added, and take little memory, however many there are.
        """
        return self.catalog.chosen(tag, states, limit, offset)

    @cached_property
    def accesses(self) -> Accesses:
        """What is sent along with the requests for pages, to be let in."""
        from driftline.store.access_records import Accesses

        return Accesses(self._store)

    def gone(self, pages: Iterable[Page]) -> set[int]:
        """The ids of those of these pages that are gone for good: not there at any of their checks for days."""
        failing = [page for page in pages if page.failures]
        if not failing:
            return set()  # most often: without loading numpy
        from driftline.schedule.backoff import GONE_AFTER, gone

        return gone(self._store, [page.id for page in failing if page.failures >= GONE_AFTER], self._clock())

    def safety(self, pages: Iterable[Page], hosts: Callable[[], set[str]] | None = None) -> dict[int, Safety]:
        """Which of these pages are blocked, and what looks dangerous on them; by id, without those that are fine.

        `hosts` gives the hosts of all pages, for who asks many times and has them read once.
        """
        from driftline.safety.warnings import warnings_of

        listed = list(pages)
        self.unsafe.refresh()
        blocked = {page.id: reason for page in listed if (reason := self.unsafe.why(page.url)) is not None}
        warned = warnings_of(self._store, listed, hosts or self.catalog.hosts)
        return {
            page.id: Safety(blocked.get(page.id), tuple(warned.get(page.id, ())))
            for page in listed if page.id in blocked or page.id in warned
        }  # fmt: skip

    def check(
        self, *urls: str, plan: Plan | None = None, fresh: bool = False, stop: Stop | None = None,
        told: Callable[[Sequence[Outcome]], None] | None = None, begun: Callable[[int, bool], None] | None = None,
    ) -> Report:  # fmt: skip
        """Check these pages, or all of them, once, and record what came of it.

        A run that was cut short is continued unless `fresh`. `begun` is told how many pages there are and whether a run
        is continued, and `told` every batch of outcomes right after it is committed.
        """
        page_ids = [page.id for page in self.catalog.find_all(urls)] if urls else None
        return self.check_pages(page_ids, plan=plan, fresh=fresh, stop=stop, told=told, begun=begun)

    def check_pages(
        self, page_ids: Sequence[int] | None, *, plan: Plan | None = None, fresh: bool = False,
        stop: Stop | None = None,
        told: Callable[[Sequence[Outcome]], None] | None = None, begun: Callable[[int, bool], None] | None = None,
        slow: Callable[[str, int, float], None] | None = None,
    ) -> Report:  # fmt: skip
        """The same for pages named by their ids, None for all.

        `slow` is told of a host whose pages will take long: how many, and the seconds between two.
        """
        from driftline.pipeline.check_run import Run
        from driftline.store.ledger import Ledger

        plan, stop = plan or Plan(capacity=self.settings.capacity), stop or Stop()
        with RegainedRight(self._store.right_to_check) as right:

            def reading_stopped() -> bool:
                return stop.requested or not right.holds()

            patiently(right.take, lambda: stop.requested)
            ledger = Ledger(
                self._store, self._clock, lambda: stop.requested, self.settings.fail_after,
                reading_stopped=reading_stopped,
            )  # fmt: skip
            run = Run(
                ledger, self.repository, RenderedVersions(self._store, self._clock, reading_stopped),
                HostRecords(self._store, reading_stopped), self.settings, plan, stop, self._clock, self.unsafe,
                self._note_stall, self._store.in_trouble,
            )  # fmt: skip
            barred = patiently(lambda: self.unsafe.pages(page_ids), lambda: stop.requested)
            return run.check(page_ids, right, fresh=fresh, recorded=told, begun=begun, slow=slow, barred=barred)

    @property
    def last_stall(self) -> Stalled | None:
        """The last time at which a run had work to do and recorded nothing for long, with what was seen then."""
        return self._stalls.last()

    def on_trouble(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with a sentence when the store cannot be reached any more or can again, and when a run stalls."""
        self._store.on_outage = self._tell_trouble = tell

    def hurry(self) -> None:
        """Wait for a database server that does not answer no longer than a process may take to end."""
        self._store.hurry()

    def _note_stall(self, stall: Stall) -> None:
        self._tell_trouble(str(stall))
        with suppress(StoreError):
            self._stalls.record(self._clock(), stall.seconds, str(stall))

    def be_next(self) -> Having:
        """Have a run make way that goes on in another process, for a block in which it is tried to check pages.

        StoreBusy if somebody else does so already.
        """
        return self._store.right_to_be_next()

    @contextmanager
    def keep_running(self, stop: Stop | None = None) -> Iterator[Claim]:
        """Hold the right to be the only watcher of the store for a block; StoreBusy if another process has it."""
        stop = stop or Stop()
        with ExitStack() as rights:
            take = self._store.right_to_keep_checking
            yield patiently(lambda: rights.enter_context(take()), lambda: stop.requested)

    def event_log(self, stop: Stop | None = None) -> EventLog:
        """Return the event log. If the store is away it is waited for until `stop`, or not at all without one."""
        from driftline.store.events import EventLog

        return EventLog(self._store, (lambda: True) if stop is None else (lambda: stop.requested))

    def changes(
        self, *, since: str | datetime | float | None = None, tag: str | None = None, url: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Event]:  # fmt: skip
        """Yield the events of the log, the newest first: since a time, of the pages with a tag, or of one page.

        A time is a `datetime`, seconds since 1970, or what the command takes: `1d`, `3h`, `2026-11-01`.
        """
        if isinstance(since, str):
            since = parse_moment(since, self._clock())
        elif isinstance(since, datetime):
            since = since.timestamp()
        page_id = None if url is None else self.catalog.find(url).id
        return self.event_log().list(since=since, tag=tag, page_id=page_id, limit=limit)

    def watch(
        self, *, every: str = "1h", budget: str | None = None, policy: str | None = None, stop: Stop | None = None
    ) -> Iterator[Event]:
        """Keep checking pages, and yield each event once it is in the log; see `driftline run`.

        It ends when `stop` is requested or the iterator is closed. An event counts as delivered when the next one is
        asked for, and is yielded again by the next call otherwise. So to end after an event, request the `stop` instead
        of leaving the loop by `break`.
        """
        from driftline.watch.service import WatchOptions, watch_events

        return watch_events(self, WatchOptions(every=every, budget=budget, policy=policy), stop or Stop())

    def keep_checking(
        self, recorded: Callable[[Recorded], None], *, claim: Claim | None = None, plan: Plan | None = None,
        stop: Stop | None = None, slow: Callable[[str, int, float], None] | None = None,
    ) -> EndlessRun:  # fmt: skip
        """Return a pipeline without an end, for a `with` block: it checks the pages that its feed is offered.

        `recorded` gets every batch of outcomes once it is committed. Entering the block is refused with StoreBusy while
        another process watches the same store, unless the `claim` of `keep_running` is given; `check` may be used
        meanwhile. `slow` gets, once, a host whose pages will take long, as for `check_pages`.
        """
        from driftline.pipeline.check_run import Run
        from driftline.pipeline.sources import Feed
        from driftline.store.ledger import Ledger
        from driftline.watch.service import EndlessRun

        plan, stop = plan or Plan(capacity=self.settings.capacity), stop or Stop()

        def reading_stopped() -> bool:
            return stop.requested or not feed.may_fetch()

        ledger = Ledger(
            self._store, self._clock, lambda: stop.requested, self.settings.fail_after,
            reading_stopped=reading_stopped,
        )  # fmt: skip
        patiently(self.unsafe.refresh, lambda: stop.requested)
        run = Run(
            ledger, self.repository, RenderedVersions(self._store, self._clock, reading_stopped),
            HostRecords(self._store, reading_stopped), self.settings, plan, stop, self._clock, self.unsafe,
            self._note_stall, self._store.in_trouble,
        )  # fmt: skip

        def links(page_ids: Sequence[int]) -> list[Link]:
            return [link for link in ledger.links(page_ids) if self.unsafe.why(link.url) is None]

        feed = Feed(links, self._store.right_to_check, wanted=self._store.is_process_waiting)

        def right() -> Having:
            return self._store.right_to_keep_checking() if claim is None else nullcontext(claim)

        return EndlessRun(run, feed, stop, recorded, right, slow)

    def planner(
        self, scheduler: Scheduler, feed: Feed, stop: Stop, tell: Callable[[str], None],
        ticks: Callable[[], float] = time.monotonic, slow: Callable[[str, int, float], None] | None = None,
    ) -> Planner:  # fmt: skip
        """What feeds a run without an end by what the scheduler says, and catches up while nothing is due.

        `tell` hears how things stand, in a sentence, whenever that is otherwise than before, and `slow`, as for
        `check_pages`, of a host that may not be asked for all of its pages at once that are due.
        """
        from driftline.watch.planner import Planner

        delay, asked = self.settings.shortest_delay, _rate(self.settings.host_budget)
        if not delay or (asked is not None and asked < 1 / delay):
            slow = None  # who bounds the checks of a host knows of it
        return Planner(scheduler, feed, stop, lambda enough: self.catch_up(stop, enough), tell, ticks, slow)

    def crawl(
        self, *seeds: str, within: str = "host", include: Sequence[str] = (), exclude: Sequence[str] = (),
        depth: int | None = None, most: int | None = None, keywords: Sequence[str] = (), tag: str | None = None,
        unwatched: bool = False, every: str | None = None, fresh: bool = False, plan: Plan | None = None,
        stop: Stop | None = None, begun: Callable[[Begun, int], None] | None = None,
        told: Callable[[Sequence[CrawlOutcome], int], None] | None = None,
    ) -> CrawlReport:  # fmt: skip
        """Find the pages of a site by its links, sitemaps and feeds, starting from these addresses.

        With a `tag` the pages are watched from now on under it, also those that later crawls find, until a crawl is
        `unwatched`; `every` is how often a run crawls the site then. The same crawl goes on if it was cut short, unless
        `fresh`; otherwise it comes again, and tells what is new, gone, moved or changed. Watched pages that are changed
        are checked, so that they have a version; those of which that was only noise, or told by a check before, are not
        told.
        """
        from driftline.crawl.crawl_options import Options

        _insist_on_lists(include=include, exclude=exclude, keywords=keywords)
        if not seeds:
            raise UsageError("Say where to begin: give the address of a site.")
        options = Options(
            within=within, include=tuple(include), exclude=tuple(exclude), depth=depth, most=most,
            keywords=tuple(keywords), tag=tag, unwatched=unwatched, every=every,
        )  # fmt: skip
        stop = stop or Stop()
        report = self._crawled(seeds, options, stop, plan=plan, fresh=fresh, begun=begun, told=told)
        if report.tag is None or not report.changed or stop.requested:
            return report
        watched = patiently(lambda: self.watched(report.changed), lambda: stop.requested)
        if not watched:
            return report
        same: set[str] = set()

        def keep(outcomes: Sequence[Outcome]) -> None:
            same.update(one.document.link.url for one in outcomes if one.verdict is Verdict.UNCHANGED)

        try:
            checked = self.check_pages(watched, plan=plan, fresh=True, stop=stop, told=keep)
        except StoreBusy:  # somebody else checks pages by now, and will come to these
            return report
        return replace(
            report, changes=checked.changes, changed=[url for url in report.changed if url not in same]
        )  # fmt: skip

    def _crawled(
        self, seeds: Sequence[str], options: Options, stop: Stop, *, plan: Plan | None = None, fresh: bool = False,
        ends: bool = True, begun: Callable[[Begun, int], None] | None = None,
        told: Callable[[Sequence[CrawlOutcome], int], None] | None = None,
    ) -> CrawlReport:  # fmt: skip
        from driftline.crawl.crawl import Crawl
        from driftline.urls.canonical import canonical

        tracking = Tracking(self.settings.tracking)
        named = list(dict.fromkeys(canonical(seed, tracking) for seed in seeds))
        options.scope(named)
        plan = plan or Plan(capacity=self.settings.capacity)
        with RegainedRight(self._store.right_to_check) as right:
            patiently(right.take, lambda: stop.requested)
            while True:
                try:
                    patiently(self.unsafe.refresh, lambda: stop.requested)
                    crawl = Crawl(
                        self._store,
                        self.catalog,
                        self.settings,
                        plan,
                        stop,
                        self.unsafe,
                        self._clock,
                        right.holds,
                        self._note_stall,
                    )
                    return crawl.run(named, options, fresh=fresh, ends=ends, begun=begun, recorded=told)
                except StoreUnavailable:
                    if stop.requested:
                        raise
                    right.regain(lambda: stop.requested)
                    fresh = False  # what was crawled by then is recorded, and the crawl goes on from there

    def watched(self, urls: Sequence[str]) -> list[int]:
        """The ids of those of these pages that are watched."""
        left_out = set(self.catalog.unwatched(urls))
        return [page.id for page in self.catalog.find_all(url for url in urls if url not in left_out)]

    def rounds(self, stop: Stop, remark: Callable[[str], None], *, once: bool = False) -> Rounds:
        """Return what crawls watched sites again when they are due, and publishes what each round found.

        With `once`, a site that is nearly due counts as due.
        """
        from driftline.crawl.crawl_options import Options
        from driftline.crawl.recrawl import Rounds
        from driftline.store.crawls import Sites

        def crawl(site: Site, turn: Stop) -> CrawlReport:
            return self._crawled(site.seeds, Options.of_kept(site.options, site.tag), turn, ends=False)

        recrawl = self.settings.recrawl
        every = None if recrawl == "never" else parse_interval(recrawl)
        early = _EARLY if once else 0.0
        return Rounds(Sites(self._store), crawl, stop, remark, every=every, early=early, clock=self._clock)

    def sites(self) -> list[Site]:
        """The sites that are kept watched, with what they were crawled with."""
        from driftline.store.crawls import Sites

        return Sites(self._store).kept()

    def report_unsafe(self, url: str, *, reason: str = "", votes: int = 1, whole_host: bool = False) -> Reported:
        """Vote against a page, watched or not, or against all pages of its host; what was said of it by now.

        With as many votes as the settings ask for, one unless set, nothing is fetched from it until all are withdrawn.
        """
        return self.reports.add(self._reported(url, whole_host), reason=reason, votes=votes, whole_host=whole_host)

    def withdraw_report(self, url: str, *, whole_host: bool = False) -> int:
        """Forget what was reported of a page, or of its host; how many reports there were."""
        return self.reports.withdraw(self._reported(url, whole_host), whole_host=whole_host)

    def _reported(self, url: str, whole_host: bool) -> str:
        """The address that reports of a page, or of its host, are kept under."""
        name = self.catalog.names([url])[url]
        return f"https://{host_of(name)}/" if whole_host else name

    def visit(self, url: str, *, seconds: float = 0.0, available: bool = True, add: bool = False) -> Visited:
        """Count a visit to a page, watched or not, at this moment; what the visits to it add up to now.

        Nothing is lost when many threads and processes do so at once. `add` watches a page that is not watched yet.
        """
        from driftline.visits.import_tally import LONGEST_VISIT

        if not 0 <= seconds <= LONGEST_VISIT:
            raise BadSetting(f"A visit takes a number of seconds, 0 or more and a day at most: got {seconds:g}.")
        url = self.catalog.names([url])[url]
        if add:
            self.catalog.add([url])
        return self._visits.record(url, at=self._clock(), seconds=seconds, available=available)

    def import_visits(
        self, path: str | Path, *, format: str | None = None, site: str | None = None, add: bool = False,  # noqa: A002 as the option is called
        called: str | None = None, told: Callable[[int, int], None] | None = None,
    ) -> Imported:  # fmt: skip
        """Count the visits of a browser's history, a server log or a table that were never counted; what came of it.

        The format (`chrome`, `firefox`, `log` or `csv`) is found by itself; a log needs its `site`. `add` watches pages
        that were available at least once. In errors the file is `called` so. `told` is told how many of how many visits
        are done.
        """
        from driftline.visits.importer import VisitFormat, import_visits

        try:
            wanted = None if format is None else VisitFormat(format)
        except ValueError:
            raise BadSetting(f"'{format}' is not a format of visits: use {', '.join(VisitFormat)}.") from None
        return import_visits(
            self._visits, Path(path), now=self._clock(), format=wanted, site=site, called=called,
            tracking=Tracking(self.settings.tracking), names=self.catalog.names,
            watch=self.catalog.add if add else None, progress=told,
        )  # fmt: skip

    def visited(self) -> list[Visited]:
        """What the visits to each page add up to, watched or not, in the order of the first visits."""
        return self._visits.all()

    def iter_visited(self) -> Iterator[Visited]:
        """Yield the same one by one, which takes little memory, however many there are."""
        return self._visits.each()

    def rank(self, by: str = By.INTELLIGENT, limit: int | None = None) -> list[Visited]:
        """The visited pages by `frequency`, `weightage`, or the `intelligent` order, which drops unavailable ones.

        Those that are blocked as unsafe are left out.

        By `value` they are the pages that are watched, visited or not: those first whose check is worth most now.
        """
        return list(self.iter_ranked(by, limit))

    def iter_ranked(self, by: str = By.INTELLIGENT, limit: int | None = None) -> Iterator[Visited]:
        """Yield the same one by one: by `value`, or with a limit, only a few of them are in memory at a time."""
        order = order_named(by)
        self.unsafe.refresh()
        if order is By.VALUE:
            return islice(self._safe(self._by_value()), limit if limit is None else min(limit, sys.maxsize))
        return iter(rank(self._safe(self.iter_visited()), order, self.settings.rank_threshold, limit))

    def _safe(self, visited: Iterator[Visited]) -> Iterator[Visited]:
        if not self.unsafe.any:
            return visited
        return (one for one in visited if self.unsafe.why(one.url) is None)

    def _by_value(self) -> Iterator[Visited]:
        scheduler = self.scheduler(to_look=True)
        scheduler.refresh()
        pages, values = scheduler.by_value()
        del scheduler  # of a million pages it takes 150 MB
        return self._visits.with_values(pages, values)

    def scheduler(
        self, *, every: str = "1h", budget: str | None = None, policy: str | None = None, once: bool = False,
        to_look: bool = False,
    ) -> Scheduler:  # fmt: skip
        """What to check next, as the settings say unless told otherwise.

        Who asks `once` now and then wants all that is due by then, or nearly: what a policy would choose, and what
        budgets would allow by the minute, counts for nothing there. A store that can only be read will do for who only
        wants `to_look`.
        """
        from driftline.schedule.scheduler import Scheduler

        if not to_look:
            self._store.require_writable()
        usual = "fixed" if once else self.settings.policy
        chosen = [one for one in POLICIES if one == (usual if policy is None else policy)]
        if not chosen:
            raise BadSetting(f"There is no policy '{policy}': use {', '.join(POLICIES)}.")
        if once and chosen != ["fixed"]:
            raise BadSetting(f"A run --once checks all that is due or new: there is nothing to choose by '{policy}'.")
        rate = _rate(self.settings.budget if budget is None else budget)
        host_rate = _rate(self.settings.host_budget)
        if delay := self.settings.shortest_delay:  # picking more than may be asked for would only fill the lines
            host_rate = min(host_rate or 1 / delay, 1 / delay)
        return Scheduler(
            self._store, policy=chosen[0], budget=None if once else rate, host_budget=None if once else host_rate,
            every=parse_interval(every),
            threshold=self.settings.rank_threshold, early=_EARLY if once else 0.0, clock=self._clock,
            blocked=self.unsafe.pages,
        )  # fmt: skip

    def history(self, url: str, limit: int | None = None, *, news_only: bool = False) -> list[Check]:
        """The checks of a page, the latest first; only those that found something that matters, if `news_only`."""
        return self.repository.history(self.catalog.find(url), limit, news_only=news_only)

    def version(self, url: str, number: int | None = None) -> Version:
        """A version of a page with its body and text, the newest one unless a number is given."""
        return self.repository.version(self.catalog.find(url), number)

    def screenshot(self, url: str, number: int | None = None) -> bytes:
        """The picture (PNG) of a version that a browser fetched, the newest that has one unless a number is given."""
        page = self.catalog.find(url)
        pictured = self.screenshots.numbers(page)
        wanted = max(pictured, default=0) if number is None else number
        found = self.screenshots.of(page, wanted)
        if found is not None:
            return found
        if not pictured:
            raise UnknownVersion(f"There are no pictures of {page.url}: they are taken of pages with --render.")
        have = ", ".join(map(str, sorted(pictured)))
        raise UnknownVersion(f"There is no picture of version {number} of {page.url}, but of these: {have}.")

    def diff(
        self, url: str, old: int | None = None, new: int | None = None, *, cells: list[ChangedCell] | None = None
    ) -> str:  # fmt: skip
        """The unified diff between two versions, those of the newest change unless told; empty if they are equal.

        `cells` are those of tables that differ, for whoever has them already.
        """
        from driftline.detection.diff.tables import cells_between, heading
        from driftline.detection.diff.text_diff import unified

        before, after = self._two_versions(url, old, new)
        shown = without_password(after.url)
        return unified(
            before.words, after.words, f"{shown} version {before.number}", f"{shown} version {after.number}",
            headed=partial(heading, cells_between(before, after) if cells is None else [*cells]),
        )  # fmt: skip

    def word_diff(self, url: str, old: int | None = None, new: int | None = None) -> list[list[Piece]]:
        """The places that differ between two versions, word by word."""
        from driftline.detection.diff.text_diff import by_word

        before, after = self._two_versions(url, old, new)
        return by_word(before.words, after.words)

    def feedback(self, change: str, matter: Matter) -> str:
        """Say that a change, named by its id, is noise or matters; the page that it is on.

        It is remembered for the page and for others of its host: the same lines, the same place and the same words with
        other numbers are judged so from now on.
        """
        from driftline.detection.examine import Side, experience_of, weigh
        from driftline.detection.noise.learning import feedback_keys

        named = find_change(self._store, change)
        page = self.catalog.find(named.url)
        sides = [self.repository.version(page, number) for number in (named.from_version, named.to_version)]
        old, new = (Side(one.body, one.words, one.at) for one in sides)
        content_type = f"{sides[1].content_type}; charset={sides[1].charset}"
        filters = [list(one) for one in page.filters] or None
        host = host_of(named.url)
        memory = self.repository.recall([page.id])[page.id].memory
        host_memory = self.repository.host_memories([host]).get(host, b"")
        experience = experience_of(filters, memory, host_memory, named.sequence)
        page_keys, host_keys = feedback_keys(weigh(old, new, sides[1].title, content_type, experience, filters), matter)
        remember(self._store, named, page_keys, host_keys, matter, self._clock())
        return named.url

    def withdraw(self, change: str) -> str:
        """Forget what was said of a change, and judge others like it as if nothing had been; the page that it is on."""
        named = find_change(self._store, change)
        if not withdraw(self._store, named):
            raise UnknownChange(f"Nothing was said of the change {change}: 'driftline feedback --list' shows what was.")
        return named.url

    def said(self) -> list[Said]:
        """What was said of changes, the latest first."""
        return all_said(self._store)

    def search(
        self, query: str, *, url: str | None = None, tag: str | None = None, since: float | None = None,
        until: float | None = None, now: bool = False, limit: int | None = None,
        told: Callable[[int, int], None] | None = None,
    ) -> list[Mention]:  # fmt: skip
        """The versions in which words appeared or disappeared, the latest first.

        Words, "phrases in quotes" and beginnings* must all be there; case and accents do not matter. `now` leaves only
        pages whose newest version has the words. Versions that were never searched are indexed first; `told` is told
        how many of how many are done.
        """
        from driftline.store.search import Search, SearchScope

        page_id = None if url is None else self.catalog.find(url).id
        scope = SearchScope(page_id=page_id, tag=tag, since=since, until=until, now=now)
        return Search(self._store, self.repository).find(query, scope, limit, told)

    def kinds(self, url: str, old: int | None = None, new: int | None = None) -> list[Kind]:
        """In which kinds two versions differ besides their text: links, media, structure, metadata."""
        from driftline.detection.diff.markup import kinds_between

        return kinds_between(*self._two_versions(url, old, new))

    def cells(self, url: str, old: int | None = None, new: int | None = None) -> list[ChangedCell]:
        """The cells of tables that differ between two versions, by row and column."""
        from driftline.detection.diff.tables import cells_between

        return cells_between(*self._two_versions(url, old, new))

    def outline(self, url: str, number: int | None = None) -> list[Outlined]:
        """The blocks of a version, as the page is read now: their roles, paths, links and what attributes show."""
        from driftline.detection.extract.document import Extraction
        from driftline.detection.extract.outline import outline

        page = self.catalog.find(url)
        version = self.repository.version(page, number)
        content_type = f"{version.content_type}; charset={version.charset}"
        read, again = (Extraction(version.body, content_type, page.filters) for _ in range(2))
        return outline(read.body, again.blocks())

    def html_diff(self, url: str, old: int | None = None, new: int | None = None) -> str:
        """What differs between two versions as an HTML document that is complete in itself and safe to open."""
        from driftline.detection.diff.html_diff import render
        from driftline.detection.diff.markup import kinds_between
        from driftline.detection.diff.tables import cells_between

        before, after = self._two_versions(url, old, new)
        page = self.catalog.find(url)
        change = self.repository.change(page, before.number, after.number)
        taken = {version.number: self.screenshots.of(page, version.number) for version in (before, after)}
        pictures = {number: picture for number, picture in taken.items() if picture is not None}
        return render(before, after, kinds_between(before, after), change, cells_between(before, after), pictures)

    def catch_up(
        self, stop: Stop | None = None, enough: Callable[[], bool] | None = None,
        told: Callable[[int, int], None] | None = None,
    ) -> Reread:  # fmt: skip
        """Read the versions anew that were read through other filters or by another extractor, then index all for
        searching; checks may go on meanwhile.

        Bodies stay as they are, and nothing is told as a change. It ends early when asked to `stop`, or once it is
        `enough`; what is done stays done. `told` how many of how many pages are read, then how many versions indexed.
        """
        from driftline.detection.worker_pool import WorkerPool
        from driftline.pipeline.reread import reread
        from driftline.store.search_index import WordIndex

        stop = stop or Stop()
        settings = self.settings
        workers = WorkerPool(most=1, deadline=settings.worker_deadline, memory=settings.worker_memory)
        done = enough or (lambda: False)
        try:
            read = reread(self._readings, workers, stop, done, told)
        finally:
            workers.close()
        with suppress(NoTextSearch):
            WordIndex(self._store, self.repository).update(told, lambda: done() or stop.requested)
        return read

    def behind(self) -> tuple[int, int]:
        """How many versions are still to be read anew, and how many could not be, and stay as they were."""
        return self._readings.left()

    def compact(self, told: Callable[[int, int], None] | None = None) -> tuple[Reread, Compacted]:
        """Catch up, then make the store smaller by compressing again what was kept since the last time.

        Checks may go on meanwhile. Raises StoreError, before anything is written, if the store is damaged. `told` how
        many of how many pages, versions and contents are done.
        """
        from driftline.store.compaction import compact

        self._store.require_writable()
        self._store.require_intact()
        return self.catch_up(told=told), compact(self._store, told)

    def doctor(self) -> list[str]:
        """Everything that is wrong with the store; empty when every version can be read back to the byte."""
        return [*self._store.problems(), *self.repository.read_everything()]

    def _two_versions(self, url: str, old: int | None, new: int | None) -> tuple[Version, Version]:
        page = self.catalog.find(url)
        if old is None and new is None and page.versions > 1:
            old, new = self.repository.newest_change(page)
        after = self.repository.version(page, new)
        before = self.repository.version(page, after.number - 1 if old is None else old)
        return before, after


def _insist_on_lists(**given: object) -> None:
    """Raise UsageError if a string is given where a list is expected: it would be taken for a list of its letters."""
    for name, value in given.items():
        if isinstance(value, str):
            raise UsageError(f"{name} takes a list: write {name}=[{value!r}].")


def _check_render(render: Render) -> None:
    from driftline.fetch.browser.steps import check_selector, check_steps

    _insist_on_lists(steps=render.steps)
    check_steps(render.steps)
    check_selector(render.wait_for or "")


def _rate(text: str | None) -> float | None:
    return None if text is None else parse_rate(text)


def open(store: str | None = None, settings: Settings | None = None) -> Driftline:  # noqa: A001 read as driftline.open
    """Open a watch list: a path or `postgresql://` URL, or the one in the user's data folder."""
    settings = settings or load_settings(store=store)
    return Driftline(Store.open(store or settings.store), settings)
