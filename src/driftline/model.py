"""The words of Driftline as data.

At ten thousand pages a second the price of a frozen dataclass shows: about 0.1 µs for each of its fields. So `Link` and
`Document`, which have a dozen, are plain slotted classes, treated as frozen all the same but for the one method that
says otherwise; and `Unchanged`, the outcome of most checks, is frozen and has few fields.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias, get_args

from driftline.errors import FailureKind
from driftline.urls.parts import host_of, without_password

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.http.credentials import Access

Policy = Literal["value", "intelligent", "fixed", "uniform"]
POLICIES: tuple[Policy, ...] = get_args(Policy)


class Incomparable(StrEnum):
    """Why a new text is not compared with the stored one. Stored in place of how the stored one was extracted.

    `FETCHED_OTHERWISE` is a text that was fetched with a browser where none is used now, or the other way round.
    `GIVEN_UP` is one that the next one is to replace, whatever that is, because the user said so.
    """

    FETCHED_OTHERWISE = "fetched otherwise"
    GIVEN_UP = "given up"


class Verdict(StrEnum):
    """What a check found."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    FAILED = "failed"


class PageState(StrEnum):
    """How a page stands: what its last check found, that there was none yet, or that it keeps failing."""

    UNCHECKED = "unchecked"
    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    FAILING = "failing"


class Proof(StrEnum):
    """The cheapest thing that proved a page unchanged, from the cheapest to the dearest.

    A page of which only noise changed is unchanged too, though it gets a version: nothing is hidden for good. So is one
    that is only read in another way than before, because its filters were edited or the extractor is a newer one.
    """

    VALIDATORS = "validators"
    WIRE = "wire"
    BODY = "body"
    TEXT = "text"
    NOISE = "noise"
    REREAD = "reread"


class Matter(StrEnum):
    """Whether a change matters."""

    MEANINGFUL = "meaningful"
    NOISE = "noise"


class NoiseKind(StrEnum):
    """What explains an edit that does not matter. `detection.messages` has the words for each."""

    # something that changes by itself
    AGE = "age"
    AUDIENCE = "audience"
    CLOCK = "clock"
    COPYRIGHT_YEAR = "copyright-year"
    COUNTER = "counter"
    IDENTIFIER = "identifier"
    PROTECTED_ADDRESS = "protected-address"
    TICKER = "ticker"
    TIME_ZONE = "time-zone"
    # something that is not what the page is about
    CALENDAR = "calendar"
    COPY = "copy"
    FOR_MACHINES = "for-machines"
    LABELS = "labels"
    LINKS = "links"
    LINKS_WITH_TEXT = "links-with-text"
    ORDER = "order"
    PROMOTION = "promotion"
    TITLE = "title"
    TYPOGRAPHY = "typography"
    # where it stands
    ADVERTISEMENT = "advertisement"
    ASIDE = "aside"
    CONSENT = "consent"
    DIALOG = "dialog"
    FOOTER = "footer"
    FORM = "form"
    HEADER = "header"
    NAVIGATION = "navigation"
    # what earlier checks, a second fetch or the user say
    COMES_AND_GOES = "comes-and-goes"
    EVERY_CHECK = "every-check"
    EVERY_FETCH = "every-fetch"
    OTHER_PAGES = "other-pages"
    USER = "user"


class ChangeKind(StrEnum):
    """What sort of thing changed. `READING` is for a page that did not change, but is extracted in another way now."""

    TEXT = "text"
    NUMBER = "number"
    PRICE = "price"
    AVAILABILITY = "availability"
    LINKS = "links"
    MEDIA = "media"
    ATTRIBUTES = "attributes"
    METADATA = "metadata"
    STRUCTURE = "structure"
    READING = "reading"


class Turn(StrEnum):
    """What a page turned into: one that fails at one check after the other, or one that can be read again."""

    FAILING = "failing"
    RECOVERED = "recovered"


class MentionKind(StrEnum):
    """Whether words came or went."""

    APPEARED = "appeared"
    DISAPPEARED = "disappeared"


