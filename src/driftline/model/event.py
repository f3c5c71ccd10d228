"""Events, which are reported to users: changes, pages that fail or recover, dangers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from driftline.urls import host_of

if TYPE_CHECKING:
    from datetime import datetime

    from driftline.model.change import Edit
    from driftline.model.page import WarningKind


class Turn(StrEnum):
    """Whether a page started failing, by several failed checks in a row, or recovered."""

    FAILING = "failing"
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """A page that started failing or recovered, and the check that showed it, which `id` names.

    `kind` is that of its failure, and empty if it recovered.
    """

    id: str
    url: str
    at: datetime
    turn: Turn
    kind: str
    reason: str

    @property
    def host(self) -> str:
        """The host of the page."""
        return host_of(self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class Danger:
    """What looks dangerous on a page for the first time, with the check that found it, which `id` names."""

    id: str
    url: str
    at: datetime
    kind: WarningKind
    reason: str

    @property
    def host(self) -> str:
        """The host of the page."""
        return host_of(self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """A page that an event is about, as it was when the event was published.

    `check` names the check that found it (page id and number, as in `change_id`); the versions are those of a change.
    """

    id: int
    url: str
    title: str
    tags: tuple[str, ...]
    check: str
    from_version: int | None = None
    to_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something worth reporting: a change, pages that fail or recovered, a warning, or new, gone and moved pages.

    One cause makes one event: the same edit on many pages of a host, a host that is down with all of its pages.
    `event` says what happened and `at` when the last of its pages was checked. `id` is its number in the event log, and
    0 until it is published. `ids` name the checks that found it, one for each of the `urls`. `to` has the new addresses
    of pages that moved, and `edits` what changed. `source` is the command that found it, `run` or `check`.
    """

    id: int = 0
    event: str
    at: datetime
    host: str
    urls: tuple[str, ...]
    kind: str
    score: float
    headline: str
    reason: str
    ids: tuple[str, ...]
    to: tuple[str, ...] = ()
    pages: tuple[EventPage, ...] = ()
    edits: tuple[Edit, ...] = ()
    source: str = ""
