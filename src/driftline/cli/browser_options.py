"""The options of pages that are rendered by Chromium, and `screenshot`, which writes the pictures taken of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.help_panels import BROWSER
from driftline.cli.options import PageArgument, StoreOption, opened
from driftline.cli.output import clean, out, say
from driftline.errors import DriftlineError, UsageError
from driftline.model import Render, RenderMode

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    before: Render | None, mode: str | None, wait_for: str | None, steps: Sequence[str] | None, *, anew: bool = False
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
        steps=check_steps((*(() if anew else known.steps), *(steps or ()))),
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
    from driftline.fetch.browser.chromium import find_browser

    try:
        find_browser(named)
    except DriftlineError as error:
        say(clean(str(error)), to_stderr=True)


def screenshot(
    url: PageArgument,
    version: Annotated[
        int | None,
        typer.Option(
            "--version", metavar="N", help="Version number. [default: the newest with a picture]", show_default=False
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="File to write; - for standard output.")
    ] = "-",
    store: StoreOption = None,
) -> None:
    """Save the picture (PNG) of a version of a rendered page."""
    if output == "-" and out().is_terminal:
        raise UsageError("The picture cannot be shown on a terminal: write it to a file with -o FILE.png.")
    with opened(store, make=False) as watch_list:
        picture = watch_list.screenshot(url, version)
    if output == "-":
        sys.stdout.buffer.write(picture)
        sys.stdout.buffer.flush()
        return
    try:
        Path(output).write_bytes(picture)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DriftlineError(f"{output} cannot be written ({reason}): choose another file.") from None
    say(clean(f"Saved {output}."), to_stderr=True)