class WarningKind(StrEnum):
    """What looks dangerous on a page."""

    MIXED_CONTENT = "mixed-content"
    HIDDEN_FRAME = "hidden-frame"
    OBFUSCATED_SCRIPT = "obfuscated-script"
    CERTIFICATE = "certificate"
    LOOK_ALIKE = "look-alike"


class Warned(NamedTuple):
    """What looks dangerous on a page, with one plain sentence for people."""

    kind: WarningKind
    sentence: str


class Barred(NamedTuple):
    """A page that is not fetched while it is blocked, and why."""

    url: str
    reason: str


class Safety(NamedTuple):
    """Why a page is blocked, None if it is not, and what looks dangerous on it."""

    blocked: str | None
    warnings: tuple[Warned, ...]

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


class FilterKind(StrEnum):
    """What a filter does."""

    SELECT = "select"
    DROP = "drop"
    IGNORE = "ignore"
    TRIGGER = "trigger"
    ALSO = "also"


class Also(StrEnum):
    """What of a page can count besides its text."""

    LINKS = "links"
    MEDIA = "media"
    ATTRIBUTES = "attributes"
    METADATA = "metadata"
    STRUCTURE = "structure"


class Filter(NamedTuple):
    """A filter of a page, as it was given."""

    kind: str
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
    """What a host told us to do in its robots.txt, None if it has none, and until when that is to be believed.

    `failure` is why it could not be asked, and then nothing may be fetched; `since` is when that began.
    """

    text: str | None
    until: float
    failure: Failure | None = None
    since: float | None = None


class Region(StrEnum):
    """Where in a document a block stands."""

    BODY = "b"
    MAIN = "m"
    NAVIGATION = "n"
    HEADER = "h"
    FOOTER = "f"
    ASIDE = "a"
    ADVERTISEMENT = "x"
    FORM = "o"
    DIALOG = "d"
    CONSENT = "c"


