"""Which pages are gone for good: their address or their host is no more, at several checks spread over days.

A host whose name is not found says something only if other pages could be fetched meanwhile: a machine that was offline
has not lost its pages.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from driftline.http.headers import LONGEST_PAUSE
from driftline.schedule.page_table import PROBE
from driftline.store.schedule_records import hours_online, missing_pages, redirect_targets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from driftline.schedule.clock_skew import Ahead
    from driftline.schedule.page_stats import Learned
    from driftline.schedule.page_table import Floats, Places
    from driftline.store.engine import Store


GONE_AFTER, GONE_SECONDS = 4, 3 * 86_400.0  # checks up to the last, over so long at least
_HOUR = 3_600


def gone(store: Store, page_ids: Sequence[int], now: float) -> set[int]:
    """Those of these failing pages that were not there at all checks for days.

    Checks in the future count for nothing: a clock that was wrong once makes days of minutes.
    """
    found = missing_pages(store, page_ids, now)
    rows = [row for row in found if row.times >= GONE_AFTER and row.last - row.first >= GONE_SECONDS]
    # it is the later half of the failures that counts: who went offline after the first of them has lost no page
    nameless = {row.page_id: ((row.first + row.last) / 2, row.last) for row in rows if row.nameless}
    online = _online(store, list(nameless.values()))
    doubtful = {page for page, so in zip(nameless, online, strict=True) if not so}
    return {row.page_id for row in rows} - doubtful


def _online(store: Store, spans: Sequence[tuple[float, float]]) -> list[bool]:
    """Return for each of these times whether other pages could be fetched in it."""
    if not spans:
        return []
    hours = hours_online(store, min(first for first, _ in spans))
    return [bisect_left(hours, first / _HOUR) < bisect_left(hours, last / _HOUR) for first, last in spans]


class Patience:
    """Says of pages whether they may be checked at all, after what their last checks were.

    `every` is the interval of all pages which have none of their own, infinite if they have none at all. `early` as in
    `Index.pick`. A server that says when to ask again means all pages of its host, which is not that of the page where
    this one leads to another.
    """

    def __init__(self, store: Store, ahead: Ahead, every: float, early: float = 0.0) -> None:
        self._store = store
        self._every = every
        self._early = early
        self._ahead = ahead
        self._judged: dict[int, tuple[int, bool]] = {}

    def stand_by(self, known: Learned, places: Places, told: dict[str, Floats], now: float) -> None:
        """Leave those of these pages alone for a while that fail, and for long if they are gone; the others not."""
        index = known.index
        failures = told["failures"]
        index.failures[places] = 0
        index.not_before[places] = -np.inf
        index.gone[places] = False
        bad = failures > 0
        known.asked.take_back(index.page[places])
        places, failures, tried, retry = places[bad], failures[bad], told["checked_at"][bad], told["retry_at"][bad]
        last = self._ahead.settled(np.where(np.isnan(tried), now, tried), now)
        index.fail(places, failures, last, every=self._every, early=self._early)
        index.gone[places] = self._are_gone(known, places, now)
        index.not_before[places[index.gone[places]]] = last[index.gone[places]] + PROBE
        # what a server asks for goes before what the user asked for; it asked for a time from when it was asked
        waits = np.minimum(retry - tried, LONGEST_PAUSE)
        asked = last + np.where(np.isnan(waits), 0.0, waits)
        index.not_before[places] = np.maximum(index.not_before[places], asked)
        held = asked > now
        self._note(known, places[held], asked[held])

    def _note(self, known: Learned, places: Places, until: Floats) -> None:
        """Leave the hosts alone that refused these pages: those which the pages lead to, where they do."""
        pages = known.index.page[places]
        hosts = known.index.host[places]
        elsewhere = redirect_targets(self._store, pages.tolist())
        if elsewhere:
            hosts = hosts.copy()
            hosts[np.isin(pages, list(elsewhere))] = known.hosts.of(
                [elsewhere[page] for page in pages.tolist() if page in elsewhere]
            )
        known.asked.note(hosts, pages, until)

    def forget(self, known: Learned) -> None:
        """Let go of pages that fail no more, or are no more."""
        failing = set(known.index.page[known.index.failures >= GONE_AFTER].tolist())
        self._judged = {page: judged for page, judged in self._judged.items() if page in failing}

    def _are_gone(self, known: Learned, places: Places, now: float) -> NDArray[np.bool_]:
        """Which of these pages are gone; that is asked once after each check of a page."""
        often = places[known.index.failures[places] >= GONE_AFTER]
        upto = dict(zip(known.index.page[often].tolist(), known.upto[often].tolist(), strict=True))
        doubtful = [page for page, check in upto.items() if self._judged.get(page, (0, False))[0] != check]
        found = gone(self._store, doubtful, now)
        self._judged |= {page: (upto[page], page in found) for page in doubtful}
        pages = known.index.page[places].tolist()
        return np.array([page in upto and self._judged[page][1] for page in pages], np.bool_)
