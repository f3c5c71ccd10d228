"""Whether a difference matters: a verdict, a score and a reason in words for two readings of a page.

The blocks of the two are matched, and what is left over makes the edits. An edit is noise if something is known that
explains it: it stands where pages change by themselves, or only such tokens differ in it. A page has changed in a way
that matters if one edit is left that nothing explains.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftline.detection.fleeting import (
    COUNTER,
    IDENTIFIER,
    dates_in,
    masked,
    names_money,
    says_when,
    shift_of_dates,
    why_fleeting,
)
from driftline.model import Block, Matter, Region

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Set


_WHERE: dict[Region, str] = {
    Region.NAVIGATION: "the navigation", Region.HEADER: "the page header", Region.FOOTER: "the page footer",
    Region.ASIDE: "what stands beside the content", Region.FORM: "a form", Region.DIALOG: "a dialog",
    Region.CONSENT: "a consent banner",
}  # fmt: skip
_QUOTES = str.maketrans(
    {"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\u00ad": "", "\u200b": "", "\ufeff": ""}
)
_CONSENT = re.compile(
    r"\bcookies?\b.*\b(?:accept|consent|prefer|settings|agree|refus|manage)|we value your privacy"
    r"|^(?:accept|allow|reject|refuse|decline|deny)(?: all)?(?: cookies)?$|continue without accepting"
    r"|^(?:customi[sz]e|manage|cookie)(?: your| my)? (?:preferences|settings|choices|options)$",
    re.IGNORECASE,
)
_SKIP = re.compile(
    r"skip to (?:the )?(?:main )?(?:content|navigation|footer)|aller au contenu|zum inhalt", re.IGNORECASE
)
_PROBE = re.compile(r"mmMwWLliI0|^(\S+)(?: \1){8,}")  # texts that scripts measure fonts by
_LIKE = 0.3  # share of words that two blocks have in common if one was made from the other
_RARE = 20  # blocks: a word that stands in more of them says nothing about which is which
_CANDIDATES = 8
LONG = 400  # letters: so much matters wherever it stands
LONG_REWRITTEN = 80  # letters of a line of which a part was rewritten: menus have none such
_SHORT = 40  # letters
_PARAGRAPH = 40  # letters
_SMALL = 400  # letters


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A block that was added, removed or rewritten; `noise` says what explains it, if anything does."""

    old: Block | None
    new: Block | None
    noise: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the edits of a page amount to."""

    verdict: Matter
    score: float
    reason: str
    edits: Sequence[Edit]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A document as it is judged: its lines, what it calls itself, and when it was fetched.

    `find` reads it again and gives the blocks of these lines, with the regions that they stand in.
    """

    text: str
    title: str
    at: float
    find: Callable[[Set[str]], Sequence[Block]]


def judge(old: Read, new: Read) -> Judgement:
    """Whether what differs between the two readings matters, and why."""
    edits = _edits(old, new)
    real = [edit for edit in edits if not edit.noise]
    if not real and _moved(old.text, new.text):
        reason = "The same words stand in another order."
        return Judgement(verdict=Matter.MEANINGFUL, score=0.5, reason=reason, edits=edits)
    if real:
        words = sum(_words(edit) for edit in real)
        score = round(0.5 + 0.5 * (1 - math.exp(-words / 20)), 3)
        return Judgement(verdict=Matter.MEANINGFUL, score=score, reason="", edits=edits)
    reasons = Counter(edit.noise for edit in edits)
    named = [reason for reason, _ in reasons.most_common(3)]
    reason = f"Only {_listed(named)} changed." if named else "Only the order of things changed."
    return Judgement(verdict=Matter.NOISE, score=round(min(0.4, 0.02 * len(edits)), 3), reason=reason, edits=edits)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """What must be known of the two documents to explain an edit."""

    old_at: float
    new_at: float
    old_texts: set[str]
    new_texts: set[str]
    titles: set[str]
    jitter: set[int]
    small: bool


def _edits(old: Read, new: Read) -> list[Edit]:
    old_lines, new_lines = old.text.split("\n"), new.text.split("\n")
    before, after = _folded(old.text).split("\n"), _folded(new.text).split("\n")
    old_counts, new_counts = Counter(before), Counter(after)
    removed = [(before[at], _line(old_lines[at])) for at in _left_over(before, old_counts - new_counts)]
    added = [(after[at], _line(new_lines[at])) for at in _left_over(after, new_counts - old_counts)]
    pairs = _paired(removed, added)
    context = _Context(
        old_at=old.at, new_at=new.at, old_texts=set(old_counts), new_texts=set(new_counts),
        titles={_folded(old.title), _folded(new.title)}, jitter=_jitter(pairs), small=len(new.text) < _SMALL,
    )  # fmt: skip
    edits = [Edit(old=one, new=other, noise=_why_noise(one, other, context)) for one, other in pairs]
    open_edits = [edit for edit in edits if not edit.noise]
    if not open_edits or any(_matters_anywhere(edit, context) for edit in open_edits):
        return edits  # wherever in the documents they stand, it comes to the same
    old_places = _places(old, {edit.old.text for edit in open_edits if edit.old and not edit.new})
    new_places = _places(new, {edit.new.text for edit in open_edits if edit.new})
    return [edit if edit.noise else _placed(edit, old_places, new_places, context) for edit in edits]


def _line(text: str) -> Block:
    """A line of which nothing else is known."""
    return Block(text, Region.BODY, linked=False)


def _places(read: Read, wanted: set[str]) -> dict[str, Block]:
    """Where these lines stand; one that stands in several places counts where it says most."""
    found: dict[str, Block] = {}
    for block in read.find(wanted) if wanted else ():
        if block.text not in found or found[block.text].region in _WHERE:
            found[block.text] = block
    return found


