"""Calendars (iCalendar): one line for each property of each event, sorted by the time at which the events start.

Servers make these files anew for every request: DTSTAMP is the time of that, and the order of the events means nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from driftline.detection.extract.formats.base import FormattedText, bounded, folded

if TYPE_CHECKING:
    from collections.abc import Iterator

_BEGIN = "begin:vcalendar"
_LOOKED_AT = 1024
_COMPONENTS = ("VEVENT", "VTODO", "VJOURNAL", "VFREEBUSY")
# first what a reader looks for, then the others as they come
_FIRST = ("SUMMARY", "DTSTART", "DTEND", "DUE", "LOCATION", "STATUS")
# when the file was made, and how often an entry was edited: what was edited has a line of its own
_LEFT_OUT = ("BEGIN", "END", "DTSTAMP", "LAST-MODIFIED", "CREATED", "SEQUENCE", "UID")
_LINE_END = re.compile(r"\r?\n")  # and no other character that may end a line elsewhere
_FOLD = re.compile(r"\r?\n[ \t]")
_PROPERTY = re.compile(r"([A-Za-z0-9-]+)((?:;(?:\"[^\"]*\"|[^\":])*)?):(.*)", re.DOTALL)
_TIME = re.compile(r"\b(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d))?(Z?)\b")
_ZONE = re.compile(r";TZID=\"?([^;\":]+)", re.IGNORECASE)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class _Property(NamedTuple):
    name: str
    parameters: str
    value: str

    def line(self) -> str:
        """Return the property as people read it."""
        value = _ESCAPED.sub(lambda found: " " if found[1] in "nN" else found[1], self.value)
        if self.name.startswith("DT") or self.name in ("DUE", "RECURRENCE-ID", "EXDATE", "RDATE", "COMPLETED"):
            zone = _ZONE.search(self.parameters)
            value = _TIME.sub(_shown_time, value) + (f" {zone[1]}" if zone else "")
        return f"{self.name}: {folded(value)}"


def render(text: str) -> FormattedText | None:
    """Return the lines of a calendar; None if it is none."""
    if not text[:_LOOKED_AT].lstrip("\ufeff \t\r\n").lower().startswith(_BEGIN):
        return None
    lines = bounded(_lines(text))
    return None if lines is None else FormattedText(lines=lines)


def _lines(text: str) -> Iterator[str]:
    depth = 0  # of parts of an entry, such as alarms, which are left out
    entry: list[_Property] | None = None
    entries: list[list[_Property]] = []
    for line in _LINE_END.split(_FOLD.sub("", text)):
        found = _PROPERTY.fullmatch(line.strip())
        if found is None:
            if entry and not depth and line.strip():  # servers forget to fold
                entry[-1] = entry[-1]._replace(value=f"{entry[-1].value} {line}")
            continue
        one = _Property(found[1].upper(), found[2], found[3])
        if one.name == "BEGIN" and one.value.strip().upper() in _COMPONENTS:
            entry, depth = [], 0
            entries.append(entry)
        elif entry is not None and one.name == "BEGIN":
            depth += 1
        elif entry is not None and one.name == "END":
            depth -= 1
            entry = None if depth < 0 else entry
        elif entry is not None and not depth:
            entry.append(one)
        elif entry is None and one.name in ("X-WR-CALNAME", "NAME"):
            yield one.line()
    for _, lines in sorted(map(_start_and_lines, entries)):
        yield from lines


def _start_and_lines(entry: list[_Property]) -> tuple[str, list[str]]:
    values = {one.name: one.value for one in reversed(entry)}
    shown = [one for one in entry if one.name not in _LEFT_OUT]
    shown.sort(key=lambda one: _FIRST.index(one.name) if one.name in _FIRST else len(_FIRST))
    return values.get("DTSTART", values.get("DUE", "")), [one.line() for one in shown]


def _shown_time(found: re.Match[str]) -> str:
    year, month, day, hour, minute, second, utc = found.groups()
    seconds = f":{second}" if second and second != "00" else ""
    time = f" {hour}:{minute}{seconds}" if hour else ""
    return f"{year}-{month}-{day}{time}{' UTC' if utc else ''}"
