"""The options that choose which parts of a page are watched. Their order on the command line counts."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.browser_options import with_modes
from driftline.cli.help_panels import WHAT_COUNTS, PanelCommand
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
        help="Watch only these parts: a CSS selector, xpath:…, json:…, or 'main' for the main content.",
        show_default=False,
        rich_help_panel=WHAT_COUNTS,
    ),
]
DropOption = Annotated[
    list[str] | None,
    typer.Option(
        "--drop", metavar="PARTS", help="Leave out these parts: a CSS selector, xpath:… or json:….",
        show_default=False, rich_help_panel=WHAT_COUNTS,
    ),
]  # fmt: skip
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore", metavar="TEXT|/REGEX/", help="Leave out lines that contain this.",
        show_default=False, rich_help_panel=WHAT_COUNTS,
    ),
]  # fmt: skip
TriggerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--trigger", metavar="TEXT|/REGEX/", help="Report a change only if this appears in what was added.",
        show_default=False, rich_help_panel=WHAT_COUNTS,
    ),
]  # fmt: skip
AlsoOption = Annotated[
    list[str] | None,
    typer.Option(
        "--also",
        metavar="WHAT",
        help="Watch more than the text: links, media, attributes, metadata, structure (separated by commas) or all.",
        show_default=False,
        rich_help_panel=WHAT_COUNTS,
    ),
]


class OrderedCommand(PanelCommand):
    """A command that keeps its arguments as typed, because filters apply in the order in which they were given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments and keep the originals."""
        args = with_modes(args)
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)


def given_filters(context: typer.Context, **values: Sequence[str] | None) -> list[Filter]:
    """Return the filters in the order in which they were given; raise BadFilter for the first that makes no sense."""
    if not any(values.values()):
        return []
    from driftline.detection.extract.filters import check_filters

    left = {kind: iter(some or ()) for kind, some in values.items()}
    ordered: list[tuple[str, str]] = []
    for kind in _named(context.meta[_ARGUMENTS]):
        ordered += [(kind, value) for value in islice(left[kind], 1)]
    return check_filters(ordered)


def describe_filters(filters: Sequence[Filter]) -> str:
    """Return the filters as a part of a sentence."""
    return ", ".join(f"{kind} {value}" for kind, value in filters)


def _named(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the kind of each filter option, in order."""
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