def _placed(edit: Edit, old: dict[str, Block], new: dict[str, Block], context: _Context) -> Edit:
    one = old.get(edit.old.text, edit.old) if edit.old else None
    other = new.get(edit.new.text, edit.new) if edit.new else None
    return Edit(old=one, new=other, noise=_why_noise(one, other, context))


def _moved(old: str, new: str) -> bool:
    """Whether paragraphs that both have stand in another order."""
    before, after = ([line for line in text.split("\n") if len(line) >= _PARAGRAPH] for text in (old, new))
    once = {text for text, count in Counter(before).items() if count == 1}
    once &= {text for text, count in Counter(after).items() if count == 1}
    return [text for text in before if text in once] != [text for text in after if text in once]


def _folded(text: str) -> str:
    return text if text.isascii() else text.translate(_QUOTES)


def _left_over(texts: Sequence[str], extra: Counter[str]) -> list[int]:
    """Where the texts stand that there are too many of, the last of each, in order."""
    found: list[int] = []
    if not extra:
        return found
    for at in range(len(texts) - 1, -1, -1):
        text = texts[at]
        if text in extra and text and extra[text] > 0:
            extra[text] -= 1
            found.append(at)
    return found[::-1]


def _paired(
    removed: Sequence[tuple[str, Block]], added: Sequence[tuple[str, Block]]
) -> list[tuple[Block | None, Block | None]]:
    """Each removed block with the added one that it turned into, if there is one."""
    pairs: list[tuple[Block | None, Block | None]] = []
    by_mask: dict[str, list[int]] = defaultdict(list)
    for at in range(len(added) - 1, -1, -1):
        by_mask[masked(added[at][0])].append(at)
    taken: set[int] = set()
    unlike: list[tuple[str, Block]] = []
    for text, block in removed:
        same = by_mask.get(masked(text))
        if same:
            at = same.pop()
            taken.add(at)
            pairs.append((block, added[at][1]))
        else:
            unlike.append((text, block))
    left = [(set(text.split()), block) for at, (text, block) in enumerate(added) if at not in taken]
    where: dict[str, list[int]] = defaultdict(list)
    for at, (words, _) in enumerate(left):
        for word in words:
            where[word].append(at)
    gone: set[int] = set()
    for text, block in unlike:
        words = set(text.split())
        shared = Counter([at for word in words if len(found := where.get(word, ())) <= _RARE for at in found])
        best, most = -1, _LIKE
        for at, _ in shared.most_common(_CANDIDATES):
            others = left[at][0]
            likeness = len(words & others) / len(words | others)
            if likeness > most and at not in gone:
                best, most = at, likeness
        if best >= 0:
            gone.add(best)
        pairs.append((block, left[best][1] if best >= 0 else None))
    return pairs + [(None, block) for at, (_, block) in enumerate(left) if at not in gone]


def _jitter(pairs: Sequence[tuple[Block | None, Block | None]]) -> set[int]:
    """The shifts in days that several lone dates made alike: a server in another time zone, not an edit."""
    shifts = Counter(
        shift for one, other in pairs if one and other and (shift := shift_of_dates(one.text, other.text)) in (-1, 1)
    )
    return {shift for shift, count in shifts.items() if count > 1}


def _why_noise(one: Block | None, other: Block | None, context: _Context) -> str:
    """What explains the edit; nothing if nothing does."""
    if one and other:
        found = _why_rewritten(one, other, context)
        if found is not None:
            return found
    block = other or one
    assert block is not None
    text = _folded(block.text)
    rewritten = bool(one and other)
    if not rewritten and says_when(text) and dates_in(text):
        return ""
    if block.region in _WHERE and not _is_long(one, other):
        return _WHERE[block.region]
    if block.linked and block.region is not Region.MAIN:
        return "links"
    return "" if rewritten else _why_there(text, context.old_texts if other else context.new_texts, context.titles)


def _why_rewritten(one: Block, other: Block, context: _Context) -> str | None:
    """What explains that one block became the other; nothing if it matters, None if it depends on where it stands."""
    before, after = _folded(one.text), _folded(other.text)
    fleeting = why_fleeting(before, after, context.old_at, context.new_at)
    # where there is little else, a number may be all that the page is watched for
    if fleeting and not (context.small and fleeting in (IDENTIFIER, COUNTER)):
        return fleeting
    if shift_of_dates(before, after) in context.jitter:
        return "dates that move with the time zone"
    return "" if masked(before) == masked(after) and (dates_in(after) or names_money(after)) else None


def _matters_anywhere(edit: Edit, context: _Context) -> bool:
    if edit.old and edit.new and _why_rewritten(edit.old, edit.new, context) == "":
        return True
    return _is_long(edit.old, edit.new)


def _is_long(one: Block | None, other: Block | None) -> bool:
    """Whether so much is said that it matters wherever it stands."""
    if one and other:
        return len(other.text) >= LONG_REWRITTEN
    return max(len(block.text) for block in (one, other) if block) >= LONG


def _why_there(text: str, elsewhere: set[str], titles: set[str]) -> str:
    """What explains that a text came or went; `elsewhere` is what the other document says."""
    if text in titles:
        return "the title"
    if text in elsewhere and len(text) < _SHORT:
        return "another copy of what stands there anyway"
    if _CONSENT.search(text):
        return "a consent banner"
    return "what is there for machines" if _SKIP.search(text) or _PROBE.search(text) else ""


def _words(edit: Edit) -> int:
    before = Counter(edit.old.text.split()) if edit.old else Counter[str]()
    after = Counter(edit.new.text.split()) if edit.new else Counter[str]()
    return (before - after).total() + (after - before).total()


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
