"""`changes`, `history`, `show`, `screenshot`, `values`: what changed, and what is kept of a page."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.api import workspace_of
from driftline.cli.blocklist_command import safety_as_json
from driftline.cli.options import (
    JsonOption,
    MinOption,
    PageArgument,
    PageOrChangeArgument,
    StoreOption,
    TagOption,
    insist_on_tag,
    is_change_id,
    opened,
)
from driftline.cli.output import (
    EVENT_STYLES,
    VERDICT_STYLES,
    ago,
    clean,
    event_lines,
    fields,
    iso,
    local_time,
    out,
    print_json,
    print_json_list,
    say,
    size,
    suggest_commands,
)
from driftline.cli.text_tables import Column, Styled, print_table
from driftline.durations import parse_moment
from driftline.errors import DriftlineError, UsageError
from driftline.model.change import Importance
from driftline.model.event import EventKind
from driftline.plurals import count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from driftline.detection.extract.conditions import MeasuredVersion
    from driftline.detection.extract.outline import TextBlock
    from driftline.model.change import Change
    from driftline.model.event import Ignored
    from driftline.model.outcome import Check, Version

    #: a moment in seconds, and the number that was measured then
    Point = tuple[float, float]

_COLUMNS = (
    Column(name="check", right=True),
    Column(name="when"),
    Column(name="result"),
    Column(name="proof", optional=True, style="dim"),
    Column(name="status", right=True, optional=True, keep=3),
    Column(name="ms", right=True, optional=True, keep=1),
    Column(name="size", right=True, optional=True, keep=2),
    Column(name="version", right=True, optional=True, keep=4),
    Column(name="what", least=44, keep=5, wraps=True),
)
_BLOCK_COLUMNS = (
    Column(name="role"),
    Column(name="path", least=20, middle=True),
    Column(name="text", least=30, keep=1),
)
_SHOWN = 50
_PAGES = 10  # that are listed of one event


def changes(
    url: Annotated[str | None, typer.Argument(metavar="URL", help="Only this page.", show_default=False)] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Only since then: how long ago (1d, 3h), or a date.", show_default=False),
    ] = None,
    tag: TagOption = None,
    min_importance: MinOption = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Show at most N events. [default: 50, all with --json]",
                     show_default=False),
    ] = None,
    every_page: Annotated[
        bool, typer.Option("--all", help="List every page of an event, not only the first ten.")
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Show what changed lately, newest first.

    Also pages that fail or recovered, warnings, parts of pages that are ignored from then on, and pages of a crawled
    site that are new, gone or moved.

    A change has an id, such as 12-5: give it to 'driftline diff', 'show' or 'feedback'.
    """
    from driftline.store.events import event_document

    after = None if since is None else parse_moment(since, time.time())
    with opened(store, make=False, min_importance=min_importance) as watch_list:
        if tag is not None:
            insist_on_tag(watch_list, tag)
        most = limit if limit is not None or as_json else _SHOWN + 1
        events = watch_list.changes(since=after, tag=tag, url=url, limit=most)
        if as_json:
            print_json_list(map(event_document, events))
            return
        shown = list(events)
    if not shown:
        every = since is None and url is None and tag is None
        none = "Nothing has changed yet." if every else "No such events: try without --since, --tag or URL."
        also = "" if min_importance == Importance.MINOR else " Changes of form only are listed with --min minor."
        say(none + also, to_stderr=True)
    more = limit is None and len(shown) > _SHOWN
    for event in shown[:_SHOWN] if more else shown:
        for line in event_lines(event, f"{local_time(event.at)}  ", most=None if every_page else _PAGES):
            say(*line)
    if more:
        say(f"These are the newest {_SHOWN}: --limit shows more.", to_stderr=True)
    suggest_commands(shown)


