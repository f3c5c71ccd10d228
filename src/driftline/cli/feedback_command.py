"""`feedback`: mark changes as important, minor or noise."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.options import JsonOption, StoreOption, opened
from driftline.cli.output import ago, clean, fields, iso, print_json, say
from driftline.cli.text_tables import Column, Styled, print_table
from driftline.errors import UsageError
from driftline.model.change import Importance

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
_WILL = {
    Importance.IMPORTANT: "be reported",
    Importance.MINOR: "count as minor",
    Importance.NOISE: "no longer be reported",
}


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
    minor: Annotated[bool, typer.Option("--minor", help="List changes like this one, but do not report them.")] = False,
    important: Annotated[bool, typer.Option("--important", "--matters", help="Report changes like this one.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Remove your mark.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Show all marks.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Mark a change as noise, as minor or as important.

    Later changes like it, on the page and on its host, are judged the same way.
    """
    if noise + minor + important + forget + listed != 1 or (change is None) != listed:
        raise UsageError("Give a change with one of --noise, --minor, --important or --forget, or --list alone.")
    with opened(store, make=False) as watch_list:
        if change is None:
            _list(watch_list.history.all_feedback(), as_json=as_json)
        elif forget:
            _forget(watch_list, change, as_json=as_json)
        else:
            chosen = Importance.NOISE if noise else Importance.MINOR if minor else Importance.IMPORTANT
            _remember(watch_list, change, chosen, as_json=as_json)


def _remember(watch_list: Driftline, change: str, importance: Importance, *, as_json: bool) -> None:
    url = watch_list.history.feedback(change, importance)
    if as_json:
        print_json({"change": change, "url": url, "importance": importance})
        return
    say(
        clean(
            f"Changes like {change} will {_WILL[importance]}, on {url}, and for the same lines elsewhere on its host."
        )
    )


def _forget(watch_list: Driftline, change: str, *, as_json: bool) -> None:
    url = watch_list.history.forget_feedback(change)
    if as_json:
        print_json({"change": change, "url": url, "importance": None})
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
    return [one.change, ago(one.at, now), one.importance, one.url, f"{one.found}: {one.reason}"]


def _as_json(one: Feedback) -> dict[str, Any]:
    return {**fields(one, "change", "url", "importance", "found", "reason"), "at": iso(one.at)}
