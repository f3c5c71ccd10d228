"""The link queue: what is left to crawl, handed out to producers."""

from __future__ import annotations

import threading
from itertools import islice
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from driftline.model import Link


class Source(Protocol):
    """Where links come from: a queue that is filled from the start, or a feed that goes on."""

    def take(self, most: int) -> list[Link]:
        """Up to `most` links, each handed out only once; fewer, or none, when there are no more for now."""

    def put_off(self, page_ids: Sequence[int], seconds: float) -> None:
        """These pages are not checked for now: not for so many seconds, or not at all if they are no more."""

    @property
    def exhausted(self) -> bool:
        """Whether there never is anything more to hand out."""

    def close(self) -> None:
        """Hand out nothing more."""

    def listen(self, wake: Callable[[], None], give_back: Callable[[], list[int]]) -> None:
        """Call `wake` whenever there may be more to take, and `give_back` to have pages back that only wait by now."""


class LinkQueue:
    """The links of a run over given pages, which are drawn from `source` only as they are wanted."""

    def __init__(self, source: Iterator[Link]) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._exhausted = self._closed = False

    def take(self, most: int) -> list[Link]:
        """Up to `most` links; fewer, or none, only when there are no more."""
        with self._lock:
            if self.exhausted:
                return []
            links = list(islice(self._source, most))
            self._exhausted = len(links) < most
            return [] if self._closed else links

    def put_off(self, page_ids: Sequence[int], seconds: float) -> None:
        """Nothing to be done: what is not recorded is left to the next run."""

    def close(self) -> None:
        """Hand out nothing more. Waits for nobody: `take` may be reading from a store that does not answer."""
        self._closed = True

    @property
    def exhausted(self) -> bool:
        """Whether there is nothing more to hand out."""
        return self._closed or self._exhausted

    def listen(self, wake: Callable[[], None], give_back: Callable[[], list[int]]) -> None:
        """Nothing comes later that somebody would have to be told of."""
