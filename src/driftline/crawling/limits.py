"""How much of a site a crawl takes in, however much there is: in proportion to the pages that it is to fetch."""

from __future__ import annotations

from typing import NamedTuple

MOST = 1_000_000  # pages of one crawl, unless told
_TIMES = 10  # as many addresses may wait as pages are to be fetched
_FEWEST_WAITING, _MOST_WAITING = 10_000, 1_000_000
_FEWEST_LISTS, _MOST_LISTS = 10, 5_000


class Limits(NamedTuple):
    """Of one crawl: `pages` to fetch, addresses that may be `waiting`, and `lists`.

    So many sitemaps are read, and so many hosts are asked which ones they have.
    """

    pages: int
    waiting: int
    lists: int


def limits_of(most: int | None) -> Limits:
    """The limits of a crawl of so many pages: what a site lists beyond them would hardly come to its turn."""
    pages = MOST if most is None else most
    return Limits(
        pages,
        max(_FEWEST_WAITING, min(_TIMES * pages, _MOST_WAITING)),
        min(_FEWEST_LISTS + pages // _TIMES, _MOST_LISTS),
    )
