"""What a host's robots.txt allows, as RFC 9309 says."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from protego import Protego

from driftline.errors import FailureKind
from driftline.fetch.redirects import MOVED
from driftline.model import Failure, Robots

if TYPE_CHECKING:
    from driftline.model import Document

BELIEVED = 86_400.0  # seconds for which an answer holds at most
_AGAIN = 600.0  # seconds before a server is asked again that failed
_SOON = 60.0  # seconds before a host is asked again that could not be reached: the network here may be to blame
_GIVEN_UP = 30 * 86_400.0  # seconds without an answer after which there is none
_LONGEST = 512 * 1024  # letters: what follows is not read
_MOST_WILDCARDS = 1_000  # rules with them: the largest sites have some hundred
_LONGEST_DELAY = 300.0  # seconds between two requests, whatever a host would like
_TOO_MANY = 429
#: what keeps us from a host as a whole, and is told as such
_OUT_OF_REACH = (
    FailureKind.DNS, FailureKind.NOT_ALLOWED, FailureKind.REFUSED, FailureKind.TIMED_OUT, FailureKind.TLS,
    FailureKind.CERTIFICATE, FailureKind.UNSAFE, FailureKind.ACCESS,
)  # fmt: skip
#: what says nothing of a host if its redirects lead there
_OFF_LIMITS = (FailureKind.NOT_ALLOWED, FailureKind.UNSAFE)


class Rules:
    """The rules of one host, for one name of a crawler."""

    __slots__ = ("_name", "_rules", "robots")

    def __init__(self, robots: Robots, user_agent: str) -> None:
        self.robots = robots
        self._name = product(user_agent)
        self._rules = Protego.parse(_bounded(robots.text)) if robots.text else None

    def refusal(self, url: str) -> Failure | None:
        """Why this address may not be fetched; None if it may."""
        if self.robots.failure is not None:
            return self.robots.failure
        if self._rules is None or self._rules.can_fetch(url, self._name):
            return None
        host = urlsplit(url).netloc.rpartition("@")[2]
        return Failure(
            kind=FailureKind.ROBOTS,
            sentence=f"The robots.txt of {host} asks not to fetch this page; for a site of your own, --robots ignore.",
        )

    @property
    def delay(self) -> float:
        """The seconds between two requests that the host asks for; none if it says nothing."""
        asked = self._rules.crawl_delay(self._name) if self._rules is not None else None
        return min(max(0.0, asked or 0.0), _LONGEST_DELAY)


def product(user_agent: str) -> str:
    """The name that robots.txt knows a crawler by: the first word of its User-Agent, without a version."""
    return user_agent.strip().partition(" ")[0].partition("/")[0]


def robots_url(url: str) -> str:
    """Where the robots.txt of this address is."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/robots.txt"


def read_robots(document: Document, text: str, before: Robots | None) -> Robots:
    """What the answer to a request for robots.txt means, whose body says `text`, after what was known before.

    No such file allows everything, and so do redirects that lead to none, or where nobody may go. A server that fails
    or cannot be reached allows nothing, except by an answer that is still known; after a month of that it counts as
    having none.
    """
    now, status = document.fetched_at, document.status
    if document.failure is None:
        return Robots(text=text[:_LONGEST].removeprefix("\ufeff"), until=now + BELIEVED)
    kind = document.failure.kind
    answered = kind is FailureKind.STATUS
    astray = kind is FailureKind.REDIRECTS or (kind in _OFF_LIMITS and (document.redirects > 0 or status in MOVED))
    if astray or (answered and status < 500 and status != _TOO_MANY):
        return _none(now)
    # a clock may have been set back since
    since = now if before is None or before.since is None else min(now, before.since)
    again = now + (_AGAIN if answered else _SOON)
    if before is not None and before.failure is None:
        return Robots(text=before.text, until=again, since=since) if now - since < _GIVEN_UP else _none(now)
    if now - since >= _GIVEN_UP:
        return _none(now)
    return Robots(text=None, until=again, failure=_unknown(document), since=since)


def _bounded(text: str) -> str:
    """The text without rules with wildcards past the first so many: each of them costs every page a search."""
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
    return Robots(text=None, until=now + BELIEVED)


def _unknown(document: Document) -> Failure:
    """A host that is not there is told as such; one that fails at its robots.txt alone needs to be told apart."""
    failure = document.failure
    assert failure is not None
    if failure.kind in _OUT_OF_REACH:
        return failure
    why = failure.sentence[:1].lower() + failure.sentence[1:].rstrip(".")
    return Failure(
        kind=FailureKind.ROBOTS,
        sentence=f"Whether this page may be fetched is not known: asked for its robots.txt, {why}.",
    )
