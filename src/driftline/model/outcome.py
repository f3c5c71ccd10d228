"""Checks: what is fetched, what is found, and how it is recorded.

At ten thousand pages a second the price of a frozen dataclass shows: about 0.1 µs for each of its fields. So `Link`,
`Known`, `Way` and `Document`, which are made for every page, are plain slotted classes, and `Unchanged`, the outcome of
most checks, is frozen and has few fields. Nothing changes them once they are made: who needs another value makes
another object with `dataclasses.replace`. There are two exceptions, both to save work for every page:

- `Link.permit` is set when the permission to fetch the link is given, by `PoliteLinks` alone.
- `Document.release_body` frees the body. The step that makes the outcome calls it, before it makes the outcome. Only a
  change that waits for its second fetch keeps the body of its document, until `confirm` makes the final outcome.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

from driftline.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from driftline.http.credentials import Access
    from driftline.model.change import Change, ChangeSummary, NoiseKind
    from driftline.model.event import Danger, Ignored, Turned
    from driftline.model.page import Failure, PageWarning, Render


class Incomparable(StrEnum):
    """Why the next text must not be compared with the stored one. It is stored instead of the extractor's name.

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


class Proof(StrEnum):
    """The cheapest thing that proved a page unchanged, from the cheapest to the dearest.

    A page of which only noise changed is unchanged too, though it gets a version: nothing is hidden for good. So is one
    that is only read in another way than before, because its filters were edited or the extractor is a newer one. While
    a page is `quiet` by its filter `quiet-while`, it gets no version, so that what changed meanwhile is reported later.
    """

    VALIDATORS = "validators"
    WIRE = "wire"
    BODY = "body"
    TEXT = "text"
    NOISE = "noise"
    QUIET = "quiet"
    REREAD = "reread"


#: what differs is to be compared with the same version again
SAME_VERSION = (Proof.NOISE, Proof.QUIET)
_WITHOUT_VERSION = {
    Proof.NOISE: "What differed was different again when the page was fetched once more.",
    Proof.QUIET: "Changes are not reported while the page has what its filter 'quiet-while' names.",
}


@dataclass(slots=True, eq=False)
class Known:
    """What the store knows of the current version: its number, validators, and the digest of the response's bytes."""

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
    """The redirects that were followed so far for a page, and the link that they started with.

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
    means nothing. `rendered` says that a browser fetched it; `screenshot` is the picture (PNG) that it took, if any.
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
    rendered: bool = False
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


@dataclass(frozen=True, slots=True)
class OldContents:
    """What a page that differs from its old version is compared with.

    `blobs` holds, by digest, all that the body and the text of the version in force are built from; `memory` is what
    was learned about noise on the page, and `host_memory` on all pages of its host.
    """

    blobs: dict[bytes, Blob]
    memory: bytes = b""
    host_memory: bytes = b""

    def held_bytes(self) -> int:
        """Return how many bytes of content it holds in memory."""
        return sum([len(blob.data) for blob in self.blobs.values()])


@dataclass(frozen=True, slots=True, kw_only=True)
class Old:
    """The old version of a page as recalled for a comparison.

    `body` and `letters` are digests of what came at the last good check: decoded, and of what can be seen. `kept_body`
    and `kept_text` name the contents of the version in force, whose body is another one where only the unseen changed
    since; `size` is that of this body. `at` is when it was last seen. `reading` names how its text was extracted, and
    is None if that is not known or does not matter, because the text is `incomparable`. `contents` are read only for
    pages that differ from these digests, and None until then.
    """

    body: bytes
    letters: bytes
    kept_body: bytes
    kept_text: bytes
    size: int
    at: float
    contents: OldContents | None = None
    reading: str | None = None
    incomparable: Incomparable | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A document with the old version to compare it with.

    `proof` says that recalling was enough to see that nothing changed. Otherwise `old` is the old version, and None for
    a page that is new.
    """

    document: Document
    wire: bytes
    proof: Proof | None = None
    old: Old | None = None

    def held_bytes(self) -> int:
        """Return how many bytes of content it holds in memory."""
        contents = None if self.old is None else self.old.contents
        return self.document.held_bytes() + (0 if contents is None else contents.held_bytes())


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
class IgnoredParts:
    """What a page is not reported for any more from a check on, by what earlier checks taught.

    `label` names the first part, with an `example` of what it did, which may be empty; `others` is how many more there
    are. `noise` is why. The keys are those of the memories of the page and of its host by which the user's feedback has
    the parts reported again. `is_news` is False if the same was reported of several other pages of the host.
    """

    label: str
    example: str
    others: int
    noise: NoiseKind
    page_keys: tuple[bytes, ...]
    host_keys: tuple[bytes, ...]
    is_news: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What a check taught about noise: the new noise memory of the page, and the keys for that of its host.

    `ignored` are the parts of the page that are ignored from this check on.
    """

    memory: bytes
    for_host: tuple[bytes, ...]
    ignored: IgnoredParts | None = None


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
    warnings: tuple[PageWarning, ...] = ()
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
        document = self.document if self.pair is None else self.pair
        return document.held_bytes() + self.version.held_bytes()


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


def is_notable(outcome: Outcome) -> bool:
    """Return whether a check found anything but that its page is unchanged, as most checks do."""
    if not isinstance(outcome, Unchanged) or outcome.noise is not None or outcome.document.link.failing:
        return True
    examined = outcome.examined
    return examined is not None and (examined.lesson is not None or bool(examined.warnings))


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

    `notable` are those that found anything. `turned` are the pages that began to fail or recovered by them, `dangers`
    what looks dangerous on pages for the first time, and `ignored` the parts of pages that are ignored from now on.
    """

    outcomes: Sequence[Outcome]
    turned: Sequence[Turned] = ()
    dangers: Sequence[Danger] = ()
    ignored: Sequence[Ignored] = ()
    notable: Sequence[Outcome] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "notable", [*filter(is_notable, self.outcomes)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A past state of a page kept in the version repository; its contents are read on demand."""

    url: str
    number: int
    at: datetime
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
    this check the page began to fail, or recovered, and `ignored` which parts of it are ignored since.
    """

    sequence: int
    at: datetime
    verdict: Verdict
    status: int
    seconds: float
    bytes: int
    proof: Proof | None
    failure: Failure | None
    redirected_to: str | None
    version: int | None
    change: Change | None
    reread_at: datetime | None = None
    turned: Turned | None = None
    warnings: tuple[PageWarning, ...] = ()
    ignored: Ignored | None = None

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
        return "" if self.proof is None else _WITHOUT_VERSION.get(self.proof, "")
