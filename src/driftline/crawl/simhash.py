"""Pages that say nearly the same: a fingerprint of 64 bits of which few differ where texts are alike (Charikar's).

Each three words in a row vote for every bit; two texts are near when at most three bits differ. To find such
among very many, the bits are parted in four: of those that differ in three bits at most, one part is the same.
"""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
from xxhash import xxh3_64_intdigest

NEAR = 3  # bits
_WORDS = re.compile(r"[^\W\d]+")  # without numbers: the months of an empty calendar say the same
_SHINGLE = 3
_MOST_WORDS = 20_000
_FEWEST_WORDS = 8  # of less, a few bits say nothing
_PARTS = (0, 16, 32, 48)
_MOST_IN_A_PART = 200  # looked at, where very many share a part


def simhash(text: str) -> int:
    """Return the fingerprint of a text, as a signed number of 64 bits for databases; 0 if the text is too short."""
    words = _WORDS.findall(text.casefold())[:_MOST_WORDS]
    if len(words) < _FEWEST_WORDS:
        return 0
    count = len(words) - _SHINGLE + 1
    hashes = np.fromiter(
        (xxh3_64_intdigest(" ".join(words[at : at + _SHINGLE]).encode("utf-8", "replace")) for at in range(count)),
        np.uint64,
        count,
    )
    votes = np.unpackbits(hashes.view(np.uint8).reshape(count, 8), axis=1).sum(axis=0, dtype=np.int64)
    bits = np.packbits(votes * 2 > count)
    return int.from_bytes(bits.tobytes(), "big", signed=True)


def distance(one: int, other: int) -> int:
    """Return in how many bits two fingerprints differ."""
    return ((one ^ other) & 0xFFFF_FFFF_FFFF_FFFF).bit_count()


class Lookalikes:
    """The pages of a site by what they say; finds the first that said the same, or nearly."""

    def __init__(self) -> None:
        self._same: dict[bytes, int] = {}
        self._parts: tuple[dict[int, list[tuple[int, int]]], ...] = tuple(defaultdict(list) for _ in _PARTS)

    def add(self, number: int, digest: bytes, mark: int) -> tuple[int | None, int | None]:
        """Add a page. Returns the page with the same text, and one with nearly the same; None where there is none."""
        same = self._same.setdefault(digest, number)
        if same != number:
            return same, None
        if not mark:
            return None, None
        near = self.near(mark)
        if near is None:
            self.keep(number, mark)
        return None, near

    def keep(self, number: int, mark: int) -> None:
        """Let a page be found by its fingerprint."""
        for shift, table in zip(_PARTS, self._parts, strict=True):
            table[mark >> shift & 0xFFFF].append((mark, number))

    def near(self, mark: int) -> int | None:
        """Return the first page whose fingerprint differs in a few bits at most."""
        found: set[int] = set()
        for shift, table in zip(_PARTS, self._parts, strict=True):
            found.update(
                number
                for other, number in table.get(mark >> shift & 0xFFFF, ())[:_MOST_IN_A_PART]
                if distance(mark, other) <= NEAR
            )
        return min(found, default=None)
