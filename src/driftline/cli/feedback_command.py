"""`feedback`: mark changes as noise or as important."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.options import JsonOption, StoreOption, opened
from driftline.cli.output import ago, clean, fields, iso, print_json, say
from driftline.cli.text_tables import Column, Styled, print_table
from driftline.errors import UsageError
from driftline.model.change import Matter

if TYPE_CHECKING:
    from driftline.api.watch_list import Driftline
    from driftline.model.change import Feedback

_COLUMNS = (
    Column(name="change"),
    Column(name="when", optional=True),
    Column(name="your mark"),
    Column(name="url", least=30, middle=True, keep=1),
    Column(name="judged as", least=20, optional=True, style="dim"),
)
_WORDS = {Matter.NOISE: "noise", Matter.MEANINGFUL: "matters"}


def feedback(
    change: Annotated[
        str | None,
        typer.Argument(
            metavar="CHANGE",
            help="The id of a change, such as 12-5, as 'driftline changes' shows it.",
            show_default=False,
        ),
    ] = None,
    noise: Annotated[bool, typer.Option("--noise", help="Do not report changes like this one.")] = False,
    matters: Annotated[bool, typer.Option("--matters", help="Report changes like this one.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Remove your mark.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Show all marks.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Mark a change as noise, or as one that matters.

    Later changes like it, on the page and on its host, are judged the same way.
    """
    if noise + matters + forget + listed != 1 or (change is None) != listed:
        raise UsageError("Give a change with one of --noise, --matters or --forget, or --list alone.")
    with opened(store, make=False) as watch_list:
        if change is None:
            _list(watch_list.history.all_feedback(), as_json=as_json)
        elif forget:
            _forget(watch_list, change, as_json=as_json)
        else:
            _remember(watch_list, change, Matter.NOISE if noise else Matter.MEANINGFUL, as_json=as_json)


def _remember(watch_list: Driftline, change: str, matter: Matter, *, as_json: bool) -> None:
    url = watch_list.history.feedback(change, matter)
    if as_json:
        print_json({"change": change, "url": url, "verdict": matter})
        return
    will = "no longer be reported" if matter is Matter.NOISE else "be reported"
    say(clean(f"Changes like {change} will {will}, on {url}, and for the same lines elsewhere on its host."))


def _forget(watch_list: Driftline, change: str, *, as_json: bool) -> None:
    url = watch_list.history.forget_feedback(change)
    if as_json:
        print_json({"change": change, "url": url, "verdict": None})
        return
    say(clean(f"Removed your mark: changes like {change} on {url} are judged automatically again."))


def _list(said: list[Feedback], *, as_json: bool) -> None:
    if as_json:
        print_json([_as_json(one) for one in said])
    elif said:
        now = time.time()
        print_table(_COLUMNS, [_row(one, now) for one in said])
    else:
        say("You have marked no change yet: mark one with 'driftline feedback CHANGE --noise'.", to_stderr=True)


def _row(one: Feedback, now: float) -> list[str | Styled]:
    return [one.change, ago(one.at, now), _WORDS[one.verdict], one.url, f"{_WORDS[one.found]}: {one.reason}"]


def _as_json(one: Feedback) -> dict[str, Any]:
    return {**fields(one, "change", "url", "verdict", "found", "reason"), "at": iso(one.at)}
