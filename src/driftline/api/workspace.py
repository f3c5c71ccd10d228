"""The parts of an open watch list: its store, and the objects that read and write it.

Internal: the commands and the watcher use it for what the public `Driftline` does not offer, by `workspace_of`.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING

from driftline.errors import BadSetting, NoTextSearch, StoreError, UnknownVersion, UsageError
from driftline.model.page import Safety
from driftline.settings import parse_rate
from driftline.store.history import Repository, Screenshots
from driftline.store.ledger import Stalls
from driftline.store.pages import Catalog, SharedFilters
from driftline.store.visit_records import Visits
from driftline.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from driftline.api.runs import Runs
    from driftline.model.outcome import Version
    from driftline.model.page import Filter, Page
    from driftline.pipeline.reread import RereadVersions
    from driftline.pipeline.stop import Stop
    from driftline.pipeline.watchdog import Stall
    from driftline.safety.blocking import Reports, UnsafePages
    from driftline.safety.blocklists import Blocklists
    from driftline.settings import Settings
    from driftline.store.access_records import Accesses
    from driftline.store.engine import Store
    from driftline.store.events import EventLog
    from driftline.store.rereads import Readings

    OnProgress = Callable[[int, int], None]  # gets how many of how many are done


_LOG = logging.getLogger(__name__)


def check_together(filters: Sequence[Filter]) -> None:
    """Raise BadFilter if these filters of a page exclude each other."""
    from driftline.detection.extract.filters import merged_filters

    merged_filters((), filters)


class Workspace:
    """An open store, with everything that works on it.

    What only some commands need, most of all the parsers and the network, is imported on first use: a command that
    lists pages does not wait for it.
    """

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float]) -> None:
        self.store = store
        self.settings = settings
        self.clock = clock
        self.catalog = Catalog(store, clock, settings.tracking, check_together)
        self.repository = Repository(store)
        self.screenshots = Screenshots(store)
        self.shared_filters = SharedFilters(store)
        self.visits = Visits(store)
        self.stalls = Stalls(store)
        self._report_trouble: Callable[[str], None] = lambda _: None

    def __repr__(self) -> str:
        return f"<Workspace of {self.store.where}>"

    @cached_property
    def runs(self) -> Runs:
        """What checks and crawls pages."""
        from driftline.api.runs import Runs

        return Runs(self)

    @cached_property
    def unsafe(self) -> UnsafePages:
        """The pages that are blocked by lists or votes: nothing is fetched from them."""
        from driftline.safety.blocking import UnsafePages

        return UnsafePages(self.store, self.settings.unsafe_votes)

    @cached_property
    def blocklists(self) -> Blocklists:
        """The lists of unsafe hosts and addresses."""
        from driftline.safety.blocklists import Blocklists, download

        return Blocklists(self.store, self.clock, partial(download, self.settings))

    @cached_property
    def reports(self) -> Reports:
        """The pages that users reported as unsafe."""
        from driftline.safety.blocking import Reports

        return Reports(self.store, self.clock)

    @cached_property
    def accesses(self) -> Accesses:
        """The credentials, headers and proxies of pages and tags."""
        from driftline.store.access_records import Accesses

        return Accesses(self.store)

    @cached_property
    def _readings(self) -> Readings:
        from driftline.detection.extract.filters import how_read
        from driftline.store.rereads import Readings

        return Readings(self.store, how_read, self.clock)

    def event_log(self, stop: Stop | None = None) -> EventLog:
        """Return the event log. A store that cannot be reached is waited for until `stop`; without one, not at all."""
        from driftline.store.events import EventLog

        return EventLog(self.store, (lambda: True) if stop is None else (lambda: stop.requested))

    def on_trouble(self, report: Callable[[str], None]) -> None:
        """Call `report` with a sentence when the store becomes unreachable or reachable, and when a run stalls."""
        self.store.on_outage = self._report_trouble = report

    def record_stall(self, stall: Stall) -> None:
        """Report a stall and store it for `last_stall`."""
        _LOG.warning(
            "the run stalled for %.0f s", stall.seconds, extra={"seconds": stall.seconds, "report": str(stall)}
        )
        self._report_trouble(str(stall))
        with suppress(StoreError):
            self.stalls.record(self.clock(), stall.seconds, str(stall))

    def two_versions(self, url: str, old: int | None, new: int | None) -> tuple[Version, Version]:
        """Return two versions of a page: those of its newest change, or `new` and the one before it."""
        page = self.catalog.find(url)
        before, after = self.two_numbers(page, old, new)
        return self.repository.version(page, before), self.repository.version(page, after)

    def two_numbers(self, page: Page, old: int | None, new: int | None) -> tuple[int, int]:
        """Return the numbers of two versions of a page, as `two_versions`; UnknownVersion if there are not two yet."""
        if not page.versions:
            self.repository.version(page)  # which raises an error that says why there is none
        if old is None and new is None:
            if page.versions == 1:
                raise UnknownVersion(f"{page.url} has only one version so far: there is nothing to compare yet.")
            return self.repository.newest_change(page)
        after = page.versions if new is None else new
        before = after - 1 if old is None else old
        if before == 0:
            raise UsageError(f"Version 1 of {page.url} is the first: name two versions to compare.")
        return before, after

    def gone(self, pages: Iterable[Page]) -> set[int]:
        """Return the ids of those of these pages that are gone: not found at any of their checks for days."""
        failing = [page for page in pages if page.failures]
        if not failing:
            return set()  # most often: without loading numpy
        from driftline.schedule.backoff import GONE_AFTER, gone

        return gone(self.store, [page.id for page in failing if page.failures >= GONE_AFTER], self.clock())

    def safety_of(self, pages: Iterable[Page], hosts: Callable[[], set[str]] | None = None) -> dict[int, Safety]:
        """Return why pages are blocked and what looks dangerous on them, by page id, without those that are fine.

        `hosts` returns the hosts of all pages, for a caller that asks many times and reads them once.
        """
        from driftline.safety.warnings import warnings_of

        listed = list(pages)
        self.unsafe.refresh()
        blocked = {page.id: reason for page in listed if (reason := self.unsafe.why(page.url)) is not None}
        warned = warnings_of(self.store, listed, hosts or self.catalog.hosts)
        return {
            page.id: Safety(blocked.get(page.id), tuple(warned.get(page.id, ())))
            for page in listed if page.id in blocked or page.id in warned
        }  # fmt: skip

    def require_room(self, every: float, urls: Sequence[str]) -> None:
        """Raise BadSetting if these pages, checked every so many seconds, would exceed a budget that was set.

        The interval replaces the one that a page has. A page that needs no more checks than before is not refused.
        """
        from driftline.schedule.budget import shortages

        budget, host_budget = self.settings.budget, self.settings.host_budget
        if budget is None and host_budget is None:
            return
        needed = self.catalog.asked()
        more = {url: 1 / every for url in urls if 1 / every > needed.get(url, 0.0)}
        if not more:
            return
        hosts = set(map(host_of, more))
        if found := shortages(needed | more, rate_of(budget), rate_of(host_budget), hosts):
            raise BadSetting(found[0])

    def left_to_read(self) -> tuple[int, int]:
        """Return how many versions are still to be read again, and how many could not be and stay as they were."""
        return self._readings.left()

    def catch_up(
        self, stop: Stop | None = None, enough: Callable[[], bool] | None = None, progress: OnProgress | None = None
    ) -> RereadVersions:
        """Read versions again that were read through other filters or by an older extractor, then index all versions
        for searching; checks may go on meanwhile.

        Bodies stay as they are, and no change is reported. It ends early on `stop`, or as soon as `enough` returns
        True; what is done stays done. `progress` gets how many of how many pages are read, then versions indexed.
        """
        from driftline.detection.worker_pool import WorkerPool
        from driftline.pipeline.reread import reread
        from driftline.pipeline.stop import Stop
        from driftline.store.search_index import WordIndex

        stop = stop or Stop()
        settings = self.settings
        workers = WorkerPool(most=1, deadline=settings.worker_deadline, memory=settings.worker_memory)
        done = enough or (lambda: False)
        try:
            read = reread(self._readings, workers, stop, done, progress)
        finally:
            workers.close()
        with suppress(NoTextSearch):
            WordIndex(self.store, self.repository).update(progress, lambda: done() or stop.requested)
        return read


def rate_of(text: str | None) -> float | None:
    """Return the checks per second of a budget such as '10/s'; None for None."""
    return None if text is None else parse_rate(text)
