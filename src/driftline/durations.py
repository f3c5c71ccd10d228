"""Times as people and programs give them: a length as 30s, 15m, 2h, 1d, 1w or 1h30m, a moment by its date or how long
ago. Inside, both are numbers of seconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import TypeAlias

from driftline.errors import BadSetting

#: a length of time: a text such as '30m' or '1h', a `timedelta`, or a number of seconds
Duration: TypeAlias = str | timedelta | float
#: a point in time: a `datetime`, a text such as '2026-11-01' or '1d' (ago), or seconds since 1970
Moment: TypeAlias = str | datetime | float

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
_LONGEST = 10 * 365 * 86_400


def parse_interval(text: str) -> float:
    """Return the seconds that a text such as '15m' or '1h30m' stands for; at least one second."""
    compact = text.strip().lower()
    seconds = sum(float(amount) * _UNITS[unit] for amount, unit in _PART.findall(compact))
    if _PART.sub("", compact).strip() or not compact:
        raise BadSetting(f"'{text}' is not a length of time: write 30s, 15m, 2h, 1d or 1w.")
    return _within_bounds(seconds, text)


def seconds_of(duration: Duration) -> float:
    """Return a length of time in seconds, given as a text, a `timedelta` or a number; BadSetting if it is none."""
    if isinstance(duration, str):
        return parse_interval(duration)
    if isinstance(duration, timedelta):
        return _within_bounds(duration.total_seconds(), str(duration))
    if isinstance(duration, int | float) and not isinstance(duration, bool):
        if abs(duration) > _LONGEST:  # which may be more than can be written, or be a float
            raise BadSetting(f"That is too {'long' if duration > 0 else 'short'}: give between 1s and 520w.")
        return _within_bounds(float(duration), f"{duration} s")
    raise BadSetting(f"{duration!r} is not a length of time: give '30m', a timedelta or a number of seconds.")


def _within_bounds(seconds: float, shown: str) -> float:
    if not 1 <= seconds <= _LONGEST:
        raise BadSetting(f"'{shown}' is too {'long' if seconds > _LONGEST else 'short'}: give between 1s and 520w.")
    return round(seconds, 3)


def format_interval(seconds: float) -> str:
    """Return the shortest exact text that `parse_interval` reads back as these seconds."""
    parts: list[str] = []
    left = round(seconds, 3)
    for unit in ("w", "d", "h", "m"):
        whole, left = divmod(left, _UNITS[unit])
        if whole:
            parts.append(f"{int(whole)}{unit}")
    if left or not parts:
        parts.append(f"{left:.3f}".rstrip("0").rstrip(".") + "s")
    return "".join(parts)


def parse_moment(text: str, now: float) -> float:
    """Return the time that a date, a date and time or a length of time before `now` stands for, in seconds since 1970.

    Without a time zone it is that of this machine.
    """
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        pass
    try:
        return now - parse_interval(text)
    except BadSetting:
        raise BadSetting(f"'{text}' is not a time: write a date as 2026-01-31, or how long ago as 12h or 7d.") from None


def timestamp_of(moment: Moment, now: float) -> float:
    """Return a point in time in seconds since 1970, given as a `datetime`, a text or a number; BadSetting otherwise.

    A `datetime` or a text without a time zone is in that of this machine.
    """
    if isinstance(moment, str):
        return parse_moment(moment, now)
    try:
        if isinstance(moment, datetime):
            return moment.timestamp()
        if isinstance(moment, int | float) and not isinstance(moment, bool) and isfinite(moment):
            return float(moment)
    except (OverflowError, ValueError, OSError):
        raise BadSetting("That moment is out of range: give one of the years 1 to 9999.") from None
    raise BadSetting(f"{moment!r} is no moment: give a datetime, a text such as '2026-01-31' or '7d', or seconds.")


def utc(seconds: float) -> datetime:
    """Return a point in time, given in seconds since 1970, as a `datetime` in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def utc_or_none(seconds: float | None) -> datetime | None:
    """Return a point in time as a `datetime` in UTC, and None for None."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
