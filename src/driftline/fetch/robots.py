"""What a robots.txt allows, by RFC 9309."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from protego import Protego

from driftline.errors import FailureKind, UnreadableBody
from driftline.fetch.redirects import MOVED
from driftline.http.codings import decode_body
from driftline.http.headers import content_encodings
from driftline.model.page import Failure, Robots

if TYPE_CHECKING:
    from driftline.model.outcome import Document

VALID = 86_400.0  # seconds for which a response is valid at most
_RETRY_AFTER_ERROR = 600.0  # seconds until the next request after a server error
_RETRY_UNREACHABLE = 60.0  # the same if the host could not be reached: the local network may be to blame
_GIVE_UP_AFTER = 30 * 86_400.0  # seconds of errors after which the host counts as having no robots.txt
_LARGEST = 4 * 1024 * 1024  # bytes of a robots.txt once it is decoded
_LONGEST = 512 * 1024  # characters that are read
_MOST_WILDCARDS = 1_000  # rules with wildcards; the largest sites have a few hundred
_LONGEST_DELAY = 300.0  # seconds of a Crawl-delay: longer ones are cut
_TOO_MANY = 429
#: failures of the host as a whole, reported as they are
_UNREACHABLE = (
    FailureKind.DNS, FailureKind.NOT_ALLOWED, FailureKind.REFUSED, FailureKind.TIMED_OUT, FailureKind.TLS,
    FailureKind.CERTIFICATE, FailureKind.UNSAFE, FailureKind.ACCESS,
)  # fmt: skip
#: failures that do not concern the host itself if they are those of a redirect's target
_FORBIDDEN_TARGET = (FailureKind.NOT_ALLOWED, FailureKind.UNSAFE)


class Rules:
    """The rules of one origin for one user agent."""

    __slots__ = ("_name", "_rules", "robots")

    def __init__(self, robots: Robots, user_agent: str) -> None:
        self.robots = robots
        self._name = product(user_agent)
        self._rules = Protego.parse(_bounded(robots.text)) if robots.text else None

    def __repr__(self) -> str:
        return (
            f"<Rules for {self._name} until={self.robots.until:.0f} failure={self.robots.failure!r} delay={self.delay}>"
        )

    def refusal(self, url: str) -> Failure | None:
        """Return why this URL may not be fetched; None if it may."""
        if self.robots.failure is not None:
            return self.robots.failure
        if self._rules is None or self._rules.can_fetch(url, self._name):
            return None
        host = urlsplit(url).netloc.rpartition("@")[2]
        return Failure(
            kind=FailureKind.ROBOTS,
            sentence=f"The robots.txt of {host} asks not to fetch this page: on your own site, use --robots ignore.",
        )

    @property
    def delay(self) -> float:
        """Return the Crawl-delay in seconds; 0 if there is none."""
        delay = self._rules.crawl_delay(self._name) if self._rules is not None else None
        return min(max(0.0, delay or 0.0), _LONGEST_DELAY)


def product(user_agent: str) -> str:
    """Return the name of a crawler in robots.txt: the first word of its User-Agent, without a version."""
    return user_agent.strip().partition(" ")[0].partition("/")[0]


def robots_url(url: str) -> str:
    """Return the URL of the robots.txt for this URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/robots.txt"


def robots_text(document: Document) -> str | Failure:
    """Return the text of a response for robots.txt, or why it has none.

    Of a file that is too large, the part that was received is returned: that is more than is read of it.
    """
    failure = document.failure
    if failure is not None and not (failure.kind is FailureKind.TOO_LARGE and document.body):
        return failure
    try:
        body = decode_body(document.body, content_encodings(document.headers), _LARGEST, cut=True)
    except UnreadableBody as error:
        return Failure(kind=error.kind, sentence=str(error))
    return body.decode("utf-8", "replace").replace("\0", "")


def read_robots(document: Document, text: str | Failure, before: Robots | None) -> Robots:
    """Return what a response for robots.txt means, given its text or failure, and what was known `before`.

    A missing file allows everything, and so do redirects without an end or to an address that is not allowed. A server
    error or a host that cannot be reached allows nothing, unless an earlier file is known; after a month of that the
    host counts as having no robots.txt.
    """
    now, status = document.fetched_at, document.status
    if isinstance(text, str):
        return Robots(text=text[:_LONGEST].removeprefix("\ufeff"), until=now + VALID)
    kind = text.kind
    answered = kind is FailureKind.STATUS
    redirected = document.redirects > 0 or status in MOVED
    bad_redirect = kind is FailureKind.REDIRECTS or (kind in _FORBIDDEN_TARGET and redirected)
    if bad_redirect or (answered and status < 500 and status != _TOO_MANY):
        return _none(now)
    # the clock may have been set back since
    since = now if before is None or before.since is None else min(now, before.since)
    again = now + (_RETRY_AFTER_ERROR if answered else _RETRY_UNREACHABLE)
    if before is not None and before.failure is None:
        return Robots(text=before.text, until=again, since=since) if now - since < _GIVE_UP_AFTER else _none(now)
    if now - since >= _GIVE_UP_AFTER:
        return _none(now)
    return Robots(text=None, until=again, failure=_unknown(text), since=since)


def _bounded(text: str) -> str:
    """Return the text without wildcard rules past the first 1,000: each of them is a search for every page."""
    if text.count("*") <= _MOST_WILDCARDS:
        return text
    kept: list[str] = []
    wild = 0
    for line in text.splitlines():
        field, _, value = line.partition(":")
        wild += (searched := "*" in value and not field.strip().lower().startswith("user"))
        if not searched or wild <= _MOST_WILDCARDS:
            kept.append(line)
    return "\n".join(kept)


def _none(now: float) -> Robots:
    return Robots(text=None, until=now + VALID)


def _unknown(failure: Failure) -> Failure:
    """Return why pages of a host cannot be fetched whose robots.txt failed."""
    if failure.kind in _UNREACHABLE:
        return failure
    why = failure.sentence[:1].lower() + failure.sentence[1:].rstrip(".")
    return Failure(
        kind=FailureKind.ROBOTS,
        sentence=f"It is not known whether this page may be fetched, because its robots.txt cannot be read: {why}.",
    )
