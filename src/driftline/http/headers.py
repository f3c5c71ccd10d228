"""Response headers, kept as received and parsed only where they are needed.

A block holds the header lines of every response to a page, those of redirects and 1xx answers first. Searching the
whole block for a name is several times faster than going through its lines, and it is done for every check.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache

BUSY = (429, 503)  # statuses that ask the client to slow down, with or without a Retry-After
LONGEST_PAUSE = 86_400.0  # seconds of a Retry-After; longer ones are cut, because some servers send years
_LONGEST_VALIDATOR = 1_000  # characters
_USUAL_LENGTH = len("Sun, 06 Nov 1994 08:49:37 GMT")
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_MAX_AGE = re.compile(r"max-age\s*=\s*\"?(\d{1,10})")
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def last_response(block: bytes) -> bytes:
    """Return the part of the block that belongs to the last response."""
    start = block.rfind(b"\nHTTP/")
    return block if start < 0 else block[start + 1 :]


def header(block: bytes, name: bytes) -> str | None:
    """Return the last value of a header in a block; `name` is in lower case, without a colon."""
    return _found(block, block.lower(), b"\n" + name + b":")


def _found(block: bytes, lowered: bytes, start: bytes) -> str | None:
    """Return the last value after `start`: a line end, a name and a colon, as in the block in lower case."""
    at = lowered.rfind(start)
    return None if at < 0 else _value(block, at + len(start))


def _value(block: bytes, start: int) -> str:
    end = block.find(b"\n", start)
    return block[start : end if end >= 0 else None].strip().decode("latin-1")


def validators(block: bytes) -> tuple[str | None, str | None]:
    """Return the ETag and Last-Modified of the last response, as far as they can be sent back.

    Values with control characters, or so long that a server would refuse them, are left out.
    """
    lowered = block.lower()
    etag, modified = lowered.rfind(b"\netag:"), lowered.rfind(b"\nlast-modified:")
    if etag < 0 and modified < 0:
        return None, None
    start = lowered.rfind(b"\nhttp/")  # what comes before belongs to a redirect
    return (
        None if etag <= start else _sendable(_value(block, etag + len(b"\netag:"))),
        None if modified <= start else _sendable(_value(block, modified + len(b"\nlast-modified:"))),
    )


def _sendable(value: str) -> str | None:
    return value if len(value) <= _LONGEST_VALIDATOR and not _CONTROLS.search(value) else None


def content_encodings(block: bytes) -> list[str]:
    """Return the content codings in the order in which they were applied, 'identity' left out."""
    value = header(block, b"content-encoding")
    if not value:
        return []
    return [coding for part in value.split(",") if (coding := part.strip().lower()) not in ("", "identity")]


def redirect_targets(block: bytes) -> list[str]:
    """Return the Location of each redirect, in order."""
    lines = block.split(b"\n")
    return [line[9:].strip().decode("latin-1") for line in lines if line[:9].lower() == b"location:"]


def lifetime(block: bytes) -> float | None:
    """Return the seconds for which the page is fresh: 0 if it must not be cached, None without such a header.

    Where only Last-Modified is given, a tenth of the age is the usual heuristic (RFC 9111, section 4.2.2).
    """
    response = last_response(block)
    lowered = response.lower()
    control = (_found(response, lowered, b"\ncache-control:") or "").lower()
    if "no-cache" in control or "no-store" in control:
        return 0.0
    age = _seconds(_found(response, lowered, b"\nage:"))
    max_age = _MAX_AGE.search(control) if control else None
    if max_age:
        return max(0.0, float(max_age[1]) - age)
    date = _moment(_found(response, lowered, b"\ndate:"))
    if date is None:
        return None
    expires = _found(response, lowered, b"\nexpires:")
    if expires is not None:
        # an invalid time, such as 0, means already expired
        return max(0.0, (_moment(expires) or 0.0) - date - age)
    modified = _moment(_found(response, lowered, b"\nlast-modified:"))
    return None if modified is None else max(0.0, (date - modified) / 10)


def retry_after(block: bytes, now: float) -> float | None:
    """Return the seconds of the Retry-After header; None if there is none, or none that can be read.

    A date is compared with the Date of the response, because the server's clock may be wrong, or else with `now`.
    """
    response = last_response(block)
    value = header(response, b"retry-after")
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        return float(value[:10])
    until, date = _moment(value), _moment(header(response, b"date"))
    return None if until is None else max(0.0, until - (now if date is None else date))


def _seconds(value: str | None) -> float:
    return float(value) if value and value.isascii() and value.isdigit() and len(value) <= 10 else 0.0


def _moment(value: str | None) -> float | None:
    if not value:
        return None
    try:
        if len(value) == _USUAL_LENGTH and value.endswith(" GMT"):
            return _usual_moment(value)
    except (ValueError, KeyError):
        pass  # it is in another format
    try:
        return parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _usual_moment(value: str) -> float:
    """Return a time in the format that nearly all servers send, parsed several times as fast as any other."""
    hours, minutes, seconds = int(value[17:19]), int(value[20:22]), int(value[23:25])
    if not (0 <= hours < 24 and 0 <= minutes < 60 and 0 <= seconds < 60):
        raise ValueError
    return _midnight(value[5:16]) + hours * 3_600 + minutes * 60 + seconds


@lru_cache(4_096)  # the responses of a run contain few different days
def _midnight(day: str) -> float:
    return datetime(int(day[7:11]), _MONTHS[day[3:6]], int(day[0:2]), tzinfo=UTC).timestamp()
