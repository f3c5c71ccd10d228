"""`blocklist …`, `report-unsafe`: pages that are never fetched."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.api import workspace_of
from driftline.cli.help_panels import PanelCommand, PanelGroup
from driftline.cli.options import JsonOption, NetworksOption, StoreOption, opened
from driftline.cli.output import ago, clean, fields, iso, print_json, say
from driftline.cli.text_tables import Column, Styled, print_table
from driftline.errors import DriftlineError, UsageError
from driftline.plurals import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.api.watch_list import Driftline
    from driftline.model.page import Safety
    from driftline.safety.blocklists import LoadedBlocklist
    from driftline.store.safety_records import Blocklist, UnsafeReport

_LISTS = (
    Column(name="name", least=10, keep=2),
    Column(name="format", optional=True, style="dim"),
    Column(name="hosts", right=True),
    Column(name="addresses", right=True),
    Column(name="exceptions", right=True, optional=True),
    Column(name="updated", optional=True),
    Column(name="source", least=20, keep=1, middle=True, style="dim"),
)
_REPORTS = (
    Column(name="what", least=30, keep=1, middle=True),
    Column(name="votes", right=True),
    Column(name="blocked"),
    Column(name="last", optional=True),
    Column(name="reasons", least=20, optional=True),
)
_SHOWN = 10  # unreadable lines of a list, and blocked pages, that are listed

blocklist_app = typer.Typer(help="Manage lists of unsafe hosts and URLs.", cls=PanelGroup)


@blocklist_app.command("add", cls=PanelCommand)
def add(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|URL",
            help="A hosts file, a list of domains, Adblock rules for hosts, or a CSV file with URLs; plain or gzip. "
            "The format is detected.",
            show_default=False,
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the list. [default: its file name]", show_default=False),
    ] = None,
    allow_network: NetworksOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a list of hosts and URLs to block.

    A host is blocked with its subdomains.
    """
    if name is not None and len(sources) > 1:
        raise UsageError("--name works for one list only: add the lists one by one.")
    with opened(store, allow_network) as watch_list:
        taken = [watch_list.safety.add_blocklist(source, name) for source in sources]
        _tell(watch_list, taken, as_json=as_json)


