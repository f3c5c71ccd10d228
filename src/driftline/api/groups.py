"""The groups of methods that a watch list offers besides its history: schedule, visits, safety, maintenance."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driftline.api.arguments import (
    check_flags,
    check_number,
    check_progress,
    check_run,
    check_texts,
    check_urls,
    path_text,
)
from driftline.durations import format_interval, seconds_of, utc, utc_or_none
from driftline.errors import BadSetting, UsageError
from driftline.urls import host_of
from driftline.urls.tracking import Tracking
from driftline.visits.rank import RankOrder, order_named, rank

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from driftline.api.workspace import Workspace
    from driftline.durations import Duration
    from driftline.errors import DriftlineError
    from driftline.model.page import BlockedPage, Lane, Policy, Safety
    from driftline.model.visit import Visited
    from driftline.pipeline.reread import RereadVersions
    from driftline.pipeline.stop import Stop
    from driftline.safety.blocklists import LoadedBlocklist
    from driftline.store.compaction import CompactedStore
    from driftline.store.ledger import StallRecord
    from driftline.store.safety_records import Blocklist, UnsafeReport
    from driftline.visits.importer import ImportedVisits


@dataclass(frozen=True, slots=True, kw_only=True)
class UpcomingCheck:
    """The next check of a page: when, and in words why then.

    `due_at` is None if the page is not checked as things are. `lane` names the rule that decides, see
    docs/scheduling.md, `every` is the page's own interval, `chance` the probability that the page changed since its
    last check, at `checked_at`, and `failures` how many checks failed since the last successful one.
    """

    url: str
    due_at: datetime | None
    why: str
    lane: Lane
    every: timedelta | None
    chance: float
    checked_at: datetime | None
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedSite:
    """A site whose pages are watched: where its crawls start, with which options, and when the last one started."""

    seeds: list[str]
    tag: str
    options: dict[str, Any]
    crawled_at: datetime
    complete: bool


class Schedule:
    """See what `watch` will check next and why, and which sites it crawls again."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def __repr__(self) -> str:
        return f"<Schedule of {self._workspace.store.where}>"

    def upcoming(
        self, limit: int | None = 20, *, every: Duration = "1h", budget: str | None = None, policy: Policy | None = None
    ) -> list[UpcomingCheck]:
        """Return the next check of each page, the earliest first; see `driftline schedule`.

        `every` is the average time between checks of pages without an interval of their own; `budget` and `policy` are
        as the settings say unless given.
        """
        check_number("limit", limit)
        check_texts(budget=budget, policy=policy, optional=True)
        interval = format_interval(seconds_of(every))
        scheduler = self._workspace.runs.scheduler(every=interval, budget=budget, policy=policy, to_look=True)
        scheduler.refresh()
        now = self._workspace.clock()
        return [
            UpcomingCheck(
                url=one.url, due_at=utc_or_none(one.due_at), why=one.why(now), lane=one.lane,
                every=None if one.every is None else timedelta(seconds=one.every), chance=one.chance,
                checked_at=utc_or_none(one.tried_at), failures=one.failures,
            )
            for one in scheduler.upcoming(limit)
        ]  # fmt: skip

    def sites(self) -> list[WatchedSite]:
        """Return the watched sites, with the options that they are crawled with."""
        from driftline.store.crawls import Sites

        return [
            WatchedSite(
                seeds=site.seeds, tag=site.tag, options=site.options, crawled_at=utc(site.started_at),
                complete=site.finished_at is not None,
            )
            for site in Sites(self._workspace.store).kept()
        ]  # fmt: skip


