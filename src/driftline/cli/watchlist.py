"""`list`, `edit`, `filters`, `remove`: the watch list."""

from __future__ import annotations

import sys
import time
from functools import cache, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.api import workspace_of
from driftline.cli.blocklist_command import safety_as_json
from driftline.cli.help_panels import BROWSER, WHAT_COUNTS
from driftline.cli.options import JsonOption, PageArgument, StoreOption, TagOption, opened, pages_with
from driftline.cli.output import (
    NOTHING_YET,
    VERDICT_STYLES,
    ago,
    clean,
    fields,
    iso,
    print_json,
    print_json_list,
    remark,
    say,
)
from driftline.cli.page_options import (
    RenderOption,
    StepOption,
    WaitOption,
    describe_filters,
    describe_rendering,
    given_rendering,
    rendering_as_json,
    takes_filters,
    warn_of_browser,
)
from driftline.cli.text_tables import Column, Styled, print_table
from driftline.durations import format_interval, parse_interval
from driftline.errors import BadSetting, UsageError
from driftline.model.page import Filter, PageState
from driftline.plurals import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from driftline.api.watch_list import Driftline
    from driftline.model.page import Page, Render, Safety

_ALWAYS = 7  # columns that are shown even if they are empty
_FIRST = 1_000  # pages that are looked at together, and that a long list is laid out by
_NAMED = 10  # pages listed; of more only the number is shown
_NO_INTERVAL = "default"  # what --every takes for a page without an interval of its own
_COLUMNS = (
    Column(name="url", least=40, keep=4, middle=True),
    Column(name="title", least=10, optional=True),
    Column(name="every", optional=True, keep=2, style="dim"),
    Column(name="last check", optional=True, keep=3),
    Column(name="result"),
    Column(name="versions", right=True),
    Column(name="tags", least=4, optional=True, keep=1, style="dim"),
    Column(name="filters", least=8, optional=True, style="dim"),
    Column(name="safety", least=20, keep=5, style="red"),
)


