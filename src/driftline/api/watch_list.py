"""Driftline for Python programs: watch pages, check them, look back.

What only some of the methods need, most of all the parsers and the network, is imported there: a program that lists the
pages does not wait for what checks them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from driftline.api.arguments import (
    capped,
    check_flags,
    check_lists,
    check_number,
    check_progress,
    check_render,
    check_run,
    check_texts,
    check_urls,
    least_importance,
    read_filters,
    store_name,
)
from driftline.api.groups import Maintenance, SafetyLists, Schedule, VisitTotals
from driftline.api.page_history import PageHistory
from driftline.api.workspace import Workspace
from driftline.durations import format_interval, seconds_of, timestamp_of
from driftline.errors import BadSetting, UsageError
from driftline.model.page import PageState
from driftline.settings import Settings, load_settings
from driftline.store.engine import Store
from driftline.urls import host_of
from driftline.visits.rank import RankOrder

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from driftline.crawl.report import CrawlReport
    from driftline.crawl.survey_steps import CrawlOutcome
    from driftline.durations import Duration, Moment
    from driftline.model.change import Importance, Mention
    from driftline.model.event import Event
    from driftline.model.outcome import Outcome
    from driftline.model.page import Page, Policy, Render
    from driftline.model.visit import Visited
    from driftline.pipeline.check_run import Report
    from driftline.pipeline.plan import Plan
    from driftline.pipeline.stop import Stop
    from driftline.store.crawls import Begun

_LONGEST_TAG = 64


class Driftline:
    """A watch list with its history, opened by `driftline.open`. Use it in a `with` block, or `close` it in the end.

    The everyday methods are here; the others are grouped: `history`, `schedule`, `visits`, `safety`, `maintenance`.
    Times are `datetime` objects in UTC. A time that you pass is a `datetime`, seconds since 1970, or a text as on the
    command line: `1d` (ago), `2026-11-01`. A length of time is a `timedelta`, seconds, or a text such as `30m` or `1h`.
    """

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._workspace = Workspace(store, settings, clock)

    def __repr__(self) -> str:
        return f"<Driftline {self._workspace.store.where}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def settings(self) -> Settings:
        """The settings that it works with."""
        return self._workspace.settings

    @property
    def history(self) -> PageHistory:
        """Look back: checks, versions, screenshots and other kinds of diffs; feedback on changes."""
        return PageHistory(self._workspace)

    @property
    def schedule(self) -> Schedule:
        """See what `watch` checks next and why, and which sites it crawls again."""
        return Schedule(self._workspace)

    @property
    def visits(self) -> VisitTotals:
        """Import visits, and read what they add up to."""
        return VisitTotals(self._workspace)

    @property
    def safety(self) -> SafetyLists:
        """Blocklists, reports of unsafe pages, and what looks dangerous."""
        return SafetyLists(self._workspace)

    @property
    def maintenance(self) -> Maintenance:
        """Check the store, make it smaller, bring it up to date."""
        return Maintenance(self._workspace)

    def close(self) -> None:
        """Close the store."""
        self._workspace.store.close()

    def add(
        self, *urls: str, every: Duration | None = None, tags: Sequence[str] = (),
        filters: Sequence[tuple[str, str]] = (), render: Render | None = None,
    ) -> list[str]:  # fmt: skip
        """Watch pages. Returns those that were not watched before, in canonical form.

        A filter is a pair such as `("select", "main")` or `("ignore", "online now")`; they are applied in this order.
        With `render`, the pages are fetched through Chromium. Pages that are watched already stay as they are.
        """
        check_urls("add", urls)
        check_lists(tags=tags)
        check_render(render)
        checked = read_filters(filters)
        seconds = None if every is None else seconds_of(every)
        catalog = self._workspace.catalog
        if seconds is not None:
            self._workspace.require_room(seconds, catalog.unwatched(urls))
        return catalog.add(urls, every=seconds, tags=tags, filters=checked, render=render)

    def edit(
        self, url: str, *, every: Duration | None = None, clear_every: bool = False, tags: Sequence[str] | None = None,
        filters: Sequence[tuple[str, str]] | None = None, render: Render | None = None, move_to: str | None = None,
    ) -> Page:  # fmt: skip
        """Change how a page is watched, and return the page. What is None stays as it is, and so does its history.

        `tags` and `filters` replace those it has. With `clear_every` it has no interval of its own any more, so
        that the schedule decides. With `move_to` the page is watched at another address from now on.
        """
        check_urls("edit", [url] if move_to is None else [url, move_to])
        check_lists(tags=() if tags is None else tags)
        check_flags(clear_every=clear_every)
        check_render(render)
        checked = None if filters is None else read_filters(filters)
        if clear_every and every is not None:
            raise UsageError("Give either every or clear_every=True, not both.")
        seconds = None if every is None else seconds_of(every)
        catalog = self._workspace.catalog
        if seconds is not None:
            self._workspace.require_room(seconds, [catalog.find(url).url])
        return catalog.edit(
            url, every=seconds, clear_every=clear_every, tags=tags, move_to=move_to,
            filters=lambda kept: kept if checked is None else checked,
            render=lambda kept: kept if render is None else render,
        )  # fmt: skip

    def remove(self, *urls: str) -> list[str]:
        """Stop watching pages and delete their history. Returns their URLs; UnknownPage, and removes none, if one is
        not watched."""
        check_urls("remove", urls)
        return self._workspace.catalog.remove(urls)

    def pages(
        self, tag: str | None = None, *, state: PageState | str | None = None, limit: int | None = None, offset: int = 0
    ) -> list[Page]:
        """Return the watched pages in the order in which they were added: all, those with a tag, or in a state.

        A state is `unchecked`, `new`, `changed`, `unchanged`, `failed` or `failing`. `offset` pages are skipped, then
        at most `limit` returned.
        """
        check_number("limit", limit)
        check_number("offset", offset)
        check_texts(tag=tag, state=state, optional=True)
        if state is not None and state not in frozenset(PageState):
            raise UsageError(f"There is no state {state!r}: use {', '.join(PageState)}.")
        states = () if state is None else (PageState(state),)
        most = None if limit is None else capped(limit)
        return list(self._workspace.catalog.chosen(tag, states, most, capped(offset)))

    def check(
        self, *urls: str, tag: str | None = None, fresh: bool = False, plan: Plan | None = None,
        stop: Stop | None = None, progress: Callable[[int, int], None] | None = None,
        min_importance: Importance | str | None = None,
    ) -> Report:  # fmt: skip
        """Check these pages, those with a tag, or all, once, and return what was found.

        A check that was interrupted is continued unless `fresh`. `progress` gets how many of how many pages are done.
        Request `stop` to end early. The report lists important changes; with `min_importance="minor"` minor ones too.
        StoreBusy if another process checks pages of the same store.
        """
        check_urls("check", urls)
        check_texts(tag=tag, optional=True)
        check_flags(fresh=fresh)
        check_run(plan=plan, stop=stop, progress=progress)
        least = least_importance(min_importance, self.settings.min_importance)
        if urls and tag is not None:
            raise UsageError("Give either URLs or a tag, not both.")
        catalog = self._workspace.catalog
        page_ids = None
        if urls or tag is not None:
            page_ids = [page.id for page in (catalog.find_all(urls) if urls else catalog.all(tag))]
        counter = _Progress(progress)
        return self._workspace.runs.check(
            page_ids, plan=plan, fresh=fresh, stop=stop, recorded=counter.recorded, started=counter.started, least=least
        )

    def watch(
        self, *, every: Duration = "1h", budget: str | None = None, policy: Policy | None = None,
        stop: Stop | None = None, min_importance: Importance | str | None = None,
    ) -> Iterator[Event]:  # fmt: skip
        """Keep checking pages, and yield each event once it is in the event log; see `driftline run`.

        `every` is the average time between checks of pages without an interval of their own. It ends when `stop` is
        requested or the iterator is closed. An event counts as delivered when the next one is asked for; otherwise the
        next call yields it again. So to end after an event, request `stop` instead of leaving the loop by `break`.
        Minor changes are skipped unless `min_importance` is `minor`.
        """
        from driftline.pipeline.stop import Stop
        from driftline.watch.service import WatchOptions, watch_events

        check_texts(budget=budget, policy=policy, optional=True)
        check_run(stop=stop)
        least = least_importance(min_importance, self.settings.min_importance)
        options = WatchOptions(every=format_interval(seconds_of(every)), budget=budget, policy=policy, least=least)
        return watch_events(self._workspace.runs, options, stop or Stop())

    def changes(
        self, url: str | None = None, *, since: Moment | None = None, tag: str | None = None, limit: int | None = None,
        min_importance: Importance | str | None = None,
    ) -> Iterator[Event]:  # fmt: skip
        """Yield the events of the log, the newest first: of one page, since a time, or of the pages with a tag.

        Minor changes are left out unless `min_importance` is `minor`.
        """
        check_number("limit", limit)
        check_urls("changes", [] if url is None else [url])
        check_texts(tag=tag, optional=True)
        workspace = self._workspace
        start = None if since is None else timestamp_of(since, workspace.clock())
        page_id = None if url is None else workspace.catalog.find(url).id
        least = least_importance(min_importance, self.settings.min_importance)
        return workspace.event_log().list(since=start, tag=tag, page_id=page_id, limit=limit, least=least)

    def crawl(
        self, *seeds: str, scope: str = "host", include: Sequence[str] = (), exclude: Sequence[str] = (),
        depth: int | None = None, most: int | None = None, keywords: Sequence[str] = (), watch: bool | None = None,
        tag: str | None = None, every: Duration | None = None, fresh: bool = False, plan: Plan | None = None,
        stop: Stop | None = None, progress: Callable[[int, int], None] | None = None,
    ) -> CrawlReport:  # fmt: skip
        """Find the pages of a site by its links, sitemaps and feeds, starting from these addresses.

        With `watch`, or a `tag`, the pages are watched under the tag, by default the host of the first address, also
        those that later crawls find, until `watch=False`; `every` is how often `Driftline.watch` crawls the site then.
        An interrupted crawl is continued unless `fresh`. A later crawl reports what is new, gone, moved or changed, and
        checks watched pages that changed. `scope` is `host`, `domain` or `prefix`; `progress` gets how many pages are
        fetched and how many addresses wait.
        """
        from driftline.crawl.crawl_options import Options

        check_urls("crawl", seeds)
        check_lists(include=include, exclude=exclude, keywords=keywords)
        check_number("depth", depth)
        check_number("most", most, 1)
        check_texts(scope=scope)
        check_texts(tag=tag, optional=True)
        check_flags(fresh=fresh)
        check_flags(watch=watch, optional=True)
        check_run(plan=plan, stop=stop, progress=progress)
        if not seeds:
            raise UsageError("Say where to start: give the address of a site.")
        if watch is None:
            watch = True if tag is not None else None
        if not watch and (tag is not None or every is not None):
            raise UsageError("A tag and an interval are for a site that is watched: give watch=True with them.")
        if watch and tag is None:
            tag = default_tag(seeds[0])
        options = Options(
            within=scope, include=tuple(include), exclude=tuple(exclude), depth=depth, most=most,
            keywords=tuple(keywords), tag=tag, unwatched=watch is False,
            every=None if every is None else format_interval(seconds_of(every)),
        )  # fmt: skip
        counter = _CrawlProgress(progress)
        return self._workspace.runs.crawl(
            seeds, options, fresh=fresh, plan=plan, stop=stop, started=counter.started, recorded=counter.recorded
        )

    def visit(self, url: str, *, seconds: float = 0.0, available: bool = True, add: bool = False) -> Visited:
        """Count a visit to a page, watched or not, at this moment. Returns the totals of the visits to it.

        No visit is lost when many threads and processes do so at once. `add` watches a page that is not watched yet.
        """
        from driftline.visits.import_tally import LONGEST_VISIT

        check_urls("visit", [url])
        check_flags(available=available, add=add)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise BadSetting(f"A visit takes a number of seconds, not {seconds!r}.")
        if not 0 <= seconds <= LONGEST_VISIT:
            raise BadSetting("A visit takes a number of seconds, 0 or more and a day at most.")
        workspace = self._workspace
        name = workspace.catalog.names([url])[url]
        if add:
            workspace.catalog.add([name])
        return workspace.visits.record(name, at=workspace.clock(), seconds=seconds, available=available)

    def rank(self, by: RankOrder | str = RankOrder.INTELLIGENT, limit: int | None = None) -> list[Visited]:
        """Return the visited pages by `frequency`, `weightage`, or `intelligent`, which drops often unavailable ones.

        By `value` they are the watched pages, visited or not: those first whose check is most useful now. Pages that
        are blocked as unsafe are left out.
        """
        return list(self.visits.ranked(by, limit))

    def search(
        self, query: str, *, url: str | None = None, tag: str | None = None, since: Moment | None = None,
        until: Moment | None = None, now: bool = False, limit: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Mention]:  # fmt: skip
        """Return the versions in which words appeared or disappeared, the newest first.

        Words, "phrases in quotes" and beginnings* must all be there; case and accents do not matter. With `now`, only
        pages whose newest version has the words. Versions that were never searched are indexed first; `progress` gets
        how many of how many are done.
        """
        from driftline.store.search import Search, SearchScope

        check_texts(query=query)
        check_urls("search", [] if url is None else [url])
        check_texts(tag=tag, optional=True)
        check_flags(now=now)
        check_number("limit", limit)
        check_progress(progress)
        workspace = self._workspace
        start, end = (
            None if moment is None else timestamp_of(moment, workspace.clock()) for moment in (since, until)
        )  # fmt: skip
        page_id = None if url is None else workspace.catalog.find(url).id
        scope = SearchScope(page_id=page_id, tag=tag, since=start, until=end, now=now)
        return Search(workspace.store, workspace.repository).find(query, scope, limit, progress)

    def diff(self, url: str, old: int | None = None, new: int | None = None) -> str:
        """Return the unified diff between two versions of a page; empty if their texts are equal.

        By default they are those of its newest change. `history` has other kinds of diffs.
        """
        return self.history.diff(url, old, new)


class _Progress:
    """Counts the pages that are done, for a caller that wants to know."""

    def __init__(self, report: Callable[[int, int], None] | None) -> None:
        self._report = report
        self._done = self._total = 0

    def started(self, total: int, continued: bool) -> None:
        del continued
        self._total = total

    def recorded(self, outcomes: Sequence[Outcome]) -> None:
        self._done += len(outcomes)
        if self._report is not None:
            self._report(self._done, self._total)


class _CrawlProgress:
    """Counts the pages that a crawl fetched, and passes on how many addresses wait."""

    def __init__(self, report: Callable[[int, int], None] | None) -> None:
        self._report = report
        self._done = 0

    def started(self, begun: Begun, waiting: int) -> None:
        del begun, waiting

    def recorded(self, outcomes: Sequence[CrawlOutcome], waiting: int) -> None:
        self._done += len(outcomes)
        if self._report is not None:
            self._report(self._done, waiting)


def default_tag(seed: str) -> str:
    """Return the tag of a watched site that was given none: the host of its address."""
    from driftline.urls.canonical import canonical

    return host_of(canonical(seed))[:_LONGEST_TAG]


def open(  # noqa: A001 read as driftline.open
    store: str | os.PathLike[str] | None = None, settings: Settings | None = None
) -> Driftline:
    """Open a watch list: a path or `postgresql://` URL, or the one in the user's data folder. A new one is created.

    Without `settings` they are read from the settings file and the environment, see `load_settings`.
    """
    name = store_name(store)
    if settings is None:
        settings = load_settings(store=name)
    elif not isinstance(settings, Settings):
        raise UsageError("settings takes a driftline.Settings: write settings=driftline.Settings(host_delay=2).")
    return Driftline(Store.open(name or settings.store), settings)
