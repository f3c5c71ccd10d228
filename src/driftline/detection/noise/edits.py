"""The data of a judgement: the two documents, what is known from earlier checks, the edits, and the result."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from driftline.detection.diff.lines import Line, key_of
from driftline.detection.extract.annotations import note_of
from driftline.detection.messages import excerpts, only_noise
from driftline.detection.noise.volatile import names_money, names_stock
from driftline.model.change import (
    LEAST_SCORES,
    MINOR_KINDS,
    ChangeKind,
    Edit,
    Importance,
    NoiseKind,
    Region,
    importance_of,
)
from driftline.model.page import ChangeSide
from driftline.noise_memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from driftline.detection.extract.regions import Blocks
    from driftline.model.change import Block
    from driftline.model.outcome import IgnoredParts

#: regions beside the content, and what explains an edit in them
NOISE_OF_REGION: dict[Region, NoiseKind] = {
    Region.NAVIGATION: NoiseKind.NAVIGATION, Region.HEADER: NoiseKind.HEADER, Region.FOOTER: NoiseKind.FOOTER,
    Region.ASIDE: NoiseKind.ASIDE, Region.FORM: NoiseKind.FORM, Region.DIALOG: NoiseKind.DIALOG,
    Region.CONSENT: NoiseKind.CONSENT, Region.ADVERTISEMENT: NoiseKind.ADVERTISEMENT,
}  # fmt: skip
#: noise that an author wrote, although beside the content: other pages may have the same edit
BESIDE_CONTENT = frozenset({*NOISE_OF_REGION.values(), NoiseKind.LINKS})
REWRITTEN_PAGE = 300  # edits: a page with more of them was rewritten
_CLAUSE, _SENTENCE = 7, 11  # spaces: a line with as many is, or has, a sentence
SEEN = "seen"  # a kind of keys: lines that the page had
_SHORT = 100  # characters: in a longer sentence, words about stock are about something else
_TERM = re.compile(rb">([^<>]{1,100})</dt>")
_MOST_KINDS = 3  # kinds of noise that a sentence names
_SOME_EDITS = 80  # edits of a page that was not rewritten
_MOST_EDITS = 20  # edits of a change that are kept
_LONGEST_TEXT = 300  # characters of either side of an edit that are kept
MOST_OF_NOISE = 0.39  # the highest score of noise


class NotNoise(Enum):
    """The ruling on an edit that no kind of noise explains."""

    MATTERS = "matters"
    UNDECIDED = "undecided"


#: the ruling on an edit: the noise that explains it, that it matters, or that other rules have to decide
Ruling: TypeAlias = NoiseKind | NotNoise


@dataclass(frozen=True, slots=True, kw_only=True)
class LineEdit:
    """A line that was added, removed or rewritten, and the noise that explains it; None if it matters.

    `region` is None where it is not known: to see where a removed line stood, the old document must be parsed again.
    `heading` is the nearest one above.
    """

    old: Line | None
    new: Line | None
    noise: NoiseKind | None
    region: Region | None = None
    heading: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How important the edits of a page are, and why.

    `moved` if lines of its content have another order, and `by_order` if that alone decided how important it is;
    `shuffled` if they have another one at every fetch.

    The `headline` says what changed in one line, and is empty for most noise. `ignored` are the parts that earlier
    checks explain for the first time.
    """

    importance: Importance
    score: float
    reason: str
    kind: ChangeKind
    edits: Sequence[LineEdit]
    words_added: int = 0
    words_removed: int = 0
    moved: bool = False
    by_order: bool = False
    shuffled: bool = False
    headline: str = ""
    ignored: IgnoredParts | None = None

    @property
    def cause(self) -> bytes:
        """Return a key that is equal for the same edit on another page; empty if only volatile text changed."""
        minor = MINOR_KINDS if self.importance is Importance.MINOR else frozenset[NoiseKind]()
        made = [one for one in self.edits if one.noise is None or one.noise in BESIDE_CONTENT or one.noise in minor]
        lines = sorted(
            f"{sign}{line.folded}" for edit in made for sign, line in (("-", edit.old), ("+", edit.new)) if line
        )
        return key_of("cause", "\n".join(lines)) if lines else b""

    @property
    def differs_at_every_fetch(self) -> bool:
        """Return whether it is noise for no other reason than that a second fetch differs."""
        differs = self.shuffled or any(edit.noise is NoiseKind.EVERY_FETCH for edit in self.edits)
        return self.importance is Importance.NOISE and differs


class ReadOnce:
    """The blocks of a document, read when they are first needed unless they are `known`, and then kept."""

    __slots__ = ("_read", "known")

    def __init__(self, read: Callable[[], Blocks], known: Blocks | None = None) -> None:
        self._read = read
        self.known = known

    def __call__(self) -> Blocks:
        if self.known is None:
            self.known = self._read()
        return self.known


