"""Rank and filter: the second paper's three orders of visited pages, and what their visits mean to the scheduler.

Ties are as its tables show them. By frequency: in the order of first visit; by weightage: the higher frequency first.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from driftline.errors import BadSetting

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from driftline.model import Visited

_Number = TypeVar("_Number", float, "NDArray[np.float64]")

#: an unvisited page weighs this share of a page of mean importance
FLOOR = 0.1


class By(StrEnum):
    """What pages can be ranked by."""

    FREQUENCY = "frequency"
    WEIGHTAGE = "weightage"
    INTELLIGENT = "intelligent"
    VALUE = "value"


def order_named(text: str) -> By:
    """The order of that name; BadSetting if there is none."""
    try:
        return By(text)
    except ValueError:
        raise BadSetting(f"Pages cannot be ranked by '{text}': use {', '.join(By)}.") from None


def rank(visited: Iterable[Visited], by: By, threshold: float) -> list[Visited]:
    """The visited pages in that order; the intelligent one leaves out what the filter drops."""
    match by:
        case By.FREQUENCY:
            return by_frequency(visited)
        case By.WEIGHTAGE:
            return by_weightage(visited)
        case By.INTELLIGENT:
            return intelligent(visited, threshold)
        case By.VALUE:
            return sorted(visited, key=lambda one: (-one.value, one.sno))


def by_frequency(visited: Iterable[Visited]) -> list[Visited]:
    """The most often visited first (the paper's Table 2)."""
    return sorted(visited, key=lambda one: (-one.frequency, one.sno))


def by_weightage(visited: Iterable[Visited]) -> list[Visited]:
    """Where most time was spent first (the paper's Table 3)."""
    return sorted(visited, key=lambda one: (-one.weightage, -one.frequency, one.sno))


def intelligent(visited: Iterable[Visited], threshold: float) -> list[Visited]:
    """Those that the filter keeps, by frequency, weightage and TTL (the paper's Table 4, with a threshold of ½)."""
    kept = [one for one in visited if keeps(one, threshold)]
    return sorted(kept, key=lambda one: (-one.frequency, -one.weightage, -one.ttl, one.sno))


def keeps(one: Visited, threshold: float) -> bool:
    """Whether a page was available at more than that share of its visits, if there were any."""
    return one.ttl > one.frequency * threshold or not one.frequency


def importance(frequencies: Sequence[float], weightages: Sequence[float]) -> list[float]:
    """The weight of each page in the scheduler: half its share of all visits, half its share of all time spent.

    Both sequences name the same pages, with 0 for those that were never visited. Where nobody's time is known, visits
    count whole, and where nothing is known all pages weigh the same. No page weighs less than `FLOOR` of the mean one.
    """
    pages = len(frequencies)
    if not pages:
        return []
    all_visits, all_seconds = sum(frequencies), sum(weightages)
    if not all_visits and not all_seconds:
        return [1 / pages] * pages
    half = 0.5 if all_visits and all_seconds else 1.0
    per_visit = half / all_visits if all_visits else 0.0
    per_second = half / all_seconds if all_seconds else 0.0
    floor = FLOOR / pages
    return [
        max(floor, frequency * per_visit + weightage * per_second)
        for frequency, weightage in zip(frequencies, weightages, strict=True)
    ]


def availability(ttl: _Number, frequency: _Number) -> _Number:
    """How likely a page is to be there at the next visit; ½ while nothing is known, and never quite 0 or 1."""
    return (ttl + 1) / (frequency + 2)
