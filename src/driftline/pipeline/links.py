"""The link queue: what is left to crawl, handed out to producers."""

from __future__ import annotations

import threading
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from driftline.model import Link


class LinkQueue:
    """Gives each link to one producer. Links are drawn from `source` only as they are wanted."""

    def __init__(self, source: Iterator[Link]) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._exhausted = False
        self._taken = 0

    def take(self, most: int) -> list[Link]:
        """Up to `most` links; fewer, or none, only when there are no more."""
        with self._lock:
            if self._exhausted:
                return []
            links = list(islice(self._source, most))
            self._exhausted = len(links) < most
            self._taken += len(links)
            return links

    def close(self) -> None:
        """Hand out nothing more."""
        with self._lock:
            self._exhausted = True

    @property
    def exhausted(self) -> bool:
        """Whether there is nothing more to hand out."""
        return self._exhausted

    @property
    def taken(self) -> int:
        """How many links were handed out."""
        return self._taken