class Headings:
    """The headings above the lines of a document, or of another text by the headings of a document."""

    __slots__ = ("_above", "_blocks", "_lines")

    def __init__(self, blocks: ReadOnce, text: str | None = None) -> None:
        self._blocks = blocks
        self._lines = None if text is None else text.split("\n")  # of another text than that of the blocks
        self._above: dict[int, str] = {}  # by line, the nearest heading that is that line or above it

    def _known(self) -> tuple[Sequence[str], AbstractSet[str]]:
        blocks = self._blocks()
        return blocks.lines if self._lines is None else self._lines, blocks.headings

    @property
    def texts(self) -> AbstractSet[str]:
        """The texts of all headings of the document."""
        return self._known()[1]

    def of_text(self, text: str) -> Headings:
        """Return the same headings, above the lines of another text."""
        return Headings(self._blocks, text)

    def above(self, at: int) -> str:
        """Return the nearest heading above a line, which may be a heading itself; empty if there is none."""
        lines, texts = self._known()
        if not texts:
            return ""
        walked: list[int] = []
        heading = ""
        for number in range(min(at, len(lines)) - 1, -1, -1):
            walked.append(number)
            known = self._above.get(number)
            if known is not None or lines[number] in texts:
                heading = lines[number] if known is None else known
                break
        self._above.update(dict.fromkeys(walked, heading))
        return heading

    def includes(self, at: int) -> bool:
        """Return whether a line is a heading."""
        lines, texts = self._known()
        return at < len(lines) and lines[at] in texts

    @property
    def first(self) -> str:
        """The first heading; empty if there is none."""
        lines, texts = self._known()
        return next((line for line in lines if line in texts), "") if texts else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedDocument:
    """A document as it is judged: its text, its title, when it was fetched, and its body.

    `blocks` are its lines with the regions that they stand in. To get them may mean to parse the document again.
    """

    text: str
    title: str
    at: float
    blocks: ReadOnce
    body: bytes = b""
    headings: Headings = field(init=False)

    def __post_init__(self) -> None:
        # not with a method of this object: garbage collection is rare, and a cycle would keep the parsed document
        object.__setattr__(self, "headings", Headings(self.blocks))

    def has_heading(self, text: str) -> bool:
        """Return whether a heading ends with this text, without parsing the document."""
        name = text.encode()
        return name + b"</h" in self.body or name + b"</a></h" in self.body

    def names_value(self, text: str) -> bool:
        """Return whether this is what names a value: the term of a list of definitions, or the head of a row."""
        name = text.encode()
        return bool(text) and any(name + end in self.body for end in (b"</dt>", b"</th>", b"</label>"))

    def terms(self) -> set[str]:
        """Return the short terms of lists of definitions, as far as they stand in the markup as they are shown."""
        return {term.decode("utf-8", "replace").strip() for term in _TERM.findall(self.body)}

    def block_of(self, line: Line | None) -> Block | None:
        """Return the block of a line; None if the document is extracted in another way by now."""
        return None if line is None else _block(self.blocks(), line)

    def region_of(self, line: Line | None) -> Region | None:
        """Return the region that a line stands in, None unless that is known already."""
        blocks = self.blocks.known
        block = None if line is None or blocks is None else _block(blocks, line)
        return None if block is None else block.region


def _block(blocks: Blocks, line: Line) -> Block | None:
    return blocks[line.at] if line.at < len(blocks) and blocks.lines[line.at] == line.text else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """What is known of a page and of its host before check number `check`, which is at the time `at`.

    `again` is the text of the page fetched a second time, right after it seemed changed. `selected` is True if the user
    chose which part of the page is compared; with `only`, that side of a change is reported and the other is noise.
    """

    page: Memory = field(default_factory=Memory)
    host: Memory = field(default_factory=Memory)
    check: int = 0
    at: float = 0.0
    again: str | None = None
    selected: bool = False
    only: ChangeSide | None = None

    def leaves_out(self, old: Line | None, new: Line | None) -> bool:
        """Return whether the edit of a line has nothing of the side of a change that is to be reported."""
        if self.only is None:
            return False
        line = old if self.only is ChangeSide.REMOVED else new
        return line is None or (self.only is ChangeSide.UNSEEN and self.page.has_seen(key_of(SEEN, line.text)))


class Features(NamedTuple):
    """What the score of an important change is made of.

    Whether a sentence was rewritten, whether one was added or removed, which share of the important edits are links,
    and which share of all edits is not important.
    """

    rewritten_sentence: float
    new_sentence: float
    links: float
    noise: float


#: what each of them adds to the score, and what it begins with: scripts/fit_score.py finds these numbers
WEIGHTS = Features(rewritten_sentence=0.55, new_sentence=1.07, links=-1.39, noise=-1.54)
BIAS = 0.0


