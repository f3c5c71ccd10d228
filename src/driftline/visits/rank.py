"""Rank and filter: the second paper's three orders of visited pages.

Ties are broken as its tables show. By frequency: in the order of first visit; by weightage: the higher frequency first.
"""

from __future__ import annotations

from enum import StrEnum
from heapq import nsmallest
from typing import TYPE_CHECKING

from driftline.errors import BadSetting
from driftline.model.visit import Visited

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class RankOrder(StrEnum):
    """What pages can be ranked by."""

    FREQUENCY = "frequency"
    WEIGHTAGE = "weightage"
    INTELLIGENT = "intelligent"
    VALUE = "value"


def order_named(text: str) -> RankOrder:
    """Return the order of that name; BadSetting if there is none."""
    try:
        return RankOrder(text)
    except ValueError:
        raise BadSetting(f"Pages cannot be ranked by '{text}': use {', '.join(RankOrder)}.") from None


def rank(visited: Iterable[Visited], by: RankOrder, threshold: float, limit: int | None = None) -> list[Visited]:
    """Return the first `limit` visited pages in that order, or all; 'intelligent' leaves out what the filter drops.

    With a limit, no more pages than that are kept in memory, however many are given.
    """
    if by is RankOrder.INTELLIGENT:
        visited = (one for one in visited if keeps(one, threshold))
    key = _KEYS[by]
    return sorted(visited, key=key) if limit is None else nsmallest(limit, visited, key=key)


def _by_frequency(one: Visited) -> tuple[float, ...]:
    """Return the sort key for the most often visited first (the paper's Table 2)."""
    return -one.frequency, one.sno


def _by_weightage(one: Visited) -> tuple[float, ...]:
    """Return the sort key for the most time spent first (the paper's Table 3)."""
    return -one.weightage, -one.frequency, one.sno


def _by_all(one: Visited) -> tuple[float, ...]:
    """Return the sort key for frequency, weightage and TTL (the paper's Table 4, with a threshold of ½)."""
    return -one.frequency, -one.weightage, -one.ttl, one.sno


def _by_value(one: Visited) -> tuple[float, ...]:
    return -one.value, one.sno


_KEYS: dict[RankOrder, Callable[[Visited], tuple[float, ...]]] = {
    RankOrder.FREQUENCY: _by_frequency,
    RankOrder.WEIGHTAGE: _by_weightage,
    RankOrder.INTELLIGENT: _by_all,
    RankOrder.VALUE: _by_value,
}


def keeps(one: Visited, threshold: float) -> bool:
    """Return whether a page was available at more than that share of its visits, if there were any."""
    return one.ttl > one.frequency * threshold or not one.frequency


_ROWS = (
    (1, 34, 21, 32),
    (2, 20, 22, 17),
    (3, 21, 34, 13),
    (4, 6, 66, 4),
    (5, 7, 55, 4),
    (6, 9, 44, 5),
    (7, 50, 33, 29),
    (8, 70, 55, 12),
    (9, 21, 32, 13),
    (10, 43, 65, 34),
    (11, 100, 34, 80),
    (12, 50, 23, 40),
    (13, 50, 44, 43),
    (14, 70, 32, 56),
    (15, 4, 44, 3),
    (16, 6, 32, 3),
    (17, 2, 54, 1),
    (18, 1, 76, 0),
    (19, 8, 77, 0),
    (20, 9, 45, 0),
    (21, 40, 76, 0),
    (22, 100, 75, 0),
    (23, 70, 12, 35),
)

EXAMPLE = tuple(
    Visited(sno, f"http://trdinfotech.com/page{sno}", frequency, float(weightage), ttl)
    for sno, frequency, weightage, ttl in _ROWS
)
