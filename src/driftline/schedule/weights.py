"""What visits mean to the scheduler: how much each page weighs, and its place in the paper's order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.store.schedule_records import pages_found_lately, read_visits
from driftline.store.statements import in_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from driftline.schedule.page_stats import Learned
    from driftline.schedule.page_table import Places
    from driftline.store.engine import Store

    Numbers = NDArray[np.floating[Any]]

#: an unvisited page weighs this share of a page of mean importance
FLOOR = 0.1
_RESTORED = 3  # checks in a row that find a page are worth more than any number of visits that did not


def importance(frequency: Numbers, weightage: Numbers) -> Numbers:
    """The weight of each page in the scheduler: half its share of all visits, half its share of all time spent.

    Both name the same pages, with 0 for those that were never visited. Where nobody's time is known, visits count
    whole, and where nothing is known all pages weigh the same. No page weighs less than `FLOOR` of the mean one.
    """
    pages = max(1, len(frequency))
    visits, seconds = float(frequency.sum(dtype=np.float64)), float(weightage.sum(dtype=np.float64))
    if not visits and not seconds:
        return np.full_like(frequency, 1 / pages)
    half = 0.5 if visits and seconds else 1.0
    weight = frequency * (half / visits if visits else 0.0) + weightage * (half / seconds if seconds else 0.0)
    found: Numbers = np.maximum(weight, FLOOR / pages)
    return found


def availability(ttl: Numbers, frequency: Numbers) -> Numbers:
    """How likely a page is to be there at the next visit; ½ while nothing is known, and never quite 0 or 1."""
    found: Numbers = (ttl + 1) / (frequency + 2)
    return found


def weigh(store: Store, known: Learned, threshold: float, *, ordered: bool) -> Iterator[None]:
    """Weigh all pages by their visits and by how often each was there, checks included; give them ranks if `ordered`.

    A page that visits say is not there is dropped from the order, until its last checks found it. It is done in steps,
    at the end of which one may do something else.
    """
    index = known.index
    frequency, weightage, ttl = (np.zeros(len(index), np.float32) for _ in range(3))
    drops = [np.zeros(0, np.int64)]
    for portion in read_visits(store):
        places, here = known.find(portion["id"])
        told = {name: np.array(column, np.float64)[here] for name, column in portion.items()}
        frequency[places], weightage[places], ttl[places] = told["frequency"], told["weightage"], told["ttl"]
        drops.append(places[told["ttl"] <= told["frequency"] * threshold])
        yield
    dropped = np.concatenate(drops)
    found: list[int] = []
    for some in in_batches(_may_be_back(known, dropped)):
        found += pages_found_lately(store, some, _RESTORED)
        yield
    back = known.places(sorted(found))
    tries = known.upto.astype(np.float32)
    there, asked = ttl + tries - known.failed.astype(np.float32), frequency + tries
    there[back] = asked[back] = _RESTORED
    index.weight[:] = len(index) * importance(frequency, weightage) * availability(there, asked)
    if ordered:
        order = np.lexsort((-ttl, -weightage, -frequency))
        index.rank[order] = np.arange(len(index))
        index.rank[np.setdiff1d(dropped, back)] = np.inf


def _may_be_back(known: Learned, dropped: Places) -> list[int]:
    """The pages at these places that may have been there at their last checks."""
    index = known.index
    good = dropped[(index.failures[dropped] == 0) & (known.upto[dropped] >= _RESTORED)]
    pages: list[int] = index.page[good].tolist()
    return pages
