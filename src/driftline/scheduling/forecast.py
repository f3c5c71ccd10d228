"""When pages will be checked, as far as that is known: by their times, and by what the budgets allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from driftline.model import Policy
    from driftline.scheduling.index import Floats, Index, Places


def due(index: Index, *, policy: Policy, default_every: float, cycle: float, asked: Floats) -> Floats:
    """When each page is to be checked, not before its host `asked` for; minus infinity if as the budget allows."""
    every = index.every.astype(np.float64)
    if policy == "fixed":
        every[np.isinf(every)] = default_every
    elif policy == "intelligent":
        every = np.where(np.isinf(every), index.turns(cycle), every)
    timed = np.isfinite(every) & np.isfinite(index.checked)
    found = np.add(index.checked, every, where=timed, out=np.full(len(index), -np.inf))
    latest: Floats = np.maximum(found, np.maximum(index.not_before, asked))
    return latest


def held_for(
    index: Index, ready: Places, until_due: Floats, *, policy: Policy, default_every: float, budget: float,
    shared: bool, credit: float,
) -> Floats:  # fmt: skip
    """The seconds until the budget allows for each of these pages, which may be checked now and are picked in order.

    Where the budget is `shared` by all pages, those whose interval is over meanwhile go before the pages that have
    none: so these get what is left of it, and infinity stands for nothing. Of the others `until_due` says how many
    seconds that takes.
    """
    checked = np.isfinite(index.checked)
    every = index.every.astype(np.float64)
    if policy == "fixed":
        every[np.isinf(every)] = default_every
    timed = checked & np.isfinite(every)
    charged = np.ones(len(ready), np.bool_) if shared else (checked & ~timed)[ready]
    nth = np.where(charged, np.cumsum(charged), 0)
    if not budget:
        return np.where(charged, np.inf, 0.0)
    alone: Floats = np.maximum(0.0, nth - credit) / budget
    if not shared:
        return alone
    again = until_due.copy()
    again[ready] = every[ready]
    timed &= np.isfinite(again)
    return np.where(timed[ready], alone, _beside(again[timed], every[timed], nth, budget, credit))


def _beside(first: Floats, every: Floats, nth: NDArray[np.int64], budget: float, credit: float) -> Floats:
    """The seconds until there were so many checks beside those at intervals, whose `first` come then.

    From one of these to the next, what is left of the budget grows evenly. The checks after the first are spread evenly
    too, so that each interval counts for half a check too much at its begin and half a check too little at its end.
    """
    order = np.argsort(first)
    start, pace = np.r_[0.0, first[order]], 1 / every[order]
    left = budget - np.r_[0.0, np.cumsum(pace)]
    taken = np.r_[0.0, np.cumsum(0.5 - first[order] * pace)]
    at_start = credit + left * start - taken
    at_end = np.r_[(credit + left * np.r_[start[1:], 0.0] - taken)[:-1], np.inf if left[-1] > 0 else -np.inf]
    when = np.searchsorted(np.maximum.accumulate(at_end), nth, side="right")
    never = when == len(start)
    when[never] = 0
    found = start[when] + np.maximum(0.0, nth - at_start[when]) / np.where(left[when] > 0, left[when], np.inf)
    return np.where(never, np.inf, found)