def features_of(edits: Sequence[LineEdit], new: JudgedDocument) -> Features:
    """Return the features of a change with these edits, at least one of which is important."""
    important = [edit for edit in edits if edit.noise is None]
    edits = [edit for edit in edits if edit.noise is not NoiseKind.LEFT_OUT]
    links = [edit for edit in important if (block := new.block_of(edit.new)) is not None and block.linked]
    lengths = [(edit.old is not None and edit.new is not None, line_of(edit).folded.count(" ")) for edit in important]
    return Features(
        rewritten_sentence=float(any(rewritten and spaces >= _CLAUSE for rewritten, spaces in lengths)),
        new_sentence=float(any(not rewritten and spaces >= _SENTENCE for rewritten, spaces in lengths)),
        links=len(links) / len(important),
        noise=1 - len(important) / len(edits),
    )


def score_of(features: Features) -> float:
    """Return the score of an important change, above 0.5 and below 1.

    It says how sure it is that somebody wants to know of the change, not how large it is: one word within a sentence
    counts for more than a new entry of a list.
    """
    sure = BIAS + sum(weight * value for weight, value in zip(WEIGHTS, features, strict=True))
    least = LEAST_SCORES[Importance.IMPORTANT]
    return least + (1 - least) / (1 + math.exp(-sure))


def why_noise(edits: Sequence[LineEdit], *texts: str) -> str:
    """Return a sentence with the reason why these edits of the two texts are noise."""
    counts = Counter(edit.noise for edit in edits if edit.noise is not None)
    kinds = [kind for kind, _ in counts.most_common(_MOST_KINDS)]
    if not kinds:
        one, other = (sorted(text.split("\n")) for text in texts)
        kinds = [NoiseKind.ORDER if one == other else NoiseKind.TYPOGRAPHY]
    return only_noise(kinds)


def kind_of(edits: Sequence[LineEdit]) -> ChangeKind:
    """Return what sort of change these edits of a text are, by those that are important, or by all if none is."""
    decisive = [edit for edit in edits if edit.noise is None] or edits
    if decisive and all(is_about_stock([line for line in (edit.old, edit.new) if line]) for edit in decisive):
        return ChangeKind.AVAILABILITY
    numbers = [
        edit.new for edit in decisive if edit.new and same_words(edit) and _digits(edit.old) != _digits(edit.new)
    ]
    if not decisive or len(numbers) < len(decisive):
        return ChangeKind.TEXT
    return ChangeKind.PRICE if all(names_money(line.text) for line in numbers) else ChangeKind.NUMBER


def with_headings(
    edits: Sequence[LineEdit], old: JudgedDocument, new: JudgedDocument, *, of_noise: bool = False
) -> list[LineEdit]:  # fmt: skip
    """Return the edits with the nearest heading above each, as far as the new document has it.

    They stay as they are if all of them are noise, unless `of_noise`, or if they are many: then the page was rewritten.
    """
    shown = of_noise or any(edit.noise is None or edit.noise in MINOR_KINDS for edit in edits)
    if len(edits) > _SOME_EDITS or not shown or not new.headings.texts:
        return list(edits)
    before = new.headings.of_text(old.text) if any(edit.new is None for edit in edits) else new.headings
    return [replace(edit, heading=(new.headings if edit.new else before).above(line_of(edit).at)) for edit in edits]


def found_edits(edits: Sequence[LineEdit]) -> tuple[Edit, ...]:
    """Return the first edits of a change as they are kept, the most important first."""
    shown = sorted(edits, key=lambda edit: importance_of(edit.noise).rank)[:_MOST_EDITS]
    return tuple([_found_edit(edit) for edit in shown])


def _found_edit(edit: LineEdit) -> Edit:
    old, new = (line.text if line else "" for line in (edit.old, edit.new))
    note = note_of(new or old)
    kind = kind_of([edit]) if note is None else ChangeKind(note.kind.value)
    before, after = excerpts(old, new, _LONGEST_TEXT)
    return Edit(before=before, after=after, region=edit.region, kind=kind, noise=edit.noise, heading=edit.heading)


def is_about_stock(lines: Sequence[Line]) -> bool:
    """Return whether these lines are short, and one is about whether something is available."""
    return all(len(line.text) < _SHORT for line in lines) and any(names_stock(line.text) for line in lines)


def _digits(line: Line | None) -> str:
    return "" if line is None else "".join(filter(str.isdigit, line.text))


def same_words(edit: LineEdit) -> bool:
    """Return whether a line was rewritten in nothing but numbers, dates and the like."""
    return edit.old is not None and edit.new is not None and edit.old.masked == edit.new.masked


def line_of(edit: LineEdit) -> Line:
    """Return the new line, or the removed one."""
    line = edit.new or edit.old
    assert line is not None
    return line
