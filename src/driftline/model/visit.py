"""Visits of people to pages, and their totals."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from driftline.durations import utc

if TYPE_CHECKING:
    from datetime import datetime


class Visit(NamedTuple):
    """One user's visit to a page: when, how long, and whether it was available. Its key tells it from every other."""

    url: str
    at: float
    seconds: float
    available: bool
    key: int


class Visited(NamedTuple):
    """What the visits to an address add up to; `sno` numbers the addresses in the order of their first visit.

    `first_seconds` and `last_seconds` are the times of the first and the last visit in seconds since 1970, of which
    `first_at` and `last_at` make a `datetime`: ranking reads a million of these, and few of their times. `value` is how
    useful a check of the page is now, in a rank by value.
    """

    sno: int
    url: str
    frequency: int
    weightage: float
    ttl: int
    first_seconds: float = 0.0
    last_seconds: float = 0.0
    watched: bool = False
    value: float = 0.0

    @property
    def first_at(self) -> datetime | None:
        """When the page was first visited; None if it was not."""
        return utc(self.first_seconds) if self.first_seconds else None

    @property
    def last_at(self) -> datetime | None:
        """When the page was last visited; None if it was not."""
        return utc(self.last_seconds) if self.last_seconds else None
