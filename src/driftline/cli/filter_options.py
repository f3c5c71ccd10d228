"""The options that say which parts of a page count, in the order in which they were given."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from driftline.cli.browser_options import with_modes
from driftline.model import FilterKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from driftline.model import Filter

_ARGUMENTS = "driftline.arguments"

SelectOption = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        metavar="PARTS",
        help="Watch only these parts: CSS, xpath:…, json:… or 'main' for the main content.",
        show_default=False,
    ),
]
DropOption = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="PARTS", help="Leave out these parts: CSS, xpath:… or json:….", show_default=False),
]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="TEXT|/REGEX/", help="Leave out lines that hold this.", show_default=False),
]
TriggerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--trigger", metavar="TEXT|/REGEX/", help="Tell of a change only if this appears.", show_default=False
    ),
]
AlsoOption = Annotated[
    list[str] | None,
    typer.Option(
        "--also",
        metavar="WHAT",
        help="Besides its text, watch links, media, attributes, metadata, structure (several with commas) or 'all'.",
        show_default=False,
    ),
]


class OrderedCommand(TyperCommand):
    """A command that remembers its arguments as they came: the order of filters counts, whatever their names."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, and keep them."""
        args = with_modes(args)
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)


def given_filters(context: typer.Context, **values: Sequence[str] | None) -> list[Filter]:
    """The filters that were given, in order; BadFilter says what is wrong with the first that is."""
    if not any(values.values()):
        return []
    from driftline.detection.extract.filters import check_filters

    left = {kind: iter(some or ()) for kind, some in values.items()}
    ordered: list[tuple[str, str]] = []
    for kind in _named(context.meta[_ARGUMENTS]):
        ordered += [(kind, value) for value in islice(left[kind], 1)]
    return check_filters(ordered)


def told(filters: Sequence[Filter]) -> str:
    """The filters as a part of a sentence."""
    return ", ".join(f"{kind} {value}" for kind, value in filters)


def _named(arguments: Sequence[str]) -> Iterator[str]:
    """The kinds of the filters, as often as they were given."""
    names = {f"--{kind}": kind.value for kind in FilterKind}
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return
        name, is_whole, _ = argument.partition("=")
        if name in names:
            yield names[name]
            if not is_whole:
                next(rest, None)  # its value, which may look like an option itself
