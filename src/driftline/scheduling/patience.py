"""How long pages that fail are left alone, those for longer that are gone, and hosts that asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from driftline.scheduling.absence import GONE_AFTER, gone
from driftline.scheduling.ahead import Ahead
from driftline.scheduling.index import DAY, MOST_FAILURES, PROBE, back_off, lead

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from driftline.scheduling.index import Floats, Places
    from driftline.scheduling.learning import Learned
    from driftline.versions.store import Store

_LONGEST_RETRY = DAY  # seconds: servers ask for years


class Patience:
    """Says of pages whether they may be checked at all, after what their last checks were.

    `every` is the interval of all pages which have none of their own, infinite if they have none at all. `early` as in
    `Index.pick`. A server that says when to ask again means all pages of its host.
    """

    def __init__(self, store: Store, every: float, early: float = 0.0) -> None:
        self._store = store
        self._every = every
        self._early = early
        self._tried = Ahead()
        self._judged: dict[int, tuple[int, bool]] = {}

    def stand_by(self, known: Learned, places: Places, told: dict[str, Floats], now: float) -> None:
        """Leave those of these pages alone for a while that fail, and for long if they are gone; the others not."""
        index = known.index
        failures = told["failures"]
        index.failures[places] = np.minimum(failures, MOST_FAILURES)
        index.not_before[places] = -np.inf
        index.gone[places] = False
        bad = failures > 0
        known.asked.take_back(index.host[places], index.page[places])
        places, last, retry = places[bad], told["checked_at"][bad], told["retry_at"][bad]
        last = self._tried.settled(index.page[places], np.where(np.isnan(last), now, last), now)
        index.gone[places] = self._are_gone(known, places, now)
        every = index.every[places]
        wait = back_off(index.failures[places], np.where(np.isinf(every), self._every, every))
        wait -= lead(self._early, wait)
        # what a server asks for goes before what the user asked for
        asked = np.where(np.isnan(retry), last, np.minimum(retry, last + _LONGEST_RETRY))
        index.not_before[places] = np.maximum(last + np.where(index.gone[places], PROBE, wait), asked)
        told_when = ~np.isnan(retry)
        known.asked.note(index.host[places[told_when]], index.page[places[told_when]], asked[told_when])

    def forget(self, known: Learned, now: float) -> None:
        """Let go of pages that fail no more, or are no more."""
        failing = set(known.index.page[known.index.failures >= GONE_AFTER].tolist())
        self._judged = {page: judged for page, judged in self._judged.items() if page in failing}
        self._tried.forget(now)

    def _are_gone(self, known: Learned, places: Places, now: float) -> NDArray[np.bool_]:
        """Which of these pages are gone; that is asked once after each check of a page."""
        often = places[known.index.failures[places] >= GONE_AFTER]
        upto = dict(zip(known.index.page[often].tolist(), known.upto[often].tolist(), strict=True))
        doubtful = [page for page, check in upto.items() if self._judged.get(page, (0, False))[0] != check]
        found = gone(self._store, doubtful, now)
        self._judged |= {page: (upto[page], page in found) for page in doubtful}
        pages = known.index.page[places].tolist()
        return np.array([page in upto and self._judged[page][1] for page in pages], np.bool_)
