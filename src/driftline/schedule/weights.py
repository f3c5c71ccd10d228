"""How much each page weighs in the schedule, and its rank, both from visits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.store.schedule_records import pages_found_lately, read_visits
from driftline.store.statements import in_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from driftline.schedule.page_stats import PageStats
    from driftline.schedule.page_table import Places
    from driftline.store.engine import Store

    Numbers = NDArray[np.floating[Any]]

#: the smallest weight of a page, as a share of the mean weight
FLOOR = 0.1
_RESTORED = 3  # successful checks in a row that outweigh all failed visits


def importance(frequency: Numbers, weightage: Numbers) -> Numbers:
    """Return the importance of each page: half its share of all visits, half its share of all time spent.

    Both arrays are of the same pages, 0 for those never visited. Where no time is known, visits count whole; where
    nothing is known, all pages are equally important. No page is less important than `FLOOR` of the mean.
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
    """Return how likely a page is to be available at the next visit; ½ if nothing is known, and never quite 0 or 1."""
    found: Numbers = (ttl + 1) / (frequency + 2)
    return found


def weigh(store: Store, stats: PageStats, threshold: float, *, ordered: bool) -> Iterator[None]:
    """Set the weight of all pages from their visits and availability, and also their rank if `ordered`.

    The second paper's filter drops a page from the order if it was available at too few visits, until its last checks
    found it. This is a generator so that the caller can do something else between its steps.
    """
    table = stats.table
    frequency, weightage, ttl = (np.zeros(len(table), np.float32) for _ in range(3))
    filtered = [np.zeros(0, np.int64)]
    for portion in read_visits(store):
        places, here = stats.find(portion["id"])
        visits = {name: np.array(column, np.float64)[here] for name, column in portion.items()}
        frequency[places], weightage[places], ttl[places] = visits["frequency"], visits["weightage"], visits["ttl"]
        filtered.append(places[visits["ttl"] <= visits["frequency"] * threshold])
        yield
    dropped = np.concatenate(filtered)
    found: list[int] = []
    for some in in_batches(_may_be_back(stats, dropped)):
        found += pages_found_lately(store, some, _RESTORED)
        yield
    back = stats.places(sorted(found))
    checks = stats.sequence.astype(np.float32)
    available, tries = ttl + checks - stats.failed.astype(np.float32), frequency + checks
    available[back] = tries[back] = _RESTORED
    table.weight[:] = len(table) * importance(frequency, weightage) * availability(available, tries)
    if ordered:
        order = np.lexsort((-ttl, -weightage, -frequency))
        table.rank[order] = np.arange(len(table))
        table.rank[np.setdiff1d(dropped, back)] = np.inf


def _may_be_back(stats: PageStats, dropped: Places) -> list[int]:
    """Return the ids of those pages whose last checks may all have succeeded."""
    table = stats.table
    good = dropped[(table.failures[dropped] == 0) & (stats.sequence[dropped] >= _RESTORED)]
    pages: list[int] = table.page[good].tolist()
    return pages
