"""Times that are in the future because a clock was set back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from driftline.scheduling.index import Floats


class Ahead:
    """Times in the future, from before a clock was set back: each counts as the moment at which it was first seen.

    That moment is kept, however often the time itself is read anew: else it would move along with the clock, and what
    is due some time after it never would be.
    """

    def __init__(self) -> None:
        self._seen: dict[int, tuple[float, float]] = {}

    def settled(self, page_ids: NDArray[np.int64], times: Floats, now: float) -> Floats:
        """These times of these pages, none of them later than now."""
        found = times.copy()
        for which in np.flatnonzero(times > now).tolist():
            page, then = int(page_ids[which]), float(times[which])
            known, seen = self._seen.get(page, (then, now))
            self._seen[page] = (then, min(seen, now) if known == then else now)
            found[which] = self._seen[page][1]
        return found

    def forget(self, now: float) -> None:
        """Let go of times that are in the future no more."""
        self._seen = {page: times for page, times in self._seen.items() if times[0] > now}
