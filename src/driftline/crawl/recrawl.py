"""Crawls watched sites again when they are due, for as long as a run keeps checking pages.

A round ends in the transaction that publishes what it found. If a run is killed before, the next one continues the
round, finds that nothing is left to fetch, and publishes the same.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from driftline.crawl.report import news_of, round_figures
from driftline.durations import parse_interval
from driftline.errors import RunStalled, RunStopped, StoreError, StoreLocked, StoreUnavailable, UsageError
from driftline.model.event import EventSource
from driftline.pipeline.stop import Stop
from driftline.plurals import count
from driftline.store.locks import patiently
from driftline.urls import without_password

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from driftline.crawl.report import CrawlReport
    from driftline.model.event import Event
    from driftline.store.crawls import Site

_LOOK = 5.0  # seconds between two looks at which sites are due
_REST = 30.0  # seconds for which pages are checked, at least, before sites are crawled again
_LONGEST_WAIT = 3_600.0  # seconds, as a clock can be set to
_LOG = logging.getLogger(__name__)


class Kept(Protocol):
    """The watched sites."""

    def kept(self) -> list[Site]:
        """Return all of them."""

    def finish(self, site_id: int, number: int, now: float, found: Sequence[Event]) -> None:
        """Note that the round of this number is complete, and publish the events that it found."""


class Rounds:
    """Crawls the sites that are due, alternating with the checks of pages. Used by one thread.

    `crawl` continues the round of a site, or begins the next, until it is done or stopped, and leaves the round open.
    A site without an interval of its own is crawled `every` so many seconds, or never; `early` is the part of the
    interval that may be missing. `remark` is called with sentences about how things stand.
    """

    def __init__(
        self, sites: Kept, crawl: Callable[[Site, Stop], CrawlReport], stop: Stop,
        remark: Callable[[str], None], *, every: float | None, early: float = 0.0,
        clock: Callable[[], float] = time.time, ticks: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._sites = sites
        self._crawl = crawl
        self._stop = stop
        self._bell = stop.listen()
        self._remark = remark
        self._every = every
        self._early = early
        self._clock = clock
        self._ticks = ticks
        self._look_at = ticks()
        self._found: dict[int, int] = {}  # the last complete round of a site
        self._named: set[int] = set()  # sites that were announced as being crawled
        self._not_before: dict[int, float] = {}

    def __repr__(self) -> str:
        return f"<Rounds every={self._every} crawling={len(self._named)} postponed={len(self._not_before)}>"

    def due(self) -> bool:
        """Return whether a site is due, and pages were checked long enough."""
        if self._ticks() < self._look_at:
            return False
        self._look_at = self._ticks() + _LOOK
        return bool(self._due())

    def go(self, seconds: float | None = None) -> list[str]:
        """Crawl what is due, to the end, or for so many seconds. Returns the changed pages of rounds that are done.

        Raises StoreBusy if another process checks pages at the moment. If the store cannot be used until the seconds
        are over, or nothing moves, the next call continues the crawl.
        """
        changed: list[str] = []
        try:
            with self._turn(seconds) as turn:
                for site in self._due():
                    if turn.requested:
                        break
                    changed += self._crawled(site, turn)
        except (RunStalled, RunStopped, StoreLocked, StoreUnavailable):
            if seconds is None or self._stop.requested:
                raise
        finally:
            self._look_at = self._ticks() + _REST
        return changed

    def _due(self) -> list[Site]:
        now = self._clock()
        kept = patiently(self._sites.kept, lambda: self._stop.requested)
        due = [site for site in kept if self._due_at(site, now) <= now]
        return sorted(due, key=lambda site: site.started_at)  # so that a large one does not keep others waiting

    def _due_at(self, site: Site, now: float) -> float:
        own = site.options.get("every")
        every = self._every if own is None else parse_interval(own)
        if every is None:
            return math.inf
        earliest = self._not_before.get(site.id, -math.inf)
        cut_short = site.finished_at is None and site.options.get("most") is None
        if cut_short and self._found.get(site.id) != site.round:
            return earliest
        started = site.started_at if site.started_at <= now else -math.inf  # a clock was wrong then
        return max(earliest, started + every * (1 - self._early))

    def _crawled(self, site: Site, turn: Stop) -> list[str]:
        seed = site.seeds[0]
        about = {"seed": without_password(seed), "site": site.id, "round": site.round}
        _LOG.info("watched site is due: crawling it", extra=about)
        if site.id not in self._named:
            self._named.add(site.id)
            self._remark(f"Crawling {seed}, which is kept watched.")
        try:
            report = self._crawl(site, turn)
        except UsageError as error:
            _LOG.warning("watched site is not crawled again: %s", error, extra=about)
            self._remark(f"{seed} is not crawled again: {error}")
            self._not_before[site.id] = math.inf
            return []
        if report.quiet:
            self._not_before[site.id] = min(report.quiet.values()).timestamp()
            _LOG.info("watched site is postponed: its hosts asked for a pause", extra=about)
        if report.left:
            return []
        self._found[site.id] = report.number
        self._named.discard(site.id)
        self._finish(site, report)
        _LOG.info("round ended", extra=round_figures(report))
        self._remark(_summary(seed, report))
        return report.changed

    def _finish(self, site: Site, report: CrawlReport) -> None:
        """End the round and publish what it found. If the store cannot be written, the next run does it."""
        now = self._clock()
        found = news_of(report, now, EventSource.RUN) if report.number > 1 else []
        with suppress(StoreError):
            patiently(lambda: self._sites.finish(site.id, report.number, now, found), lambda: self._stop.requested)

    @contextmanager
    def _turn(self, seconds: float | None) -> Iterator[Stop]:
        """Return a stop that is requested after so many seconds, or with that of the run."""
        if seconds is None:
            yield self._stop
            return
        turn = Stop()
        end = self._ticks() + seconds
        over = threading.Event()

        def watch() -> None:
            while not over.is_set() and not self._stop.requested and (left := end - self._ticks()) > 0:
                self._bell.wait(min(left, _LONGEST_WAIT))
            turn.request()

        watcher = threading.Thread(target=watch, name="turn", daemon=True)
        watcher.start()
        try:
            yield turn
        finally:
            over.set()
            self._bell.ring()
            watcher.join()


def _summary(seed: str, report: CrawlReport) -> str:
    figures = {
        "new": len(report.new), "gone": len(report.gone), "moved": len(report.moved),
        "to be checked for a change": len(report.changed),
    }  # fmt: skip
    found = ", ".join(f"{many:,} {word}" for word, many in figures.items() if many and report.number > 1)
    unread = len(report.unread_lists)
    missing = f"; {unread:,} of its sitemaps and feeds could not be read" if unread else ""
    pages = count(report.pages, "page")
    return f"Crawled {seed}: {pages}{found and ', '}{found}{missing}."
