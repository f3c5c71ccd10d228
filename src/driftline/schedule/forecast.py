"""Why a page is checked when it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from driftline.model import Policy
    from driftline.schedule.page_table import Floats, Index, Places


Lane = Literal["deadline", "new", "value", "age", "rank", "probe", "waiting", "asked", "gone", "unsafe"]
_LANES: dict[Policy, Lane] = {"value": "value", "intelligent": "rank", "fixed": "deadline", "uniform": "age"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the scheduler knows of a page.

    `lane` is 'deadline' for a page with an interval, 'new', 'waiting' for one that failed, 'asked' for one that could
    be checked earlier if its host had not asked to be left alone, 'gone', or 'unsafe' for one that is blocked, for that
    `reason`. The others are checked for their 'value', their 'age' since the last check, or their 'rank' in the paper's
    order, and those that its filter drops as a 'probe'. `due_at` is when it will be checked as far as that is known, by
    its own time or by when the budgets allow it, and none if that is never as things stand. `rate` is in changes a day,
    and `chance` that of a change since the last good check, which was so many `days` ago; `tried_at` is when the last
    check was, good or not, and `failures` how many failed since the last good one.
    """

    page_id: int
    url: str
    lane: Lane
    value: float
    weight: float
    rate: float
    days: float | None
    tried_at: float | None
    failures: int
    chance: float
    lifetime: float
    every: float | None
    due_at: float | None
    reason: str = ""


def lane_of(index: Index, place: int, now: float, policy: Policy, *, held: bool) -> Lane:
    """Why a page is checked when it is; `held` is whether that is when its host may be asked again."""
    if index.gone[place]:
        return "gone"
    if index.not_before[place] > now:
        return "waiting"
    if held:
        return "asked"
    if np.isinf(index.checked[place]):
        return "waiting" if index.failures[place] else "new"
    if np.isfinite(index.every[place]):
        return "deadline"
    if policy == "intelligent" and np.isinf(index.rank[place]):
        return "probe"
    return _LANES[policy]


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
