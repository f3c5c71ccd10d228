"""Why a page is checked when it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from driftline.model import Policy
    from driftline.scheduling.index import Index

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
