"""Events, which are reported to users: changes, pages that fail or recover, dangers; and how they are worded."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING

from driftline.errors import FailureKind
from driftline.model.change import Importance, NoiseKind
from driftline.plurals import count
from driftline.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from driftline.model.change import ChangeKind, Edit
    from driftline.model.page import Failure, WarningKind


class Turn(StrEnum):
    """Whether a page started failing, by several failed checks in a row, or recovered."""

    FAILING = "failing"
    RECOVERED = "recovered"


class EventKind(StrEnum):
    """What happened: to pages that are checked or, for `NEW`, `GONE` and `MOVED`, to a site that is crawled again."""

    CHANGED = "changed"
    FAILING = "failing"
    RECOVERED = "recovered"
    WARNING = "warning"
    IGNORING = "ignoring"
    NEW = "new"
    GONE = "gone"
    MOVED = "moved"


class EventSource(StrEnum):
    """The command that found an event. What the library finds counts as found by the command of the same name."""

    RUN = "run"
    CHECK = "check"
    CRAWL = "crawl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """A page that started failing or recovered, and the check that showed it, which `id` names.

    `kind` is that of its failure, None if it recovered. `status` is the HTTP status that is the failure, if one is.
    """

    id: str
    url: str
    at: datetime
    turn: Turn
    kind: FailureKind | None
    status: int | None = None
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
class Ignored:
    """Parts of a page that are ignored since the check that `id` names, because of what earlier checks taught.

    `label` names the first of them, with an `example` of what it did; `others` is how many more there are.
    """

    id: str
    url: str
    at: datetime
    label: str
    example: str
    others: int
    kind: NoiseKind

    @property
    def host(self) -> str:
        """The host of the page."""
        return host_of(self.url)

    @property
    def headline(self) -> str:
        """What is ignored and why, in one line."""
        return _ignoring(self, self.example)

    @property
    def reason(self) -> str:
        """The same, with the command that has it reported again."""
        return f"{self.headline}. To have it reported again: driftline feedback {self.id} --important"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """A page that an event is about, as it was when the event was published.

    `check` names the check that found it (page id and number, as in `change_id`), and is None for what a crawl found;
    the versions are those of a change.
    """

    id: int
    url: str
    title: str
    tags: tuple[str, ...]
    check: str | None
    from_version: int | None = None
    to_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something worth reporting: a change, pages that fail or recovered, a warning, what is ignored, or a site's pages.

    One cause makes one event: the same edit on many pages of a host, a host that is down with all of its pages.
    `event` says what happened and `at` when the last of its pages was checked. `id` is its number in the event log, and
    0 until it is published. `kind` is that of the change, the failure or the warning, or of the noise that is ignored,
    None for other events. `ids` name the checks that found it, one for each of the `urls`, and none for what a crawl
    found. `to` has the new addresses of pages that moved, and `edits` what changed. `importance` is that of the change;
    other events are important. `pages` are those of the `urls` and `to` that are watched. `source` is the command that
    found it, None until it is published.
    """

    id: int = 0
    event: EventKind
    at: datetime
    host: str
    urls: tuple[str, ...]
    kind: ChangeKind | FailureKind | WarningKind | NoiseKind | None
    score: float
    headline: str
    reason: str
    ids: tuple[str, ...]
    to: tuple[str, ...] = ()
    pages: tuple[EventPage, ...] = ()
    edits: tuple[Edit, ...] = ()
    importance: Importance = Importance.IMPORTANT
    source: EventSource | None = None


_NAMED = 3  # addresses that a sentence names
_OR_ACCEPT = " If it is the page from now on, 'driftline check URL --accept' takes it so."

