"""The way of a page that is not open to everybody: what lets us in goes to the origin of the page and nowhere else.

libcurl would send the headers of a request to whatever host a redirect leads to. So redirects are followed by hand,
each with what its target may see.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pycurl

from driftline.fetching.home import Home
from driftline.model import Document, Failure, FailureKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.access import MissingSecret
    from driftline.model import Link
    from driftline.settings import Settings

_MOVED = (301, 302, 303, 307, 308)
_SCHEMES = ("http", "https")


class Entry:
    """One page on its way, by a handle that is used for nothing else; MissingSecret if it lacks what it needs."""

    def __init__(self, curl: pycurl.Curl, link: Link, settings: Settings, ours: Sequence[bytes]) -> None:
        assert link.access is not None
        self._curl = curl
        self._home = Home(link.url)
        self._most = settings.max_redirects
        self._timeout = settings.total_timeout
        self._ours = ours
        self._lines = [_line(*header) for header in link.access.sent_headers(os.environ).items()]
        self._cookie = "; ".join("=".join(one) for one in link.access.sent_cookies(os.environ).items())
        self.proxy = link.access.proxy_or(settings.proxy, os.environ)
        self.url = link.url
        self.redirects = 0
        self.seconds = 0.0
        self.failure: Failure | None = None
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.PROXY, self.proxy or "")

    def begin(self, validators: Sequence[bytes]) -> None:
        """Ask for the page itself."""
        self._send([*validators, *self._lines], self._cookie)

    def goes_on(self) -> bool:
        """Whether the answer leads on, and the handle is aimed at where to."""
        curl = self._curl
        self.seconds += curl.getinfo(pycurl.TOTAL_TIME)
        target = curl.getinfo_raw(pycurl.REDIRECT_URL) if curl.getinfo(pycurl.RESPONSE_CODE) in _MOVED else None
        if not target:
            return False
        url = target.decode("latin-1")
        self.failure = self._why_not(url)
        if self.failure is not None:
            return False
        self.url = url
        self.redirects += 1
        curl.setopt(pycurl.URL, self.url)
        curl.setopt(pycurl.TIMEOUT_MS, max(1, int((self._timeout - self.seconds) * 1000)))
        home = self._home.has(self.url)
        self._send(self._lines if home else [], self._cookie if home else "")
        return True

    def _why_not(self, url: str) -> Failure | None:
        """Why a redirect to this address is not followed."""
        kind, sentence = FailureKind.REDIRECTS, ""
        if urlsplit(url).scheme not in _SCHEMES:
            sentence = "The page redirects to an address that is not on the web."
        elif self.redirects >= self._most:
            sentence = f"The page redirects too often: more than {self._most} times."
        elif self.seconds >= self._timeout:
            kind, sentence = FailureKind.TIMED_OUT, "The server took too long to answer, with its redirects."
        return Failure(kind=kind, sentence=sentence) if sentence else None

    def _send(self, lines: Sequence[bytes], cookie: str) -> None:
        given = {line.partition(b":")[0].lower() for line in lines}
        ours = [line for line in self._ours if line.partition(b":")[0].lower() not in given]
        self._curl.setopt(pycurl.HTTPHEADER, [*ours, *lines])
        if cookie:
            self._curl.setopt(pycurl.COOKIE, cookie)
        else:
            self._curl.unsetopt(pycurl.COOKIE)


def not_let_in(link: Link, error: MissingSecret, now: float) -> Document:
    """The document of a link that cannot be fetched, for what would let us in is not there."""
    failure = Failure(kind=FailureKind.ACCESS, sentence=str(error))
    return Document(link, 0, b"", b"", 0, link.url, 0, now, 0.0, failure)


def _line(name: str, value: str) -> bytes:
    """A header as libcurl is told of it: one without a value would be taken for one not to send."""
    return f"{name}: {value}".encode() if value else f"{name};".encode()
