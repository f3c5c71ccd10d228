"""The way into a page that is not open to everybody: what lets us in goes to its origin and nowhere else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pycurl

from driftline.fetching.redirects import not_asked
from driftline.home import Home
from driftline.model import Document, Failure, FailureKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.access import MissingSecret
    from driftline.model import Link
    from driftline.settings import Settings


def show(curl: pycurl.Curl, link: Link, settings: Settings, ours: Sequence[bytes]) -> str | None:
    """Have the handle send what the server of the page wants to see, beside `ours`, unless redirects led elsewhere.

    The proxy that is used, if any; MissingSecret if something is not there. The handle is for this link alone.
    """
    access = link.access
    assert access is not None
    home = link.way is None or Home(link.way.start.url).has(link.url)
    headers = access.sent_headers(os.environ) if home else {}
    cookies = access.sent_cookies(os.environ) if home else {}
    proxy = access.proxy_or(settings.proxy, os.environ)
    given = {name.lower().encode() for name in headers}
    rest = [line for line in ours if line.partition(b":")[0].lower() not in given]
    curl.setopt(pycurl.HTTPHEADER, [*rest, *[_line(*header) for header in headers.items()]])
    if cookies:
        curl.setopt(pycurl.COOKIE, "; ".join("=".join(one) for one in cookies.items()))
    curl.setopt(pycurl.PROXY, proxy or "")
    return proxy


def not_let_in(link: Link, error: MissingSecret, now: float) -> Document:
    """The document of a link that cannot be fetched, for what would let us in is not there."""
    return not_asked(link, Failure(kind=FailureKind.ACCESS, sentence=str(error)), now)


def _line(name: str, value: str) -> bytes:
    """A header as libcurl is told of it: one without a value would be taken for one not to send."""
    return f"{name}: {value}".encode() if value else f"{name};".encode()
