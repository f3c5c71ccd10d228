"""Options of `add` and `edit`: which parts of a page are watched, and whether a browser renders it."""

from __future__ import annotations

import inspect
from functools import wraps
from itertools import islice
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.help_panels import BROWSER, WHAT_COUNTS, PanelCommand
from driftline.cli.output import clean, say
from driftline.errors import DriftlineError, UsageError
from driftline.model.page import FilterKind, Render, RenderMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

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


def _filter_option(name: str, metavar: str, text: str) -> Any:
    return Annotated[
        list[str] | None,
        typer.Option(name, metavar=metavar, help=text, show_default=False, rich_help_panel=WHAT_COUNTS),
    ]


_FILTER_OPTIONS = {
    "select": _filter_option(
        "--select", "PARTS", "Watch only these parts: a CSS selector, xpath:…, json:…, or 'main' for the main content."
    ),
    "drop": _filter_option("--drop", "PARTS", "Leave out these parts: a CSS selector, xpath:… or json:…."),
    "read": _filter_option(
        "--read", "offers|source", "Watch price and stock, wherever they are, or the markup instead of the text."
    ),
    "also": _filter_option(
        "--also", "WHAT",
        "Watch more than the text: links, media, attributes, metadata, structure (separated by commas) or all.",
    ),
    "ignore": _filter_option("--ignore", "TEXT|/REGEX/", "Leave out lines that contain this."),
    "keep": _filter_option("--keep", "TEXT|/REGEX/", "Keep only lines that contain this."),
    "extract": _filter_option("--extract", "/REGEX/", "Keep only what this matches, or its groups."),
    "replace": _filter_option("--replace", "/REGEX/TEXT/", "Replace what this matches by a text."),
    "lines": _filter_option(
        "--lines", "sort|reverse|unique", "Sort or reverse the lines, or keep each only once."
    ),
    "when": _filter_option(
        "--when", "CONDITION", "Report a change only if this is met, as 'price < 40', 'drop > 10 %', 'stock appears'."
    ),
    "trigger": _filter_option(
        "--trigger", "TEXT|/REGEX/", "Report a change only if this appears in what was added."
    ),
    "trigger_removed": _filter_option(
        "--trigger-removed", "TEXT|/REGEX/", "Report a change only if this is in what was removed."
    ),
    "quiet_while": _filter_option("--quiet-while", "TEXT|/REGEX/", "Report nothing while the page has this."),
    "method": _filter_option("--method", "GET|POST|PUT", "How the page is requested. [default: GET, POST with --data]"),
    "data": _filter_option("--data", "TEXT", "Send this with the request: a form (a=1&b=2) or JSON."),
    "content_type": _filter_option("--content-type", "TYPE", "What --data is. [default: by its beginning]"),
    "accept": _filter_option(
        "--accept", "STATUS|empty", "Take answers with this error status (404, 5xx), or without text, as the page."
    ),
    "only": _filter_option(
        "--only", "added|removed|unseen", "Report only what was added, or removed, or never seen on the page before."
    ),
}  # fmt: skip


def takes_filters(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has an option for each kind of filter, in place of its parameter `filters`.

    That gets the filters in the order in which they were given.
    """
    signature = inspect.signature(command, eval_str=True)
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [context]
    for one in signature.parameters.values():
        if one.name != "filters":
            parameters.append(one)
            continue
        parameters += [
            inspect.Parameter(name, one.kind, default=None, annotation=option)
            for name, option in _FILTER_OPTIONS.items()
        ]

    @wraps(command)
    def with_filters(context: typer.Context, **given: Any) -> None:
        values = {name: given.pop(name) for name in _FILTER_OPTIONS}
        command(filters=_given_filters(context, values), **given)

    with_filters.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_filters.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_filters


class OrderedCommand(PanelCommand):
    """A command that keeps its arguments as typed, because filters apply in the order in which they were given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments and keep the originals."""
        args = with_modes(args)
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)


def _given_filters(context: typer.Context, values: Mapping[str, Sequence[str] | None]) -> list[Filter]:
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
