"""`add`, `import`: add pages to the watch list."""

from __future__ import annotations

import io
import re
import shutil
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TextIO

import typer

from driftline.api import workspace_of
from driftline.cli.options import (
    EveryOption,
    HostDelayOption,
    JsonOption,
    NetworksOption,
    RobotsOption,
    StoreOption,
    TagsOption,
    command_settings,
    opened,
)
from driftline.cli.output import clean, print_json, say
from driftline.cli.page_options import (
    RenderOption,
    StepOption,
    WaitOption,
    given_rendering,
    takes_filters,
    warn_of_browser,
)
from driftline.durations import parse_interval
from driftline.errors import BadURL, DriftlineError, RunStopped, StoreBusy
from driftline.model.page import Filter  # noqa: TC001 Typer evaluates the annotation
from driftline.plurals import count
from driftline.urls.canonical import acceptable, reduced, written
from driftline.urls.tracking import Tracking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from driftline.api.watch_list import Driftline
    from driftline.cli.preview import Preview
    from driftline.fetch.address_guard import Refusal
    from driftline.model.page import Page


_WARNED = 10  # networks named in warnings


class PrivateNetworks:
    """Collects pages in private networks, which checks refuse to fetch except from the allowed `networks`."""

    def __init__(self, networks: Sequence[str]) -> None:
        from driftline.fetch.address_guard import judge_for

        self._judge = judge_for(networks)
        self._refused: dict[str, tuple[int, str, Refusal]] = {}  # how many of a network, and the first

    def look(self, urls: Iterable[str]) -> None:
        """Note those pages that will not be fetched."""
        from driftline.fetch.address_guard import name_of

        for url in urls:
            name = name_of(url)
            if not name[-1:].isdigit() and ":" not in name:  # what a name stands for is seen when it is fetched
                continue
            try:
                refusal = self._judge(name)
            except ValueError:
                continue
            if refusal is not None:
                before, first, why = self._refused.get(refusal.network, (0, url, refusal))
                self._refused[refusal.network] = (before + 1, first, why)

    def warn(self) -> None:
        """Print the pages that will not be fetched, by network, and how to allow it."""
        for network, (pages, url, refusal) in [*self._refused.items()][:_WARNED]:
            which = f"{url} is" if pages == 1 else f"{count(pages, 'page')} such as {url} are"
            what = f"{refusal.address} is {refusal.kind} address"
            how = f"check with --allow-network {network}, or set DRIFTLINE_ALLOW_NETWORKS={network}"
            say(clean(f"{which} not fetched by default, because {what}: {how}."), to_stderr=True)
        if len(self._refused) > _WARNED:
            say(f"The same holds for pages in {count(len(self._refused) - _WARNED, 'more network')}.", to_stderr=True)


_BAD_URL = 2  # exit status, as of a command of which all addresses are bad
_NAMED = 10  # pages listed; of more only the number is shown


