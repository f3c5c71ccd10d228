"""Tables that stay quick with a hundred thousand rows, fit a terminal, and are whole when piped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from driftline.cli.output import clean, out

if TYPE_CHECKING:
    from collections.abc import Sequence

_GAP = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column. One with a `least` width gives way when the terminal is narrow, those with the lowest `keep` first."""

    name: str
    right: bool = False
    least: int | None = None
    keep: int = 0
    style: str = ""


class Cell(NamedTuple):
    """A text with a style of its own."""

    text: str
    style: str


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str | Cell]]) -> None:
    """Print rows under their headings; on a terminal cut to its width, elsewhere whole."""
    from rich.cells import cell_len, set_cell_size
    from rich.text import Text

    console = out()
    texts = [[clean(cell.text if isinstance(cell, Cell) else cell) for cell in row] for row in rows]
    widths = [
        max([cell_len(column.name), *(cell_len(row[place]) for row in texts)]) for place, column in enumerate(columns)
    ]
    if console.is_terminal:
        widths = fit(widths, columns, console.width)
    shown = [place for place, width in enumerate(widths) if width]

    def line(cells: Sequence[str], styles: Sequence[str]) -> Text:
        text = Text(no_wrap=True, end="")
        for place in shown:
            width, cell = widths[place], cells[place]
            length = cell_len(cell)
            if length > width:
                cell, length = set_cell_size(cell, width - 1).rstrip() + "…", width
            blank = " " * (width - length)
            if columns[place].right:
                text.append(blank)
            text.append(cell, styles[place])
            if place != shown[-1]:
                text.append(_GAP if columns[place].right else blank + _GAP)
        return text

    console.print(line([column.name for column in columns], ["bold"] * len(columns)), soft_wrap=True)
    if console.color_system is None:
        plain = [column.style for column in columns]
        for start in range(0, len(texts), 1000):
            block = "\n".join(line(cells, plain).plain.rstrip() for cells in texts[start : start + 1000])
            console.file.write(block + "\n")
        return
    for row, cells in zip(rows, texts, strict=True):
        styles = [
            cell.style if isinstance(cell, Cell) else column.style for cell, column in zip(row, columns, strict=True)
        ]
        console.print(line(cells, styles), soft_wrap=True)


def fit(widths: Sequence[int], columns: Sequence[Column], room: int) -> list[int]:
    """The widths that the columns get in so much room; 0 for a column that is left out.

    First the columns that may give way are cut to their least width, then the same columns are left out, in order of
    `keep`; the one that is kept longest is never left out, only cut.
    """
    fitted = list(widths)
    giving = sorted((place for place, column in enumerate(columns) if column.least), key=lambda at: columns[at].keep)

    def excess() -> int:
        shown = [width for width in fitted if width]
        return sum(shown) + len(_GAP) * (len(shown) - 1) - room

    for place in giving:
        fitted[place] = max(min(fitted[place], columns[place].least or 0), fitted[place] - max(0, excess()))
    for place in giving[:-1]:
        if excess() > 0:
            fitted[place] = 0
    if giving and excess() > 0:
        fitted[giving[-1]] = max(8, fitted[giving[-1]] - excess())
    return fitted