@blocklist_app.command("update", cls=PanelCommand)
def update(allow_network: NetworksOption = None, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Read all lists again from their files or URLs."""
    with opened(store, allow_network, make=False) as watch_list:
        results = watch_list.safety.update_blocklists()
        taken = [one for one in results if not isinstance(one, DriftlineError)]
        _tell(watch_list, taken, as_json=as_json)
    failed = [one for one in results if isinstance(one, DriftlineError)]
    for error in failed:
        say(clean(str(error)), to_stderr=True)
    if failed:
        raise typer.Exit(1)


@blocklist_app.command("list", cls=PanelCommand)
def list_(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Show all lists."""
    with opened(store, make=False) as watch_list:
        lists = watch_list.safety.blocklists()
    if as_json:
        print_json([_as_json(one) for one in lists])
    elif lists:
        now = time.time()
        print_table(_LISTS, [_row(one, now) for one in lists])
    else:
        say("There is no blocklist yet: add one with 'driftline blocklist add FILE'.", to_stderr=True)


@blocklist_app.command("remove", cls=PanelCommand)
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, file or URL.", show_default=False)],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a list; what only this list blocked is fetched again."""
    with opened(store, make=False) as watch_list:
        gone = watch_list.safety.remove_blocklist(name)
    if as_json:
        print_json({"removed": gone.name})
    else:
        say(clean(f"Removed the blocklist '{gone.name}'."))


def report_unsafe(
    url: Annotated[
        str | None, typer.Argument(metavar="URL", help="A page, watched or not.", show_default=False)
    ] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why it is unsafe.", show_default=False)] = "",
    votes: Annotated[int, typer.Option("--votes", min=1, metavar="N", help="Count this as N votes.")] = 1,
    whole_host: Annotated[bool, typer.Option("--host", help="Block its whole host, with subdomains.")] = False,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Take back all reports about it.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Show all reports.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report a page as unsafe, so that it is never fetched.

    With the setting unsafe_votes above 1, it takes that many votes.
    """
    if (url is None) != listed or (listed and withdraw):
        raise UsageError("Give a URL, with or without --withdraw, or --list alone.")
    with opened(store, make=not (listed or withdraw)) as watch_list:
        needed = watch_list.settings.unsafe_votes
        if url is None:
            _list_reports(watch_list.safety.reports(), needed, as_json=as_json)
        elif withdraw:
            _withdraw(watch_list, url, whole_host=whole_host, as_json=as_json)
        else:
            found = watch_list.safety.report(url, reason=reason, votes=votes, whole_host=whole_host)
            _tell_report(found, needed, as_json=as_json)


def _withdraw(watch_list: Driftline, url: str, *, whole_host: bool, as_json: bool) -> None:
    gone = watch_list.safety.withdraw_report(url, whole_host=whole_host)
    if not gone:
        raise DriftlineError(f"There is no report about {url}: see all reports with 'driftline report-unsafe --list'.")
    if as_json:
        print_json({"url": url, "withdrawn": gone})
    else:
        say(clean(f"Took back {count(gone, 'report')} about {url}."))


def _tell_report(found: UnsafeReport, needed: int, *, as_json: bool) -> None:
    if as_json:
        print_json(_report_as_json(found, needed))
        return
    votes = count(found.votes, "vote")
    more = count(needed - found.votes, "more vote")
    blocked = "it is not fetched any more" if found.votes >= needed else f"{more} would block it"
    say(clean(f"{_what(found)} has {votes}: {blocked}."))


def _list_reports(reported: Sequence[UnsafeReport], needed: int, *, as_json: bool) -> None:
    if as_json:
        print_json([_report_as_json(one, needed) for one in reported])
    elif reported:
        now = time.time()
        rows: list[list[str | Styled]] = [
            [
                _what(one), f"{one.votes:,}", "yes" if one.votes >= needed else f"at {needed:,}", ago(one.at, now),
                "; ".join(one.reasons),
            ]
            for one in reported
        ]  # fmt: skip
        print_table(_REPORTS, rows)
    else:
        say("There are no reports yet: report a page with 'driftline report-unsafe URL'.", to_stderr=True)


def _what(one: UnsafeReport) -> str:
    return f"The host of {one.url}" if one.whole_host else one.url


def _report_as_json(one: UnsafeReport, needed: int) -> dict[str, Any]:
    found = fields(one, "url", "whole_host", "votes", "reasons")
    return {**found, "blocked": one.votes >= needed, "at": iso(one.at)}


def _tell(watch_list: Driftline, taken: Sequence[LoadedBlocklist], *, as_json: bool) -> None:
    """Print what was read from lists, and which watched pages are blocked now."""
    blocked = workspace_of(watch_list).unsafe.pages()
    if as_json:
        lists = [
            {
                **_as_json(one.blocklist),
                "problems": [{"line": line, "reason": reason} for line, reason in one.problems],
            }
            for one in taken
        ]
        pages = [{"url": page.url, "reason": page.reason} for page in blocked.values()]
        print_json({"lists": lists, "blocked": pages})
        return
    for one in taken:
        named = one.blocklist
        for line, problem in one.problems[:_SHOWN]:
            say(clean(f"{named.name}, line {line}: {problem}"), to_stderr=True)
        if named.skipped > _SHOWN:
            say(clean(f"{named.name}: {count(named.skipped - _SHOWN, 'more line')} skipped."), to_stderr=True)
        parts = [count(named.hosts, "host"), *([count(named.addresses, "URL")] if named.addresses else [])]
        parts += [count(named.exceptions, "exception")] if named.exceptions else []
        say(clean(f"'{named.name}' blocks {', '.join(parts)} ({named.format})."))
    for page in [*blocked.values()][:_SHOWN]:
        say(("blocked ", "red"), clean(page.url), "  ", (clean(page.reason), "dim"))
    if len(blocked) > _SHOWN:
        say(("blocked ", "red"), f"… and {len(blocked) - _SHOWN:,} more: see 'driftline list'")


def safety_as_json(safety: Safety | None) -> dict[str, Any]:
    """Return why a page is blocked, if it is, and its warnings, as a JSON object."""
    warnings = () if safety is None else safety.warnings
    return {
        "blocked": None if safety is None else safety.blocked,
        "warnings": [{"kind": kind, "reason": sentence} for kind, sentence in warnings],
    }


def _row(one: Blocklist, now: float) -> list[str | Styled]:
    counts = [f"{one.hosts:,}", f"{one.addresses:,}", f"{one.exceptions:,}"]
    return [one.name, one.format, *counts, ago(one.updated_at, now), one.source]


def _as_json(one: Blocklist) -> dict[str, Any]:
    named = ("name", "source", "format", "hosts", "addresses", "exceptions", "skipped")
    return {**fields(one, *named), "updated_at": iso(one.updated_at)}
