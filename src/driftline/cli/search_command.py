"""`search`: find the versions in which words appeared or disappeared."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.options import JsonOption, StoreOption, TagOption, insist_on_tag, opened
from driftline.cli.output import ago, clean, fields, iso, out, print_json, say
from driftline.cli.progress import TerminalBar
from driftline.model.change import MentionKind
from driftline.plurals import count

if TYPE_CHECKING:
    from driftline.model.change import Mention

_LONG = 500  # versions: indexing more takes long enough to show a bar
_WHEN = "a date, a date and time, or how long ago: 2026-01-31, 2026-01-31T18:00, 12h"


def search(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="WORDS",
            help='Words that must all occur, a "phrase" in quotes, or the beginning of a word: begin*.',
            show_default=False,
        ),
    ],
    now: Annotated[bool, typer.Option("--now", help="Only pages whose newest version contains the words.")] = False,
    page: Annotated[
        str | None, typer.Option("--page", metavar="URL", help="Only this page.", show_default=False)
    ] = None,
    tag: TagOption = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="WHEN", help=f"Only since then: {_WHEN}.", show_default=False)
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="WHEN", help="Only before then.", show_default=False)
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="Show at most N versions, the newest first.")
    ] = 20,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the versions in which words appeared or disappeared."""
    from driftline.durations import parse_moment

    query = " ".join(_as_written(argument) for argument in words)
    at = time.time()
    start, end = (None if when is None else parse_moment(when, at) for when in (since, until))
    with opened(store, make=False) as watch_list:
        if tag is not None:
            insist_on_tag(watch_list, tag)
        with TerminalBar() as bar:
            found = watch_list.search(
                query, url=page, tag=tag, since=start, until=end, now=now, limit=limit, progress=_Indexing(bar).show
            )
    if as_json:
        print_json([_as_json(mention) for mention in found])
    elif found:
        for mention in found:
            _print(mention, at)
    else:
        say("No version found in which these words appeared or disappeared.", to_stderr=True)


def _as_written(argument: str) -> str:
    """Return the argument in quotes if it holds spaces: the shell took away the quotes of a phrase."""
    return f'"{argument}"' if " " in argument.strip() and '"' not in argument else argument


def _print(mention: Mention, now: float) -> None:
    from rich.text import Text

    appeared = mention.kind is MentionKind.APPEARED
    style = "green" if appeared else "red"
    coloured = out().color_system is not None and not out().no_color
    opening, closing = ("", "") if coloured else ("{+", "+}") if appeared else ("[-", "-]")
    line = Text("    ")
    at = 0
    for start, end in mention.marks:
        line.append(clean(mention.excerpt[at:start]))
        line.append(f"{opening}{clean(mention.excerpt[start:end])}{closing}", f"bold {style}")
        at = end
    line.append(clean(mention.excerpt[at:]))
    version = f"  version {mention.version}, {ago(mention.at, now)}"
    say((f"{mention.kind:<11} ", style), clean(mention.url), (version, "dim"))
    out().print(line, soft_wrap=True)


def _as_json(mention: Mention) -> dict[str, Any]:
    return {
        **fields(mention, "url", "version"),
        "at": iso(mention.at),
        **fields(mention, "kind", "excerpt"),
        "marks": [list(mark) for mark in mention.marks],
    }


class _Indexing:
    """Shows that versions are being indexed if that takes long: a line, and a bar on a terminal."""

    def __init__(self, bar: TerminalBar) -> None:
        self._bar = bar
        self._begun = False

    def show(self, done: int, total: int) -> None:
        """Show how many versions are indexed."""
        if not self._begun and total > _LONG:
            self._begun = True
            say(f"Indexing {count(total, 'version')} for the first search…", to_stderr=True)
            self._bar.start(total)
        self._bar.show(done)
        if done == total:
            self._bar.stop()
