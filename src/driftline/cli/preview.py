"""`try`, and what `add` and `edit` show: what is watched of a page, as it is now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.api import workspace_of
from driftline.cli.check import run_check
from driftline.cli.options import (
    HostDelayOption,
    JsonOption,
    NetworksOption,
    RobotsOption,
    StoreOption,
    command_settings,
    opened,
)
from driftline.cli.output import clean, print_json, say
from driftline.cli.page_options import RenderOption, StepOption, WaitOption, given_rendering, takes_filters
from driftline.errors import DriftlineError, UnknownVersion, UnreadableBody
from driftline.model.page import Filter  # noqa: TC001 Typer evaluates the annotation
from driftline.plurals import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.api.watch_list import Driftline
    from driftline.http.credentials import Access
    from driftline.model.page import Page

_SHOWN = 6  # lines of a text
_PATIENCE = 10.0  # seconds that `add` waits for another process that checks pages
_FAILED = "The first check failed. "
_STOPPED = "Not checked yet: the check was stopped."
_LATER = "Its host asked us to slow down: it is checked later."
_LONGEST = 300  # characters of a line
_LARGEST = 2_000_000  # bytes of a version


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What filters leave of a page: its lines, which filters make no difference, and what conditions are about.

    `problem` says why nothing is left.
    """

    title: str
    lines: Sequence[str]
    narrowed: bool = False
    idle: Sequence[Filter] = ()
    readings: Sequence[tuple[str, str | None]] = ()
    problem: str = ""

    def print(self, most: int = _SHOWN) -> None:
        """Print it below the line that names the page."""
        if self.title:
            say("  ", (clean(self.title), "bold"))
        if self.problem:
            say("  ", (clean(self.problem), "red"))
            return
        what = count(len(self.lines), "line")
        if not self.narrowed:
            words = sum(len(line.split()) for line in self.lines)
            what = f"all of its text: {what}, {count(words, 'word')}"
        if not self.lines:
            say("  Watched: nothing that the page has now. What appears later is new.")
        else:
            say(f"  Watched: {what}{'' if len(self.lines) <= most else ', the first of them'}")
        for line in self.lines[:most]:
            shown = line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
            say("    ", (clean(shown), "dim"))
        for name, reading in self.readings:
            say(f"  Now: {clean(name)} is {clean(reading)}" if reading else f"  Now: {clean(name)} is not on the page")
        for kind, value in self.idle:
            say(clean(f"The filter '{kind} {value}' makes no difference on this page as it is now."), to_stderr=True)

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {
            "title": self.title, "lines": len(self.lines), "text": "\n".join(self.lines),
            "without_effect": [{"kind": kind, "value": value} for kind, value in self.idle],
            "readings": dict(self.readings), "problem": self.problem or None,
        }  # fmt: skip


def preview_of(watch_list: Driftline, page: Page) -> Preview | None:
    """Return what the filters of a page leave of its newest version; None if it has none, or is too large to be quick.

    Call it in the main thread: expressions have a time limit there.
    """
    from driftline.detection.extract.conditions import readings
    from driftline.detection.extract.document import Extraction
    from driftline.detection.extract.filters import sieve_of
    from driftline.detection.extract.line_filters import watch_expressions
    from driftline.detection.extract.outline import idle_filters

    try:
        version = watch_list.history.version(page.url)
    except UnknownVersion:
        return None
    if version.size > _LARGEST:
        return None
    content_type = f"{version.content_type}; charset={version.charset}"
    sieve = sieve_of(page.filters)
    watch_expressions()
    try:
        text = Extraction(version.body, content_type, page.filters).text()
    except UnreadableBody as error:
        return Preview(title=version.title, lines=(), problem=str(error))
    found: dict[str, str | None] = {}
    for condition in sieve.conditions if sieve else ():
        found |= {name: None if one is None else one.words for name, one in readings(condition, text)}
    return Preview(
        title=version.title, lines=text.split("\n") if text else (), narrowed=sieve is not None and sieve.narrows,
        idle=idle_filters(version.body, content_type, page.filters, text), readings=[*found.items()],
    )  # fmt: skip


def first_checks(watch_list: Driftline, pages: Sequence[Page], most: int | None = None) -> dict[str, Preview | str]:
    """Check new pages. Return what is watched of each, by its URL, or in a sentence why that is not known yet.

    If there are more than `most`, only those that failed are returned.
    """
    report, progress = run_check(watch_list, [page.id for page in pages], patience=_PATIENCE)
    reasons = {one.url: f"{_FAILED}{one.failure.sentence}" for one in report.failures}
    reasons |= {one.url: one.reason for one in report.blocked}
    found: dict[str, Preview | str] = {}
    for page in workspace_of(watch_list).catalog.find_all([page.url for page in pages]):
        if page.url in reasons:
            found[page.url] = reasons[page.url]
        elif not page.checks:
            found[page.url] = _STOPPED if progress.stopped else _LATER
        elif most is None or len(pages) <= most:
            found[page.url] = preview_of(watch_list, page) or f"Checked: {page.title or 'no title'}."
    return found


def _known_of(url: str, store: str | None) -> tuple[Sequence[Filter], Access | None]:
    """Return the filters of all pages, and the credentials of a page if it is watched; DriftlineError if blocked."""
    from driftline.store.drivers import is_there

    if not is_there(command_settings(store=store).store):
        return (), None
    with opened(store, make=False) as watch_list:
        workspace = workspace_of(watch_list)
        catalog, unsafe = workspace.catalog, workspace.unsafe
        unsafe.refresh()
        (address,) = catalog.names([url]).values()
        if (blocked := unsafe.why(address)) is not None:
            raise DriftlineError(f"{address} is blocked: {blocked}")
        let_in = None if catalog.unwatched([address]) else workspace.accesses.of_page(catalog.find(address))
        return workspace.shared_filters.all().get("", ()), let_in


@takes_filters
def try_(
    url: Annotated[str, typer.Argument(metavar="URL", help="Any page; it need not be watched.", show_default=False)],
    *,
    filters: list[Filter],
    render: RenderOption = None,
    wait_for: WaitOption = None,
    step: StepOption = None,
    host_delay: HostDelayOption = None,
    robots: RobotsOption = None,
    allow_network: NetworksOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what would be watched of a page, and save nothing.

    Blocklists, filters of all pages, and the credentials of a page that is watched already count as for 'add'.
    """
    from tempfile import TemporaryDirectory

    from driftline.store.pages import with_shared

    rendering = given_rendering(None, render, wait_for, step)
    shared, let_in = _known_of(url, store)
    with (
        TemporaryDirectory(prefix="driftline-") as folder,
        opened(f"{folder}/try.db", allow_network, host_delay=host_delay, robots=robots) as watch_list,
    ):
        watch_list.add(url, filters=with_shared(shared, filters), render=rendering)
        pages = watch_list.pages()
        if let_in:
            workspace_of(watch_list).accesses.edit_pages(pages, lambda _: let_in)
        ((address, found),) = first_checks(watch_list, pages).items()
    if as_json:
        shown = Preview(title="", lines=(), problem=found) if isinstance(found, str) else found
        print_json({"url": address, **shown.as_json()})
    elif isinstance(found, str):
        say(clean(f"{address}: {found}"), to_stderr=True)
    else:
        say(clean(address))
        found.print(most=len(found.lines))
    if isinstance(found, str) or found.problem:
        raise typer.Exit(1)
