"""Where redirects lead. None is followed here: what an answer leads to is a link like any other, for its own host.

So it waits for that host's permission, and all that is asked about a link is asked about it too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ada_url import join_url

from driftline.errors import FailureKind
from driftline.http.headers import header, last_response
from driftline.model import Document, Failure, Link, Way

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.settings import Settings

#: answers that lead elsewhere if they say where
MOVED = frozenset((300, 301, 302, 303, 307, 308))
_LONGEST = 8_192  # letters of an address, and bytes of the cookies that are taken along
_BEYOND_ASCII = re.compile("[\x80-\xff]")


def target_of(url: str, headers: bytes) -> str | None:
    """Where the answer of `url` leads, as browsers read it: empty if not on the web, None if nowhere."""
    location = header(last_response(headers), b"location")
    if not location:
        return None
    try:
        target = join_url(url, _BEYOND_ASCII.sub(lambda letter: f"%{ord(letter[0]):02X}", location))
    except ValueError:
        return ""
    return target if target.startswith(("http://", "https://")) and len(target) <= _LONGEST else ""


def why_not(link: Link, target: str, seconds: float, settings: Settings) -> Failure | None:
    """Why a redirect to this target is not followed, after so many seconds for the answer; None if it is."""
    redirects, before = (0, 0.0) if link.way is None else (link.way.redirects, link.way.seconds)
    kind, sentence = FailureKind.REDIRECTS, ""
    if not target:
        sentence = "The page redirects to an address that is not on the web."
    elif redirects >= settings.max_redirects:
        sentence = f"The page redirects too often: more than {settings.max_redirects} times."
    elif before + seconds >= settings.total_timeout:
        kind, sentence = FailureKind.TIMED_OUT, "The server took too long to answer, with its redirects."
    return Failure(kind=kind, sentence=sentence) if sentence else None


def onward(link: Link, target: str, headers: bytes, seconds: float, cookies: Sequence[bytes]) -> Link:
    """The link that goes on from another at the target of its redirect.

    Of what came on the way only the statuses and targets are kept, for many may have to wait at one host. It has no
    validators: they are those of the page itself. A password in the address of the page is for its origin alone.
    """
    start, redirects, before, known = link, 0, 0.0, b""
    if link.way is not None:
        start, redirects, before, known = link.way.start, link.way.redirects, link.way.seconds, link.way.headers
    answer = last_response(headers)
    location = header(answer, b"location") or ""
    told = answer.partition(b"\n")[0].strip() + b"\r\nLocation: " + location.encode("latin-1") + b"\r\n\r\n"
    kept = tuple(cookies) if sum(map(len, cookies)) <= _LONGEST else ()
    way = Way(start, redirects + 1, known + told, before + seconds, kept)
    return Link(link.page_id, _with_user(start.url, target), link.sequence, None, access=start.access, way=way)


def arrived(document: Document) -> Document:
    """What came of a link that redirects led to, as the document of the page that they began at."""
    way = document.link.way
    if way is not None:
        document.link = way.start
        document.headers = way.headers + document.headers
        document.seconds += way.seconds
    return document


def behind(link: Link, failure: Failure) -> Failure:
    """What failed at a link, told with where redirects had led if they had."""
    if link.way is None:
        return failure
    why = failure.sentence[:1].lower() + failure.sentence[1:]
    return Failure(kind=failure.kind, sentence=f"The page redirects to {link.url}: {why}")


def not_asked(link: Link, failure: Failure, now: float) -> Document:
    """The document of a link that is not asked for."""
    return Document(link, 0, b"", b"", 0, link.url, 0 if link.way is None else link.way.redirects, now, 0.0, failure)


def _with_user(start: str, target: str) -> str:
    """The target with the user that the address of the page names, if it is of the same origin and names none."""
    user, _, host = urlsplit(start).netloc.rpartition("@")
    origin = f"{urlsplit(start).scheme}://{host}/"
    return target.replace("://", f"://{user}@", 1) if user and target.startswith(origin) else target
