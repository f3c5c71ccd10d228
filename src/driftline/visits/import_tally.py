"""What every reader of visits shares: how it tells what it passed over, and how it names a visit."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import xxhash

from driftline.urls.canonical import acceptable, reduced, written
from driftline.urls.tracking import KNOWN, Tracking

#: half an hour: who does not move on for longer has left, or left a tab open
LONGEST_STAY = 1_800.0
#: a day: who says that a visit took longer means something else
LONGEST_VISIT = 86_400.0
#: bytes: of a longer line in a text, only the beginning is read
LONGEST_LINE = 65_536

_NAMED = 10
_WEB = re.compile(r"https?:", re.IGNORECASE)
_OTHER_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?!\d)", re.IGNORECASE)
_HOUR = 3_600
_HOURS_KEPT = 3
_SIGNED = 2**63


class Problem(NamedTuple):
    """What is wrong with a row, named by its line or its number."""

    line: int
    sentence: str


@dataclass(slots=True)
class ImportTally:
    """What a reader passed over so far: `skipped` are no visits to web pages, `bad` cannot be read.

    `tracking` is what is dropped from addresses.
    """

    tracking: Tracking = KNOWN
    total: int | None = None
    skipped: int = 0
    bad: int = 0
    problems: list[Problem] = field(default_factory=list)

    def reject(self, line: int, sentence: str) -> None:
        """Count a bad row; the first few are kept with what is wrong with them."""
        self.bad += 1
        if self.bad <= _NAMED:
            self.problems.append(Problem(line, sentence))


class VisitKeys:
    """Numbers visits that look the same, and gives each a key that is the same whenever its file is read.

    What it remembers is bounded: visits that look the same have the same time, so they stand close together. Should two
    of them stand hours apart, they count as one.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind.encode()
        self._hours: dict[int | None, Counter[bytes]] = {}

    def key(self, looks: bytes, at: float | None) -> int:
        """The key of the next visit that looks like this, at that time."""
        hour = None if at is None else int(at // _HOUR)
        seen = self._hours.get(hour)
        if seen is None:
            seen = self._hours[hour] = Counter()
            hours = [one for one in self._hours if one is not None]
            if len(hours) > _HOURS_KEPT:
                del self._hours[min(hours)]
        seen[looks] += 1
        return xxhash.xxh3_64_intdigest(b"%s\0%d\0%s" % (self._kind, seen[looks], looks)) - _SIGNED


@lru_cache(65_536)
def web_address(text: str, tracking: Tracking = KNOWN) -> str | None:
    """An address as it is written, None if it is not on the web (`about:`, `file:`); BadURL if no page can have it.

    That is judged without what is dropped as tracking, which makes the longest addresses.
    """
    text = text.strip()
    if _OTHER_SCHEME.match(text) and not _WEB.match(text):
        return None
    address = written(text)
    acceptable(reduced(address, tracking))
    return address
