"""When each page will be checked, and why then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from driftline.durations import format_interval
from driftline.model.page import Lane
from driftline.plurals import count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from driftline.model.page import Policy
    from driftline.schedule.page_table import Floats, PageTable, Places


_LANES: dict[Policy, Lane] = {
    "value": Lane.VALUE,
    "intelligent": Lane.RANK,
    "fixed": Lane.DEADLINE,
    "uniform": Lane.AGE,
}
_DAY = 86_400.0
_RARELY = 365.0  # days between two changes from which on no exact number is shown
_UNITS = ((_DAY, "day", "d"), (3_600.0, "hour", "h"), (60.0, "minute", "min"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledCheck:
    """The next check of a page: when it is likely to be, and what the scheduler knows of the page.

    `lane` is what decides when the page is checked, and `reason` why it is blocked, if it is. `due_at` is the
    likely time of the check, None if with the current budgets there will be none. `rate` is in changes a day, and
    `chance` the probability of a change since the last successful check, which was `days` ago; `tried_at` is the time
    of the last check, successful or not, and `failures` how many failed since the last successful one.
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

    def why(self, now: float) -> str:
        """Return in plain words why the page is checked when it is, for a table: without a full stop."""
        checked = "never checked" if self.days is None else f"checked {_short(self.days * _DAY)} ago"
        match self.lane:
            case Lane.NEW:
                return checked
            case Lane.DEADLINE:
                return f"every {format_interval(self.every)}; {checked}" if self.every else checked
            case Lane.VALUE:
                return f"changes {_how_often(self.rate)}; {checked}"
            case Lane.AGE:
                return f"longest unchecked first; {checked}"
            case Lane.RANK:
                return f"in the order of visits; {checked}"
            case Lane.PROBE:
                return f"often unavailable when visited: tried once a week; {checked}"
            case Lane.WAITING:
                tried = "" if self.tried_at is None else f", last {_short(now - self.tried_at)} ago"
                return f"failed {count(self.failures, 'time')}{tried}"
            case Lane.RETRY_AFTER:
                return "its host asked us to wait (Retry-After)"
            case Lane.GONE:
                return "is gone: tried once a week"
            case Lane.UNSAFE:
                return f"blocked: {self.reason.rstrip('.')}"


def _short(seconds: float) -> str:
    """Return a length of time in its largest unit: `5 h`."""
    for unit, _, name in _UNITS:
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"


def _how_often(rate: float) -> str:
    """Return in words how often something happens at a rate of so many times a day: `about every 3 days`."""
    days = 1 / rate
    if days >= _RARELY:
        return "less than once a year"
    for unit, name, _ in _UNITS:
        amount = round(days * _DAY / unit)
        if amount > 1:
            return f"about every {amount} {name}s"
        if amount == 1:
            return f"about every {name}"
    return "all the time"


def lane_of(table: PageTable, place: int, now: float, policy: Policy, *, held: bool) -> Lane:
    """Return what decides when a page is checked; `held` is whether that is the end of its host's Retry-After."""
    if table.gone[place]:
        return Lane.GONE
    if table.not_before[place] > now:
        return Lane.WAITING
    if held:
        return Lane.RETRY_AFTER
    if np.isinf(table.checked[place]):
        return Lane.WAITING if table.failures[place] else Lane.NEW
    if np.isfinite(table.every[place]):
        return Lane.DEADLINE
    if policy == "intelligent" and np.isinf(table.rank[place]):
        return Lane.PROBE
    return _LANES[policy]


def due(
    table: PageTable, *, policy: Policy, default_every: float, cycle: float, retry_after: Floats
) -> Floats:  # fmt: skip
    """Return when each page is due, not before its host's `retry_after`; minus infinity if the budget decides."""
    every = table.every.astype(np.float64)
    if policy == "fixed":
        every[np.isinf(every)] = default_every
    elif policy == "intelligent":
        every = np.where(np.isinf(every), table.ranked_intervals(cycle), every)
    timed = np.isfinite(every) & np.isfinite(table.checked)
    found = np.add(table.checked, every, where=timed, out=np.full(len(table), -np.inf))
    latest: Floats = np.maximum(found, np.maximum(table.not_before, retry_after))
    return latest


def seconds_until_allowed(
    table: PageTable, ready: Places, until_due: Floats, *, policy: Policy, default_every: float, budget: float,
    shared: bool, credit: float,
) -> Floats:  # fmt: skip
    """Return the seconds until the budget allows a check of each of these pages, which are picked in this order.

    Where the budget is `shared` by all pages, pages whose interval ends meanwhile come before those without one, which
    get what is left of it: infinity if that is nothing. `until_due` has the seconds until the interval of each page of
    the table ends.
    """
    checked = np.isfinite(table.checked)
    every = table.every.astype(np.float64)
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
    return np.where(timed[ready], alone, _besides_intervals(again[timed], every[timed], nth, budget, credit))


def _besides_intervals(first: Floats, every: Floats, nth: NDArray[np.int64], budget: float, credit: float) -> Floats:
    """Return the seconds until the budget allowed `nth` checks besides those at intervals, whose `first` come then.

    Between two of these first checks, the unused budget grows evenly. The checks after the first ones are taken as
    spread evenly, too, so an interval counts half a check too much at its beginning and half too little at its end.
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
