"""Rank and filter: the second paper's three orders of visited pages.

Ties are as its tables show them. By frequency: in the order of first visit; by weightage: the higher frequency first.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from driftline.errors import BadSetting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from driftline.model import Visited


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
