"""Tables: cut to the width of a terminal, complete when piped, and fast with a hundred thousand rows."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from driftline.cli.output import clean, out, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_GAP = "  "
_NARROWEST = 8
_PORTION = 1_000  # rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column. On a narrow terminal it is cut to its `least` width, or left out if it is `optional`.

    Columns with a low `keep` are cut or left out first. URLs are cut in the `middle`, because their end says most. What
    is too long for a last column that `wraps` goes on below.
    """

    name: str
    right: bool = False
    least: int | None = None
    optional: bool = False
    keep: int = 0
    middle: bool = False
    wraps: bool = False
    style: str = ""


class Styled(NamedTuple):
    """A text with a style of its own."""

    text: str
    style: str


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str | Styled]]) -> None:
    """Print rows as they come; on a terminal cut to its width, elsewhere complete.

    The first thousand rows decide the widths.
    """
    from rich.cells import cell_len
    from rich.text import Text

    from driftline.store.statements import in_batches

    console = out()
    portions = in_batches(rows, _PORTION)
    first = next(portions, [])
    widths = [
        max([cell_len(column.name), *(cell_len(_text(row[place])) for row in first)])
        for place, column in enumerate(columns)
    ]
    if console.is_terminal:
        widths = fit(widths, columns, console.width)
    whole = not console.is_terminal
    shown = [place for place, width in enumerate(widths) if width]

    before_last = sum(widths[place] + len(_GAP) for place in shown[:-1])

    def line(cells: Sequence[str], styles: Sequence[str]) -> Text:
        text = Text(no_wrap=True, end="")
        for place in shown:
            width, cell = widths[place], cells[place]
            if cell_len(cell) > width and not whole:
                if columns[place].wraps and place == shown[-1]:
                    parts = [part.plain.rstrip() for part in Text(cell).wrap(console, width)]
                    text.append(f"\n{' ' * before_last}".join(parts), styles[place])
                    return text
                cell = _cut(cell, width, middle=columns[place].middle)
            blank = " " * (width - cell_len(cell))
            if columns[place].right:
                text.append(blank)
            text.append(cell, styles[place])
            if place != shown[-1]:
                text.append(_GAP if columns[place].right else blank + _GAP)
        return text

    console.print(line([column.name for column in columns], ["bold"] * len(columns)), soft_wrap=True)
    for some in chain([first] if first else [], portions):
        if console.color_system is None:
            plain = [column.style for column in columns]
            block = "\n".join(line([_text(cell) for cell in row], plain).plain.rstrip() for row in some)
            console.file.write(block + "\n")
            continue
        for row in some:
            styles = [
                cell.style if isinstance(cell, Styled) else column.style
                for cell, column in zip(row, columns, strict=True)
            ]
            console.print(line([_text(cell) for cell in row], styles), soft_wrap=True)


def is_too_wide(columns: Sequence[Column], rows: Sequence[Sequence[str | Styled]]) -> bool:
    """Return whether cells of this table would be cut on the terminal."""
    from rich.cells import cell_len

    cells = [[column.name for column in columns], *rows]
    widths = [max(cell_len(_text(row[place])) for row in cells) for place in range(len(columns))]
    return out().is_terminal and _excess(widths, out().width) > 0


def _text(cell: str | Styled) -> str:
    return clean(cell.text if isinstance(cell, Styled) else cell)


def fit(widths: Sequence[int], columns: Sequence[Column], room: int) -> list[int]:
    """Return the widths of the columns within `room` characters; 0 for a column that is left out.

    Columns are cut before any is left out; columns that are not optional always stay.
    """
    places = sorted(range(len(columns)), key=lambda place: columns[place].keep)
    optional = [place for place in places if columns[place].optional]
    cuttable = [place for place in places if columns[place].least is not None]
    fitted = list(widths)
    for left_out in range(len(optional) + 1):
        fitted = [0 if place in optional[:left_out] else width for place, width in enumerate(widths)]
        for place in cuttable:
            least = min(fitted[place], columns[place].least or 0)
            fitted[place] = max(least, fitted[place] - max(0, _excess(fitted, room)))
        if _excess(fitted, room) <= 0:
            return fitted
    if cuttable:
        fitted[cuttable[-1]] = max(_NARROWEST, fitted[cuttable[-1]] - _excess(fitted, room))
    return fitted


def _excess(widths: Sequence[int], room: int) -> int:
    shown = [width for width in widths if width]
    return sum(shown) + len(_GAP) * (len(shown) - 1) - room


def _cut(text: str, width: int, *, middle: bool) -> str:
    from rich.cells import set_cell_size

    tail = (width - 1) // 2 if middle else 0
    head = set_cell_size(text, width - 1 - tail).rstrip()
    return f"{head}…{set_cell_size(text[::-1], tail)[::-1] if tail else ''}"


def show_progress(what: str) -> None:
    """Show what is being measured, on a line of the terminal that the next call overwrites."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{what}")
        sys.stderr.flush()


def print_plain_table(head: Sequence[str], rows: Sequence[Sequence[Any]], left: Sequence[str] = ()) -> None:
    """Print a plain table; the first column and those named in `left` are aligned left, others right."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for number, row in enumerate(cells):
        line = "  ".join(
            cell.ljust(width) if column == 0 or head[column] in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        say((line.rstrip(), "bold" if number == 0 else ""))
