"""Times as people write them: a length as 30s, 15m, 2h, 1d, 1w or 1h30m, a moment by its date or how long ago."""

from __future__ import annotations

import re
from datetime import datetime

from driftline.errors import BadSetting

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
_LONGEST = 10 * 365 * 86_400


def parse_interval(text: str) -> float:
    """The seconds that a text such as '15m' or '1h30m' stands for; at least one second."""
    compact = text.strip().lower()
    seconds = sum(float(amount) * _UNITS[unit] for amount, unit in _PART.findall(compact))
    if _PART.sub("", compact).strip() or not compact:
        raise BadSetting(f"'{text}' is not a length of time: write 30s, 15m, 2h, 1d or 1w.")
    if not 1 <= seconds <= _LONGEST:
        raise BadSetting(f"'{text}' is too {'short' if seconds < 1 else 'long'}: give between 1s and 520w.")
    return round(seconds, 3)


def format_interval(seconds: float) -> str:
    """The shortest exact text that `parse_interval` reads back as these seconds."""
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
    """The time that a date, a date and time or a length of time before `now` stands for, in seconds since 1970.

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
