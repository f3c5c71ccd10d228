"""The options of pages that are fetched through a browser, and `screenshot`: the pictures that were taken of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
        help="Fetch it through Chromium; 'auto' only if it shows nothing without scripts.", show_default=False,
    ),
]  # fmt: skip
WaitOption = Annotated[
    str | None,
    typer.Option(
        "--wait-for", metavar="CSS", show_default=False,
        help="With --render: capture the page once this is there; '' for nothing.",
    ),
]  # fmt: skip
StepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--step", metavar="STEP", show_default=False,
        help="With --render, before the capture: click:CSS, type:CSS=WORDS, press:KEY, scroll, wait:CSS or wait:2s.",
    ),
]  # fmt: skip


def with_modes(arguments: Sequence[str]) -> list[str]:
    """The arguments with a mode after every --render: the option may stand alone, before an address too."""
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
    """How a page is to be rendered that was rendered so before; None if it is not to be."""
    from driftline.fetch.browser.steps import check_selector, check_steps

    if mode is not None and mode not in _MODES:
        raise UsageError(f"'{mode}' is no way to render a page: use --render, --render auto or --render never.")
    if mode == _NEVER:
        if wait_for or steps:
            raise UsageError(
                "A page that is not rendered waits for nothing and has no steps: leave out --render never."
            )
        return None
    if mode is None and before is None and not wait_for and not steps:
        return None
    known = before or Render()
    return Render(
        mode=known.mode if mode is None else RenderMode(mode),
        wait_for=known.wait_for if wait_for is None else check_selector(wait_for.strip()) or None,
        steps=check_steps((*(() if anew else known.steps), *(steps or ()))),
    )


def told_rendering(render: Render) -> str:
    """How a page is rendered, as a part of a sentence."""
    how = "rendered" if render.mode is RenderMode.ALWAYS else "rendered if it shows nothing otherwise"
    waits = f", waiting for {render.wait_for}" if render.wait_for else ""
    return f"{how}{waits}{', after ' + ', '.join(render.steps) if render.steps else ''}"


def rendering_as_json(render: Render | None) -> dict[str, Any] | None:
    """How a page is rendered, for programs."""
    return None if render is None else {"mode": render.mode, "wait_for": render.wait_for, "steps": list(render.steps)}


def warn_of_browser(render: Render | None, named: str | None) -> None:
    """Say at once what has to be installed for a page that is to be rendered."""
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
            "--version", metavar="N", help="Which version. [default: the newest that has one]", show_default=False
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The file to write; '-' is standard output.")
    ] = "-",
    store: StoreOption = None,
) -> None:
    """Write the picture (PNG) that was taken of a version of a rendered page."""
    if output == "-" and out().is_terminal:
        raise UsageError("A picture is nothing for a terminal: name a file with -o FILE.png.")
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
        raise DriftlineError(f"{output} cannot be written: {reason}; name a file in a folder of yours.") from None
    say(clean(f"Written to {output}."), to_stderr=True)
