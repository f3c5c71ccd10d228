"""`schedule`: which pages are checked next, and why."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.api import workspace_of
from driftline.cli.options import BudgetOption, JsonOption, PolicyOption, StoreOption, UsualOption, opened
from driftline.cli.output import NOTHING_YET, iso, local_time, out, print_json, say, short_time
from driftline.cli.text_tables import Column, print_table
from driftline.durations import utc_or_none
from driftline.model.page import Lane
from driftline.plurals import count

if TYPE_CHECKING:
    from driftline.schedule.forecast import ScheduledCheck

_COLUMNS = (
    Column(name="url", least=24, keep=1, middle=True),
    Column(name="next check"),
    Column(name="likely changed", right=True, optional=True),
    Column(name="why", least=40, keep=2, wraps=True),
)
_SOON = 60.0  # seconds: a forecast is not more exact than that
# what the budget is spent on until then may change, so the time is a guess
_BY_BUDGET = (Lane.NEW, Lane.VALUE, Lane.AGE)


def schedule(
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Show at most N pages.")] = 20,
    every: UsualOption = "1h",
    budget: BudgetOption = None,
    policy: PolicyOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show which pages 'driftline run' checks next, and why."""
    with opened(store, make=False) as watch_list:
        scheduler = workspace_of(watch_list).runs.scheduler(every=every, budget=budget, policy=policy, to_look=True)
        scheduler.refresh()
        checks = scheduler.upcoming(limit)
    if as_json:
        now = time.time()
        print_json([_as_json(one, now) for one in checks])
        return
    if not checks:
        say(NOTHING_YET, to_stderr=True)
        return
    print_table(_COLUMNS, [_row(one) for one in checks])
    left = len(scheduler) - len(checks)
    more = f"; {count(left, 'more page')} not shown" if left else ""
    say(f"{scheduler.describe()}{more}.", to_stderr=True)


def _as_json(one: ScheduledCheck, now: float) -> dict[str, Any]:
    """Return a check as JSON: why it is then, and its times also in ISO 8601 (`due`, `tried`)."""
    times = {"due": iso(utc_or_none(one.due_at)), "tried": iso(utc_or_none(one.tried_at))}
    return {**asdict(one), "why": one.why(now), **times}


def _row(one: ScheduledCheck) -> list[str]:
    now = time.time()
    when = _likely(one.due_at, now) if one.lane in _BY_BUDGET else _when(one.due_at, now)
    if one.lane is Lane.UNSAFE:
        when = "never"
    return [one.url, when, "" if one.days is None else f"{one.chance:.0%}", one.why(now)]


def _when(at: float | None, now: float) -> str:
    if at is None:
        return "when other pages leave budget"
    return "now" if at <= now else _time(at, now)


def _likely(at: float | None, now: float) -> str:
    """Return the time of a check that depends on what the budget is spent on until then."""
    if at is None or at <= now + _SOON:
        return _when(at and at - _SOON, now)
    return f"~{_time(at, now)}" if out().is_terminal else f"about {_time(at, now)}"


def _time(at: float, now: float) -> str:
    """Return a time in full, or in short on a terminal, where the reason should fit beside it."""
    return short_time(at, now) if out().is_terminal else local_time(at)
