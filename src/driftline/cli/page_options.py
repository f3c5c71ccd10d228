"""Options of `add` and `edit`: which parts of a page are watched, and whether a browser renders it."""

from __future__ import annotations

from itertools import islice
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.help_panels import BROWSER, WHAT_COUNTS, PanelCommand
from driftline.cli.output import clean, say
from driftline.errors import DriftlineError, UsageError
from driftline.model.page import FilterKind, Render, RenderMode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from driftline.model.page import Filter

_NEVER = "never"
_MODES = (*RenderMode, _NEVER)
_OPTION = "--render"

RenderOption = Annotated[
    str | None,
    typer.Option(
        _OPTION, metavar="[auto|never]",
        help="Load the page in Chromium; with 'auto', only if it shows no text otherwise.", show_default=False,
        rich_help_panel=BROWSER,
    ),
]  # fmt: skip
WaitOption = Annotated[
    str | None,
    typer.Option(
        "--wait-for", metavar="CSS", show_default=False,
        help="Wait until this element is visible ('' to stop waiting for one).", rich_help_panel=BROWSER,
    ),
]  # fmt: skip
StepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--step", metavar="STEP", show_default=False,
        help="Do this first: click:CSS, type:CSS=TEXT, press:KEY, scroll, scroll:CSS, wait:CSS or wait:2s; may be "
        "repeated.",
        rich_help_panel=BROWSER,
    ),
]  # fmt: skip


def with_modes(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with a mode after every --render, so that the option also works without a value."""
    found: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            return [*found, argument, *rest]
        if argument == _OPTION:
            argument = f"{_OPTION}={rest.pop(0) if rest and rest[0] in _MODES else RenderMode.ALWAYS.value}"
        found.append(argument)
    return found


def given_rendering(
    before: Render | None,
    mode: str | None,
    wait_for: str | None,
    steps: Sequence[str] | None,
    *,
    replace_steps: bool = False,
) -> Render | None:
    """Return the new rendering settings of a page whose settings were `before`; None for not rendered."""
    from driftline.fetch.browser.steps import check_selector, check_steps

    if mode is not None and mode not in _MODES:
        raise UsageError(f"--render does not take '{mode}': use --render, --render auto or --render never.")
    if mode == _NEVER:
        if wait_for or steps:
            raise UsageError("--wait-for and --step need a browser: leave out --render never.")
        return None
    if mode is None and before is None and not wait_for and not steps:
        return None
    known = before or Render()
    return Render(
        mode=known.mode if mode is None else RenderMode(mode),
        wait_for=known.wait_for if wait_for is None else check_selector(wait_for.strip()) or None,
        steps=check_steps((*(() if replace_steps else known.steps), *(steps or ()))),
    )


def describe_rendering(render: Render) -> str:
    """Return how a page is rendered, as a part of a sentence."""
    how = "rendered" if render.mode is RenderMode.ALWAYS else "rendered if it shows no text otherwise"
    waits = f", waiting for {render.wait_for}" if render.wait_for else ""
    return f"{how}{waits}{', after ' + ', '.join(render.steps) if render.steps else ''}"


def rendering_as_json(render: Render | None) -> dict[str, Any] | None:
    """Return how a page is rendered, as a JSON object."""
    return None if render is None else {"mode": render.mode, "wait_for": render.wait_for, "steps": list(render.steps)}


def warn_of_browser(render: Render | None, named: str | None) -> None:
    """Print what has to be installed first, if a page is to be rendered and no browser is found."""
    if render is None:
        return
    from driftline.fetch.browser.chromium_process import find_browser

    try:
        find_browser(named)
    except DriftlineError as error:
        say(clean(str(error)), to_stderr=True)


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
KeepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--keep", metavar="TEXT|/REGEX/", help="Keep only lines that contain this.",
        show_default=False, rich_help_panel=WHAT_COUNTS,
    ),
]  # fmt: skip
ExtractOption = Annotated[
    list[str] | None,
    typer.Option(
        "--extract", metavar="/REGEX/", help="Keep only what this matches, or its groups.",
        show_default=False, rich_help_panel=WHAT_COUNTS,
    ),
]  # fmt: skip
ReplaceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--replace", metavar="/REGEX/TEXT/", help="Replace what this matches by a text.",
        show_default=False, rich_help_panel=WHAT_COUNTS,
    ),
]  # fmt: skip
LinesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--lines", metavar="sort|reverse|unique", help="Sort or reverse the lines, or keep each only once.",
        show_default=False, rich_help_panel=WHAT_COUNTS,
    ),
]  # fmt: skip
TriggerRemovedOption = Annotated[
    list[str] | None,
    typer.Option(
        "--trigger-removed", metavar="TEXT|/REGEX/", help="Report a change only if this is in what was removed.",
        show_default=False, rich_help_panel=WHAT_COUNTS,
    ),
]  # fmt: skip
QuietWhileOption = Annotated[
    list[str] | None,
    typer.Option(
        "--quiet-while", metavar="TEXT|/REGEX/", help="Report nothing while the page has this.",
        show_default=False, rich_help_panel=WHAT_COUNTS,
    ),
]  # fmt: skip
OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only", metavar="added|removed", help="Report only what was added, or only what was removed.",
        show_default=False, rich_help_panel=WHAT_COUNTS,
    ),
]  # fmt: skip
ReadOption = Annotated[
    list[str] | None,
    typer.Option(
        "--read", metavar="source", help="Watch the markup that the server sends, instead of the text that it shows.",
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

    left = {name.replace("_", "-"): iter(some or ()) for name, some in values.items()}
    ordered: list[tuple[str, str]] = []
    for kind in _named(context.meta[_ARGUMENTS]):
        ordered += [(kind, value) for value in islice(left[kind], 1)]
    return check_filters(ordered)


def describe_filters(filters: Sequence[Filter]) -> str:
    """Return the filters as a part of a sentence."""
    return ", ".join(f"{kind} {quote(value) if ' ' in value else value}" for kind, value in filters)


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