def list_(
    tag: TagOption = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state", metavar="|".join(PageState), show_default=False,
            help="Only pages in this state; may be repeated.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Show at most N pages.", show_default=False)
    ] = None,
    offset: Annotated[int, typer.Option("--offset", min=0, metavar="N", help="Skip the first N pages.")] = 0,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Show the watched pages, oldest first."""
    states = [_state(one) for one in state or ()]
    with opened(store, make=False) as watch_list:
        matching = workspace_of(watch_list).catalog.chosen(tag, states, limit, min(offset, sys.maxsize))
        pages = _with_safety(watch_list, matching)
        if as_json:
            print_json_list(_as_json(*page) for page in pages)
            return
        now = time.time()
        rows = (_row(*page, now) for page in pages)
        first = list(islice(rows, _FIRST))
        if first:
            # most people have no filters and nothing unsafe, and need no columns for them; what is not in the first
            # rows of a long list may still come
            some = _ALWAYS if len(first) < _FIRST else len(_COLUMNS)
            shown = [place for place in range(len(_COLUMNS)) if place < some or any(row[place] for row in first)]
            chosen = ([row[place] for place in shown] for row in chain(first, rows))
            print_table([_COLUMNS[place] for place in shown], chosen)
        elif state or offset:
            say("No page matches: try without --state, --tag or --offset.", to_stderr=True)
        else:
            say(NOTHING_YET if tag is None else clean(f"No page has the tag '{tag}'."), to_stderr=True)


def _state(name: str) -> PageState:
    if name not in frozenset(PageState):
        raise BadSetting(f"There is no state '{name}': use {', '.join(PageState)}.")
    return PageState(name)


def _with_safety(watch_list: Driftline, pages: Iterable[Page]) -> Iterator[tuple[Page, set[int], dict[int, Safety]]]:
    """Yield each page with the ids of its batch that are gone, and what is known about their safety."""
    from driftline.store.statements import in_batches

    workspace = workspace_of(watch_list)
    hosts = cache(workspace.catalog.hosts)
    for some in in_batches(pages, _FIRST):
        gone, safety = workspace.gone(some), workspace.safety_of(some, hosts)
        yield from ((page, gone, safety) for page in some)


@takes_filters
def edit(
    url: PageArgument,
    *,
    every: Annotated[
        str | None,
        typer.Option(
            "--every",
            metavar="TIME",
            help="How often to check: 30s, 15m, 2h, 1d, 1w; 'default' for no interval of its own.",
            show_default=False,
        ),
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TAG", help="Add this tag; may be repeated.", show_default=False),
    ] = None,
    untag: Annotated[
        list[str] | None,
        typer.Option("--untag", metavar="TAG", help="Remove this tag; may be repeated.", show_default=False),
    ] = None,
    move_to: Annotated[
        str | None,
        typer.Option("--url", metavar="NEW", help="Move the page and its history to another URL.", show_default=False),
    ] = None,
    filters: list[Filter],
    no_filters: Annotated[
        bool, typer.Option("--no-filters", help="Remove its filters, before adding any.", rich_help_panel=WHAT_COUNTS)
    ] = False,
    render: RenderOption = None,
    wait_for: WaitOption = None,
    step: StepOption = None,
    no_steps: Annotated[
        bool, typer.Option("--no-steps", help="Remove its steps, before adding any.", rich_help_panel=BROWSER)
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change how a page is watched, and keep its history."""
    from driftline.cli.preview import preview_of
    from driftline.detection.extract.filters import merged_filters
    from driftline.pipeline.stop import Stop
    from driftline.watch.service import retry_while_busy

    rendered = render is not None or wait_for is not None or step or no_steps
    if every is None and not (tag or untag or filters or no_filters or rendered) and move_to is None:
        raise UsageError(
            "Nothing to change: give --every, --tag, --untag, --url, --render, or a filter such as --select."
        )
    clear_every = every == _NO_INTERVAL
    seconds = None if every is None or clear_every else parse_interval(every)
    with opened(store, make=False) as watch_list:
        workspace = workspace_of(watch_list)
        if seconds is not None:
            workspace.require_room(seconds, [workspace.catalog.find(url).url])

        def rendering(kept: Render | None) -> Render | None:
            return given_rendering(kept, render, wait_for, step, replace_steps=no_steps)

        before = workspace.catalog.find(url)
        let_in = workspace.accesses.of_page(before)
        change = partial(
            workspace.catalog.edit, url, every=seconds, clear_every=clear_every, tag=tag or (), untag=untag or (),
            move_to=move_to, filters=lambda kept: merged_filters(() if no_filters else kept, filters), render=rendering,
        )  # fmt: skip
        page = retry_while_busy(change, Stop(), workspace.runs.be_next, remark)
        left = workspace.accesses.of_page(page).shown()
        gone = workspace.gone([page])
        safety = workspace.safety_of([page])
        shown = preview_of(watch_list, page) if filters or no_filters or page.filters != before.filters else None
    if lost := [one for one in let_in.shown() if one not in left]:
        say(clean(f"Removed, because it was set for the old address: {', '.join(lost)}."), to_stderr=True)
    if as_json:
        print_json(_as_json(page, gone, safety) | {"preview": None if shown is None else shown.as_json()})
        return
    interval = _interval(page)
    often = f"every {interval}" if interval else "as often as the schedule decides"
    filtered = f", filtered by {describe_filters(page.filters)}" if page.filters else ""
    through = f", {describe_rendering(page.render)}" if page.render else ""
    say(clean(f"{page.url}: checked {often}, {_tags(page.tags)}{filtered}{through}."))
    if shown is not None:
        shown.print()
    warn_of_browser(page.render, watch_list.settings.browser)


