"""`schedule`: which pages are checked next, and why."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli.options import BudgetOption, JsonOption, PolicyOption, StoreOption, UsualOption, opened
from driftline.cli.output import NOTHING_YET, ago, local_time, print_json, say
from driftline.cli.text_tables import Column, print_table
from driftline.durations import format_interval
from driftline.plurals import count

if TYPE_CHECKING:
    from driftline.schedule.forecast import Lane, Terms

_COLUMNS = (
    Column(name="url", least=30, keep=1, middle=True),
    Column(name="next check"),
    Column(name="why", least=20, optional=True, keep=2),
    Column(name="last check", right=True, optional=True, keep=1),
    Column(name="changes/day", right=True, optional=True),
    Column(name="changed by now", right=True, optional=True),
    Column(name="weight", right=True, optional=True, style="dim"),
)
_SOON = 60.0  # seconds: the budget does not allow a more exact forecast
_ESTIMATED: frozenset[Lane] = frozenset({"new", "value", "age"})  # their time depends on what else the budget goes to
_WHY: dict[Lane, str] = {
    "deadline": "its interval",
    "new": "never checked yet",
    "value": "how often it changes and is visited",
    "age": "checked longest ago",
    "rank": "its rank",
    "probe": "weekly retry (dropped by the TTL filter)",
    "waiting": "failed {times}, last {last}",
    "asked": "its host asked us to wait (Retry-After)",
    "gone": "gone, retried weekly",
    "unsafe": "blocked: {reason}",
}


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
        scheduler = watch_list.scheduler(every=every, budget=budget, policy=policy, to_look=True)
        scheduler.refresh()
        terms = scheduler.terms(limit)
    if as_json:
        print_json([asdict(one) for one in terms])
        return
    if not terms:
        say(NOTHING_YET, to_stderr=True)
        return
    print_table(_COLUMNS, [_row(one) for one in terms])
    left = len(scheduler) - len(terms)
    more = f" {count(left, 'more page')} not shown: see --limit." if left else ""
    say(f"{scheduler.describe()}.{more}", to_stderr=True)


def _row(one: Terms) -> list[str]:
    never = "only failed" if one.failures else "never"
    checked = never if one.days is None else f"{format_interval(round(one.days * 86_400))} ago"
    return [one.url, _when(one), _why(one), checked, f"{one.rate:.3g}", f"{one.chance:.0%}", f"{one.weight:.2f}"]


def _why(one: Terms) -> str:
    if one.lane == "deadline" and one.every is not None:
        return f"every {format_interval(one.every)}"
    times, last = count(one.failures, "time"), ago(one.tried_at, time.time())
    return _WHY[one.lane].format(times=times, last=last, reason=one.reason)


def _when(one: Terms) -> str:
    if one.lane == "unsafe":
        return "never"
    if one.due_at is None:
        return "when the budget allows"
    estimated = one.lane in _ESTIMATED
    if one.due_at <= time.time() + (_SOON if estimated else 0):
        return "now"
    return f"about {local_time(one.due_at)}" if estimated else local_time(one.due_at)