def history(
    url: PageOrChangeArgument,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Show at most N checks.")] = 20,
    every_check: Annotated[
        bool, typer.Option("--all", help="Include checks that found nothing or only noise, with the reason.")
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what the checks of a page found, newest first."""
    with opened(store, make=False) as watch_list:
        workspace = workspace_of(watch_list)
        if is_change_id(url):
            url = workspace.repository.change_named(url).url
        page = workspace.catalog.find(url)
        checks = watch_list.history.checks(url, limit=limit, news_only=not every_check)
        quiet, noisy = (0, 0) if every_check else workspace.repository.quiet_checks(page)
        gone = bool(workspace.gone([page]))
        pictured = workspace.screenshots.numbers(page)
    if as_json:
        print_json([_check_as_json(check) | {"screenshot": check.version in pictured} for check in checks])
    elif checks:
        now = time.time()
        print_table(_COLUMNS, [_row(check, now) for check in checks])
        if shown := sorted({check.version for check in checks if check.version in pictured}):
            numbers = ", ".join(map(str, shown))
            say(
                (f"Versions with a picture: {numbers}. Save one with 'driftline screenshot'.", "dim"),
                to_stderr=True,
            )
        if quiet:
            say((_hidden_checks(quiet, noisy), "dim"), to_stderr=True)
        if gone:
            say("This page is gone: 'driftline run' tries it again once a week.", to_stderr=True)
    else:
        say(clean(f'{url} was never checked: run "driftline check {quote(url)}".'), to_stderr=True)


def show(
    url: PageOrChangeArgument,
    version: Annotated[
        int | None,
        typer.Option("--version", metavar="N", help="Version number. [default: the newest]", show_default=False),
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw/--text", help="Show the body as the server sent it, or its text.")
    ] = False,
    blocks: Annotated[
        bool, typer.Option("--blocks", help="List its blocks of text, each with a CSS selector for --select or --drop.")
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the text of a page, or of one of its versions.

    With the id of a change, the version after it.
    """
    if raw and blocks:
        raise UsageError("Give either --raw or --blocks, not both.")
    with opened(store, make=False) as watch_list:
        workspace = workspace_of(watch_list)
        if is_change_id(url):
            if version is not None:
                raise UsageError("The id of a change names a version: give either CHANGE, or URL and --version.")
            change = workspace.repository.change_named(url)
            url, version = change.url, change.to_version
        if blocks:
            _show_blocks(watch_list.history.outline(url, version), as_json=as_json)
            return
        found = watch_list.history.version(url, version)
        page = workspace.catalog.find(url)
        safety = workspace.safety_of([page]).get(page.id)
    if safety is not None and not as_json:
        say((clean(safety.sentence), "red"), to_stderr=True)
    if as_json:
        print_json({**_version_as_json(found, raw), **safety_as_json(safety)})
    elif raw and out().is_terminal:
        raise UsageError(
            "A raw body can contain control codes that upset a terminal: write it to a file with '> FILE'."
        )
    elif raw:
        sys.stdout.buffer.write(found.body)
        sys.stdout.buffer.flush()
    else:
        if out().is_terminal:
            _print_heading(found)
        print(clean(found.words, lines=True))


def screenshot(
    url: PageOrChangeArgument,
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
        if is_change_id(url):
            change = workspace_of(watch_list).repository.change_named(url)
            url, version = change.url, change.to_version if version is None else version
        picture = watch_list.history.screenshot(url, version)
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


def _show_blocks(found: Sequence[TextBlock], *, as_json: bool) -> None:
    if as_json:
        print_json([
            {"text": one.text, "role": one.role, "path": one.path, "links": one.links,
             "attributes": [{"name": name, "value": value} for name, value in one.attributes]}
            for one in found
        ])  # fmt: skip
    elif out().is_terminal:  # a selector that is cut is of no use
        for one in found:
            say((f"{one.role:<10}", "cyan"), clean(one.text))
            say(" " * 10, (clean(one.path), "dim"))
    else:
        print_table(_BLOCK_COLUMNS, [(one.role, one.path, one.text) for one in found])


def _print_heading(version: Version) -> None:
    say((clean(version.title) or clean(version.url), "bold"))
    kind = clean(version.content_type) or "unknown kind"
    say((f"version {version.number}, {local_time(version.at)}, {kind}, {size(version.size)}", "dim"))
    say("")


def _hidden_checks(quiet: int, noisy: int) -> str:
    hidden = [f"{count(quiet - noisy, 'check')} that found nothing"] if quiet > noisy else []
    hidden += [f"{count(noisy, 'check')} that found only noise"] if noisy else []
    return f"Not shown: {' and '.join(hidden)}. Show everything with --all."


def _row(check: Check, now: float) -> list[str | Styled]:
    found = Styled(check.verdict, VERDICT_STYLES[check.verdict])
    what = check.reason
    if check.turned:
        found = Styled(check.turned.turn, EVENT_STYLES[EventKind(check.turned.turn)])
    if check.change:
        recovered = f"{check.turned.reason} " if check.turned else ""
        what = f"change {check.change.id}: {recovered}{_describe_change(check.change)}"
    if check.ignored:
        what = f"{what} {check.ignored.reason}".strip()
    if check.warnings:
        what = " ".join([what, *(warned.sentence for warned in check.warnings)]).strip()
    if check.redirected_to:
        what = f"{what} Redirected to {check.redirected_to}".strip()
    if check.reread_at:
        what = f"{what} Its text was extracted again {ago(check.reread_at, now)}.".strip()
    return [
        str(check.sequence), ago(check.at, now), found, check.proof or "", str(check.status or ""),
        f"{check.seconds * 1000:,.0f}", size(check.bytes), str(check.version or ""), what,
    ]  # fmt: skip


def _describe_change(change: Change) -> str:
    what = change.headline if change.importance is not Importance.NOISE or change.said else change.reason
    if change.said is not None:
        return f"(marked as {change.said} by you) {what}"
    return f"(minor) {what}" if change.importance is Importance.MINOR else what


def _check_as_json(check: Check) -> dict[str, Any]:
    failure = None if check.failure is None else {"kind": check.failure.kind, "reason": check.failure.sentence}
    change = None
    if check.change is not None:
        change = fields(
            check.change,
            "id",
            "kind",
            "importance",
            "said",
            "score",
            "headline",
            "reason",
            "from_version",
            "to_version",
        )
    return {
        "sequence": check.sequence,
        "at": iso(check.at),
        **fields(check, "verdict", "proof", "status", "seconds", "bytes", "redirected_to", "version", "reason"),
        "reread_at": iso(check.reread_at),
        "turned": None if check.turned is None else check.turned.turn,
        "warnings": [{"kind": kind, "reason": sentence} for kind, sentence in check.warnings],
        "ignored": None if check.ignored is None else _ignored_as_json(check.ignored),
        "change": change,
        "failure": failure,
    }


def _ignored_as_json(ignored: Ignored) -> dict[str, Any]:
    return fields(ignored, "kind", "label", "example", "others", "headline", "reason")


def _version_as_json(version: Version, raw: bool) -> dict[str, Any]:
    import base64

    from driftline.detection.diff.markup import declared_address

    found = {
        "url": version.url,
        "version": version.number,
        "at": iso(version.at),
        **fields(version, "title", "size", "content_type", "charset", "final_url"),
        "canonical": declared_address(version),
    }
    if raw:
        return {**found, "body_base64": base64.b64encode(version.body).decode("ascii")}
    return {**found, "text": version.words}


_HIGH = 8  # lines of a plot
_WIDE = 60  # columns of a plot
_NOTHING = "No number was found in what is watched of {}: name a part of it with --select, or use --read offers."


def values(
    url: PageArgument,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Show at most N versions.")] = 20,
    plot: Annotated[bool, typer.Option("--plot", help="Draw the numbers over time, of all versions.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show prices and other numbers of a page over time.

    The newest come first. That is what its conditions (--when) are about, price and stock of a page with --read offers,
    or else its first number.
    """
    with opened(store, make=False) as watch_list:
        found = watch_list.history.values(url, None if plot else limit)
    if as_json:
        print_json([_values_as_json(one) for one in found])
        return
    names = list(dict.fromkeys(name for one in found for name in one.values))
    if not names:
        say(clean(_NOTHING.format(url)), to_stderr=True)
    elif plot:
        for name in names:
            _plot(name, found)
    else:
        columns = [Column(name="version", right=True), Column(name="when")]
        columns += [Column(name=clean(name), right=True) for name in names]
        print_table(columns, [_measured_row(one, names) for one in found])


def _measured_row(one: MeasuredVersion, names: Sequence[str]) -> list[str]:
    shown = [one.values[name].words if name in one.values else "–" for name in names]
    return [str(one.version), local_time(one.at), *shown]


def _values_as_json(one: MeasuredVersion) -> dict[str, Any]:
    shown = {name: {"number": value.number, "text": value.words} for name, value in one.values.items()}
    return {"version": one.version, "at": iso(one.at), "values": shown}


def _plot(name: str, found: Sequence[MeasuredVersion]) -> None:
    """Draw the numbers of one name over time, the oldest on the left."""
    known = [(one.at, one.values[name].number) for one in reversed(found) if name in one.values]
    points = [(at.timestamp(), number) for at, number in known if number is not None]
    if not points:
        return
    lowest, highest = (pick(number for _, number in points) for pick in (min, max))
    labels = [""] * _HIGH
    labels[0], labels[-1] = f"{highest:,.10g}" if lowest < highest else "", f"{lowest:,.10g}"
    beside = max(map(len, labels))
    width = max(10, min(_WIDE, out().width - beside - 3))
    say((clean(name), "bold"))
    for label, line in zip(labels, drawn(points, width, _HIGH), strict=True):
        say(f"{label:>{beside}} ┤", (line, "cyan"))
    first, last = _day(known[0][0]), _day(known[-1][0])
    say(" " * beside, f"  {first}{last:>{max(len(last) + 1, width - len(first))}}")


def _day(at: datetime) -> str:
    return local_time(at).partition(" ")[0]


def drawn(points: Sequence[Point], width: int, height: int) -> list[str]:
    """Return lines of a plot, the highest number first: each number lasts until the next one was measured."""
    start, end = points[0][0], points[-1][0]
    lowest, highest = (pick(number for _, number in points) for pick in (min, max))
    columns: list[float] = []
    following = 0
    for column in range(width):
        moment = start + (end - start) * column / (width - 1)
        while following < len(points) and points[following][0] <= moment:
            following += 1
        columns.append(points[max(0, following - 1)][1])
    places = [round((number - lowest) / (highest - lowest or 1.0) * (height - 1)) for number in columns]
    rows = [["─" if place == row else " " for place in places] for row in range(height - 1, -1, -1)]
    for column in range(1, width):  # where it steps, the two levels are joined
        low, high = sorted(places[column - 1 : column + 1])
        for place in range(low + 1, high):
            rows[height - 1 - place][column] = "│"
        if low != high:
            rises = places[column] > places[column - 1]
            rows[height - 1 - high][column] = "╭" if rises else "╮"
            rows[height - 1 - low][column] = "╯" if rises else "╰"
    return ["".join(row) for row in rows]
