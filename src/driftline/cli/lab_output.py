"""How the laboratory tells what it measures: a line that is written over, and plain tables."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from driftline.cli.output import say

if TYPE_CHECKING:
    from collections.abc import Sequence


def tell(what: str) -> None:
    """What is being measured now, on one line of standard error that is written over, if that is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{what}")
        sys.stderr.flush()


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], left: Sequence[str] = ()) -> None:
    """A plain table: the first column and those named to the left, the others to the right."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for number, row in enumerate(cells):
        line = "  ".join(
            cell.ljust(width) if column == 0 or head[column] in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        say((line.rstrip(), "bold" if number == 0 else ""))
