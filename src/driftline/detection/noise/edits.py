"""What the judgement of a page is made of: readings, what is known from earlier, edits, and what they amount to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from driftline.detection.diff.lines import Line, key_of
from driftline.detection.diff.markup import listed, short, turned
from driftline.detection.noise.volatile import names_money, names_stock
from driftline.model import Matter, Region
from driftline.noise_memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.detection.extract.regions import Blocks

WHERE: dict[Region, str] = {
    Region.NAVIGATION: "the navigation", Region.HEADER: "the page header", Region.FOOTER: "the page footer",
    Region.ASIDE: "what stands beside the content", Region.FORM: "a form", Region.DIALOG: "a dialog",
    Region.CONSENT: "a consent banner", Region.ADVERTISEMENT: "an advertisement",
}  # fmt: skip
BESIDE = {*WHERE.values(), "links"}
BY_ITSELF = "what differs from one fetch to the next"
MADE_ANEW = 300  # edits
_SHORT = 100  # letters: in a sentence, such words are about something else


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A line that was added, removed or rewritten; `noise` says what explains it, if anything does."""

    old: Line | None
    new: Line | None
    noise: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the edits of a page amount to. `shuffled` says that it has another order of things at every fetch."""

    verdict: Matter
    score: float
    reason: str
    kind: str
    edits: Sequence[Edit]
    words_added: int = 0
    words_removed: int = 0
    shuffled: bool = False

    @property
    def cause(self) -> bytes:
        """The same for the same edit on another page; empty if nothing was edited but what changes by itself."""
        made = [edit for edit in self.edits if not edit.noise or edit.noise in BESIDE]
        lines = sorted(
            f"{sign}{line.folded}" for edit in made for sign, line in (("-", edit.old), ("+", edit.new)) if line
        )
        return key_of("cause", "\n".join(lines)) if lines else b""

    @property
    def by_itself(self) -> bool:
        """Whether it is noise for no other reason than that a second fetch differs."""
        differs = self.shuffled or any(edit.noise == BY_ITSELF for edit in self.edits)
        return self.verdict is Matter.NOISE and differs


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedDocument:
    """A document as it is judged: its lines, what it calls itself, and when it was fetched.

    `blocks` are those of the lines, with the regions that they stand in: it may cost a second reading, the first time.
    """

    text: str
    title: str
    at: float
    blocks: Callable[[], Blocks]


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """What is known of a page from earlier checks, and of the pages of its host, before the check of this number.

    `again` is what the page said when it was fetched once more right after. `selected` says that somebody chose what is
    read of it.
    """

    page: Memory = field(default_factory=Memory)
    host: Memory = field(default_factory=Memory)
    check: int = 0
    again: str | None = None
    selected: bool = False


def told(sentence: str, real: Sequence[Edit]) -> str:
    """The sentence that counts what changed, with what it is if that is one edit that matters."""
    if len(real) != 1:
        return sentence
    old, new = (line.text if line else "" for line in (real[0].old, real[0].new))
    what = turned(old, new) if old and new else short(old or new)
    return f"{sentence.removesuffix('.')}: {what.removesuffix('.')}."


def only(edits: Sequence[Edit], *texts: str) -> str:
    """Why these edits of the two texts are noise, in a sentence."""
    named = [noise for noise, _ in Counter(edit.noise for edit in edits).most_common(3)]
    if not named:
        one, other = (sorted(text.split("\n")) for text in texts)
        named = ["the order of things" if one == other else "how quotes, dashes or gaps are written"]
    return f"Only {listed(named)} changed."


def kind_of(edits: Sequence[Edit]) -> str:
    """What sort of change it is: of what can be had, of prices or of other numbers only, or of text."""
    told = [edit for edit in edits if not edit.noise] or edits
    if told and all(map(_says_what_can_be_had, told)):
        return "availability"
    numbers = [edit.new for edit in told if edit.new and same_words(edit) and _digits(edit.old) != _digits(edit.new)]
    if not told or len(numbers) < len(told):
        return "text"
    return "price" if all(names_money(line.text) for line in numbers) else "number"


def _says_what_can_be_had(edit: Edit) -> bool:
    lines = [line.text for line in (edit.old, edit.new) if line]
    return max(map(len, lines)) < _SHORT and any(map(names_stock, lines))


def _digits(line: Line | None) -> str:
    return "" if line is None else "".join(filter(str.isdigit, line.text))


def same_words(edit: Edit) -> bool:
    """Whether a line was rewritten in nothing but what may change by itself."""
    return edit.old is not None and edit.new is not None and edit.old.masked == edit.new.masked


def line_of(edit: Edit) -> Line:
    line = edit.new or edit.old
    assert line is not None
    return line


def words_of(edit: Edit) -> int:
    before, after = (set(line.text.split()) if line else set[str]() for line in (edit.old, edit.new))
    return len(before ^ after)
