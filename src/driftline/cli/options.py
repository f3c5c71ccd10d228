"""Options that many commands share, and opening the store that they name."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from functools import cache
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.output import clean, complain, say
from driftline.errors import BadSetting, StoreUnavailable, UsageError
from driftline.model import POLICIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from driftline.api import Driftline
    from driftline.model import Page
    from driftline.settings import Settings

_LONGEST_START = 30.0  # seconds that a server may take to start
_PAUSE = 0.5  # seconds between two tries

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="PATH|URL",
        help="The store to use: a path or a postgresql:// URL. [default: DRIFTLINE_STORE, or a file of your own]",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
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
PageArgument = Annotated[str, typer.Argument(metavar="URL", help="The address of a watched page.", show_default=False)]
NetworksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-network", metavar="NETWORK", show_default=False,
        help="Fetch from this network although it is private, such as 192.168.0.0/16; may be given several times.",
    ),
]  # fmt: skip
HostDelayOption = Annotated[
    float | None,
    typer.Option(
        "--host-delay", metavar="SECONDS", show_default=False,
        help="How long a host is left alone after an answer; 0 is for servers of your own. [default: 1]",
    ),
]  # fmt: skip
StallOption = Annotated[
    float | None,
    typer.Option(
        "--stall-after", metavar="SECONDS", show_default=False,
        help="Report what everything waits for if nothing was recorded for so long although there is work to do; "
        "'run' then starts its pipeline anew. [default: 60]",
    ),
]  # fmt: skip
HostConnectionsOption = Annotated[
    int | None,
    typer.Option(
        "--host-connections", metavar="N", help="Requests at one host at once. [default: 1]", show_default=False
    ),
]
RobotsOption = Annotated[
    str | None,
    typer.Option(
        "--robots", metavar="obey|ignore", help="Whether robots.txt is obeyed; ignore is for sites of your own.",
        show_default=False,
    ),
]  # fmt: skip
EveryOption = Annotated[
    str | None,
    typer.Option("--every", metavar="TIME", help="How often to check: 30s, 15m, 2h, 1d or 1w.", show_default=False),
]
UsualOption = Annotated[
    str,
    typer.Option(
        "--every", metavar="TIME", help="How often a page is checked that has no interval of its own, on average."
    ),
]
BudgetOption = Annotated[
    str | None,
    typer.Option(
        "--budget", metavar="RATE", help="How many checks there may be: 10/s, 600/m, 20000/d. [default: by --every]",
        show_default=False,
    ),
]  # fmt: skip
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy", metavar="|".join(POLICIES), help="What is checked next. [default: value]", show_default=False
    ),
]
TagsOption = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="A tag for the pages; may be given several times.", show_default=False),
]
TagOption = Annotated[
    str | None, typer.Option("--tag", metavar="TAG", help="Only the pages with this tag.", show_default=False)
]


@contextmanager
def opened(
    store: str | None, allow_networks: list[str] | None = None, *, make: bool = True, patient: bool = False,
    **manners: Any,
) -> Iterator[Driftline]:  # fmt: skip
    """The watch list that the option, the environment or the settings name, which may fetch from these networks.

    `manners` are settings of how hosts are treated, as far as they are given. Who is `patient` waits for a server that
    does not answer, which may be starting.

    A store that is not there is made, unless `make` is false, for who only looks or needs what is in it: then
    whoever names it has mistyped it, and is told so; where nobody does, nothing was added yet, and it is an empty one.
    """
    from driftline.api import open as open_store
    from driftline.settings import parse_network
    from driftline.store.engine import is_there

    for network in allow_networks or ():
        try:
            parse_network(network)
        except BadSetting as error:
            raise BadSetting(f"--allow-network: {error}") from None
    settings = command_settings(store=store, allow_networks=allow_networks, **manners)
    with ExitStack() as stack:
        if not make and not is_there(settings.store):
            if is_named(settings):
                raise UsageError(no_store(settings.store))
            from tempfile import TemporaryDirectory

            folder = stack.enter_context(TemporaryDirectory(prefix="driftline-"))
            settings = settings.model_copy(update={"store": f"{folder}/empty.db"})
        yield stack.enter_context(_open_patiently(settings) if patient else open_store(settings=settings))


def _open_patiently(settings: Settings) -> Driftline:
    """Open a store, trying again for half a minute while its server does not answer, which is said once."""
    from driftline.api import open as open_store

    end = time.monotonic() + _LONGEST_START
    said = False
    while True:
        try:
            return open_store(settings=settings)
        except StoreUnavailable as error:
            if time.monotonic() >= end:
                raise
            if not said:
                say(clean(f"Waiting for {_LONGEST_START:g} s at most: {error}"), to_stderr=True)
                said = True
        time.sleep(_PAUSE)


def command_settings(**options: Any) -> Settings:
    """The settings with these options of the command; a warning, once, for variables that are likely misspelled."""
    from driftline.settings import load_command_settings

    _warn_of_misspelled_variables()
    return load_command_settings(**options)


@cache
def _warn_of_misspelled_variables() -> None:
    """Warn of those that are nearly called like a setting; others may be for something else, such as a secret."""
    from driftline.settings import misspelled_variables

    for name, meant in misspelled_variables().items():
        if meant is not None:
            complain(f"The variable {name} sets nothing: perhaps {meant} is meant.")


def is_named(settings: Settings) -> bool:
    """Whether the store is one that somebody names: by the option, in the environment or in the settings file."""
    return "store" in settings.model_fields_set


def no_store(where: str) -> str:
    """That there is none, and how to make it."""
    command = f"driftline add URL --store {quote(where)}"
    return f"There is no store '{where}': correct its name, or make it with \"{command}\"."


def pages_with(watch_list: Driftline, tag: str) -> list[Page]:
    """The pages with a tag; UsageError if there are none, for then the tag is mistyped."""
    insist_on_tag(watch_list, tag)
    return watch_list.pages(tag)


def insist_on_tag(watch_list: Driftline, tag: str) -> None:
    """UsageError if no page has this tag, for then it is mistyped."""
    if watch_list.catalog.unused_tags([tag]):
        raise UsageError(f"No page has the tag '{tag}': 'driftline list' shows the tags.")
