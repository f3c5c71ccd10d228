"""Targets, limits and cookies of redirects. libcurl follows none: `PoliteLinks` makes each target a link of its own.

So a target waits for a permit of its host, and is subject to robots.txt, blocklists and the address guard.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ada_url import join_url

from driftline.errors import BadURL, FailureKind
from driftline.http.credentials import CredentialScope
from driftline.http.headers import header, last_response, redirect_targets
from driftline.model.outcome import Document, Link, Way
from driftline.model.page import REQUEST_FILTERS, Failure
from driftline.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.settings import Settings

#: statuses of redirects, if the answer has a Location
MOVED = frozenset((300, 301, 302, 303, 307, 308))
_SAME_REQUEST = (307, 308)
_LONGEST = 8_192  # characters of a URL, and bytes of the cookies that are sent to the target
_BEYOND_ASCII = re.compile("[\x80-\xff]")


def target_of(url: str, headers: bytes) -> str | None:
    """Return the target of a redirect of `url`, as browsers read it; None if the answer has no Location.

    Raises BadURL if the target is not an address on the web, or too long for one.
    """
    location = header(last_response(headers), b"location")
    if not location:
        return None
    try:
        target = join_url(url, _BEYOND_ASCII.sub(lambda letter: f"%{ord(letter[0]):02X}", location))
    except ValueError:
        raise BadURL(f"{url} redirects to what is no URL.") from None
    if not target.startswith(("http://", "https://")) or len(target) > _LONGEST:
        raise BadURL(f"{url} redirects to what is not the URL of a web page.")
    return target


NOT_ON_THE_WEB = Failure(
    kind=FailureKind.REDIRECTS, sentence="The page redirects to an address that is not on the web."
)


def redirect_refusal(link: Link, seconds: float, settings: Settings) -> Failure | None:
    """Return why no more redirects of this page are followed, given the seconds so far; None if they are."""
    redirects, before = (0, 0.0) if link.way is None else (link.way.redirects, link.way.seconds)
    if redirects >= settings.max_redirects:
        sentence = f"The page redirects too often: more than {settings.max_redirects} times."
        return Failure(kind=FailureKind.REDIRECTS, sentence=sentence)
    if before + seconds >= settings.total_timeout:
        sentence = "The server took too long to answer, with its redirects."
        return Failure(kind=FailureKind.TIMED_OUT, sentence=sentence)
    return None


def link_to_target(
    link: Link, target: str, status: int, headers: bytes, seconds: float, cookies: Sequence[bytes]
) -> Link:  # fmt: skip
    """Return the link to the target of a redirect.

    Of the responses so far only statuses and targets are kept, because many links may wait at one host. The link has no
    validators: they belong to the page itself. A password in the URL of the page, and the data of a request, are sent
    to its own origin only; by most statuses the target is requested by GET.
    """
    start, redirects, before, known = link, 0, 0.0, b""
    if link.way is not None:
        start, redirects, before, known = link.way.start, link.way.redirects, link.way.seconds, link.way.headers
    answer = last_response(headers)
    location = header(answer, b"location") or ""
    line = answer.partition(b"\n")[0].strip() + b"\r\nLocation: " + location.encode("latin-1") + b"\r\n\r\n"
    kept = tuple(cookies) if sum(map(len, cookies)) <= _LONGEST else ()
    way = Way(start, redirects + 1, known + line, before + seconds, kept)
    filters = link.filters  # what an earlier redirect left of them
    if filters and (status not in _SAME_REQUEST or not CredentialScope(start.url).covers(target)):
        filters = [one for one in filters if one[0] not in REQUEST_FILTERS]
    url = _with_user(start.url, target)
    return Link(link.page_id, url, link.sequence, None, filters, access=start.access, way=way)


def document_of_page(document: Document) -> Document:
    """Return the document of a redirect's target as that of the page that redirected; other documents unchanged."""
    way = document.link.way
    if way is None:
        return document
    headers, seconds = way.headers + document.headers, way.seconds + document.seconds
    return replace(document, link=way.start, headers=headers, seconds=seconds)


def failure_at_target(link: Link, failure: Failure) -> Failure:
    """Return the failure with the URL of the target if this link is one; otherwise the failure unchanged."""
    if link.way is None:
        return failure
    why = failure.sentence[:1].lower() + failure.sentence[1:]
    return Failure(kind=failure.kind, sentence=f"The page redirects to {link.url}: {why}")


def answering_host(document: Document) -> str:
    """Return the host of the final response, which a Retry-After is about."""
    return host_of(document.final_url if document.redirects else document.link.url)


def browser_redirect_hosts(document: Document) -> set[str]:
    """Return the hosts that a browser contacted when it followed the redirects of this document."""
    targets = [target for target in redirect_targets(document.headers) if "://" in target[:8]]
    return {host_of(target) for target in (*targets, document.final_url)}


def unfetched_document(link: Link, failure: Failure, now: float) -> Document:
    """Return the document of a link that is not fetched, with the reason."""
    return Document(link, 0, b"", b"", 0, link.url, 0 if link.way is None else link.way.redirects, now, 0.0, failure)


def _with_user(start: str, target: str) -> str:
    """Return the target with the user and password of the page's URL if it has the same origin and names none."""
    user, _, host = urlsplit(start).netloc.rpartition("@")
    origin = f"{urlsplit(start).scheme}://{host}/"
    return target.replace("://", f"://{user}@", 1) if user and target.startswith(origin) else target
