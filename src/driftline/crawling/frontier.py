"""The frontier: the addresses that wait, the most promising first, as a source of links for the pipeline."""

from __future__ import annotations

import heapq
import threading
from typing import TYPE_CHECKING

from driftline.versions.crawled import KNOWN, Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from driftline.model import Link

_MANY = 1_000_000


class Frontier:
    """Hands out addresses until none waits and none is under way: what comes of one may bring more. For any thread.

    The store has it all; here are only numbers, and `links` makes links of them when they are wanted, leaving out those
    that no longer are. `most` pages are handed out, and no more than `ahead` at a time, so that what they lead to can
    change the order. Pages that earlier rounds found wait until all else is done: a sitemap may say meanwhile that they
    are as they were.
    """

    def __init__(
        self, links: Callable[[Sequence[int]], list[Link]], *, most: int | None = None, ahead: int | None = None
    ) -> None:
        self._links = links
        self._left = _MANY if most is None else most
        self._ahead = _MANY if ahead is None else ahead
        self._lock = threading.Lock()
        self._heap: list[Waiting] = []
        self._out: dict[int, Waiting] = {}
        self._new_out = 0
        self._put_off: set[int] = set()
        self._closed = False
        self._wake: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        """How many addresses wait or are under way."""
        return len(self._heap) + len(self._out)

    def settle(self, ids: Iterable[int], places: Iterable[Waiting] = ()) -> None:
        """Something came of these, and more places wait because of it; one may be named twice and is fetched once."""
        with self._lock:
            for number in ids:
                place = self._out.pop(number, None)
                if place is not None and place.priority < KNOWN:
                    self._new_out -= 1
            for place in places:
                heapq.heappush(self._heap, place)
        self._wake()

    def take(self, most: int) -> list[Link]:
        """Up to `most` links, without waiting for any."""
        with self._lock:
            taken = [] if self._closed else self._pop(min(most, self._ahead - len(self._out)))
        if not taken:
            return []
        links = self._links([place.id for place in taken])
        if len(links) < len(taken):
            there = {link.page_id for link in links}
            missing = [place for place in taken if place.id not in there]
            with self._lock:
                self._left += sum(place.kind == "page" for place in missing)
            self.settle(place.id for place in missing)
        return links

    def _pop(self, most: int) -> list[Waiting]:
        taken: list[Waiting] = []
        heap = self._heap
        while heap and len(taken) < most:
            place = heap[0]
            if place.priority >= KNOWN and self._new_out:
                break
            if place.kind == "page" and not self._left:
                break
            heapq.heappop(heap)
            if place.id in self._out or place.id in self._put_off:
                continue
            self._left -= place.kind == "page"
            self._new_out += place.priority < KNOWN
            self._out[place.id] = place
            taken.append(place)
        return taken

    def put_off(self, page_ids: Sequence[int], seconds: float) -> None:
        """Leave these to the next crawl, for their hosts want to be left alone."""
        del seconds
        with self._lock:
            self._put_off.update(page_ids)
        self.settle(page_ids)

    def close(self) -> None:
        """Hand out nothing more."""
        self._closed = True

    @property
    def exhausted(self) -> bool:
        """Whether there never is anything more to hand out."""
        with self._lock:
            if self._closed:
                return True
            return not self._out and (not self._heap or (self._left <= 0 and self._heap[0].kind == "page"))

    def listen(self, wake: Callable[[], None], give_back: Callable[[], list[int]]) -> None:
        """Call `wake` whenever there may be more to take; nothing is wanted back."""
        del give_back
        self._wake = wake