#: what failures of a kind have in common, whatever else the sentence of each says
_FAILURES = {
    FailureKind.DNS: "The name of the host could not be resolved.",
    FailureKind.NOT_ALLOWED: "The address of the host is not allowed.",
    FailureKind.ACCESS: "The credentials of the pages could not be used.",
    FailureKind.REFUSED: "The host refused the connection or could not be reached.",
    FailureKind.TIMED_OUT: "The server took too long to answer.",
    FailureKind.TLS: "The secure connection could not be trusted or set up.",
    FailureKind.CERTIFICATE: "The certificate of the server is not trusted.",
    FailureKind.CONNECTION: "The connection broke before the pages were complete.",
    FailureKind.TOO_LARGE: "The answers are larger than the limit.",
    FailureKind.REDIRECTS: "The redirects of the pages could not be followed.",
    FailureKind.STATUS: "The server answered with an error.",
    FailureKind.PROTOCOL: "The answers are not HTTP as they should be.",
    FailureKind.BODY: "The bodies are broken or ended too early.",
    FailureKind.SELECTION: "The filters of the pages leave nothing, or cannot be applied.",
    FailureKind.UNSAFE: "The pages are blocked as unsafe.",
    FailureKind.HOSTILE: "The pages could not be read within the limits of time and memory.",
    FailureKind.BROWSER: "The pages could not be rendered.",
    FailureKind.ROBOTS: "The robots.txt of the host forbids it, or could not be read.",
    FailureKind.BROKEN: f"Error pages or broken ones came instead of the pages.{_OR_ACCEPT}",
    FailureKind.INTERNAL: "Driftline could not handle the pages.",
}


#: why one part of a page is ignored, and why several are
_IGNORED = {
    NoiseKind.EVERY_CHECK: ("it differs at every check", "they differ at every check"),
    NoiseKind.COMES_AND_GOES: ("it comes and goes", "they come and go"),
    NoiseKind.OTHER_PAGES: ("it differs on other pages too", "they differ on other pages too"),
}


def failing_reason(failure: Failure, failures: int, *, is_first: bool = False) -> str:
    """Return why a page counts as failing, after so many failed checks in a row of which this is the last."""
    times = "Its first check" if is_first else "1 check" if failures == 1 else f"{failures:,} checks in a row"
    return f"{times} failed. {failure.sentence}{_OR_ACCEPT if failure.kind is FailureKind.BROKEN else ''}"


def recovered_reason(failures: int) -> str:
    """Return that a page could be read again after so many failed checks."""
    return f"The page could be read again, after {count(failures, 'check')} that failed."


def turn_reason(same: Sequence[Turned]) -> str:
    """Return why pages that turned together did so, in words that are true for each of them."""
    first = same[0]
    if all(one.reason == first.reason for one in same):
        return first.reason
    if first.turn is Turn.RECOVERED or first.kind is None:
        return "The pages could be read again, after checks that failed."
    why = _FAILURES[first.kind] if first.status is None else f"The server answered {_named_status(first.status)}."
    return f"Several checks failed. {why}"


def ignored_headline(same: Sequence[Ignored]) -> str:
    """Return what is ignored on these pages, which have the same part; an example is given for one page only."""
    return same[0].headline if len(same) == 1 else _ignoring(same[0], "")


def ignored_reason(same: Sequence[Ignored]) -> str:
    """Return the same, with the command that has it reported again on one of these pages."""
    if len(same) == 1:
        return same[0].reason
    return f"{ignored_headline(same)}. To have it reported again on a page: driftline feedback {same[0].id} --important"


def _ignoring(one: Ignored, example: str) -> str:
    if one.others:
        others = "1 other part" if one.others == 1 else f"{one.others:,} other parts"
        return f"Now ignoring '{one.label}' and {others}: {_IGNORED[one.kind][1]}"
    shown = f" ({example})" if example else ""
    return f"Now ignoring '{one.label}'{shown}: {_IGNORED[one.kind][0]}"


def site_headline(event: EventKind, named: Sequence[str]) -> str:
    """Return what a crawl found of these pages of a site, as they are to be named: the first of them."""
    if len(named) == 1 and event is EventKind.NEW:
        return "It is new on the site."
    if len(named) == 1 and event is EventKind.GONE:
        return "It is not on the site any more."
    more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
    return f"{event.capitalize()}: {', '.join(named[:_NAMED])}{more}."


def _named_status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
