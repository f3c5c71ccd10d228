"""`add`, `import`, `list`, `edit`, `remove`: the watch list."""

from __future__ import annotations

import io
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.filtering import (
    AlsoOption,
    DropOption,
    IgnoreOption,
    SelectOption,
    TriggerOption,
    given_filters,
    told,
)
from driftline.cli.networks import warn_of_networks
from driftline.cli.options import (
    EveryOption,
    JsonOption,
    PageArgument,
    StoreOption,
    TagOption,
    TagsOption,
    command_settings,
    opened,
    pages_with,
)
from driftline.cli.output import NOTHING_YET, VERDICT_STYLES, ago, clean, count, fields, iso, print_json, say
from driftline.cli.rendering import (
    RenderOption,
    StepOption,
    WaitOption,
    given_rendering,
    rendering_as_json,
    told_rendering,
    warn_of_browser,
)
from driftline.cli.safety import safety_as_json
from driftline.cli.tables import Cell, Column, print_table
from driftline.errors import DriftlineError, UsageError
from driftline.pages.intervals import format_interval, parse_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.model import Page, Render, Safety

_ALWAYS = 7  # columns that are shown even if they are empty
_NAMED = 10  # pages told by name; more than that only by their number
_COLUMNS = (
    Column(name="url", least=40, keep=4, middle=True),
    Column(name="title", least=10, optional=True),
    Column(name="every", optional=True, keep=2, style="dim"),
    Column(name="last check", optional=True, keep=3),
    Column(name="found"),
    Column(name="versions", right=True),
    Column(name="tags", least=4, optional=True, keep=1, style="dim"),
    Column(name="filters", least=8, optional=True, style="dim"),
    Column(name="safety", least=20, keep=5, style="red"),
)