@takes_filters
def filters_(
    *,
    tag: Annotated[
        str | None,
        typer.Option("--tag", metavar="TAG", help="Of the pages with this tag, now and later.", show_default=False),
    ] = None,
    every_page: Annotated[bool, typer.Option("--all", help="Of all pages, now and later.")] = False,
    filters: list[Filter],
    no_filters: Annotated[
        bool, typer.Option("--no-filters", help="Remove these filters, before adding any.", rich_help_panel=WHAT_COUNTS)
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set filters for all pages or those with a tag, or show them.

    A page has those of all pages first, then those of its tags, then its own, which 'add' and 'edit' set.
    """
    from driftline.api.workspace import check_together
    from driftline.detection.extract.filters import merged_filters
    from driftline.store.pages import check_tags

    if tag is not None and every_page:
        raise UsageError("Give either --tag or --all, not both.")
    chosen = "" if tag is None else check_tags([tag])[0]
    changes = bool(filters) or no_filters
    if changes and tag is None and not every_page:
        raise UsageError("Filters of which pages? Give --tag or --all; 'driftline edit' sets those of one page.")
    with opened(store, make=False) as watch_list:
        workspace = workspace_of(watch_list)
        pages = 0
        if changes:
            pages = workspace.shared_filters.edit(
                chosen, lambda kept: merged_filters(() if no_filters else kept, filters), check_together
            )
        found = workspace.shared_filters.all()
        unused = workspace.catalog.unused_tags([chosen]) if chosen else []
    if tag is not None or every_page:
        found = {chosen: found.get(chosen, ())}
    if as_json:
        print_json(_shared_as_json(found) | {"pages": pages if changes else None})
        return
    for name, some in found.items():
        of = f"tag {name}" if name else "all pages"
        say(clean(f"{of}: {describe_filters(some) or 'no filters'}"), f" ({count(pages, 'page')})" if changes else "")
    if not found:
        sentence = "No filters are set for all pages or tags: set one with 'driftline filters --tag TAG --ignore TEXT'."
        say(sentence, to_stderr=True)
    for name in unused:
        say(clean(f"No page has the tag '{name}' yet: see the tags in use with 'driftline list'."), to_stderr=True)


def _shared_as_json(found: dict[str, tuple[Filter, ...]]) -> dict[str, Any]:
    return {
        "filters": [
            {"tag": name or None, "filters": [{"kind": kind, "value": value} for kind, value in some]}
            for name, some in found.items()
        ]
    }


def remove(
    urls: Annotated[list[str] | None, typer.Argument(metavar="URL", help="Watched pages.", show_default=False)] = None,
    tag: Annotated[
        str | None, typer.Option("--tag", metavar="TAG", help="Remove all pages with this tag.", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove pages and delete their history."""
    if bool(urls) == (tag is not None):
        raise UsageError("Which pages? Give their URLs, or --tag.")
    with opened(store, make=False) as watch_list:
        doomed = workspace_of(watch_list).catalog.find_all(urls) if urls else pages_with(watch_list, tag or "")
        if not yes and not _confirmed(doomed):
            say("Nothing was removed.", to_stderr=True)
            raise typer.Exit(1)
        removed = watch_list.remove(*(page.url for page in doomed))
    if as_json:
        print_json({"removed": removed})
        return
    if len(removed) > _NAMED:
        say(f"Removed {count(len(removed), 'page')}.")
    for url in removed if len(removed) <= _NAMED else ():
        say(f"Removed {clean(url)}")


def _confirmed(doomed: Sequence[Page]) -> bool:
    if not sys.stdin.isatty():
        raise UsageError("Removing pages deletes their history: confirm with --yes.")
    what = clean(doomed[0].url) if len(doomed) == 1 else count(len(doomed), "page")
    versions = sum(page.versions for page in doomed)
    return typer.confirm(f"Remove {what} and delete {count(versions, 'version')}?", err=True)


def _row(page: Page, gone: set[int], safety: dict[int, Safety], now: float) -> list[str | Styled]:
    found = "gone" if page.id in gone else page.verdict or "–"
    verdict = Styled(found, VERDICT_STYLES[page.verdict] if page.verdict else "dim")
    unsafe = safety.get(page.id)
    if unsafe is not None and unsafe.blocked:
        verdict = Styled("blocked", "red")
    checked = ago(page.checked_at, now)
    tags, filters = ",".join(page.tags), describe_filters(page.filters)
    danger = "" if unsafe is None else unsafe.sentence
    return [page.url, page.title or "", _interval(page), checked, verdict, str(page.versions), tags, filters, danger]


def _interval(page: Page) -> str:
    return "" if page.every is None else format_interval(page.every.total_seconds())


def _tags(tags: Sequence[str]) -> str:
    return f"tagged {', '.join(tags)}" if tags else "no tags"


def _as_json(page: Page, gone: set[int], safety: dict[int, Safety]) -> dict[str, Any]:
    times = {name: iso(getattr(page, name)) for name in ("added_at", "checked_at", "changed_at")}
    failure = None if page.failure is None else {"kind": page.failure.kind, "reason": page.failure.sentence}
    return {
        **fields(page, "url", "title", "every", "tags", "verdict", "checks", "versions", "failures"),
        **times,
        "filters": [{"kind": kind, "value": value} for kind, value in page.filters],
        "render": rendering_as_json(page.render),
        "failure": failure,
        "gone": page.id in gone,
        **safety_as_json(safety.get(page.id)),
    }
