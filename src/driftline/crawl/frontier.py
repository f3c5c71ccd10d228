"""The frontier, which hands out addresses; URL-seen, which knows those that were found already; and the page filter.

The page filter decides which of the addresses that were found are fetched, and why the others are not.

URL-seen is a Bloom filter in front of the store. The filter never forgets an address, but may take a new one for seen:
then the store is queried, so that no page is lost. It is built from the store when a crawl starts, which takes less
time than to keep a copy of it up to date.
"""

from __future__ import annotations

import heapq
import logging
import math
import threading
from collections import defaultdict
from typing import TYPE_CHECKING

from xxhash import xxh3_128_intdigest

from driftline.crawl.crawl_options import MOST
from driftline.crawl.scope import is_file
from driftline.fetch.failures import NOTHING
from driftline.model.page import AddressKind, AddressSource, SkipReason
from driftline.store.crawls import KNOWN, FrontierEntry, Met
from driftline.urls import without_password
from driftline.urls.equivalence import key_of, without_session

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from driftline.crawl.scope import Scope
    from driftline.crawl.traps import Traps
    from driftline.fetch.failures import Blocked
    from driftline.model.outcome import Link

_FEWEST = 10_000
_WRONG = 0.01  # of the new addresses are searched for in the store all the same


class BloomFilter:
    """A set for `expected` byte strings in ten bits each, which may also report a few that were never added."""

    def __init__(self, expected: int) -> None:
        self.expected = max(_FEWEST, expected)
        self._bits = max(64, math.ceil(-self.expected * math.log(_WRONG) / math.log(2) ** 2))
        self._hashes = max(1, round(self._bits / self.expected * math.log(2)))
        self._data = bytearray(self._bits // 8 + 1)
        self.added = 0

    def add(self, key: bytes) -> bool:
        """Add a key. Returns whether it seems to have been there."""
        data, bits = self._data, self._bits
        digest = xxh3_128_intdigest(key)
        place, step = digest >> 64, (digest & 0xFFFF_FFFF_FFFF_FFFF) | 1
        there = True
        for _ in range(self._hashes):
            place += step
            at = place % bits
            byte, mask = at >> 3, 1 << (at & 7)
            if not data[byte] & mask:
                there = False
                data[byte] |= mask
        self.added += not there
        return there

    def __contains__(self, key: bytes) -> bool:
        data, bits = self._data, self._bits
        digest = xxh3_128_intdigest(key)
        place, step = digest >> 64, (digest & 0xFFFF_FFFF_FFFF_FFFF) | 1
        for _ in range(self._hashes):
            place += step
            at = place % bits
            if not data[at >> 3] & (1 << (at & 7)):
                return False
        return True


class UrlSeen:
    """Says whether a key was found before: asks a Bloom filter first, and then the store.

    `look` returns which of some keys are in the store, `all_keys` returns all.
    """

    def __init__(
        self, all_keys: Callable[[], Collection[bytes]], look: Callable[[Sequence[bytes]], set[bytes]]
    ) -> None:
        self._all_keys = all_keys
        self._look = look
        self._filter = self._made()

    def new(self, keys: Iterable[bytes]) -> list[bytes]:
        """Return those of these keys that are new; the store is queried only for those that the filter may have."""
        given = dict.fromkeys(keys)
        doubtful = [key for key in given if key in self._filter]
        seen = self._look(doubtful) if doubtful else set()
        return [key for key in given if key not in seen]

    def add(self, keys: Iterable[bytes]) -> None:
        """Note that these keys are in the store from now on."""
        for key in keys:
            self._filter.add(key)
        if self._filter.added > self._filter.expected:
            self._filter = self._made()  # it would err more often than it should

    def _made(self) -> BloomFilter:
        keys = self._all_keys()
        made = BloomFilter(2 * len(keys))
        for key in keys:
            made.add(key)
        return made


_LISTS_AT_ONCE = 4  # under way: each may name fifty thousand pages


class Frontier:
    """Hands out the addresses to fetch. Used by any thread.

    It is exhausted when none waits and none is being fetched, since every page may add addresses.

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
        self._heap: list[FrontierEntry] = []
        self._lists: list[FrontierEntry] = []
        self._out: dict[int, FrontierEntry] = {}
        self._new_out = self._lists_out = 0
        self._put_off: set[int] = set()
        self.new = 0  # pages that wait and that no earlier round knew
        self._closed = False
        self._wake: Callable[[], None] = lambda: None

    def __repr__(self) -> str:
        # without the lock, for debugging: the numbers may be of slightly different moments
        return (
            f"<Frontier pages={len(self._heap)} lists={len(self._lists)} in_flight={len(self._out)} "
            f"postponed={len(self._put_off)} left={self._left} closed={self._closed}>"
        )

    def __len__(self) -> int:
        """Return how many addresses wait or are under way."""
        return len(self._heap) + len(self._lists) + len(self._out)

    @property
    def limited(self) -> bool:
        """Whether pages wait that are not handed out, because the limit of pages is reached."""
        return bool(self._heap) and self._left <= 0

    def settle(self, ids: Iterable[int], places: Iterable[FrontierEntry] = ()) -> None:
        """Note that these addresses are done, and queue new entries; one that is queued twice is fetched once."""
        with self._lock:
            for number in ids:
                place = self._out.pop(number, None)
                if place is not None:
                    self._new_out -= place.priority < KNOWN
                    self._lists_out -= place.kind is not AddressKind.PAGE
            for place in places:
                self.new += _is_new_page(place)
                heapq.heappush(self._heap if place.kind is AddressKind.PAGE else self._lists, place)
        self._wake()

    def take(self, most: int) -> list[Link]:
        """Return up to `most` links, without waiting for any."""
        with self._lock:
            taken = [] if self._closed else self._pop(min(most, self._ahead - len(self._out)))
        if not taken:
            return []
        links = self._links([place.id for place in taken])
        if len(links) < len(taken):
            there = {link.page_id for link in links}
            missing = [place for place in taken if place.id not in there]
            with self._lock:
                self._left += sum(place.kind is AddressKind.PAGE for place in missing)
            self.settle(place.id for place in missing)
        return links

    def _pop(self, most: int) -> list[FrontierEntry]:
        taken: list[FrontierEntry] = []
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

    def _hand_out(self, place: FrontierEntry, taken: list[FrontierEntry]) -> bool:
        """Hand this out, unless it is under way or left to the next crawl. Returns whether it is handed out."""
        if place.id in self._out or place.id in self._put_off:
            return False
        self._new_out += place.priority < KNOWN
        self._out[place.id] = place
        taken.append(place)
        return True

    def put_off(self, page_ids: Sequence[int], seconds: float) -> None:
        """Leave these to the next crawl: their hosts asked for a pause."""
        del seconds
        with self._lock:
            self._put_off.update(page_ids)
        self.settle(page_ids)

    def close(self) -> None:
        """Hand out nothing more."""
        self._closed = True

    @property
    def exhausted(self) -> bool:
        """Whether there will never be anything more to hand out."""
        with self._lock:
            if self._closed:
                return True
            return not self._out and not self._lists and (not self._heap or self._left <= 0)

    def listen(self, wake: Callable[[], None], give_back: Callable[[], list[int]]) -> None:
        """Call `wake` whenever there may be more to take; nothing is wanted back."""
        del give_back
        self._wake = wake


def _is_new_page(place: FrontierEntry) -> bool:
    return place.kind is AddressKind.PAGE and place.priority < KNOWN


_LOG = logging.getLogger(__name__)


class PageFilter:
    """Filters the addresses of one crawl. `skipped` has those that were filtered out since the last `take_skipped`."""

    def __init__(self, scope: Scope, traps: Traps, depth: int | None, blocked: Blocked = NOTHING) -> None:
        self._scope = scope
        self._blocked = blocked
        self._traps = traps
        self._depth = depth
        self._counted = BloomFilter(1_000_000)  # each is counted once; a filter that errs in one of a hundred will do
        self.skipped: dict[SkipReason, list[str]] = defaultdict(list)

    def __repr__(self) -> str:
        return f"<PageFilter depth={self._depth} skipped={sum(map(len, self.skipped.values()))}>"

    def passed(
        self,
        url: str,
        *,
        source: AddressSource,
        via: int | None,
        depth: int,
        priority: float,
        hops: int = 0,
        lastmod: str = "",
    ) -> Met | None:
        """Return an address in canonical form, to be fetched; None if it is skipped, and counted as such."""
        url = without_session(url)
        reason = self._reason(url, source, depth)
        if reason is None:
            return Met(key_of(url), url, AddressKind.PAGE, source, via, depth, hops, priority, lastmod)
        self.skip(reason, url)
        return None

    def skip(self, reason: SkipReason, url: str) -> None:
        """Count an address that is not fetched, once for each reason."""
        if not self._counted.add(f"{reason} {url}".encode("utf-8", "replace")):
            self.skipped[reason].append(url)
            if _LOG.isEnabledFor(logging.DEBUG):
                _LOG.debug("address skipped: %s", without_password(url), extra={"reason": reason.value})

    def in_scope(self, url: str) -> bool:
        """Return whether an address belongs to the site, be it a page or not."""
        return self._scope.holds(url)

    def take_skipped(self) -> dict[SkipReason, list[str]]:
        """Return what was skipped since the last call, by reason."""
        skipped, self.skipped = self.skipped, defaultdict(list)
        return skipped

    def _reason(self, url: str, source: AddressSource, depth: int) -> SkipReason | None:
        if not self._scope.holds(url):
            return SkipReason.OUT_OF_SCOPE
        if is_file(url):
            return SkipReason.NOT_A_PAGE
        if self._blocked.why(url) is not None:
            return SkipReason.UNSAFE
        if self._depth is not None and depth > self._depth and source is not AddressSource.REDIRECT:
            return SkipReason.TOO_DEEP
        return self._traps.why(url)
