"""Changes: their edits, kinds and noise, where on the page they are, feedback on them, and mentions of a word."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from driftline.urls import host_of

if TYPE_CHECKING:
    from datetime import datetime

_NAME = re.compile(r"([0-9]+)-([0-9]+)")  # of a check, see `change_id`


class Importance(StrEnum):
    """How important a change is, the most important first.

    A minor change is one of form and not of content, such as another order of the same entries or another way to write
    the same date: it is listed on request. Noise is what changes by itself, or beside the content.
    """

    IMPORTANT = "important"
    MINOR = "minor"
    NOISE = "noise"

    @property
    def rank(self) -> int:
        """Its place in the order: 0 is the most important."""
        return _RANKS[self]

    def reaches(self, least: Importance) -> bool:
        """Return whether it is at least as important as this."""
        return self.rank <= least.rank


_RANKS = {importance: rank for rank, importance in enumerate(Importance)}
#: the lowest score of a change that is so important
LEAST_SCORES = {Importance.IMPORTANT: 0.5, Importance.MINOR: 0.4, Importance.NOISE: 0.0}


class NoiseKind(StrEnum):
    """What explains an edit that is not important. `detection.messages` has the words for each."""

    # something that changes by itself
    AGE = "age"
    AUDIENCE = "audience"
    CLOCK = "clock"
    COPYRIGHT_YEAR = "copyright-year"
    COUNTER = "counter"
    IDENTIFIER = "identifier"
    PROTECTED_ADDRESS = "protected-address"
    STAMP = "stamp"
    TICKER = "ticker"
    TIME_ZONE = "time-zone"
    # something that is not what the page is about
    CALENDAR = "calendar"
    COPY = "copy"
    COPYRIGHT = "copyright"
    DATE_FORMAT = "date-format"
    FOR_MACHINES = "for-machines"
    HINT = "hint"
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
    LEFT_OUT = "left-out"
    OTHER_PAGES = "other-pages"
    USER = "user"
    USER_MINOR = "user-minor"


#: edits of form and not of content: they are minor where they stand in the content
MINOR_KINDS = frozenset({
    NoiseKind.COPYRIGHT, NoiseKind.DATE_FORMAT, NoiseKind.HINT, NoiseKind.LABELS, NoiseKind.TYPOGRAPHY,
    NoiseKind.USER_MINOR,
})  # fmt: skip


def importance_of(noise: NoiseKind | None) -> Importance:
    """Return how important an edit is that this explains."""
    return Importance.IMPORTANT if noise is None else Importance.MINOR if noise in MINOR_KINDS else Importance.NOISE


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


class MentionKind(StrEnum):
    """Whether words came or went."""

    APPEARED = "appeared"
    DISAPPEARED = "disappeared"


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
class Edit:
    """One difference between two versions: a line that was rewritten, added (`before` is empty) or removed.

    Long lines are cut to the part that differs. `region` is None where it is not known, and `noise` where nothing
    explains the edit, so that it is important. `heading` is the nearest one above, and empty if there is none.
    """

    before: str
    after: str
    region: Region | None
    kind: ChangeKind
    noise: NoiseKind | None
    heading: str = ""

    @property
    def importance(self) -> Importance:
        """How important the edit is, by what explains it."""
        return importance_of(self.noise)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSummary:
    """What differs between two versions, in a few figures, one sentence and the most important edits.

    The `headline` says what changed in one line; of noise, only edits beside the content have one. `score` is from 0 to
    1: at least 0.5 if the change is important, and less than that, but at least 0.4, if it is minor.
    `cause` is the same for the same edits on another page, and empty if nothing was edited but what changes by itself.
    """

    kind: ChangeKind
    importance: Importance
    score: float
    reason: str
    words_added: int
    words_removed: int
    cause: bytes = b""
    edits: tuple[Edit, ...] = ()
    headline: str = ""

    @property
    def decisive_edits(self) -> tuple[Edit, ...]:
        """Return the edits that are as important as the change; none for noise."""
        noise = self.importance is Importance.NOISE
        return () if noise else tuple([edit for edit in self.edits if edit.importance is self.importance])


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Two versions of a page that differ, in a way that matters or, by its importance, in noise only.

    `headline` is what changed in one line, and `reason` how it was judged.
    `said` is what the user called it, if anything, which then is its importance; the reason stays that of the other.
    `id` is what people name it by. `cause` is the same for the same edit on other pages, and empty where there is none.
    """

    id: str
    url: str
    at: datetime
    from_version: int
    to_version: int
    kind: ChangeKind
    importance: Importance
    score: float
    headline: str
    reason: str
    cause: bytes = b""
    said: Importance | None = None
    edits: tuple[Edit, ...] = ()

    @property
    def host(self) -> str:
        """The host of the page."""
        return host_of(self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What the user said of a change, and what it was found to be by itself, for that reason."""

    change: str
    url: str
    at: datetime
    importance: Importance
    found: Importance
    reason: str


def change_id(page_id: int, sequence: int) -> str:
    """Return the name of a change, or of anything else that a check found: its page and its number."""
    return f"{page_id}-{sequence}"


def check_of(name: str) -> tuple[int, int]:
    """Return the page and the number of the check that `change_id` made this name of; ValueError for any other."""
    parts = _NAME.fullmatch(name)
    if parts is None:
        raise ValueError(f"{name!r} is not the name of a check, such as 12-5.")
    return int(parts[1]), int(parts[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """Words that appeared in a version of a page, or disappeared from it, with the line to see it by.

    `marks` are where the words begin and end in the excerpt, which for words that disappeared is of the version before.
    """

    url: str
    version: int
    at: datetime
    kind: MentionKind
    excerpt: str
    marks: tuple[tuple[int, int], ...]
