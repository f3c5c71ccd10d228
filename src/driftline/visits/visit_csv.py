"""Visits as CSV: a column url, and optionally seconds, available and at (or time)."""

from __future__ import annotations

import csv
import math
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from driftline.errors import BadURL, UsageError
from driftline.model.visit import Visit
from driftline.visits.import_tally import LONGEST_LINE, LONGEST_VISIT, VisitKeys, web_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from driftline.visits.import_tally import ImportTally

_COLUMNS = ("url", "seconds", "available", "at")
_ALSO_AT = ("time", "timestamp")  # other names of the column; without it, all visits would be of today
_MOST_LINES = 100  # lines of a row, so that an unclosed quotation mark does not extend to the end of the file
_AHEAD = 86_400.0  # seconds by which a clock elsewhere, or its time zone, may differ
_YES = frozenset({"", "1", "true", "yes", "y", "t"})
_NO = frozenset({"0", "false", "no", "n", "f"})


def is_heading(line: str) -> bool:
    """Return whether a line can be the first of such a table."""
    return "url" in _names(line)


def read_sheet(lines: Iterable[str], now: float, tally: ImportTally) -> Iterator[Visit]:
    """Yield the visits of a table, one for each row; those without a time are taken to be of `now`."""
    source = iter(lines)
    heading = next(source, "")
    names = _names(heading)
    if "url" not in names:
        raise UsageError(f"The first line of the table must name its columns, url among them: {', '.join(_COLUMNS)}.")
    return _visits(_rows(source, _delimiter(heading), tally), names, now, tally)


def _rows(source: Iterator[str], delimiter: str, tally: ImportTally) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table after its heading, each with the number of its first line; rejects what is no row."""
    lines = _Lines(source, after=1)
    reader = csv.reader(lines, delimiter=delimiter)
    while True:
        lines.begin_row()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except _BadRow as error:
            tally.reject(lines.number, str(error))
        except csv.Error:
            lines.keep_one()
            tally.reject(lines.number, "It is no row of a table.")
        else:
            if any(cell.strip() for cell in cells):
                yield lines.number, cells


class _Lines:
    """The lines for a CSV reader: one for each row, and more only while a quotation mark is open.

    If it is never closed, all lines but the first are returned again: one stray mark must not swallow other rows.
    `number` is that of the first line of the current row.
    """

    def __init__(self, source: Iterator[str], after: int) -> None:
        self._source = source
        self._again: deque[str] = deque()
        self._row: list[str] = []
        self.number = after + 1

    def begin_row(self) -> None:
        self.number += len(self._row)
        self._row = []

    def keep_one(self) -> None:
        """Give the other lines again: only the first line was of this row."""
        self._again.extendleft(reversed(self._row[1:]))
        self._row = self._row[:1]

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._source, None)
        too_long = line is not None and len(line.encode()) > LONGEST_LINE
        if self._row and (line is None or too_long or len(self._row) == _MOST_LINES):
            if line is not None:
                self._again.appendleft(line)
            self.keep_one()
            raise _BadRow("A quotation mark in it is not closed.")
        if line is None:
            raise StopIteration
        self._row.append(line)
        if too_long:
            raise _BadRow(f"It is longer than {LONGEST_LINE:,} bytes.")
        return line


class _BadRow(Exception):
    """A line is no row."""


def _visits(
    rows: Iterable[tuple[int, list[str]]], names: list[str], now: float, tally: ImportTally
) -> Iterator[Visit]:  # fmt: skip
    keys = VisitKeys("csv")
    for line, cells in rows:
        row = {name: cell.strip() for name, cell in zip(names, cells, strict=False) if name in _COLUMNS}
        try:
            url = web_address(row.get("url", ""), tally.tracking)
            if url is None:
                tally.skipped += 1
                continue
            seconds, available, at = _seconds(row), _available(row), _at(row, now)
        except (BadURL, _BadCell) as error:
            tally.reject(line, str(error))
            continue
        key = keys.key(f"{at} {seconds} {available} {url}".encode(), at)
        yield Visit(url, now if at is None else at, seconds, available, key)


class _BadCell(Exception):
    """A cell has a value that its column cannot have."""


def _seconds(row: dict[str, str]) -> float:
    text = row.get("seconds") or "0"
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= LONGEST_VISIT:
        raise _BadCell(f"'{text}' is not a number of seconds between 0 and {LONGEST_VISIT:,.0f}, a day.")
    return seconds


def _available(row: dict[str, str]) -> bool:
    text = row.get("available", "").lower()
    if text not in _YES | _NO:
        raise _BadCell(f"'{text}' is not a value for available: write 1 or 0.")
    return text in _YES


def _at(row: dict[str, str], now: float) -> float | None:
    text = row.get("at", "")
    if not text:
        return None
    try:
        moment = float(text)
    except ValueError:
        moment = _from_iso(text)
    if not 0 <= moment < 1e11:
        raise _BadCell(f"'{text}' is not a time: write one such as 2026-01-31T18:00:00Z, or seconds since 1970.")
    if moment > now + _AHEAD:
        raise _BadCell(f"'{text}' is in the future.")
    return moment


def _from_iso(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return math.nan


def _names(heading: str) -> list[str]:
    """Return the names of the columns in a first line; none if it is no row of a table."""
    try:
        cells = next(csv.reader([heading], delimiter=_delimiter(heading)), [])
    except csv.Error:
        return []
    names = [cell.strip().strip("\ufeff").lower() for cell in cells]
    return names if "at" in names else ["at" if name in _ALSO_AT else name for name in names]


def _delimiter(heading: str) -> str:
    return max(",;\t", key=heading.count)
