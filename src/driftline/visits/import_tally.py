"""Shared by all readers of visits: counters of rows that are left out, and the keys of visits."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import xxhash

from driftline.urls.canonical import acceptable, reduced, written
from driftline.urls.tracking import KNOWN, Tracking

#: seconds, half an hour: a visitor without a request for longer has left, or left a tab open
LONGEST_STAY = 1_800.0
#: seconds, a day: a longer visit is an error in the data
LONGEST_VISIT = 86_400.0
#: bytes: only the beginning of a longer line is read
LONGEST_LINE = 65_536

_NAMED = 10
_WEB = re.compile(r"https?:", re.IGNORECASE)
_OTHER_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?!\d)", re.IGNORECASE)
_HOUR = 3_600
_HOURS_KEPT = 3
_SIGNED = 2**63


class UnreadableRow(NamedTuple):
    """What is wrong with a row, and its line or number."""

    line: int
    sentence: str


@dataclass(slots=True)
class ImportTally:
    """Counts what a reader leaves out: `skipped` rows are not about web pages, `bad` ones cannot be read.

    `tracking` are the parameters that are dropped from addresses.
    """

    tracking: Tracking = KNOWN
    total: int | None = None
    skipped: int = 0
    bad: int = 0
    problems: list[UnreadableRow] = field(default_factory=list)

    def reject(self, line: int, sentence: str) -> None:
        """Count a bad row; the first few are kept with their problems."""
        self.bad += 1
        if self.bad <= _NAMED:
            self.problems.append(UnreadableRow(line, sentence))


class VisitKeys:
    """Gives each visit of a file a key that is the same whenever the file is read.

    Visits that look the same are numbered. What it remembers is bounded: visits that look the same have the same time,
    so they are close together. If two of them are hours apart in the file, they count as one.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind.encode()
        self._hours: dict[int | None, Counter[bytes]] = {}

    def key(self, looks: bytes, at: float | None) -> int:
        """Return the key of the next visit that looks like this, at that time."""
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
    """Return an address as written, None if it is not on the web (`about:`, `file:`); BadURL if it is invalid.

    It is validated without tracking parameters, which make the longest addresses.
    """
    text = text.strip()
    if _OTHER_SCHEME.match(text) and not _WEB.match(text):
        return None
    address = written(text)
    acceptable(reduced(address, tracking))
    return address
