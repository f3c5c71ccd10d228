"""`schedule`: what will be checked next, and why."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli.options import BudgetOption, JsonOption, PolicyOption, StoreOption, UsualOption, opened
from driftline.cli.output import NOTHING_YET, ago, count, local_time, print_json, say
from driftline.cli.text_tables import Column, print_table
from driftline.durations import format_interval

if TYPE_CHECKING:
    from driftline.schedule.forecast import Lane, Terms

_COLUMNS = (
    Column(name="url", least=30, keep=1, middle=True),
    Column(name="why"),
    Column(name="checked", right=True),
    Column(name="changes/day", right=True),
    Column(name="chance", right=True),
    Column(name="weight", right=True),
    Column(name="value", right=True),
)
_SOON = 60.0  # seconds: nobody can tell more exactly
_WHY: dict[Lane, str] = {
    "deadline": "its interval, {when}",
    "new": "never checked, {likely}",
    "value": "its value, {likely}",
    "age": "its age, {likely}",
    "rank": "its turn, {when}",
    "probe": "a probe, {when}",
    "waiting": "failed {times}, last {last}, next try {when}",
    "asked": "its host asked to wait, until {when}",
    "gone": "is gone, next try {when}",
    "unsafe": "never while it is blocked: {reason}",
}


def schedule(
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="How many pages to show.")] = 20,
    every: UsualOption = "1h",
    budget: BudgetOption = None,
    policy: PolicyOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show which pages 'driftline run' will check next, and why."""
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
    rest = f"; {count(left, 'more page')} not shown" if left else ""
    say(f"{scheduler.describe()}{rest}.", to_stderr=True)


def _row(one: Terms) -> list[str]:
    never = "only failed" if one.failures else "never"
    checked = never if one.days is None else f"{format_interval(round(one.days * 86_400))} ago"
    return [
        one.url, _why(one), checked, f"{one.rate:.3g}", f"{one.chance:.0%}", f"{one.weight:.2f}", f"{one.value:.3g}",
    ]  # fmt: skip


def _why(one: Terms) -> str:
    if one.lane == "deadline" and one.every is not None:
        return f"every {format_interval(one.every)}, {_when(one.due_at)}"
    times, last = count(one.failures, "time"), ago(one.tried_at, time.time())
    return _WHY[one.lane].format(
        when=_when(one.due_at), likely=_likely(one.due_at), times=times, last=last, reason=one.reason
    )


def _when(at: float | None) -> str:
    if at is None:
        return "when the intervals of others leave room in the budget"
    return "due now" if at <= time.time() else local_time(at)


def _likely(at: float | None) -> str:
    """The same of a time that depends on what the budget is spent on until then."""
    return f"about {local_time(at)}" if at is not None and at > time.time() + _SOON else _when(at and at - _SOON)
