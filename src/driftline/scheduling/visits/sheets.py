"""Visits in a table of comma-separated values: url, and if known seconds, available and at (or time)."""

from __future__ import annotations

import csv
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from driftline.errors import BadURL, UsageError
from driftline.model import Visit
from driftline.scheduling.visits.tally import LONGEST_VISIT, Keys, web_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from driftline.scheduling.visits.tally import Tally

_COLUMNS = ("url", "seconds", "available", "at")
_ALSO_AT = ("time", "timestamp")  # what others call it; if they were passed over, all visits would be of today
_AHEAD = 86_400.0  # seconds by which a clock elsewhere, or its time zone, may differ
_YES = frozenset({"", "1", "true", "yes", "y", "t"})
_NO = frozenset({"0", "false", "no", "n", "f"})


def is_heading(line: str) -> bool:
    """Whether a line can be the first of such a table."""
    return "url" in _names(next(csv.reader([line], delimiter=_delimiter(line)), []))


def read_sheet(lines: Iterable[str], now: float, tally: Tally) -> Iterator[Visit]:
    """The visits of a table, a row each; those without a time are taken to be of `now`."""
    source = iter(lines)
    heading = next(source, "")
    delimiter = _delimiter(heading)
    names = _names(next(csv.reader([heading], delimiter=delimiter), []))
    if "url" not in names:
        raise UsageError(f"The first line of the table must name its columns, url among them: {', '.join(_COLUMNS)}.")
    return _visits(csv.reader(source, delimiter=delimiter), names, now, tally)


def _visits(rows: Iterator[list[str]], names: list[str], now: float, tally: Tally) -> Iterator[Visit]:
    keys = Keys("csv")
    while True:
        line = getattr(rows, "line_num", 0) + 2  # the heading was read before, and rows are counted from 1
        try:
            cells = next(rows, None)
        except csv.Error as error:
            tally.reject(line, f"{error}.")
            continue
        if cells is None:
            return
        if not any(cell.strip() for cell in cells):
            continue
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
    """A cell holds what its column does not have."""


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
        raise _BadCell(f"'{text}' does not say whether the page was available: write 1 or 0.")
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
        raise _BadCell(f"'{text}' is in the future: nobody was there yet.")
    return moment


def _from_iso(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return math.nan


def _names(cells: list[str]) -> list[str]:
    names = [cell.strip().strip("\ufeff").lower() for cell in cells]
    return names if "at" in names else ["at" if name in _ALSO_AT else name for name in names]


def _delimiter(heading: str) -> str:
    return max(",;\t", key=heading.count)
