"""Recorded times that lie in the future because a clock was set back."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

from driftline.store.schedule_records import CLOCK_TOLERANCE, read_clock_skew, save_clock_skew

if TYPE_CHECKING:
    from driftline.schedule.page_table import Floats
    from driftline.store.engine import Store

_LOG = logging.getLogger(__name__)


class ClockSkew:
    """Replaces recorded times in the future by the moment at which any of them was first seen.

    That moment is kept in the store for as long as there are such times, for all processes: if each reading used its
    own current time, it would move along with the clock, and nothing counted from it would ever be due. The records
    themselves are not changed, because it may be today's clock that is wrong.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._first_seen: float | None = None
        self._seen_again = False

    def __repr__(self) -> str:
        return f"<ClockSkew first_seen={self._first_seen}>"

    def start_reading(self) -> None:
        """Prepare for reading all recorded times anew."""
        self._seen_again = False
        self._first_seen = read_clock_skew(self._store)

    def clamp(self, times: Floats, now: float) -> Floats:
        """Return these times with those in the future replaced; differences usual between two clocks are kept."""
        future = times > now + CLOCK_TOLERANCE
        if not future.any():
            return times
        self._seen_again = True
        if self._first_seen is None or self._first_seen > now + CLOCK_TOLERANCE:
            _LOG.debug("%d recorded times are in the future: the clock was set back", int(future.sum()))
            save_clock_skew(self._store, now)
            self._first_seen = now
        return np.where(future, self._first_seen, times)

    def finish_reading(self) -> None:
        """Forget the moment if no time was in the future: the next such time will be from another wrong clock."""
        if self._first_seen is not None and not self._seen_again:
            _LOG.debug("no recorded time is in the future any more")
            save_clock_skew(self._store, None)
            self._first_seen = None
