"""Options that several commands share, and `opened`, which opens the store that they name."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from functools import cache
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.api import workspace_of
from driftline.cli.help_panels import PIPELINE, POLITENESS, SCHEDULE
from driftline.cli.output import clean, complain, say
from driftline.errors import BadSetting, StoreUnavailable, UsageError
from driftline.model.change import check_of
from driftline.model.page import POLICIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from driftline.api.watch_list import Driftline
    from driftline.model.page import Page
    from driftline.settings import Settings

_LONGEST_START = 30.0  # seconds that a server may take to start
_PAUSE = 0.5  # seconds between two tries

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="PATH|URL",
        help="Where pages are kept: a file or a postgresql:// URL. [default: DRIFTLINE_STORE, or a file in your data "
        "folder]",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ExecOption = Annotated[
    str | None,
    typer.Option(
        "--exec", metavar="COMMAND", show_default=False,
        help="Run this for each event, without a shell (for pipes: sh -c '…'). It gets the event as one line of JSON "
        "on standard input. If it fails it is run again, less and less often, for a day.",
    ),
]  # fmt: skip
OnceOption = Annotated[
    bool,
    typer.Option(
        "--once",
        help="Check all pages that are due or new, whatever the budget, then say when the next is due and end.",
    ),
]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Log every check on standard error.")]
PageArgument = Annotated[str, typer.Argument(metavar="URL", help="A watched page.", show_default=False)]
PageOrChangeArgument = Annotated[
    str,
    typer.Argument(
        metavar="URL|CHANGE", help="A watched page, or the id of a change such as 12-5.", show_default=False
    ),
]
NetworksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-network", metavar="NETWORK", show_default=False,
        help="Allow fetching from this private network, such as 192.168.0.0/16; may be repeated.",
        rich_help_panel=POLITENESS,
    ),
]  # fmt: skip
HostDelayOption = Annotated[
    float | None,
    typer.Option(
        "--host-delay", metavar="SECONDS", show_default=False,
        help="Pause between two requests to the same host; use 0 only for your own servers. [default: 1]",
        rich_help_panel=POLITENESS,
    ),
]  # fmt: skip
StallOption = Annotated[
    float | None,
    typer.Option(
        "--stall-after", metavar="SECONDS", show_default=False,
        help="Report a stall when nothing was recorded for this long although pages wait; 'run' then restarts its "
        "pipeline. [default: 60]",
        rich_help_panel=PIPELINE,
    ),
]  # fmt: skip
HostConnectionsOption = Annotated[
    int | None,
    typer.Option(
        "--host-connections", metavar="N", help="Simultaneous requests to the same host. [default: 1]",
        show_default=False, rich_help_panel=POLITENESS,
    ),
]  # fmt: skip
RobotsOption = Annotated[
    str | None,
    typer.Option(
        "--robots", metavar="obey|ignore", show_default=False, rich_help_panel=POLITENESS,
        help="Whether to follow robots.txt; ignore it only on your own sites. [default: obey]",
    ),
]  # fmt: skip
EveryOption = Annotated[
    str | None,
    typer.Option("--every", metavar="TIME", help="How often to check: 30s, 15m, 2h, 1d, 1w.", show_default=False),
]
UsualOption = Annotated[
    str,
    typer.Option(
        "--every", metavar="TIME", help="Average time between checks of pages that have no interval of their own."
    ),
]
BudgetOption = Annotated[
    str | None,
    typer.Option(
        "--budget", metavar="RATE", help="Most checks per time: 10/s, 600/m, 20000/d. [default: follows from --every]",
        show_default=False,
    ),
]  # fmt: skip
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy", metavar="|".join(POLICIES), show_default=False, rich_help_panel=SCHEDULE,
        help="What is checked first: likely changed and much visited pages (value), by rank (intelligent), at their "
        "interval (fixed), checked longest ago (uniform). [default: value]",
    ),
]  # fmt: skip
MinOption = Annotated[
    str | None,
    typer.Option(
        "--min", metavar="important|minor", show_default=False,
        help="The least important changes to report: minor includes those of form only, such as another order. "
        "[default: important]",
    ),
]  # fmt: skip
TagsOption = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="Tag the pages; may be repeated.", show_default=False),
]
TagOption = Annotated[
    str | None, typer.Option("--tag", metavar="TAG", help="Only pages with this tag.", show_default=False)
]


@contextmanager
def opened(
    store: str | None, allow_networks: list[str] | None = None, *, make: bool = True, patient: bool = False,
    **politeness: Any,
) -> Iterator[Driftline]:  # fmt: skip
    """Open the store that the option, the environment or the settings name.

    `politeness` has settings such as `host_delay`; those that are None keep their configured value. With
    `patient`, wait for a database server that may still be starting.

    A missing store is created. With `make` false (for commands that only read) a missing store that was named raises
    UsageError, because its name is mistyped; the default store is replaced by an empty one.
    """
    from driftline.api.watch_list import open as open_store
    from driftline.settings import parse_network
    from driftline.store.drivers import is_there

    for network in allow_networks or ():
        try:
            parse_network(network)
        except BadSetting as error:
            raise BadSetting(f"--allow-network: {error}") from None
    settings = command_settings(store=store, allow_networks=allow_networks, **politeness)
    with ExitStack() as stack:
        if not make and not is_there(settings.store):
            if is_named(settings):
                raise UsageError(no_store(settings.store))
            from tempfile import TemporaryDirectory

            folder = stack.enter_context(TemporaryDirectory(prefix="driftline-"))
            settings = settings.model_copy(update={"store": f"{folder}/empty.db"})
        yield stack.enter_context(_open_patiently(settings) if patient else open_store(settings=settings))


def _open_patiently(settings: Settings) -> Driftline:
    """Open a store, trying for half a minute while its server does not answer."""
    from driftline.api.watch_list import open as open_store

    end = time.monotonic() + _LONGEST_START
    said = False
    while True:
        try:
            return open_store(settings=settings)
        except StoreUnavailable as error:
            if time.monotonic() >= end:
                raise
            if not said:
                say(clean(f"Waiting for up to {_LONGEST_START:g} s: {error}"), to_stderr=True)
                said = True
        time.sleep(_PAUSE)


def command_settings(**options: Any) -> Settings:
    """Return the settings with these options applied; warn once of environment variables that look misspelled."""
    from driftline.settings import load_command_settings

    _warn_of_misspelled_variables()
    return load_command_settings(**options)


@cache
def _warn_of_misspelled_variables() -> None:
    """Warn of variables whose name is close to that of a setting; others may have another purpose."""
    from driftline.settings import misspelled_variables

    for name, meant in misspelled_variables().items():
        if meant is not None:
            complain(f"The variable {name} is not a setting: did you mean {meant}?")


def is_named(settings: Settings) -> bool:
    """Return whether the store was named by the option, the environment or the settings file."""
    return "store" in settings.model_fields_set


def no_store(where: str) -> str:
    """Return the message for a missing store."""
    command = f"driftline add URL --store {quote(where)}"
    return f"There is no store '{where}': correct its name, or create it with \"{command}\"."


def is_change_id(text: str) -> bool:
    """Return whether this is the id of a change, such as 12-5, and not the address of a page."""
    try:
        check_of(text.strip())
    except ValueError:
        return False
    return True


def pages_with(watch_list: Driftline, tag: str) -> list[Page]:
    """Return the pages with a tag; raise UsageError if no page has it."""
    insist_on_tag(watch_list, tag)
    return watch_list.pages(tag)


def insist_on_tag(watch_list: Driftline, tag: str) -> None:
    """Raise UsageError if no page has this tag."""
    if workspace_of(watch_list).catalog.unused_tags([tag]):
        raise UsageError(f"No page has the tag '{tag}': see the tags in use with 'driftline list'.")
