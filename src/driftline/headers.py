"""The header lines of a response, read only when somebody asks."""

from __future__ import annotations


def last_response(lines: list[bytes]) -> list[bytes]:
    """The lines that belong to the last response, after those of redirects and of 1xx answers."""
    for index in range(len(lines) - 1, -1, -1):
        if lines[index].startswith(b"HTTP/"):
            return lines[index:]
    return lines


def header(lines: list[bytes], name: bytes) -> str | None:
    """The last value of a header; `name` is in lower case and ends with a colon."""
    length = len(name)
    for line in reversed(lines):
        if line[:length].lower() == name:
            return line[length:].strip().decode("latin-1")
    return None


def content_encodings(lines: list[bytes]) -> list[str]:
    """The codings in the order in which they were applied, 'identity' left out."""
    value = header(lines, b"content-encoding:")
    if not value:
        return []
    return [coding for part in value.split(",") if (coding := part.strip().lower()) not in ("", "identity")]


def redirect_targets(lines: list[bytes]) -> list[str]:
    """Where each redirect on the way pointed, in order."""
    return [line[9:].strip().decode("latin-1") for line in lines if line[:9].lower() == b"location:"]
