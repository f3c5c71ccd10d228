"""How long failing pages wait for their next check, and which of them are gone for good.

A page is gone if it was missing (404, 410, or a host name that does not resolve) at several checks spread over days. A
name that does not resolve counts only if other pages could be fetched meanwhile: otherwise this machine was offline.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from driftline.http.headers import LONGEST_PAUSE
from driftline.schedule.page_table import PROBE
from driftline.store.schedule_records import hours_online, missing_pages, redirect_targets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from driftline.schedule.loader import ClockSkew
    from driftline.schedule.page_stats import PageStats
    from driftline.schedule.page_table import Floats, Places
    from driftline.store.engine import Store

_LOG = logging.getLogger(__name__)

GONE_AFTER, GONE_SECONDS = 4, 3 * 86_400.0  # checks up to the last one, and the time between the first and the last
_HOUR = 3_600


def gone(store: Store, page_ids: Sequence[int], now: float) -> set[int]:
    """Return those of these failing pages that are gone.

    Checks in the future do not count: after a wrong clock, minutes would look like days.
    """
    found = missing_pages(store, page_ids, now)
    rows = [row for row in found if row.times >= GONE_AFTER and row.last - row.first >= GONE_SECONDS]
    # only the later half of the failures counts: this machine may have gone offline after the first of them
    nameless = {row.page_id: ((row.first + row.last) / 2, row.last) for row in rows if row.nameless}
    online = _online(store, list(nameless.values()))
    uncertain = {page for page, so in zip(nameless, online, strict=True) if not so}
    return {row.page_id for row in rows} - uncertain


def _online(store: Store, spans: Sequence[tuple[float, float]]) -> list[bool]:
    """Return for each of these time spans whether other pages could be fetched in it."""
    if not spans:
        return []
    hours = hours_online(store, min(first for first, _ in spans))
    return [bisect_left(hours, first / _HOUR) < bisect_left(hours, last / _HOUR) for first, last in spans]


class Backoff:
    """Sets the time before which a page is not checked, from the results of its last checks.

    `every` is the interval of pages without one of their own, infinite if there is none. `early` is explained at
    `PageTable.pick`. A Retry-After header holds for all pages of the host that sent it, which is another host than
    that of the page where the check was redirected.
    """

    def __init__(self, store: Store, clock_skew: ClockSkew, every: float, early: float = 0.0) -> None:
        self._store = store
        self._every = every
        self._early = early
        self._clock_skew = clock_skew
        self._gone: dict[int, tuple[int, bool]] = {}  # by page: the check it was decided after, and the decision

    def __repr__(self) -> str:
        gone_now = sum(is_gone for _, is_gone in self._gone.values())
        return f"<Backoff gone={gone_now} often_failed={len(self._gone)}>"

    def update(self, stats: PageStats, places: Places, states: dict[str, Floats], now: float) -> None:
        """Set the back-off of these pages from their `states` (FAILURE_COLUMNS), and clear that of pages without."""
        table = stats.table
        failures = states["failures"]
        table.failures[places] = 0
        table.not_before[places] = -np.inf
        table.gone[places] = False
        bad = failures > 0
        stats.retry_after.discard(table.page[places])
        places, failures = places[bad], failures[bad]
        tried, retry_at = states["checked_at"][bad], states["retry_at"][bad]
        last = self._clock_skew.clamp(np.where(np.isnan(tried), now, tried), now)
        table.record_failures(places, failures, last, every=self._every, early=self._early)
        table.gone[places] = self._are_gone(stats, places, now)
        table.not_before[places[table.gone[places]]] = last[table.gone[places]] + PROBE
        # Retry-After takes precedence over the user's interval, and counts from the check that received it
        waits = np.minimum(retry_at - tried, LONGEST_PAUSE)
        until = last + np.where(np.isnan(waits), 0.0, waits)
        table.not_before[places] = np.maximum(table.not_before[places], until)
        held = until > now
        self._hold_hosts(stats, places[held], until[held])

    def _hold_hosts(self, stats: PageStats, places: Places, until: Floats) -> None:
        """Hold back the hosts that answered these pages with Retry-After, after redirects."""
        pages = stats.table.page[places]
        hosts = stats.table.host[places]
        redirected = redirect_targets(self._store, pages.tolist())
        if redirected:
            hosts = hosts.copy()
            hosts[np.isin(pages, list(redirected))] = stats.hosts.of(
                [redirected[page] for page in pages.tolist() if page in redirected]
            )
        stats.retry_after.add(hosts, pages, until)

    def forget_recovered(self, stats: PageStats) -> None:
        """Forget the decisions about pages that do not fail any more, or are not watched any more."""
        failing = set(stats.table.page[stats.table.failures >= GONE_AFTER].tolist())
        self._gone = {page: decided for page, decided in self._gone.items() if page in failing}

    def _are_gone(self, stats: PageStats, places: Places, now: float) -> NDArray[np.bool_]:
        """Return which of these pages are gone; the store is queried once after each check of a page."""
        often = places[stats.table.failures[places] >= GONE_AFTER]
        sequences = dict(zip(stats.table.page[often].tolist(), stats.sequence[often].tolist(), strict=True))
        undecided = [page for page, check in sequences.items() if self._gone.get(page, (0, False))[0] != check]
        found = gone(self._store, undecided, now)
        for page in undecided:
            if page in found and not self._gone.get(page, (0, False))[1]:
                _LOG.debug("page %d is gone: it was missing at all checks for days", page)
        self._gone |= {page: (sequences[page], page in found) for page in undecided}
        pages = stats.table.page[places].tolist()
        return np.array([page in sequences and self._gone[page][1] for page in pages], np.bool_)
