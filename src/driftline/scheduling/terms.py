"""Why a page is checked when it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Lane = Literal["deadline", "new", "value", "age", "rank", "probe", "waiting", "asked", "gone", "unsafe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the scheduler knows of a page.

    `lane` is 'deadline' for a page with an interval, 'new', 'waiting' for one that failed, 'asked' for one that could
    be checked earlier if its host had not asked to be left alone, 'gone', or 'unsafe' for one that is blocked, for that
    `reason`. The others are checked for their 'value', their 'age' since the last check, or their 'rank' in the paper's
    order, and those that its filter drops as a 'probe'. `rate` is in changes a day, and `chance` that of a change since
    the last good check, which was so many `days` ago; `tried_at` is when the last check was, good or not, and
    `failures` how many failed since the last good one.
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