@takes_filters
def add(
    urls: Annotated[list[str], typer.Argument(metavar="URL", help="Pages to watch.", show_default=False)],
    *,
    every: EveryOption = None,
    tag: TagsOption = None,
    filters: list[Filter],
    render: RenderOption = None,
    wait_for: WaitOption = None,
    step: StepOption = None,
    later: Annotated[
        bool, typer.Option("--later", help="Do not check the pages now. [default: check them and show what is watched]")
    ] = False,
    host_delay: HostDelayOption = None,
    robots: RobotsOption = None,
    allow_network: NetworksOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add pages to watch, and check them for the first time."""
    given, refused = _good_urls(urls)  # if all are bad, that is reported before there is a store
    rendering = given_rendering(None, render, wait_for, step)
    with opened(store, allow_network, host_delay=host_delay, robots=robots) as watch_list:
        workspace = workspace_of(watch_list)
        wanted = list(dict.fromkeys(workspace.catalog.names(given).values()))
        added = set(watch_list.add(*wanted, every=every, tags=tag or (), filters=filters, render=rendering))
        watched = workspace.catalog.find_all(wanted)
        fresh = [page for page in watched if page.url in added]
        checks = watch_list.settings.check_added and not later
        if not as_json:
            _print_added(wanted, added)
            warn_of_browser(rendering, watch_list.settings.browser)
        found = _first_checks(watch_list, fresh, everything=as_json) if checks and fresh else {}
        safety = workspace.safety_of(watched)
    if as_json:
        print_json(_added_as_json(wanted, added) | {"checked": _found_as_json(found), "passed_over": refused})
        raise typer.Exit(_BAD_URL if refused else 0)
    _print_found(found)
    if not found:
        networks = PrivateNetworks(watch_list.settings.allow_networks)
        networks.look(wanted)
        networks.warn()
    for page in watched:
        if page.id in safety:
            say(clean(f"{page.url}: {safety[page.id].sentence}"), to_stderr=True)
    if len(added) < len(wanted) and (every or tag or filters or rendering):
        say("Pages that were already watched keep their settings: change them with 'driftline edit'.", to_stderr=True)
    for one in refused:
        say(clean(f"Not added: {one['reason']}"), to_stderr=True)
    if refused:
        raise typer.Exit(_BAD_URL)


def _first_checks(watch_list: Driftline, pages: Sequence[Page], *, everything: bool) -> dict[str, Preview | str]:
    """Check new pages. Return what is watched of each, by its URL, or in a sentence why that is not known yet."""
    from driftline.cli.preview import first_checks

    try:
        return first_checks(watch_list, pages, None if everything else _NAMED)
    except (StoreBusy, RunStopped) as error:
        return dict.fromkeys([page.url for page in pages], f"Not checked yet. {error}")


def _print_found(found: dict[str, Preview | str]) -> None:
    """Print what is watched of new pages; of many, only what went wrong."""
    for url, preview in found.items():
        if isinstance(preview, str):
            say(clean(f"{url}: {preview}"), to_stderr=True)
        elif len(found) <= _NAMED or preview.problem:
            if len(found) > 1:
                say(clean(url))
            preview.print()


def _found_as_json(found: dict[str, Preview | str]) -> list[dict[str, Any]]:
    return [
        {"url": url, "problem": preview} if isinstance(preview, str) else {"url": url, **preview.as_json()}
        for url, preview in found.items()
    ]


def _good_urls(urls: Iterable[str]) -> tuple[list[str], list[dict[str, str]]]:
    """Return the URLs that pages can have, and the others with the reason; raise BadURL if there are only others."""
    good: list[str] = []
    bad: list[tuple[str, BadURL]] = []
    for url in urls:
        try:
            good.append(acceptable(written(url)))
        except BadURL as error:
            bad.append((url, error))
    if not good:
        raise bad[0][1]
    return good, [{"url": url, "reason": str(error)} for url, error in bad]


def import_(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A text file with one URL per line ('#' starts a comment); - for standard input."
        ),
    ],
    every: EveryOption = None,
    tag: TagsOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add the pages listed in a file."""
    name = "Standard input" if file == "-" else file
    settings = command_settings(store=store)
    seconds = None if every is None else parse_interval(every)
    bad: list[dict[str, Any]] = []
    found: dict[str, list[str]] = {"added": [], "watched_already": []}
    networks = PrivateNetworks(settings.allow_networks)
    passed = wanted = added = 0

    def good(text: Iterable[str]) -> Iterator[str]:
        """Yield the URLs, and report the lines that hold none."""
        nonlocal passed
        for line in read_text_list(text, settings.tracking):
            if line.url is not None:
                yield line.url
                continue
            passed += 1
            if as_json:
                bad.append({"line": line.number, "reason": line.problem})
            else:
                say(clean(f"{name}, line {line.number}: {line.problem}"), to_stderr=True)

    with _text_of(file, name) as text:
        urls = good(text)
        first = list(islice(urls, 1))
        if not first:
            if as_json:
                print_json({**found, "passed_over": bad})
            raise DriftlineError(f"{name} has no URL in it: write one per line.")
        with opened(store) as watch_list:
            workspace = workspace_of(watch_list)
            urls = chain(first, urls)
            if seconds is not None and (settings.budget or settings.host_budget):
                given = list(urls)  # all of them must fit into the budget, or none is added
                workspace.require_room(seconds, workspace.catalog.unwatched(given))
                urls = iter(given)
            for some, fresh in workspace.catalog.add_in_portions(urls, every=seconds, tags=tag or ()):
                wanted, added = wanted + len(some), added + len(fresh)
                networks.look(some)
                if as_json:
                    for kind, part in _added_as_json(some, set(fresh)).items():
                        found[kind] += part
    if as_json:
        print_json({**found, "passed_over": bad})
        networks.warn()
        return
    remarks = [f"{wanted - added:,} already watched"] if added < wanted else []
    remarks += [f"{count(passed, 'line')} skipped"] if passed else []
    say(f"Added {count(added, 'page')}", f" ({', '.join(remarks)})." if remarks else ".")
    networks.warn()


def _print_added(wanted: Sequence[str], added: set[str]) -> None:
    old = [url for url in wanted if url not in added]
    if len(wanted) > _NAMED:
        say(f"Added {count(len(added), 'page')}", f" ({len(old):,} already watched)." if old else ".")
        return
    for url in wanted:
        say(f"Added {clean(url)}" if url in added else f"Already watched: {clean(url)}")


def _added_as_json(wanted: Sequence[str], added: set[str]) -> dict[str, list[str]]:
    return {
        "added": [url for url in wanted if url in added],
        "watched_already": [url for url in wanted if url not in added],
    }


@contextmanager
def _text_of(file: str, name: str) -> Iterator[TextIO]:
    """Open a list for reading; raise DriftlineError at once if it is not UTF-8 text from beginning to end."""
    with ExitStack() as stack:
        try:
            data = sys.stdin.buffer if file == "-" else stack.enter_context(Path(file).open("rb"))
            if not data.seekable():  # it is read twice
                copy = stack.enter_context(TemporaryFile(prefix="driftline-"))
                shutil.copyfileobj(data, copy)
                copy.seek(0)
                data = copy
            start = data.tell()
            _insist_on_text(data, name)
            data.seek(start)
        except OSError as error:
            raise DriftlineError(f"{name} cannot be read: {error.strerror}.") from None
        lines = io.TextIOWrapper(data, encoding="utf-8", newline=None)
        try:
            yield lines
        finally:
            lines.detach()  # standard input stays open


def _insist_on_text(data: BinaryIO, name: str) -> None:
    for number, line in enumerate(data, start=1):
        if b"\0" in line:
            raise DriftlineError(f"{name} is not a text file: give a list with one URL per line, in UTF-8.")
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            raise DriftlineError(f"{name} is not UTF-8 text (line {number}): save it as UTF-8.") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLine:
    """One line of a list: its URL, or what is wrong with the line."""

    number: int
    url: str | None
    problem: str | None


def read_text_list(lines: Iterable[str], tracking: Iterable[str] = ()) -> Iterator[ImportedLine]:
    """Yield the URLs of a text with one per line, in order, without blank lines and comments.

    A comment begins with '#', after white space if it follows a URL. A bad line, and a URL that is on an earlier line
    in any spelling, are reported with their line number, and every good line is kept. `tracking` are the user's changes
    to the parameters that are dropped.
    """
    dropped = Tracking(tracking)
    first_seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        text = _without_comment(line.removeprefix("\ufeff") if number == 1 else line)
        if not text:
            continue
        try:
            address = written(text)
            url = acceptable(reduced(address, dropped))
        except BadURL as error:
            yield ImportedLine(number=number, url=None, problem=str(error))
            continue
        if url in first_seen:
            problem = f"{url} is on line {first_seen[url]} already."
            yield ImportedLine(number=number, url=None, problem=problem)
            continue
        first_seen[url] = number
        yield ImportedLine(number=number, url=address, problem=None)


def _without_comment(line: str) -> str:
    text = line.strip()
    if text.startswith("#"):
        return ""
    return re.split(r"\s#", text, maxsplit=1)[0].strip()
