"""Output of the `lab` commands: a progress line, and plain tables."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from driftline.cli.output import say

if TYPE_CHECKING:
    from collections.abc import Sequence


def tell(what: str) -> None:
    """Show what is being measured, on a line of the terminal that the next call overwrites."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{what}")
        sys.stderr.flush()


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], left: Sequence[str] = ()) -> None:
    """Print a plain table; the first column and those named in `left` are aligned left, others right."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for number, row in enumerate(cells):
        line = "  ".join(
            cell.ljust(width) if column == 0 or head[column] in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        say((line.rstrip(), "bold" if number == 0 else ""))
