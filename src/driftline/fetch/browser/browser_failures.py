"""Why a page could not be rendered, by the messages of Chromium and the failures of its proxy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from driftline.errors import FailureKind
from driftline.fetch.browser.capture import Captured
from driftline.model import Failure

if TYPE_CHECKING:
    from driftline.fetch.browser.proxy import Gateway
    from driftline.model import Link

TOO_LONG = Failure(kind=FailureKind.TIMED_OUT, sentence="The page was not done in time in the browser.")
CRASHED = Failure(kind=FailureKind.HOSTILE, sentence="The page took too much memory or crashed in the browser.")
TOO_MUCH = Failure(kind=FailureKind.TOO_LARGE, sentence="The page and what it loads are larger than the limit.")
_UNTRUSTED = Failure(kind=FailureKind.TLS, sentence="The secure connection could not be trusted or set up.")
_ASTRAY = Failure(
    kind=FailureKind.REDIRECTS, sentence="The page redirects too often or to an address that is not on the web."
)
_PORT = Failure(
    kind=FailureKind.NOT_ALLOWED,
    sentence="The browser refuses to connect to this port: watch the page without --render.",
)
_SAVED = Failure(
    kind=FailureKind.BODY, sentence="The browser would download this instead of showing it: watch it without --render."
)
_UNREADABLE = Failure(
    kind=FailureKind.BODY, sentence="The page changed or left while the browser read it, and could not be captured."
)
_BROKE = Failure(kind=FailureKind.CONNECTION, sentence="The connection broke before the page was complete.")
#: parts of messages of Chromium or playwright, and what they mean
_MEANINGS = (
    ("crashed", CRASHED),
    ("ERR_CERT", _UNTRUSTED),
    ("ERR_SSL", _UNTRUSTED),
    ("ERR_TOO_MANY_REDIRECTS", _ASTRAY),
    ("ERR_UNSAFE_REDIRECT", _ASTRAY),
    ("ERR_UNSAFE_PORT", _PORT),
    ("Download is starting", _SAVED),
    ("ERR_ABORTED", _SAVED),
    ("net::ERR", _BROKE),
    ("Timeout", TOO_LONG),
)
_NO_TUNNEL = "ERR_TUNNEL_CONNECTION_FAILED"


def failed(message: str, gateway: Gateway, link: Link) -> Captured:
    """Return the result for a page that could not be loaded, with the reason for this message of playwright."""
    trouble = gateway.trouble(link.url, redirected=False)
    if trouble is None and _NO_TUNNEL in message:
        trouble = gateway.latest  # the message does not contain the target of a redirect
    if trouble is not None:
        return Captured(failure=trouble)
    if gateway.full:
        return Captured(failure=TOO_MUCH)
    return Captured(failure=next((failure for name, failure in _MEANINGS if name in message), _UNREADABLE))


def explained(captured: Captured, gateway: Gateway, link: Link) -> Captured:
    """Return the same, with the failure of the gateway if it refused the request: Chromium saw only a status."""
    url = captured.final_url or link.url
    trouble = gateway.trouble(url, redirected=url != link.url)
    return captured if trouble is None else replace(captured, status=0, failure=trouble)