@dataclass(slots=True, eq=False)
class Block:
    """Text of a document that is set off from its surroundings, its white space folded; `linked` if it is a link."""

    text: str
    region: Region
    linked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A URL that we watch, with its settings and where it stands."""

    id: int
    url: str
    every: float | None
    tags: tuple[str, ...]
    added_at: float
    checks: int
    versions: int
    checked_at: float | None
    changed_at: float | None
    verdict: Verdict | None
    failure: Failure | None
    failures: int
    title: str | None
    filters: tuple[Filter, ...] = ()
    render: Render | None = None


@dataclass(slots=True, eq=False)
class Known:
    """What is sent along with a link: the number of the version in force, and what proves cheaply that it still is."""

    version: int
    etag: str | None
    last_modified: str | None
    wire: bytes


@dataclass(slots=True, eq=False)
class Link:
    """A page handed to a producer. `sequence` is the number that this check of the page will have.

    `filters` are its filters as they are stored, and None for most pages; `failures` is how many checks failed since
    the last successful one, and `failing` whether that was reported; `access` has its headers, cookies, credentials and
    proxy, if there are any; `render` says how it is fetched through a browser, and None that it is not. With `follow`
    off, a redirect is returned as it is: a crawl makes another link for its target. `way` is how redirects led here
    from the page, and None where this is the page itself. `permit` is the permission of its host to fetch it, once that
    was given.
    """

    page_id: int
    url: str
    sequence: int
    known: Known | None
    filters: list[list[str]] | None = None
    failures: int = 0
    failing: bool = False
    access: Access | None = None
    render: Render | None = None
    follow: bool = True
    way: Way | None = None
    permit: object = None

    @property
    def host(self) -> str:
        """The host of the address, with its port where that is not the usual one."""
        return host_of(self.url)


@dataclass(slots=True, eq=False)
class Way:
    """How redirects led from a page to another address: the link that it started with, and what came of it so far.

    `headers` has the status and the target of each redirect, and `seconds` is how long all answers took: the time that
    was waited for hosts is not among it. `cookies` were set on the way, and are as libcurl writes them.
    """

    start: Link
    redirects: int
    headers: bytes
    seconds: float
    cookies: tuple[bytes, ...]


@dataclass(slots=True, eq=False)
class Document:
    """The current state of a page as just fetched, the body undecoded as it came over the wire.

    `size` is that of the body, also once the body is released. `headers` is the block of the header lines of the
    response, those of redirects on the way first (see `http.headers`). `address` is the IP address that was connected
    to for it, empty if a connection was open already. A document without a usable answer has a `failure`, and its body
    means nothing. `screenshot` is a picture of it (PNG) where a browser fetched it, empty if none could be taken.
    `onward` is where a redirect leads: then this is no page yet.
    """

    link: Link
    status: int
    headers: bytes
    body: bytes
    size: int
    final_url: str
    redirects: int
    fetched_at: float
    seconds: float
    failure: Failure | None = None
    address: str = ""
    screenshot: bytes | None = None
    onward: Link | None = None

    def release_body(self) -> None:
        """Free the memory of the body, once nothing will read it any more: the document itself may live much longer."""
        self.body = b""

    def held_bytes(self) -> int:
        """Return how many bytes of content it holds in memory."""
        return len(self.body) + len(self.screenshot or b"")


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes as they are stored: compressed against the blob `base`, or on their own where that is None."""

    digest: bytes
    base: bytes | None
    depth: int
    size: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Old:
    """The old version of a page as recalled for a comparison.

    `body` and `letters` are digests of what came at the last good check: decoded, and of what can be seen. `kept_body`
    and `kept_text` name the contents of the version in force, whose body is another one where only the unseen changed
    since; `blobs` holds, by digest, all that these two are built from. `at` is when it was last seen, `memory` what was
    learned about noise on the page. `reading` names how its text was extracted, and is None if that is not known or
    does not matter, because the text is `incomparable`.
    """

    body: bytes
    letters: bytes
    kept_body: bytes
    kept_text: bytes
    blobs: dict[bytes, Blob]
    at: float
    memory: bytes
    reading: str | None = None
    incomparable: Incomparable | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A document with the old version to compare it with.

    `proof` says that recalling was enough to see that nothing changed. Otherwise `old` is the old version, and None for
    a page that is new. `host_memory` is what was learned about noise on the pages of its host.
    """

    document: Document
    wire: bytes
    proof: Proof | None = None
    old: Old | None = None
    host_memory: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVersion:
    """A version about to be kept: its digests, what is known of it, and the blobs that are new."""

    number: int
    body: bytes
    letters: bytes
    text: bytes
    size: int
    title: str
    content_type: str
    charset: str
    blobs: tuple[Blob, ...]

    def held_bytes(self) -> int:
        """Return how many bytes of content it holds in memory."""
        return sum([len(blob.data) for blob in self.blobs])


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One difference between two versions: a line that was rewritten, added (`before` is empty) or removed.

    Long lines are cut to the part that differs. `region` is None where it is not known, and `noise` where nothing
    explains the edit, so that it matters.
    """

    before: str
    after: str
    region: Region | None
    kind: ChangeKind
    noise: NoiseKind | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSummary:
    """What differs between two versions, in a few figures, one sentence and the most important edits.

    `cause` is the same for the same edits on another page, and empty if nothing was edited but what changes by itself.
    """

    kind: ChangeKind
    verdict: Matter
    score: float
    reason: str
    words_added: int
    words_removed: int
    cause: bytes = b""
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What a check taught: the memory of the page from now on, and what of it may hold for the whole host."""

    memory: bytes
    for_host: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Examined:
    """What was read in a body that does not have the same bytes as at the last check.

    `wire` and `body` are its digests, as it came over the wire and decoded; `reading` names the filters and the version
    of the extractor that its text was extracted with. `recalled` is the digest of the stored text that it was compared
    with: another process may extract that anew before the outcome is recorded. `warnings` are what looks dangerous,
    reported before or not. `wants_script` says that the page shows little or nothing without a browser.
    """

    wire: bytes
    body: bytes
    reading: str
    recalled: bytes | None = None
    lesson: Lesson | None = None
    warnings: tuple[Warned, ...] = ()
    wants_script: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class New:
    """The outcome of the first successful check of a page."""

    verdict: ClassVar = Verdict.NEW
    document: Document
    examined: Examined
    version: NewVersion

    @property
    def wants_script(self) -> bool:
        """Whether the page shows little or nothing without a browser."""
        return self.examined.wants_script

    def held_bytes(self) -> int:
        """Return how many bytes of content it holds in memory."""
        return self.document.held_bytes() + self.version.held_bytes()


@dataclass(frozen=True, slots=True, eq=False)
class NoiseVersion:
    """A version that differs from the one before in nothing that matters, and how it differs."""

    version: NewVersion
    change: ChangeSummary


@dataclass(frozen=True, slots=True, eq=False)
class Unchanged:
    """The outcome of a check that found nothing that matters, with the cheapest proof of it.

    `examined` is None where the body was not read, because validators or the bytes on the wire proved it unchanged.
    A page that differs in noise gets a version too, if it is worth one: `noise`.
    """

    verdict: ClassVar = Verdict.UNCHANGED
    document: Document
    proof: Proof
    examined: Examined | None = None
    noise: NoiseVersion | None = None

    @property
    def wants_script(self) -> bool:
        """Whether the page shows little or nothing without a browser."""
        return self.examined is not None and self.examined.wants_script

    def held_bytes(self) -> int:
        """Return how many bytes of content it holds in memory."""
        return self.document.held_bytes() + (0 if self.noise is None else self.noise.version.held_bytes())


@dataclass(frozen=True, slots=True, eq=False)
class Changed:
    """The outcome of a check that found a change that matters. Its `pair` is kept until a second fetch confirmed it."""

    verdict: ClassVar = Verdict.CHANGED
    document: Document
    examined: Examined
    version: NewVersion
    change: ChangeSummary
    pair: Pair | None = None

    @property
    def wants_script(self) -> bool:
        """Whether the page shows little or nothing without a browser."""
        return self.examined.wants_script

    def held_bytes(self) -> int:
        """Return how many bytes of content it holds in memory, with the old version that it was compared with."""
        old = self.pair.old if self.pair else None
        recalled = sum([len(blob.data) for blob in old.blobs.values()]) if old else 0
        return self.document.held_bytes() + self.version.held_bytes() + recalled


@dataclass(frozen=True, slots=True, eq=False)
class Failed:
    """The outcome of a check that could not get the page or not read it; with a browser that may be different."""

    verdict: ClassVar = Verdict.FAILED
    document: Document
    failure: Failure
    wants_script: bool = False

    def held_bytes(self) -> int:
        """Return how many bytes of content it holds in memory."""
        return self.document.held_bytes()


#: what a check found, with all that must be recorded of it
Outcome: TypeAlias = New | Unchanged | Changed | Failed


def version_made_by(outcome: Outcome) -> NewVersion | None:
    """Return the version that a check adds to the history of its page; None if it adds none."""
    if isinstance(outcome, New | Changed):
        return outcome.version
    return outcome.noise.version if isinstance(outcome, Unchanged) and outcome.noise is not None else None


class ReportableChange(NamedTuple):
    """A change that may be worth a report, with the version that it led to and the document that shows it."""

    document: Document
    version: NewVersion
    change: ChangeSummary


def changes_to_report(outcomes: Sequence[Outcome]) -> list[ReportableChange]:
    """Return the changes that matter, and those that are noise with a cause that other pages may share."""
    found: list[ReportableChange] = []
    for outcome in outcomes:
        if isinstance(outcome, Unchanged):
            noise = outcome.noise
            if noise is not None and noise.change.cause:
                found.append(ReportableChange(outcome.document, noise.version, noise.change))
        elif isinstance(outcome, Changed):
            found.append(ReportableChange(outcome.document, outcome.version, outcome.change))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """Outcomes that were recorded in one transaction, and what was learned by that.

    `turned` are the pages that began to fail or recovered by them, `dangers` what looks dangerous on pages for the
    first time.
    """

    outcomes: Sequence[Outcome]
    turned: Sequence[Turned] = ()
    dangers: Sequence[Danger] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """A page that began to fail or recovered, with the check that made it so; `kind` is that of its failure, if any.

    `id` names the page and the check, as that of a change does.
    """

    id: str
    url: str
    at: float
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
    at: float
    kind: WarningKind
    reason: str

    @property
    def host(self) -> str:
        """The host of the page."""
        return host_of(self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Two versions of a page that differ, in a way that matters or, by its verdict, in noise only.

    `said` is the user's own verdict, if there is one, which then is the verdict; the reason stays that of the other.
    `id` is what people name it by. `cause` is the same for the same edit on other pages, and empty where there is none.
    """

    id: str
    url: str
    at: float
    from_version: int
    to_version: int
    kind: str
    verdict: Matter
    score: float
    reason: str
    cause: bytes = b""
    said: Matter | None = None
    edits: tuple[Edit, ...] = ()

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
    at: float
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the user said of a change, and what it was found to be by itself, for that reason."""

    change: str
    url: str
    at: float
    verdict: Matter
    found: Matter
    reason: str


def stored_render(settings: dict[str, Any]) -> Render | None:
    """How a page with these settings, as they are stored, is fetched through a browser; None if it is not."""
    given = settings.get("render")
    if given is None:
        return None
    return Render(mode=RenderMode(given["mode"]), wait_for=given.get("wait_for"), steps=tuple(given.get("steps", ())))


def change_id(page_id: int, sequence: int) -> str:
    """Return the name of a change, or of anything else that a check found: its page and its number."""
    return f"{page_id}-{sequence}"


def check_of(name: str) -> tuple[int, int]:
    """Return the page and the number of the check that `change_id` made this name of."""
    page_id, _, sequence = name.partition("-")
    return int(page_id), int(sequence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A past state of a page kept in the version repository; its contents are read on demand."""

    url: str
    number: int
    at: float
    size: int
    title: str
    content_type: str
    charset: str
    final_url: str
    body: bytes
    text: bytes

    @property
    def words(self) -> str:
        """Its text, to be read."""
        return self.text.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of a page's history: when it was checked, and what came of it.

    `reread_at` is when the text of its version changed because it was read anew, in another way. `turned` says that by
    this check the page began to fail, or recovered.
    """

    sequence: int
    at: float
    verdict: Verdict
    status: int
    seconds: float
    bytes: int
    proof: Proof | None
    failure: Failure | None
    redirected_to: str | None
    version: int | None
    change: Change | None
    reread_at: float | None = None
    turned: Turned | None = None
    warnings: tuple[Warned, ...] = ()

    @property
    def reason(self) -> str:
        """Why it found what it found, in words; nothing where there is nothing to explain."""
        if self.turned is not None and self.change is None:
            return self.turned.reason
        if self.failure is not None:
            return self.failure.sentence
        if self.change is not None:
            return self.change.reason
        # it made no version, so there is no change to tell of
        differed = "What differed was different again when the page was fetched once more."
        return differed if self.proof is Proof.NOISE else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """Words that appeared in a version of a page, or disappeared from it, with the line to see it by.

    `marks` are where the words begin and end in the excerpt, which for words that disappeared is of the version before.
    """

    url: str
    version: int
    at: float
    kind: MentionKind
    excerpt: str
    marks: tuple[tuple[int, int], ...]


class Visit(NamedTuple):
    """One user's visit to a page: when, how long, and whether it was available. Its key tells it from every other."""

    url: str
    at: float
    seconds: float
    available: bool
    key: int


class Visited(NamedTuple):
    """What the visits to an address add up to; `sno` numbers the addresses in the order of their first visit.

    `value` is what a check of the page is worth now, where that was asked for.
    """

    sno: int
    url: str
    frequency: int
    weightage: float
    ttl: int
    first_at: float = 0.0
    last_at: float = 0.0
    watched: bool = False
    value: float = 0.0
