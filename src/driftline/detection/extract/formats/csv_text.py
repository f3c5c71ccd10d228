"""Tables separated by commas, semicolons, tabs or bars: one line for each row, with the names of its columns."""

from __future__ import annotations

import csv
from itertools import chain
from typing import TYPE_CHECKING

from driftline.detection.extract.formats.base import MOST_LINES, FormattedText, bounded, folded

if TYPE_CHECKING:
    from collections.abc import Sequence

_DELIMITERS = ",;\t|"
_SAMPLED = 20  # rows


def render(text: str, kind: str) -> FormattedText | None:
    """Return the rows of the table; None if it cannot be read as one."""
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    if len(lines) > MOST_LINES:
        return None
    try:
        delimiter = "\t" if "tab" in kind else _delimiter(lines)
        rows = [[folded(cell) for cell in row] for row in csv.reader(lines, delimiter=delimiter)]
    except csv.Error:
        return None
    rows = [row for row in rows if any(row)]
    names = rows[0] if rows and _is_heading(rows[0]) else []
    heading = [" | ".join(names)] if names else []
    found = bounded(chain(heading, (_row(row, names) for row in rows[1 if names else 0 :])))
    return None if found is None else FormattedText(lines=found)


def _delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter that gives most of the first rows as many columns as the very first."""

    def agreeing(delimiter: str) -> tuple[int, int]:
        counts = [len(row) for row in csv.reader(lines[:_SAMPLED], delimiter=delimiter) if row]
        return (counts.count(counts[0]), counts[0]) if counts and counts[0] > 1 else (0, 0)

    return max(_DELIMITERS, key=agreeing)


def _is_heading(row: Sequence[str]) -> bool:
    """Return whether these are names of columns: none empty, none twice, none a number."""
    return (
        len(row) > 1 and all(row) and len(set(row)) == len(row) and not any(cell[0] in "0123456789-+" for cell in row)
    )


def _row(row: Sequence[str], names: Sequence[str]) -> str:
    if not names:
        return " | ".join(row)
    labels = [*names, *(f"column {number}" for number in range(len(names) + 1, len(row) + 1))]
    return " | ".join(f"{label}: {cell}" for label, cell in zip(labels, row, strict=False) if cell)
