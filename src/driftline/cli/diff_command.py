"""`diff`: the difference between two versions of a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.api import workspace_of
from driftline.cli.options import JsonOption, PageOrChangeArgument, StoreOption, is_change_id, opened
from driftline.cli.output import clean, fields, local_time, out, print_json, say
from driftline.errors import DriftlineError, UsageError
from driftline.plurals import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from driftline.detection.diff.markup import MarkupChange
    from driftline.detection.diff.tables import ChangedCell
    from driftline.detection.diff.text_diff import Move, WordPiece

# by kind of piece: its style, and the brackets that replace it without colour
_MARKS = {"added": ("green", "{+", "+}"), "removed": ("red strike", "[-", "-]"), "moved": ("blue", "<~", "~>")}
_BEGINNING = 60  # letters
_SHOWN_CELLS = 20


def diff(
    url: PageOrChangeArgument,
    old: Annotated[
        int | None,
        typer.Argument(
            metavar="FROM",
            help="Older version. [default: the one before TO, or before the last change]",
            show_default=False,
        ),
    ] = None,
    new: Annotated[
        int | None, typer.Argument(metavar="TO", help="Newer version. [default: the newest]", show_default=False)
    ] = None,
    words: Annotated[
        bool | None,
        typer.Option(
            "--words/--unified",
            help="Show it word by word, or as a unified diff. [default: words on a terminal, else unified]",
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write an HTML page to open in a browser; - for standard output.",
            show_default=False,
        ),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what differs between two versions of a page."""
    if html is not None and (as_json or words is not None):
        raise UsageError("--html cannot be combined with --words, --unified or --json.")
    with opened(store, make=False) as watch_list:
        workspace = workspace_of(watch_list)
        if is_change_id(url):
            if old is not None:
                raise UsageError("The id of a change names its versions: give either CHANGE, or URL, FROM and TO.")
            change = workspace.repository.change_named(url)
            url, old, new = change.url, change.from_version, change.to_version
        page = workspace.catalog.find(url)
        before, after = workspace.two_numbers(page, old, new)
        if html is not None:
            _write(watch_list.history.html_diff(page.url, before, after), html)
            return
        cells = watch_list.history.table_changes(page.url, before, after)
        unified = watch_list.history.diff(page.url, before, after, cells=cells)
        kinds = watch_list.history.markup_changes(page.url, before, after)
        wanted = out().is_terminal if words is None else words
        places = watch_list.history.word_diff(page.url, before, after) if (wanted or as_json) and unified else []
        headings = watch_list.history.headings_of_diff(page.url, before, after) if wanted and places else []
        times = [watch_list.history.version(page.url, number).at for number in (before, after)] if headings else []
    if as_json:
        pieces = [[_piece_as_json(piece) for piece in place] for place in places]
        named = {"url": page.url, "from_version": before, "to_version": after}
        others = [{"kind": kind.name, **fields(kind, "count", "words", "examples")} for kind in kinds]
        found = {"equal": not unified, "unified": unified, "words": pieces, "cells": [cell._asdict() for cell in cells]}
        print_json({**named, **found, "kinds": others})
    elif wanted and unified:
        versions = [f"version {number} ({local_time(at)})" for number, at in zip((before, after), times, strict=True)]
        say((clean(page.url), "bold"), (f"  {' → '.join(versions)}", "dim"))
        _print_words(places, headings)
        _print_cells(cells)
        _print_kinds(kinds, same_text=False)
    elif unified:
        _print_unified(unified)
        # what is piped on stays a diff that other programs can read
        _print_cells(cells, to_stderr=not out().is_terminal)
        _print_kinds(kinds, same_text=False, to_stderr=not out().is_terminal)
    elif kinds:
        _print_kinds(kinds, same_text=True)
    else:
        say(f"Versions {before} and {after} are the same.")


def _write(document: str, file: str) -> None:
    data = document.encode("utf-8", "replace")
    if file == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        Path(file).write_bytes(data)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DriftlineError(f"{file} cannot be written ({reason}): choose another file.") from None
    say(clean(f"Saved {file}: open it in a browser."), to_stderr=True)


def _print_kinds(kinds: list[MarkupChange], *, same_text: bool, to_stderr: bool = False) -> None:
    from driftline.detection.diff.markup import sentence

    if kinds:
        say(clean(sentence(kinds, same_text=same_text)), to_stderr=to_stderr)
    for kind in kinds:
        for example in kind.examples:
            say((clean(f"  {example}"), "dim"), to_stderr=to_stderr)


def _print_cells(cells: list[ChangedCell], *, to_stderr: bool = False) -> None:
    if cells:
        say(f"{count(len(cells), 'table cell')} changed:", to_stderr=to_stderr)
    for cell in cells[:_SHOWN_CELLS]:
        say((clean(f"  {cell}"), "dim"), to_stderr=to_stderr)
    if len(cells) > _SHOWN_CELLS:
        say((f"  … and {len(cells) - _SHOWN_CELLS:,} more", "dim"), to_stderr=to_stderr)


def _print_words(places: list[list[WordPiece]], headings: Sequence[str]) -> None:
    """Print every place that differs below its heading, removed words first; without colour in brackets, as wdiff does.

    In colour an arrow stands between what was replaced and what replaced it, which colours alone would not part.
    """
    from rich.text import Text

    colours = out().color_system is not None and not out().no_color
    shown = ""
    for place, heading in zip(places, headings, strict=True):
        say((clean(heading) if heading != shown else "···", "cyan" if heading != shown else "dim"))
        shown = heading
        line = Text()
        for before, piece in zip((None, *place), place, strict=False):
            if colours and before is not None and (before.kind, piece.kind) == ("removed", "added"):
                line.append("\n" if "\n" in before.text + piece.text else " → ", "dim")
            _append(line, piece, colours=colours)
        _print_text(line)


def _append(line: Text, piece: WordPiece, *, colours: bool) -> None:
    text = clean(piece.text, lines=True)
    inner = text.strip("\n")
    if piece.kind == "same" or not inner:
        line.append(text)
        return
    before, after = text.split(inner, 1)
    if piece.move is not None:
        inner = _describe_move(inner, piece.move)
    style, opening, closing = _MARKS[piece.kind]
    line.append(before)
    line.append(inner if colours else f"{opening}{inner}{closing}", style if colours else "")
    line.append(after)


def _describe_move(text: str, move: Move) -> str:
    """Return the whole block at its new place; at its old place, its beginning and the line it moved to."""
    if move.arrived:
        return f"moved from line {move.from_line}: {text}"
    first = text.partition("\n")[0]
    beginning = first[:_BEGINNING] + ("…" if len(text) > _BEGINNING else "")
    return f"moved to line {move.to_line}: {beginning}"


def _print_unified(unified: str) -> None:
    from rich.text import Text

    styles = {"+": "green", "-": "red", "@": "cyan"}
    for number, line in enumerate(clean(unified, lines=True).splitlines()):
        _print_text(Text(line, "bold" if number < 2 else styles.get(line[:1], "")))


def _print_text(text: Text) -> None:
    out().print(text, soft_wrap=True)


def _piece_as_json(piece: WordPiece) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": piece.kind, "text": piece.text}
    if piece.move is not None:
        found |= {**fields(piece.move, "from_line", "to_line"), "shown_at": "to" if piece.move.arrived else "from"}
    return found
