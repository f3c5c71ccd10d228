"""How long pages that fail are left alone, those for longer that are gone, and hosts that asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from driftline.headers import LONGEST_PAUSE
from driftline.scheduling.absence import GONE_AFTER, gone
from driftline.scheduling.index import PROBE
from driftline.scheduling.queries import redirected

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from driftline.scheduling.ahead import Ahead
    from driftline.scheduling.index import Floats, Places
    from driftline.scheduling.learning import Learned
    from driftline.versions.store import Store


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
        elsewhere = redirected(self._store, pages.tolist())
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
