"""The plain schedule: every page at its own interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from driftline.model import Page


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """The pages to check now, and when the next of the others is due; None if there are no others."""

    pages: list[Page]
    next_at: float | None


def due(pages: Iterable[Page], *, now: float, default: float) -> Due:
    """Which pages are due: those never checked, and those last checked at least their interval ago.

    A page without an interval of its own has the default one, in seconds.
    """
    ready: list[Page] = []
    next_at: float | None = None
    for page in pages:
        at = now if page.checked_at is None else page.checked_at + (page.every or default)
        if at <= now:
            ready.append(page)
        elif next_at is None or at < next_at:
            next_at = at
    return Due(pages=ready, next_at=next_at)
