"""URL-seen: which addresses were met already. A Bloom filter answers for most new ones, and the store for all others.

The filter never forgets an address, but may take a new one for seen: who asks it asks the store then, so that no page
is lost. It is made anew from the store when a crawl starts, which takes less time than to keep a copy of it up to date.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from xxhash import xxh3_128_intdigest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

_FEWEST = 10_000
_WRONG = 0.01  # of the new addresses are looked for in the store all the same


class BloomFilter:
    """A set of byte strings in about ten bits each, that may hold more than was put in: for `expected` of them."""

    def __init__(self, expected: int) -> None:
        self.expected = max(_FEWEST, expected)
        self._bits = max(64, math.ceil(-self.expected * math.log(_WRONG) / math.log(2) ** 2))
        self._hashes = max(1, round(self._bits / self.expected * math.log(2)))
        self._data = bytearray(self._bits // 8 + 1)
        self.added = 0

    def add(self, key: bytes) -> bool:
        """Put a key in; whether it seems to have been there."""
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


class Seen:
    """Which keys were met, told exactly: `look` says which of some the store has, and `all_keys` has all of them."""

    def __init__(
        self, all_keys: Callable[[], Collection[bytes]], look: Callable[[Sequence[bytes]], set[bytes]]
    ) -> None:
        self._all_keys = all_keys
        self._look = look
        self._filter = self._made()

    def new(self, keys: Iterable[bytes]) -> list[bytes]:
        """Those of these keys that were never met; the store is asked only for those that the filter seems to have."""
        given = dict.fromkeys(keys)
        doubtful = [key for key in given if key in self._filter]
        seen = self._look(doubtful) if doubtful else set()
        return [key for key in given if key not in seen]

    def add(self, keys: Iterable[bytes]) -> None:
        """These are in the store from now on."""
        for key in keys:
            self._filter.add(key)
        if self._filter.added > self._filter.expected:
            self._filter = self._made()  # it would be wrong more often than it should be

    def _made(self) -> BloomFilter:
        keys = self._all_keys()
        made = BloomFilter(2 * len(keys))
        for key in keys:
            made.add(key)
        return made
