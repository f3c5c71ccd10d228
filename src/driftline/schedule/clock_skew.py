"""Times that are in the future because a clock was set back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from driftline.store.schedule_records import CLOCK_TOLERANCE, read_clock_skew, save_clock_skew

if TYPE_CHECKING:
    from driftline.schedule.page_table import Floats
    from driftline.store.engine import Store


class Ahead:
    """Times in the future, from before a clock was set back: all count as the moment at which any was first seen.

    That moment is kept in the store for as long as there are such times, however often they are read anew, and by
    whichever program: else it would move along with the clock, and what is due some time after it never would be. What
    is recorded is left as it is, for it may be today's clock that is wrong.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: float | None = None
        self._met = False

    def begin(self) -> None:
        """All times are about to be read anew."""
        self._met = False
        self._seen = read_clock_skew(self._store)

    def settled(self, times: Floats, now: float) -> Floats:
        """These times, none of them later than now by more than clocks differ anyway."""
        ahead = times > now + CLOCK_TOLERANCE
        if not ahead.any():
            return times
        self._met = True
        if self._seen is None or self._seen > now + CLOCK_TOLERANCE:
            save_clock_skew(self._store, now)
            self._seen = now
        return np.where(ahead, self._seen, times)

    def forget(self) -> None:
        """All times were read: if none was in the future, the next that is was recorded by another wrong clock."""
        if self._seen is not None and not self._met:
            save_clock_skew(self._store, None)
            self._seen = None
