"""No request to a page that is blocked, neither at first nor where a redirect leads.

libcurl follows redirects by itself. It hands over the header lines of an answer before that, so the target of a
redirect is judged when its line comes, and the transfer ends there if it is blocked. Where nothing is blocked, nobody
looks at the lines.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from ada_url import join_url, normalize_url

from driftline.model import Document, Failure, FailureKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from driftline.model import Link

_LOCATION = b"location:"
_AUTHORITY = re.compile(r"https?:[/\\]*([^/?#]*)", re.IGNORECASE)


class Blocked(Protocol):
    """Who knows which pages are not to be fetched."""

    @property
    def any(self) -> bool:
        """Whether anything is blocked at all."""

    def why(self, url: str) -> str | None:
        """Why a page is not to be fetched, in a sentence; None if it may be."""


class _Nothing:
    """Where nothing is blocked."""

    any = False

    def why(self, _url: str) -> None:
        return None


NOTHING: Blocked = _Nothing()


class Way:
    """Takes the header lines of a transfer, and ends it where a redirect leads to a page that is blocked.

    `refused` is that page's address and why it is blocked.
    """

    __slots__ = ("_blocked", "_lines", "_url", "refused")

    def __init__(self, lines: list[bytes], blocked: Blocked) -> None:
        self._lines = lines
        self._blocked = blocked
        self._url = ""
        self.refused: tuple[str, str] | None = None

    def begin(self, url: str) -> None:
        """A transfer of this page begins."""
        self._url = url
        self.refused = None

    def take(self, line: bytes) -> int | None:
        """Keep a header line; -1 tells libcurl to go no further."""
        self._lines.append(line)
        if line[:9].lower() == _LOCATION and _redirects(self._lines):
            targets = list(_targets(self._url, line[9:].strip().decode("latin-1")))
            for target in targets:
                reason = self._blocked.why(target)
                if reason is not None:
                    self.refused = target, reason
                    return -1
            if targets:
                self._url = targets[0]
        return None


def why_not(blocked: Blocked, final_url: str) -> tuple[str, str] | None:
    """The address that redirects did lead to, as libcurl has it, and why it is blocked; None if it is not.

    To be asked in the end as well: nothing is kept of a page that is blocked, should libcurl have read the address of
    a redirect in another way than we did.
    """
    try:
        url = normalize_url(final_url)
    except ValueError:
        return None
    reason = blocked.why(url)
    return None if reason is None else (url, reason)


def unsafe_failure(reason: str, target: str | None = None) -> Failure:
    """What it means that a page is blocked, or that it redirects to one that is."""
    sentence = f"The page is blocked: {reason}"
    if target is not None:
        sentence = f"The page redirects to {target}, which is blocked: {reason}"
    return Failure(kind=FailureKind.UNSAFE, sentence=sentence)


def turned_away(link: Link, reason: str, now: float) -> Document:
    """The document of a link that is not asked for."""
    return Document(link, 0, b"", b"", 0, link.url, 0, now, 0.0, unsafe_failure(reason))


def _redirects(lines: list[bytes]) -> bool:
    """Whether the answer that the last of these lines belongs to is a redirect."""
    status = next((line for line in reversed(lines) if line.startswith(b"HTTP/")), b"")
    return status.partition(b" ")[2][:1] == b"3"


def _targets(url: str, location: str) -> Iterator[str]:
    """Where a redirect leads: as browsers read it, and as libcurl may, which takes a backslash for a part of a name."""
    with suppress(ValueError):
        yield join_url(url, location)
    authority = _AUTHORITY.match(location) if "\\" in location or "@" in location else None
    if authority is not None:
        with suppress(ValueError):
            yield normalize_url(f"http://{authority[1].rpartition('@')[2]}/")