def add(
    context: typer.Context,
    urls: Annotated[list[str], typer.Argument(metavar="URL", help="Addresses of pages.", show_default=False)],
    every: EveryOption = None,
    tag: TagsOption = None,
    select: SelectOption = None,
    drop: DropOption = None,
    ignore: IgnoreOption = None,
    trigger: TriggerOption = None,
    also: AlsoOption = None,
    render: RenderOption = None,
    wait_for: WaitOption = None,
    step: StepOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Watch pages."""
    from driftline.pages.urls import written

    given = [written(url) for url in urls]  # what is bad is refused before there is a store
    filters = given_filters(context, select=select, drop=drop, ignore=ignore, trigger=trigger, also=also)
    rendering = given_rendering(None, render, wait_for, step)
    with opened(store) as watch_list:
        wanted = list(dict.fromkeys(watch_list.catalog.names(given).values()))
        added = set(watch_list.add(*wanted, every=every, tags=tag or (), filters=filters, render=rendering))
        watched = watch_list.catalog.find_all(wanted)
        safety = watch_list.safety(watched)
    if as_json:
        print_json(_added_as_json(wanted, added))
        return
    _tell_added(wanted, added)
    warn_of_networks(wanted, watch_list.settings.allow_networks)
    warn_of_browser(rendering, watch_list.settings.browser)
    for page in watched:
        if page.id in safety:
            say(clean(f"{page.url}: {safety[page.id].sentence}"), to_stderr=True)
    if len(added) < len(wanted) and (every or tag or filters or rendering):
        say("Pages that were watched already keep their settings: 'driftline edit' changes them.", to_stderr=True)


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A text with one address a line, - for standard input.")],
    every: EveryOption = None,
    tag: TagsOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Watch the pages of a list."""
    from driftline.pages.importers import read_text_list

    name = "Standard input" if file == "-" else file
    text = io.StringIO(_read_list(file, name), newline=None)
    lines = read_text_list(text, command_settings(store=store).tracking)
    wanted = [line.url for line in lines if line.url is not None]
    added: list[str] = []
    if wanted:
        with opened(store) as watch_list:
            if as_json:
                wanted = list(dict.fromkeys(watch_list.catalog.names(wanted).values()))
            added = watch_list.add(*wanted, every=every, tags=tag or ())
    bad = [line for line in lines if line.problem is not None]
    for line in bad if not as_json else ():
        say(clean(f"{name}, line {line.number}: {line.problem}"), to_stderr=True)
    if not wanted:
        raise DriftlineError(f"{name} holds no address that can be watched: write one a line.")
    if as_json:
        passed = [{"line": line.number, "reason": line.problem} for line in bad]
        print_json({**_added_as_json(wanted, set(added)), "passed_over": passed})
        return
    remarks = [f"{count(len(wanted) - len(added), 'page')} watched already"] if len(added) < len(wanted) else []
    remarks += [f"{count(len(bad), 'line')} passed over"] if bad else []
    say(f"Watching {count(len(added), 'more page')}", f" ({', '.join(remarks)})." if remarks else ".")
    warn_of_networks(wanted, watch_list.settings.allow_networks)


def list_(tag: TagOption = None, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Show the pages that are watched."""
    with opened(store, make=False) as watch_list:
        pages = watch_list.pages(tag)
        gone = watch_list.gone(pages)
        safety = watch_list.safety(pages)
    if as_json:
        print_json([_as_json(page, gone, safety) for page in pages])
    elif pages:
        now = time.time()
        rows = [_row(page, gone, safety, now) for page in pages]
        # most people have no filters and nothing unsafe, and need no columns for them
        shown = [place for place in range(len(_COLUMNS)) if place < _ALWAYS or any(row[place] for row in rows)]
        print_table([_COLUMNS[place] for place in shown], [[row[place] for place in shown] for row in rows])
    else:
        say(NOTHING_YET if tag is None else clean(f"No page has the tag '{tag}'."), to_stderr=True)


def edit(
    context: typer.Context,
    url: PageArgument,
    every: Annotated[
        str | None,
        typer.Option("--every", metavar="TIME", help="How often to check it, or 'default'.", show_default=False),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", metavar="TAG", help="Add a tag.", show_default=False)
    ] = None,
    untag: Annotated[
        list[str] | None, typer.Option("--untag", metavar="TAG", help="Take a tag away.", show_default=False)
    ] = None,
    move_to: Annotated[
        str | None,
        typer.Option("--url", metavar="NEW", help="Its new address; the history stays.", show_default=False),
    ] = None,
    select: SelectOption = None,
    drop: DropOption = None,
    ignore: IgnoreOption = None,
    trigger: TriggerOption = None,
    also: AlsoOption = None,
    no_filters: Annotated[
        bool, typer.Option("--no-filters", help="Take away the filters it has, before adding any.")
    ] = False,
    render: RenderOption = None,
    wait_for: WaitOption = None,
    step: StepOption = None,
    no_steps: Annotated[
        bool, typer.Option("--no-steps", help="Take away the steps it has, before adding any.")
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change how a page is watched; its history stays."""
    from driftline.cli.turns import in_turn
    from driftline.pipeline.stopping import Stop

    filters = given_filters(context, select=select, drop=drop, ignore=ignore, trigger=trigger, also=also)
    rendered = render is not None or wait_for is not None or step or no_steps
    if every is None and not (tag or untag or filters or no_filters or rendered) and move_to is None:
        raise UsageError(
            "Say what to change: --every, --tag, --untag, --url, --render, or a filter, as --select or --no-filters."
        )
    clear = every == "default"
    seconds = None if every is None or clear else parse_interval(every)
    with opened(store, make=False) as watch_list:
        if seconds is not None:
            watch_list.insist_on_room(seconds, [watch_list.catalog.find(url).url])

        def rendering(kept: Render | None) -> Render | None:
            return given_rendering(kept, render, wait_for, step, anew=no_steps)

        let_in = watch_list.accesses.of_page(watch_list.catalog.find(url))
        change = partial(
            watch_list.catalog.edit, url, every=seconds, clear_every=clear, tag=tag or (), untag=untag or (),
            move_to=move_to, filters=filters, clear_filters=no_filters, render=rendering,
        )  # fmt: skip
        page = in_turn(change, Stop(), watch_list.be_next)
        left = watch_list.accesses.of_page(page).shown()
        gone = watch_list.gone([page])
        safety = watch_list.safety([page])
    if lost := [one for one in let_in.shown() if one not in left]:
        say(clean(f"Taken away, for it is not meant for this address: {', '.join(lost)}."), to_stderr=True)
    if as_json:
        print_json(_as_json(page, gone, safety))
        return
    often = "at the default interval" if page.every is None else f"every {format_interval(page.every)}"
    filtered = f", filtered by {told(page.filters)}" if page.filters else ""
    through = f", {told_rendering(page.render)}" if page.render else ""
    say(clean(f"{page.url}: checked {often}, {_tags(page.tags)}{filtered}{through}."))
    warn_of_browser(page.render, watch_list.settings.browser)


def remove(
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="URL", help="Addresses of watched pages.", show_default=False)
    ] = None,
    tag: Annotated[
        str | None, typer.Option("--tag", metavar="TAG", help="All pages with this tag.", show_default=False)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop watching pages and forget their history."""
    if bool(urls) == (tag is not None):
        raise UsageError("Say which pages to remove: give their addresses, or --tag.")
    with opened(store, make=False) as watch_list:
        doomed = watch_list.catalog.find_all(urls) if urls else pages_with(watch_list, tag or "")
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
        raise UsageError("Removing pages forgets their history: add --yes to do it without being asked.")
    what = clean(doomed[0].url) if len(doomed) == 1 else count(len(doomed), "page")
    versions = sum(page.versions for page in doomed)
    return typer.confirm(f"Remove {what} and forget {count(versions, 'version')} of history?", err=True)


def _tell_added(wanted: Sequence[str], added: set[str]) -> None:
    old = [url for url in wanted if url not in added]
    if len(wanted) > _NAMED:
        say(f"Watching {count(len(added), 'more page')}", f" ({len(old):,} watched already)." if old else ".")
        return
    for url in wanted:
        say(f"Watching {clean(url)}" if url in added else f"Already watched: {clean(url)}")


def _added_as_json(wanted: Sequence[str], added: set[str]) -> dict[str, list[str]]:
    return {
        "added": [url for url in wanted if url in added],
        "watched_already": [url for url in wanted if url not in added],
    }


def _read_list(file: str, name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise DriftlineError(f"{name} cannot be read: {error.strerror}.") from None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DriftlineError(f"{name} is not a text in UTF-8 (line {line}): save it as UTF-8.") from None
    if "\0" in text:
        raise DriftlineError(f"{name} is not a text: give a list with one address a line, in UTF-8.")
    return text


def _row(page: Page, gone: set[int], safety: dict[int, Safety], now: float) -> list[str | Cell]:
    found = "gone" if page.id in gone else page.verdict or "not yet"
    verdict = Cell(found, VERDICT_STYLES[page.verdict] if page.verdict else "dim")
    unsafe = safety.get(page.id)
    if unsafe is not None and unsafe.blocked:
        verdict = Cell("blocked", "red")
    every = "" if page.every is None else format_interval(page.every)
    checked = ago(page.checked_at, now)
    tags, filters = ",".join(page.tags), told(page.filters)
    told_of = "" if unsafe is None else unsafe.sentence
    return [page.url, page.title or "", every, checked, verdict, str(page.versions), tags, filters, told_of]


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