class VisitTotals:
    """Import visits to pages from browsers, server logs and tables, and read what they add up to."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def __repr__(self) -> str:
        return f"<VisitTotals of {self._workspace.store.where}>"

    def import_file(
        self, path: str | os.PathLike[str], *, format: str | None = None, site: str | None = None, add: bool = False,  # noqa: A002 as the option is called
        label: str | None = None, progress: Callable[[int, int], None] | None = None,
    ) -> ImportedVisits:  # fmt: skip
        """Count the visits of a browser's history, a server log or a CSV file, each once, and return the result.

        The format (`chrome`, `firefox`, `log` or `csv`) is detected; a log needs its `site`. With `add`, pages that
        were available at least once are watched from now on. `label` names the file in errors, `progress` gets how many
        of how many visits are done.
        """
        from driftline.visits.importer import VisitFormat, import_visits

        name = path_text("path", path)
        check_texts(format=format, site=site, label=label, optional=True)
        check_flags(add=add)
        check_progress(progress)
        workspace = self._workspace
        try:
            wanted = None if format is None else VisitFormat(format)
        except ValueError:
            raise BadSetting(f"'{format}' is not a format of visits: use {', '.join(VisitFormat)}.") from None
        return import_visits(
            workspace.visits, Path(name), now=workspace.clock(), format=wanted, site=site, called=label,
            tracking=Tracking(workspace.settings.tracking), names=workspace.catalog.names,
            watch=workspace.catalog.add if add else None, progress=progress,
        )  # fmt: skip

    def totals(self) -> list[Visited]:
        """Return the totals of the visits to each page, watched or not, in the order of the first visits."""
        return self._workspace.visits.all()

    def ranked(self, by: RankOrder | str = RankOrder.INTELLIGENT, limit: int | None = None) -> Iterator[Visited]:
        """Yield what `Driftline.rank` returns: by `value`, or with a limit, few pages are in memory at a time."""
        check_number("limit", limit)
        order = order_named(by)
        workspace = self._workspace
        workspace.unsafe.refresh()
        if order is RankOrder.VALUE:
            return islice(self._safe(self._by_value()), limit if limit is None else min(limit, sys.maxsize))
        return iter(rank(self._safe(workspace.visits.each()), order, workspace.settings.rank_threshold, limit))

    def _safe(self, visited: Iterator[Visited]) -> Iterator[Visited]:
        unsafe = self._workspace.unsafe
        return (one for one in visited if unsafe.why(one.url) is None) if unsafe.any else visited

    def _by_value(self) -> Iterator[Visited]:
        scheduler = self._workspace.runs.scheduler(to_look=True)
        scheduler.refresh()
        pages, values = scheduler.by_value()
        del scheduler  # for a million pages it takes 150 MB
        return self._workspace.visits.with_values(pages, values)


class SafetyLists:
    """Block unsafe pages by lists and by reports, and see which pages are blocked or look dangerous."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def __repr__(self) -> str:
        return f"<SafetyLists of {self._workspace.store.where}>"

    def of(self, *urls: str) -> dict[str, Safety]:
        """Return why these pages are blocked and what looks dangerous on them, by URL; without those that are fine.

        Without URLs, for all pages.
        """
        check_urls("of", urls)
        catalog = self._workspace.catalog
        pages = catalog.find_all(urls) if urls else catalog.all()
        found = self._workspace.safety_of(pages)
        return {page.url: found[page.id] for page in pages if page.id in found}

    def blocked(self) -> list[BlockedPage]:
        """Return the watched pages that are blocked, each with the reason: they are not fetched."""
        return list(self._workspace.unsafe.pages().values())

    def blocklists(self) -> list[Blocklist]:
        """Return the blocklists, in the order in which they were added."""
        return self._workspace.blocklists.all()

    def add_blocklist(self, source: str | os.PathLike[str], name: str | None = None) -> LoadedBlocklist:
        """Add the blocklist in a file or at a URL. It replaces one with the same source or name."""
        check_texts(source=path_text("source", source))
        check_texts(name=name, optional=True)
        return self._workspace.blocklists.add(str(source), name)

    def update_blocklists(self) -> list[LoadedBlocklist | DriftlineError]:
        """Read all blocklists again. A list that cannot be read stays as it is, with the error in its place."""
        return self._workspace.blocklists.update()

    def remove_blocklist(self, name: str) -> Blocklist:
        """Remove the blocklist with this name or source, and return it."""
        check_texts(name=name)
        return self._workspace.blocklists.remove(name)

    def report(self, url: str, *, reason: str = "", votes: int = 1, whole_host: bool = False) -> UnsafeReport:
        """Report a page, watched or not, or its whole host as unsafe. Returns all reports of it together.

        With as many votes as the setting `unsafe_votes`, nothing is fetched from it until the reports are withdrawn.
        """
        check_texts(reason=reason)
        if isinstance(votes, bool) or not isinstance(votes, int) or abs(votes) > sys.maxsize:
            raise UsageError("votes takes a whole number, 1 or more.")
        address = self._address("report", url, whole_host)
        return self._workspace.reports.add(address, reason=reason, votes=votes, whole_host=whole_host)

    def withdraw_report(self, url: str, *, whole_host: bool = False) -> int:
        """Remove the reports of a page, or of its host. Returns how many there were."""
        address = self._address("withdraw_report", url, whole_host)
        return self._workspace.reports.withdraw(address, whole_host=whole_host)

    def reports(self) -> list[UnsafeReport]:
        """Return the reports of each page together, in the order of the first reports."""
        return self._workspace.reports.all()

    def _address(self, method: str, url: str, whole_host: bool) -> str:
        """Return the address that reports of a page, or of its host, are stored under."""
        check_urls(method, [url])
        check_flags(whole_host=whole_host)
        name = self._workspace.catalog.names([url])[url]
        return f"https://{host_of(name)}/" if whole_host else name


class Maintenance:
    """Check the store, make it smaller, and bring it up to date."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def __repr__(self) -> str:
        return f"<Maintenance of {self._workspace.store.where}>"

    def doctor(self) -> list[str]:
        """Return everything that is wrong with the store; empty if every version can be read back to the byte."""
        return [*self._workspace.store.problems(), *self._workspace.repository.read_everything()]

    def compact(self, progress: Callable[[int, int], None] | None = None) -> tuple[RereadVersions, CompactedStore]:
        """Catch up, then make the store smaller by compressing again what was added since the last time.

        Checks may go on meanwhile. Raises StoreError, before anything is written, if the store is damaged. `progress`
        gets how many of how many pages, versions and contents are done.
        """
        from driftline.store.compaction import compact

        check_progress(progress)
        store = self._workspace.store
        store.require_writable()
        store.require_intact()
        return self.catch_up(progress=progress), compact(store, progress)

    def catch_up(
        self, *, stop: Stop | None = None, progress: Callable[[int, int], None] | None = None
    ) -> RereadVersions:
        """Read versions again that were read through other filters or by an older extractor, and index them.

        `watch` does so while nothing is due. No change is reported. What is done when it is stopped stays done.
        """
        check_run(stop=stop, progress=progress)
        return self._workspace.catch_up(stop, progress=progress)

    def last_stall(self) -> StallRecord | None:
        """Return when a run last had work to do and recorded nothing for long, with a report; None if never."""
        return self._workspace.stalls.last()
