"""Pages: filters, how they are fetched, state, failures and warnings; robots.txt of hosts; addresses of a crawl."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from driftline.errors import FailureKind
from driftline.urls import without_password

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from driftline.model.outcome import Verdict

Policy = Literal["value", "intelligent", "fixed", "uniform"]

POLICIES: tuple[Policy, ...] = get_args(Policy)


class Lane(StrEnum):
    """What decides when a page is checked.

    `DEADLINE` is for a page with an interval, `NEW` for one never checked, `WAITING` for one that failed, `RETRY_AFTER`
    for one that could be checked earlier if its host had not sent Retry-After, `GONE`, or `UNSAFE` for one that is
    blocked. The others are checked by the `VALUE` of a check, their `AGE` since the last one, or their `RANK` in the
    paper's order, and those that its filter drops as a `PROBE`.
    """

    DEADLINE = "deadline"
    NEW = "new"
    VALUE = "value"
    AGE = "age"
    RANK = "rank"
    PROBE = "probe"
    WAITING = "waiting"
    RETRY_AFTER = "retry-after"
    GONE = "gone"
    UNSAFE = "unsafe"


class PageState(StrEnum):
    """How a page stands: what its last check found, that there was none yet, or that it keeps failing."""

    UNCHECKED = "unchecked"
    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    FAILING = "failing"


class WarningKind(StrEnum):
    """What looks dangerous on a page."""

    MIXED_CONTENT = "mixed-content"
    HIDDEN_FRAME = "hidden-frame"
    OBFUSCATED_SCRIPT = "obfuscated-script"
    CERTIFICATE = "certificate"
    LOOK_ALIKE = "look-alike"


class PageWarning(NamedTuple):
    """What looks dangerous on a page, with one plain sentence for people."""

    kind: WarningKind
    sentence: str


class BlockedPage(NamedTuple):
    """A page that is not fetched while it is blocked, and why."""

    url: str
    reason: str


class Safety(NamedTuple):
    """Why a page is blocked, None if it is not, and what looks dangerous on it."""

    blocked: str | None
    warnings: tuple[PageWarning, ...]

    @property
    def sentence(self) -> str:
        """All of it in words."""
        return " ".join([*([self.blocked] if self.blocked else []), *(sentence for _, sentence in self.warnings)])


class AddressKind(StrEnum):
    """What an address that a crawl fetches is expected to be.

    A `PROBE` is the address of no page, to see what a host answers for pages that do not exist.
    """

    PAGE = "page"
    ROBOTS = "robots"
    SITEMAP = "sitemap"
    FEED = "feed"
    PROBE = "probe"


class AddressSource(StrEnum):
    """How an address was found; `GUESS` is a sitemap that nothing names, `KNOWN` a page of an earlier round."""

    SEED = "seed"
    LINK = "link"
    CANONICAL = "canonical"
    REDIRECT = "redirect"
    SITEMAP = "sitemap"
    FEED = "feed"
    ROBOTS = "robots"
    PROBE = "probe"
    GUESS = "guess"
    KNOWN = "known"


class AddressState(StrEnum):
    """What became of an address: `WAITING` until it is fetched.

    An `ERROR_PAGE` has a status of success and says that there is no such page. What is `ABSENT` was only guessed.
    """

    WAITING = "waiting"
    PAGE = "page"
    LIST = "list"
    REDIRECT = "redirect"
    FAILED = "failed"
    ERROR_PAGE = "error-page"
    SKIPPED = "skipped"
    ABSENT = "absent"
    PROBE = "probe"


class PageNote(StrEnum):
    """What is special about a page: it has the same text as another, nearly the same, or was not fetched this time.

    The latter because the sitemap gives it the same date (`lastmod`) as before.
    """

    SAME = "same"
    NEAR = "near"
    LASTMOD = "lastmod"


class SkipReason(StrEnum):
    """Why a crawl does not follow an address. Stored and compared as it is; `crawl.report` puts it into words."""

    OUT_OF_SCOPE = "out-of-scope"
    TOO_DEEP = "too-deep"
    ROBOTS = "robots"
    NO_FOLLOW = "nofollow"
    NO_INDEX = "noindex"
    NOT_A_PAGE = "not-a-page"
    UNSAFE = "unsafe"
    QUEUE_FULL = "queue-full"
    TOO_MANY_SITEMAPS = "too-many-sitemaps"
    TRAP_LONG = "trap-long"
    TRAP_DEEP = "trap-deep"
    TRAP_REPEATING = "trap-repeating"
    TRAP_CALENDAR = "trap-calendar"
    TRAP_PARAMETERS = "trap-parameters"
    TRAP_ALIKE = "trap-alike"


class FilterKind(StrEnum):
    """What a filter does."""

    SELECT = "select"
    DROP = "drop"
    IGNORE = "ignore"
    KEEP = "keep"
    EXTRACT = "extract"
    REPLACE = "replace"
    LINES = "lines"
    TRIGGER = "trigger"
    TRIGGER_REMOVED = "trigger-removed"
    QUIET_WHILE = "quiet-while"
    ONLY = "only"
    WHEN = "when"
    ALSO = "also"
    READ = "read"
    METHOD = "method"
    DATA = "data"
    CONTENT_TYPE = "content-type"
    ACCEPT = "accept"


#: filters that say how a page is requested, and which answers are the page: they leave its text as it is
REQUEST_FILTERS = frozenset({FilterKind.METHOD, FilterKind.DATA, FilterKind.CONTENT_TYPE})
#: filters of which a page has one
SINGLE_FILTERS = REQUEST_FILTERS | {FilterKind.ONLY, FilterKind.READ}
#: filters that decide which changes are reported: they leave the text of a page as it is
REPORTING_FILTERS = frozenset({
    FilterKind.TRIGGER, FilterKind.TRIGGER_REMOVED, FilterKind.QUIET_WHILE, FilterKind.ONLY, FilterKind.WHEN,
})  # fmt: skip


#: what the filter `accept` takes besides statuses: a page without any text
ACCEPT_EMPTY = "empty"


def accepted(filters: Sequence[Sequence[str]] | None) -> set[str]:
    """Return which answers are a page although they look like errors: statuses such as `404` or `5xx`, and `empty`."""
    return {value for kind, value in filters or () if kind == FilterKind.ACCEPT}


def accepts_status(filters: Sequence[Sequence[str]] | None, status: int) -> bool:
    """Return whether an answer with this error status is the page."""
    return not accepted(filters).isdisjoint((str(status), f"{status // 100}xx"))


class LineOrder(StrEnum):
    """What the filter `lines` does with the lines of a page."""

    SORT = "sort"
    REVERSE = "reverse"
    UNIQUE = "unique"


class ChangeSide(StrEnum):
    """The side of a change that the filter `only` reports: what the page has now, or what it had.

    `UNSEEN` is what it has now and never had before.
    """

    ADDED = "added"
    REMOVED = "removed"
    UNSEEN = "unseen"


class Also(StrEnum):
    """What of a page can count besides its text."""

    LINKS = "links"
    MEDIA = "media"
    ATTRIBUTES = "attributes"
    METADATA = "metadata"
    STRUCTURE = "structure"


class Filter(NamedTuple):
    """A filter of a page, as it was given."""

    kind: FilterKind
    value: str


class RenderMode(StrEnum):
    """Whether a page is fetched through a browser: at every check, or when it cannot be read without one."""

    ALWAYS = "always"
    AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Render:
    """How a page is fetched through a browser: what to wait for, and the steps before it is captured, as given."""

    mode: RenderMode = RenderMode.ALWAYS
    wait_for: str | None = None
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a check failed, with one plain sentence for people, in which no address has a password."""

    kind: FailureKind
    sentence: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentence", without_password(self.sentence))

    @property
    def points_to_overload(self) -> bool:
        """Whether too many requests at once may be the cause, on either side."""
        return self.kind in (FailureKind.TIMED_OUT, FailureKind.REFUSED, FailureKind.CONNECTION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Robots:
    """The robots.txt of a host, None if it has none, and until when it is valid.

    `failure` is why it could not be fetched, and then no page may be; `since` is when that began.
    """

    text: str | None
    until: float
    failure: Failure | None = None
    since: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A URL that we watch, with its settings and where it stands.

    Its `filters` are those that it shares with all pages or with those of a tag, and then its `own_filters`.
    """

    id: int
    url: str
    every: timedelta | None
    tags: tuple[str, ...]
    added_at: datetime
    checks: int
    versions: int
    checked_at: datetime | None
    changed_at: datetime | None
    verdict: Verdict | None
    failure: Failure | None
    failures: int
    title: str | None
    filters: tuple[Filter, ...] = ()
    render: Render | None = None
    own_filters: tuple[Filter, ...] = ()


def stored_render(settings: dict[str, Any]) -> Render | None:
    """How a page with these settings, as they are stored, is fetched through a browser; None if it is not."""
    given = settings.get("render")
    if given is None:
        return None
    return Render(mode=RenderMode(given["mode"]), wait_for=given.get("wait_for"), steps=tuple(given.get("steps", ())))
