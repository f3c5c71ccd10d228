"""Whether a difference matters: a verdict, a score and a reason in words for two readings of a page.

The lines of the two are matched, and what is left over makes the edits. An edit is noise if something is known that
explains it: it stands where pages change by themselves, only such tokens differ in it, or it was seen to come and go. A
page has changed in a way that matters if one edit is left that nothing explains.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from driftline.detection.alignment import gaps
from driftline.detection.fleeting import (
    CLOCK,
    COUNTER,
    IDENTIFIER,
    dates_in,
    names_money,
    names_stock,
    says_when,
    shift_of_dates,
    why_fleeting,
)
from driftline.detection.matching import Line, Matching, Pair, folded, key_of, match
from driftline.detection.notes import is_note
from driftline.detection.wording import Wording
from driftline.memory import Memory
from driftline.model import Block, Matter, Region

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.detection.regions import Blocks


WHERE: dict[Region, str] = {
    Region.NAVIGATION: "the navigation", Region.HEADER: "the page header", Region.FOOTER: "the page footer",
    Region.ASIDE: "what stands beside the content", Region.FORM: "a form", Region.DIALOG: "a dialog",
    Region.CONSENT: "a consent banner",
}  # fmt: skip
_BESIDE = {*WHERE.values(), "links"}
_CONSENT = Wording({
    "cookie": r"\bcookies?\b.*\b(?:accept|consent|prefer|settings|agree|refus|manage)",
    "we value your privacy": r"we value your privacy",
    "continue without accepting": r"continue without accepting",
    "we and our": r"\bwe and our (?:\d[\d.,]* )?(?:selected )?(?:third )?part(?:ner|ies)",
    "store and/or access": r"store and/or access information on a device",
})  # fmt: skip
_CONSENT_BUTTON = re.compile(
    r"(?:accept|allow|reject|refuse|decline|deny)(?: all)?(?: cookies)?"
    r"|(?:customi[sz]e|manage|cookie)(?: your| my)? (?:preferences|settings|choices|options)"
    r"|(?:manage )?(?:privacy|cookies?|consent)(?: consent)? (?:management|preferences|settings|choices|manager)",
    re.IGNORECASE,
)
_PROMOTION = re.compile(
    r"(?<!\d)(?<!\d )[-–]\d\d ?%|\d\d ?% (?:off|korting|rabatt)\b"
    r"|^\W*(?:sale|soldes|saldi|rebajas|derniers jours|last days)\b"
    r"|^\W*(?:nouvelle|new|neue) (?:collection|kollektion)\b|\b(?:offre flash|flash sale|black friday|cyber monday)\b"
    r"|\b(?:shop now|j'en profite|profitez-en|je découvre|jetzt (?:shoppen|sichern))\W*$",
    re.IGNORECASE,
)
_SKIP = Wording({
    "skip to": r"skip to (?:the )?(?:main )?(?:content|navigation|footer)",
    "aller au contenu": r"aller au contenu",
    "zum inhalt": r"zum inhalt",
})  # fmt: skip
_PROBE = re.compile(r"mmMwWLliI0|^(\S+)(?: \1){8,}")  # texts that scripts measure fonts by
LONG = 400  # letters: so much matters wherever it stands
LONG_REWRITTEN = 80  # letters of a line of which a part was rewritten: menus have none such
_SHORT = 40  # letters
_PARAGRAPH = 30  # letters
_SMALL = 400  # letters
_MUCH, _LONG_LINE, _SLOGAN = 3_000, 80, 100  # letters
_PROMOTED = "a promotion"
_DAYS = {str(day) for day in range(1, 29)}
_HEAD = 1_000  # letters of a line that are looked at
_SAME_PAGE = 0.7  # of the lines that two versions share must stand in a second fetch too
_TELLING = 0.05  # of the lines of a consent banner
_FEW_WORDS, _MANY_WORDS = 4, 15  # of a link that says something; a line of more is a menu
_MADE_ANEW = 300  # edits
_SHOWN_ANEW = 40  # edits that matter, of so many
_MOST_SAID = 200  # keys of what a user says of one change
_OTHER_PAGES = 3  # of the host, on which the same changes all the time
_COPY = "another copy of what stands there anyway"
_MENU = 3  # entries
BY_ITSELF = "what differs from one fetch to the next"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A line that was added, removed or rewritten; `noise` says what explains it, if anything does."""

    old: Line | None
    new: Line | None
    noise: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What the edits of a page amount to."""

    verdict: Matter
    score: float
    reason: str
    kind: str
    edits: Sequence[Edit]
    words_added: int = 0
    words_removed: int = 0

    @property
    def cause(self) -> bytes:
        """The same for the same edit on another page; empty if nothing was edited but what changes by itself."""
        made = [edit for edit in self.edits if not edit.noise or edit.noise in _BESIDE]
        lines = sorted(
            f"{sign}{line.folded}" for edit in made for sign, line in (("-", edit.old), ("+", edit.new)) if line
        )
        return key_of("cause", "\n".join(lines)) if lines else b""

    @property
    def by_itself(self) -> bool:
        """Whether it is noise for no other reason than that a second fetch differs."""
        return self.verdict is Matter.NOISE and any(edit.noise == BY_ITSELF for edit in self.edits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
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


def judge(old: Read, new: Read, experience: Experience | None = None) -> Judgement:
    """Whether what differs between the two readings matters, and why."""
    matching = match(old.text, new.text)
    edits = _edits(old, new, matching, experience or Experience())
    real = [edit for edit in edits if not edit.noise]
    if real:
        words = sum(_words(edit) for edit in real)
        verdict, score = Matter.MEANINGFUL, 0.5 + 0.5 * (1 - math.exp(-words / 20))
        reason = matching.sentence
    elif _moved(old, new):
        verdict, score, reason = Matter.MEANINGFUL, 0.5, "The same words stand in another order."
    else:
        verdict, score, reason = Matter.NOISE, min(0.4, 0.02 * len(edits)), only(edits)
    return Judgement(
        verdict=verdict, score=round(score, 3), reason=reason, kind=_kind(edits), edits=edits,
        words_added=matching.words_added, words_removed=matching.words_removed,
    )  # fmt: skip


def only(edits: Sequence[Edit]) -> str:
    """Why these are noise, in a sentence."""
    named = [noise for noise, _ in Counter(edit.noise for edit in edits).most_common(3)]
    return f"Only {_listed(named)} changed." if named else "Only the order of things changed."


def _kind(edits: Sequence[Edit]) -> str:
    """What sort of change it is: of prices or of other numbers only, or of text."""
    told = [edit for edit in edits if not edit.noise] or edits
    numbers = [edit.new for edit in told if edit.new and _same_words(edit)]
    if not told or len(numbers) < len(told):
        return "text"
    return "price" if all(names_money(line.text) for line in numbers) else "number"


def learn(memory: Memory, judgement: Judgement, check: int) -> list[bytes]:
    """Remember what changed at the check of this number, and say what the whole host may learn from it.

    Nothing is remembered of a page that was made anew, nor of notes if so many of them changed.
    """
    told = [edit for edit in judgement.edits if not is_note(_line(edit).text)]
    if len(told) > _MADE_ANEW:
        return []
    if len(judgement.edits) - len(told) <= _MADE_ANEW:
        told = list(judgement.edits)
    # what a second fetch undid may be a change that not all servers have yet: it must still be news when they do
    edits = [edit for edit in told if edit.noise != BY_ITSELF]
    lines = [line for edit in edits for line in (edit.old, edit.new) if line]
    memory.note({_own_keys(line)[1] for line in lines}, check)
    # of a line in which only numbers differ, the words are enough: what else comes to stand there is news
    places = {line.place for edit in edits if not _same_words(edit) for line in (edit.old, edit.new) if line}
    return memory.note({_own_keys(line)[0] for line in lines} | (places - {b""}), check)


def said_of(judgement: Judgement, matter: Matter) -> tuple[set[bytes], set[bytes]]:
    """By which a user's word on a change is remembered, for its page and for its host.

    It is about what is noise of it now if it matters, and about the rest if not. Where only numbers differ, it is about
    these words with any numbers; otherwise it is about the place, on that page: on another, the same place may hold
    anything. Of a page that was made anew, the first edits are enough.
    """
    meant = [edit for edit in judgement.edits if bool(edit.noise) == (matter is Matter.MEANINGFUL)]
    page: set[bytes] = set()
    host: set[bytes] = set()
    for edit in meant or judgement.edits:
        lines = [line for line in (edit.old, edit.new) if line]
        host |= {key for line in lines for key in _own_keys(line)}
        if not _same_words(edit):
            page |= {line.place for line in lines if line.place}
        if len(page) + len(host) > _MOST_SAID:
            break
    return page | host, host


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """What must be known of the two documents to explain an edit."""

    old_at: float
    new_at: float
    old_texts: Counter[str]
    new_texts: Counter[str]
    titles: set[str]
    jitter: set[int]
    small: bool
    widgets: dict[bytes, str]
    prose: bool
    experience: Experience
    again: set[str] | None


def _edits(old: Read, new: Read, matching: Matching, experience: Experience) -> list[Edit]:
    """Every edit with what explains it; of a page that was made anew, only as many as show that it was."""
    context = _Context(
        old_at=old.at, new_at=new.at, old_texts=matching.old, new_texts=matching.new,
        titles={folded(old.title), folded(new.title)}, jitter=_jitter(matching.pairs),
        small=experience.selected or len(new.text) < _SMALL, experience=experience, widgets=_widgets(matching.pairs),
        prose=_is_prose(matching.new), again=same_page(experience.again, matching),
    )  # fmt: skip
    edits: list[Edit] = []
    real = 0
    # what was only removed comes last: to see where it stood, the old document must be read again
    for one, other in sorted(matching.pairs, key=lambda pair: pair[1] is None):
        if real > _SHOWN_ANEW and len(matching.pairs) > _MADE_ANEW:
            break
        noise = _why_wherever(one, other, context)
        if noise is None and other:
            noise = _why_there(one, other, new) or _why_counted(one, other, new, context)
        elif noise is None:
            noise = "" if real else _why_there(one, other, old)
        edits.append(Edit(old=one, new=other, noise=noise))
        real += not noise and not _may_be_label(one, other)
    return _with_labels(edits)


def _with_labels(edits: Sequence[Edit]) -> list[Edit]:
    """The edits, those explained as headings in a menu that came or went with one."""
    there: dict[bytes, list[Edit]] = defaultdict(list)
    for edit in edits:
        there[_line(edit).place].append(edit)
    menus = {place: menu for place, among in there.items() if (menu := _menu(among))}
    return [
        replace(edit, noise=menus[place])
        if not edit.noise and (place := _line(edit).place) in menus and _may_be_label(edit.old, edit.new)
        else edit
        for edit in edits
    ]


def _menu(among: Sequence[Edit]) -> str:
    """What explains the edits of one place if a menu came or went there; nothing if none did."""
    if len(among) < _MENU:
        return ""
    others = [edit.noise for edit in among if edit.noise or not _may_be_label(edit.old, edit.new)]
    explained = len(others) >= _MENU and set(others) <= _BESIDE | {_COPY}
    return Counter(others).most_common(1)[0][0] if explained else ""


def _may_be_label(one: Line | None, other: Line | None) -> bool:
    """Whether a line that came or went says so little that it may head a list."""
    if one and other:
        return False
    line = one or other
    return line is not None and len(line.text) < _SHORT and len(line.text.split()) < _FEW_WORDS and line.masked != ""


def _same_words(edit: Edit) -> bool:
    """Whether a line was rewritten in nothing but what may change by itself."""
    return edit.old is not None and edit.new is not None and edit.old.masked == edit.new.masked


def _line(edit: Edit) -> Line:
    line = edit.new or edit.old
    assert line is not None
    return line


def placed(line: Line | None, read: Read) -> Block | None:
    """The block that a line is, unless the document reads otherwise by now."""
    if line is None:
        return None
    blocks = read.blocks()
    return blocks[line.at] if line.at < len(blocks) and blocks.lines[line.at] == line.text else None


def same_page(again: str | None, matching: Matching) -> set[str] | None:
    """The lines of a second fetch; None if it is not the same page at all, but a wall, say, or an error."""
    if again is None:
        return None
    shared = matching.old.keys() & matching.new.keys()
    there = len(shared.intersection(again.split("\n")))
    return set(folded(again).split("\n")) if there and there >= _SAME_PAGE * len(shared) else None


def _widgets(pairs: Sequence[Pair]) -> dict[bytes, str]:
    """The places where a widget came or went: a consent banner with its lists of partners, or a calendar."""
    there: dict[bytes, list[str]] = defaultdict(list)
    for pair in pairs:
        for line in pair if None in pair else ():
            if line:
                there[line.place].append(line.folded[:_HEAD])
    found: dict[bytes, str] = {}
    for place, texts in there.items():
        if sum(map(_asks_consent, texts)) >= max(1, _TELLING * len(texts)):
            found[place] = WHERE[Region.CONSENT]
        elif set(texts) >= _DAYS:
            found[place] = "a calendar"
    return found


def _asks_consent(text: str) -> bool:
    return _CONSENT_BUTTON.fullmatch(text) is not None or _CONSENT.stands_in(text)


def _is_prose(texts: Counter[str]) -> bool:
    """Whether a document is there to be read, as terms and articles are: most of it stands in long lines."""
    letters = sum(map(len, texts))
    return letters >= _MUCH and sum([len(text) for text in texts if len(text) >= _LONG_LINE]) >= letters / 2


def _moved(old: Read, new: Read) -> bool:
    """Whether paragraphs that both have stand in another order, other than links in a menu."""
    before, after = ([line for line in read.text.split("\n") if len(line) >= _PARAGRAPH] for read in (old, new))
    once = {text for text, count in Counter(before).items() if count == 1}
    once &= {text for text, count in Counter(after).items() if count == 1}
    before, after = ([text for text in texts if text in once] for texts in (before, after))
    moved = {text for gap in gaps(before, after) for text in before[gap.i : gap.j]} if before != after else set()
    return bool(moved) and any(
        block.text in moved and not (block.region in WHERE and (block.linked or block.region is Region.CONSENT))
        for block in new.blocks()
    )


def _jitter(pairs: Sequence[Pair]) -> set[int]:
    """The shifts in days that several lone dates made alike: a server in another time zone, not an edit."""
    shifts = Counter(
        shift for one, other in pairs if one and other and (shift := shift_of_dates(one.text, other.text)) in (-1, 1)
    )
    return {shift for shift, count in shifts.items() if count > 1}


def _own_keys(line: Line) -> tuple[bytes, bytes]:
    if line.keys is None:
        line.keys = key_of("masked", line.masked or line.folded), key_of("line", line.folded)
    return line.keys


def _why_wherever(one: Line | None, other: Line | None, context: _Context) -> str | None:
    """What explains the edit wherever it stands; nothing if it matters anyway, None if it depends on where it is."""
    said = said_before(one, other, context.experience)
    if said is not None:
        return said
    if context.again is not None and differs_again(one, other, context.again):
        return BY_ITSELF
    found = _why_rewritten(one, other, context) if one and other else _why_there_at_all(one, other, context)
    if found is None and not context.small:
        # where there is little else, what changes all the time may be what the page is watched for
        found = why_again(one, other, context.experience)
    return found


def differs_again(one: Line | None, other: Line | None, again: set[str]) -> bool:
    """Whether a second fetch undid the edit, or made another of it."""
    if other:
        return other.folded not in again
    return one is not None and one.folded in again


def said_before(one: Line | None, other: Line | None, experience: Experience) -> str | None:
    """What the user said of such an edit."""
    if not (experience.page or experience.host):
        return None
    for line in (other, one):
        for key in (*_own_keys(line)[::-1], line.place) if line else ():
            matter = experience.page.pinned(key) or experience.host.pinned(key)
            if matter is not None:
                return "" if matter is Matter.MEANINGFUL else "what you called noise"
    return None


def why_again(one: Line | None, other: Line | None, experience: Experience) -> str | None:
    """What earlier checks say of the edit: that it happens all the time, or that its lines come and go."""
    page, host, check = experience.page, experience.host, experience.check
    lines = [line for line in (one, other) if line]
    if not (page or host) or any(names_money(line.text) or names_stock(line.text) for line in lines):
        return None  # what prices and stocks do may be what the page is watched for, however often they do it
    if all(page.comes_and_goes(_own_keys(line)[1], check) for line in lines):
        return "what comes and goes"
    keys = [(line.place, _own_keys(line)[0]) for line in lines]
    if all(page.mutes(place, check) or page.mutes(masked, check) for place, masked in keys):
        return "what changes at nearly every check"
    if all(max(host.times(place), host.times(masked)) >= _OTHER_PAGES for place, masked in keys):
        return "what changes on other pages of the host all the time"
    return None


def _why_rewritten(one: Line, other: Line, context: _Context) -> str | None:
    """What explains that one line became the other."""
    before, after = one.folded, other.folded
    fleeting = _why_fleeting(one, other, context)
    # where there is little else, a number may be all that the page is watched for
    if fleeting and fleeting != COUNTER and not (context.small and fleeting in (CLOCK, IDENTIFIER)):
        return fleeting
    if shift_of_dates(before, after) in context.jitter:
        return "dates that move with the time zone"
    if context.prose and _is_promotion(before) and _is_promotion(after):
        return _PROMOTED
    if one.masked != other.masked:
        return None
    # a date that stands alone may be that on which the site was built: where it is decides
    return "" if dates_in(after) and one.masked and not names_money(after) else None


def _why_fleeting(one: Line, other: Line, context: _Context) -> str | None:
    """Why the difference of two lines means nothing, if it is none of words."""
    if one.masked != other.masked:
        return None
    return why_fleeting(one.folded, other.folded, context.old_at, context.new_at)


def _why_there_at_all(one: Line | None, other: Line | None, context: _Context) -> str | None:
    """What explains that a line came or went."""
    line = other or one
    assert line is not None
    text = line.folded
    if says_when(text) and dates_in(text):
        return ""
    if text in context.titles:
        return "the title"
    if len(text) < _SHORT and text in (context.old_texts if other else context.new_texts):
        return _COPY
    if line.place in context.widgets:
        return context.widgets[line.place]  # or what came and went together with it
    if context.prose and _is_promotion(text):
        return _PROMOTED
    text = text[:_HEAD]
    return "what is there for machines" if _SKIP.stands_in(text) or _PROBE.search(text) else None


def _why_there(one: Line | None, other: Line | None, read: Read) -> str:
    """What explains the edit by where it stands; nothing if nothing does.

    Links are noise beside what a document marks as its main content. Where nothing is marked, one that says something
    may be part of it.
    """
    block = placed(other or one, read)
    if block is None:
        return ""
    if one and other and one.masked == other.masked and names_money(other.text):
        # prices that stand aside from the content advertise something else; any other may be what the page is about
        aside = block.region is Region.ASIDE and read.blocks().has_main
        return WHERE[block.region] if aside else ""
    return _as_link(block, read) if _is_long(one, other) else _beside(block, read)


def _beside(block: Block, read: Read) -> str:
    """What explains an edit of a block that says little; nothing if it may be part of the content."""
    return WHERE.get(block.region) or _as_link(block, read)


def _as_link(block: Block, read: Read) -> str:
    if not block.linked or block.region is Region.MAIN:
        return ""
    says_something = _FEW_WORDS <= len(block.text.split()) <= _MANY_WORDS
    return "" if says_something and not read.blocks().has_main else "links"


def _why_counted(one: Line | None, other: Line, new: Read, context: _Context) -> str:
    """Whether only a count changed. In what a document marks as its main content, a number is what it is about."""
    if one is None or context.small:
        return ""
    block = placed(other, new)
    if block is None or block.region is Region.MAIN:
        return ""
    return COUNTER if _why_fleeting(one, other, context) == COUNTER else ""


def _is_promotion(text: str) -> bool:
    return len(text) <= _SLOGAN and bool(_PROMOTION.search(text))


def _is_long(one: Line | None, other: Line | None) -> bool:
    """Whether so much is said that it matters wherever it stands."""
    if one and other:
        return len(other.text) >= LONG_REWRITTEN
    return max(len(line.text) for line in (one, other) if line) >= LONG


def _words(edit: Edit) -> int:
    before, after = (set(line.text.split()) if line else set[str]() for line in (edit.old, edit.new))
    return len(before ^ after)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
