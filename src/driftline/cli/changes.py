"""`changes`: what changed lately, over all pages."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from driftline.cli.options import JsonOption, StoreOption, TagOption, insist_on_tag, opened
from driftline.cli.output import event_lines, local_time, print_json_list, say, suggest_commands
from driftline.durations import parse_moment

_SHOWN = 50
_PAGES = 10  # that are listed of one event


def changes(
    url: Annotated[str | None, typer.Argument(metavar="URL", help="Only this page.", show_default=False)] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Only since then: how long ago (1d, 3h), or a date.", show_default=False),
    ] = None,
    tag: TagOption = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Show at most N events. [default: 50, all with --json]",
                     show_default=False),
    ] = None,
    every_page: Annotated[
        bool, typer.Option("--all", help="List every page of an event, not only the first ten.")
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Show what changed lately, newest first.

    Also pages that fail or recovered, warnings, and pages of a crawled site that are new, gone or moved.

    A change has an id, such as 12-5: give it to 'driftline diff', 'show' or 'feedback'.
    """
    from driftline.store.events import event_document

    after = None if since is None else parse_moment(since, time.time())
    with opened(store, make=False) as watch_list:
        if tag is not None:
            insist_on_tag(watch_list, tag)
        most = limit if limit is not None or as_json else _SHOWN + 1
        events = watch_list.changes(since=after, tag=tag, url=url, limit=most)
        if as_json:
            print_json_list(map(event_document, events))
            return
        shown = list(events)
    if not shown:
        every = since is None and url is None and tag is None
        say(
            "Nothing has changed yet." if every else "No such events: try without --since, --tag or URL.",
            to_stderr=True,
        )
    more = limit is None and len(shown) > _SHOWN
    for event in shown[:_SHOWN] if more else shown:
        for line in event_lines(event, f"{local_time(event.at)}  ", most=None if every_page else _PAGES):
            say(*line)
    if more:
        say(f"These are the newest {_SHOWN}: --limit shows more.", to_stderr=True)
    suggest_commands(shown)
