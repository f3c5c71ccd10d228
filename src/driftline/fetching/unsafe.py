"""No request to a page that is blocked, neither at first nor where a redirect leads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from driftline.fetching.redirects import not_asked
from driftline.model import Document, Failure, FailureKind, without_password

if TYPE_CHECKING:
    from driftline.model import Link


class Blocked(Protocol):
    """Who knows which pages are not to be fetched."""

    @property
    def any(self) -> bool:
        """Whether anything is blocked at all."""

    @property
    def single(self) -> bool:
        """Whether single addresses are blocked, and not whole hosts alone."""

    def why(self, url: str) -> str | None:
        """Why a page is not to be fetched, in a sentence; None if it may be."""


class _Nothing:
    """Where nothing is blocked."""

    any = single = False

    def why(self, _url: str) -> None:
        return None


NOTHING: Blocked = _Nothing()


def unsafe_failure(reason: str, target: str | None = None) -> Failure:
    """What it means that a page is blocked, or that it redirects to one that is."""
    sentence = f"The page is blocked: {reason}"
    if target is not None:
        sentence = f"The page redirects to {without_password(target)}, which is blocked: {reason}"
    return Failure(kind=FailureKind.UNSAFE, sentence=sentence)


def turned_away(link: Link, reason: str, now: float) -> Document:
    """The document of a link that is not asked for, for it is blocked."""
    return not_asked(link, unsafe_failure(reason, None if link.way is None else link.url), now)
