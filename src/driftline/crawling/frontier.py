"""The frontier: the addresses that wait, the most promising first, as a source of links for the pipeline."""

from __future__ import annotations

import heapq
import threading
from typing import TYPE_CHECKING

from driftline.crawling.limits import MOST
from driftline.versions.crawled import KNOWN, Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from driftline.model import Link

_LISTS_AT_ONCE = 4  # under way: each may name fifty thousand pages


class Frontier:
    """Hands out addresses until none waits and none is under way: what comes of one may bring more. For any thread.

    The store has it all; here are only numbers, and `links` makes links of them when they are wanted, leaving out those
    that no longer are. `most` pages are handed out, and no more than `ahead` at a time, so that what they lead to can
    change the order. Pages that earlier rounds found wait until all else is done: a sitemap may say meanwhile that they
    are as they were. Of lists, which may be long, only a few are under way at a time.
    """

    def __init__(
        self, links: Callable[[Sequence[int]], list[Link]], *, most: int = MOST, ahead: int | None = None
    ) -> None:
        self._links = links
        self._left = most
        self._ahead = most + _LISTS_AT_ONCE if ahead is None else ahead
        self._lock = threading.Lock()
        self._heap: list[Waiting] = []
        self._lists: list[Waiting] = []
        self._out: dict[int, Waiting] = {}
        self._new_out = self._lists_out = 0
        self._put_off: set[int] = set()
        self.new = 0  # pages that wait and that no earlier round knew
        self._closed = False
        self._wake: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        """How many addresses wait or are under way."""
        return len(self._heap) + len(self._lists) + len(self._out)

    @property
    def limited(self) -> bool:
        """Whether pages wait that are not handed out, for there were enough."""
        return bool(self._heap) and self._left <= 0

    def settle(self, ids: Iterable[int], places: Iterable[Waiting] = ()) -> None:
        """Something came of these, and more places wait because of it; one may be named twice and is fetched once."""
        with self._lock:
            for number in ids:
                place = self._out.pop(number, None)
                if place is not None:
                    self._new_out -= place.priority < KNOWN
                    self._lists_out -= place.kind != "page"
            for place in places:
                self.new += _is_new_page(place)
                heapq.heappush(self._heap if place.kind == "page" else self._lists, place)
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
        while self._lists and len(taken) < most and self._lists_out < _LISTS_AT_ONCE:
            self._lists_out += self._hand_out(heapq.heappop(self._lists), taken)
        heap = self._heap
        while heap and len(taken) < most and self._left > 0:
            if heap[0].priority >= KNOWN and (self._new_out or self._lists):
                break
            place = heapq.heappop(heap)
            self.new -= _is_new_page(place)
            self._left -= self._hand_out(place, taken)
        return taken

    def _hand_out(self, place: Waiting, taken: list[Waiting]) -> bool:
        """Let this be under way, unless it is already, or has to wait for the next crawl; whether it is now."""
        if place.id in self._out or place.id in self._put_off:
            return False
        self._new_out += place.priority < KNOWN
        self._out[place.id] = place
        taken.append(place)
        return True

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
            return not self._out and not self._lists and (not self._heap or self._left <= 0)

    def listen(self, wake: Callable[[], None], give_back: Callable[[], list[int]]) -> None:
        """Call `wake` whenever there may be more to take; nothing is wanted back."""
        del give_back
        self._wake = wake


def _is_new_page(place: Waiting) -> bool:
    return place.kind == "page" and place.priority < KNOWN
