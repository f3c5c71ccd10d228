"""`add`, `import`, `list`, `edit`, `remove`: the watch list."""

from __future__ import annotations

import io
import shutil
import sys
import time
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TextIO

import typer

from driftline.cli.blocklist_command import safety_as_json
from driftline.cli.browser_options import (
    RenderOption,
    StepOption,
    WaitOption,
    describe_rendering,
    given_rendering,
    rendering_as_json,
    warn_of_browser,
)
from driftline.cli.filter_options import (
    AlsoOption,
    DropOption,
    IgnoreOption,
    SelectOption,
    TriggerOption,
    describe_filters,
    given_filters,
)
from driftline.cli.help_panels import BROWSER, WHAT_COUNTS
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
from driftline.cli.text_tables import Column, Styled, print_table
from driftline.durations import format_interval, parse_interval
from driftline.errors import BadSetting, DriftlineError, UsageError
from driftline.model import PageState
from driftline.plurals import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from driftline.api import Driftline
    from driftline.fetch.address_guard import Refusal
    from driftline.model import Page, Render, Safety


_TOLD = 10  # networks named in warnings


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
        for network, (pages, url, refusal) in [*self._refused.items()][:_TOLD]:
            which = f"{url} is" if pages == 1 else f"{count(pages, 'page')} such as {url} are"
            what = f"{refusal.address} is {refusal.kind} address"
            how = f"check with --allow-network {network}, or set DRIFTLINE_ALLOW_NETWORKS={network}"
            say(clean(f"{which} not fetched by default, because {what}: {how}."), to_stderr=True)
        if len(self._refused) > _TOLD:
            say(f"The same holds for pages in {count(len(self._refused) - _TOLD, 'more network')}.", to_stderr=True)


_ALWAYS = 7  # columns that are shown even if they are empty
_FIRST = 1_000  # pages that are looked at together, and that a long list is laid out by
_NAMED = 10  # pages told by name; more than that only by their number
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


def add(
    context: typer.Context,
    urls: Annotated[list[str], typer.Argument(metavar="URL", help="Pages to watch.", show_default=False)],
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
    """Add pages to watch."""
    from driftline.urls.canonical import written

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
    _print_added(wanted, added)
    networks = PrivateNetworks(watch_list.settings.allow_networks)
    networks.look(wanted)
    networks.warn()
    warn_of_browser(rendering, watch_list.settings.browser)
    for page in watched:
        if page.id in safety:
            say(clean(f"{page.url}: {safety[page.id].sentence}"), to_stderr=True)
    if len(added) < len(wanted) and (every or tag or filters or rendering):
        say("Pages that were already watched keep their settings: change them with 'driftline edit'.", to_stderr=True)


def import_(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A text file with one URL per line; - for standard input.")
    ],
    every: EveryOption = None,
    tag: TagsOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add the pages listed in a file."""
    from driftline.urls.url_lists import read_text_list

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
            urls = chain(first, urls)
            if seconds is not None and (settings.budget or settings.host_budget):
                given = list(urls)  # all of them must fit into the budget, or none is added
                watch_list.insist_on_room(seconds, watch_list.catalog.unwatched(given))
                urls = iter(given)
            for some, fresh in watch_list.catalog.add_in_portions(urls, every=seconds, tags=tag or ()):
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
        pages = _with_safety(watch_list, watch_list.iter_pages(tag, states, limit, min(offset, sys.maxsize)))
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

    hosts = cache(watch_list.catalog.hosts)
    for some in in_batches(pages, _FIRST):
        gone, safety = watch_list.gone(some), watch_list.safety(some, hosts)
        yield from ((page, gone, safety) for page in some)


def edit(
    context: typer.Context,
    url: PageArgument,
    every: Annotated[
        str | None,
        typer.Option(
            "--every", metavar="TIME", help="How often to check: 30s, 15m, 2h, 1d, 1w or default.", show_default=False
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
    select: SelectOption = None,
    drop: DropOption = None,
    ignore: IgnoreOption = None,
    trigger: TriggerOption = None,
    also: AlsoOption = None,
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
    from driftline.pipeline.stop import Stop
    from driftline.watch.turn_taking import in_turn

    filters = given_filters(context, select=select, drop=drop, ignore=ignore, trigger=trigger, also=also)
    rendered = render is not None or wait_for is not None or step or no_steps
    if every is None and not (tag or untag or filters or no_filters or rendered) and move_to is None:
        raise UsageError(
            "Nothing to change: give --every, --tag, --untag, --url, --render, or a filter such as --select."
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
        page = in_turn(change, Stop(), watch_list.be_next, remark)
        left = watch_list.accesses.of_page(page).shown()
        gone = watch_list.gone([page])
        safety = watch_list.safety([page])
    if lost := [one for one in let_in.shown() if one not in left]:
        say(clean(f"Removed, because it was set for the old address: {', '.join(lost)}."), to_stderr=True)
    if as_json:
        print_json(_as_json(page, gone, safety))
        return
    often = "as often as the schedule decides" if page.every is None else f"every {format_interval(page.every)}"
    filtered = f", filtered by {describe_filters(page.filters)}" if page.filters else ""
    through = f", {describe_rendering(page.render)}" if page.render else ""
    say(clean(f"{page.url}: checked {often}, {_tags(page.tags)}{filtered}{through}."))
    warn_of_browser(page.render, watch_list.settings.browser)


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
        raise UsageError("Removing pages deletes their history: confirm with --yes.")
    what = clean(doomed[0].url) if len(doomed) == 1 else count(len(doomed), "page")
    versions = sum(page.versions for page in doomed)
    return typer.confirm(f"Remove {what} and delete {count(versions, 'version')}?", err=True)


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


def _row(page: Page, gone: set[int], safety: dict[int, Safety], now: float) -> list[str | Styled]:
    found = "gone" if page.id in gone else page.verdict or "–"
    verdict = Styled(found, VERDICT_STYLES[page.verdict] if page.verdict else "dim")
    unsafe = safety.get(page.id)
    if unsafe is not None and unsafe.blocked:
        verdict = Styled("blocked", "red")
    every = "" if page.every is None else format_interval(page.every)
    checked = ago(page.checked_at, now)
    tags, filters = ",".join(page.tags), describe_filters(page.filters)
    danger = "" if unsafe is None else unsafe.sentence
    return [page.url, page.title or "", every, checked, verdict, str(page.versions), tags, filters, danger]


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
