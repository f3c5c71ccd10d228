"""Rules that explain an edit by its text, wherever on the page it is, and by a second fetch of the page.

The second fetch is made right after a page seemed changed, to find edits that differ from one fetch to the next.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from driftline.detection.diff.lines import folded
from driftline.detection.noise.edits import Experience, NotNoise
from driftline.detection.noise.learning import alternating_noise, is_new_state, learned_noise, rule_by_feedback
from driftline.detection.noise.volatile import (
    dates_in,
    differ_in_audience,
    is_copyright_notice,
    is_other_date_format,
    names_money,
    names_revision,
    shift_of_dates,
    volatile_noise,
)
from driftline.model.change import NoiseKind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from driftline.detection.diff.lines import Line, LinePair, Matching
    from driftline.detection.noise.edits import Ruling


_SAME_PAGE = 0.7  # share of the lines of both versions that the second fetch must have too


class Wording:
    """Patterns that are searched for regardless of case, by a part of a word that every matching text contains.

    A pattern that ignores case is tried at every character of a text. It costs several times less to lower the text
    once and to search for lower case, and nothing at all to skip a pattern whose word the text does not contain.
    """

    def __init__(self, patterns: Mapping[str, str]) -> None:
        self._patterns = [(part, re.compile(pattern)) for part, pattern in patterns.items()]

    def occurs_in(self, text: str) -> bool:
        """Return whether one of the patterns matches somewhere in the text, regardless of case."""
        text = text.lower()
        return any(part in text and pattern.search(text) for part, pattern in self._patterns)


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
_OF_SITE = re.compile(r"\b(?:web ?)?site\b", re.IGNORECASE)  # 'Website last updated' in a footer
_PROBE = re.compile(r"mmMwWLliI0|^(\S+)(?: \1){8,}")  # texts that scripts measure fonts by
SHORT = 40  # characters
_MUCH, _LONG_LINE, _SLOGAN = 3_000, 80, 100  # characters
_MATTERS_IF_SMALL = (NoiseKind.CLOCK, NoiseKind.IDENTIFIER, NoiseKind.AUDIENCE)
HEAD = 1_000  # characters of a line that are searched


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the rules need to know about the two documents."""

    old_at: float
    new_at: float
    matching: Matching
    titles: set[str]
    jitter: set[int]
    small: bool
    widgets: Mapping[Line, NoiseKind]
    experience: Experience
    again: SecondFetch | None

    @cached_property
    def prose(self) -> bool:
        """Return whether the document is a text to read, such as an article."""
        return is_prose({*self.matching.new.split("\n")})

    @cached_property
    def removed(self) -> dict[bytes, list[Line]]:
        """Return the lines that were removed and became no other, by their place."""
        found: dict[bytes, list[Line]] = defaultdict(list)
        for one, other in self.matching.pairs:
            if one is not None and other is None:
                found[one.place].append(one)
        return found

    @cached_property
    def exchanged(self) -> set[bytes]:
        """Return the places where as many lines were added as removed: their text was replaced."""
        balance: Counter[bytes] = Counter()
        for one, other in self.matching.pairs:
            if one is None or other is None:
                line = one or other
                assert line is not None
                balance[line.place] += 1 if one is None else -1
        return {place for place, left in balance.items() if place and not left}


def rule_by_content(one: Line | None, other: Line | None, context: Context) -> Ruling:
    """Return the ruling on an edit by the user's feedback, a second fetch, its text and earlier checks."""
    ruling = rule_by_feedback(one, other, context.experience)
    if ruling is not NotNoise.UNDECIDED:
        return ruling
    if context.again is not None and context.again.differs(one, other):
        return NoiseKind.EVERY_FETCH
    ruling = _rule_rewritten(one, other, context) if one and other else _rule_added_or_removed(one, other, context)
    if ruling is NotNoise.UNDECIDED:
        # where there is little else, what changes all the time may be what the page is watched for
        learn = alternating_noise if context.small else learned_noise
        noise = learn(one, other, context.experience)
        return ruling if noise is None or _is_news_of_state(one, other, context) else noise
    return ruling


def _is_news_of_state(one: Line | None, other: Line | None, context: Context) -> bool:
    """Return whether what seems to change all the time is another thing in the same state, or a new state."""
    line = other or one
    assert line is not None
    there = [one] if one else context.removed.get(line.place, [])
    texts = context.matching.old, context.matching.new

    def is_repeated(line: Line) -> bool:
        return any(f"\n{text}\n".count(f"\n{line.text}\n") > 1 for text in texts)

    return is_new_state(line, there if other else (), context.experience, is_repeated=is_repeated)


def _rule_rewritten(one: Line, other: Line, context: Context) -> Ruling:
    """Return the ruling on a line that became another."""
    before, after = one.folded, other.folded
    if one.masked == other.masked and is_other_date_format(before, after):
        return NoiseKind.DATE_FORMAT
    noise = rewritten_noise(one, other, context)
    # where there is little else, a number may be all that the page is watched for
    if noise and noise is not NoiseKind.COUNTER and not (context.small and noise in _MATTERS_IF_SMALL):
        return noise
    if shift_of_dates(before, after) in context.jitter:
        return NoiseKind.TIME_ZONE
    if _is_promotion(before, context) and _is_promotion(after, context):
        return NoiseKind.PROMOTION
    if one.masked != other.masked:
        if is_copyright_notice(before) and is_copyright_notice(after):
            return NoiseKind.COPYRIGHT
        return NoiseKind.AUDIENCE if differ_in_audience(before, after) else NotNoise.UNDECIDED
    # a date that stands alone may be that on which the site was built: its region decides
    built = not one.masked or _OF_SITE.search(after)
    dates = [] if built or names_money(after) else dates_in(after)
    return NotNoise.MATTERS if dates and dates != dates_in(before) else NotNoise.UNDECIDED


def rewritten_noise(one: Line, other: Line, context: Context) -> NoiseKind | None:
    """Return why the difference of two lines with the same words means nothing; None if it may matter."""
    if one.masked != other.masked:
        return None
    return volatile_noise(one.folded, other.folded, context.old_at, context.new_at)


def _rule_added_or_removed(one: Line | None, other: Line | None, context: Context) -> Ruling:
    """Return the ruling on a line that was added or removed."""
    line = other or one
    assert line is not None
    text = line.folded
    if dates_in(text) and names_revision(text):
        return NotNoise.MATTERS
    if not context.experience.selected:  # a user who selects a part wants to know of it, wherever else it stands
        if text in context.titles:
            return NoiseKind.TITLE
        there = context.matching.old_lines if other else context.matching.new_lines
        if len(text) < SHORT and text in there and line.place not in context.exchanged:
            return NoiseKind.COPY
    if line in context.widgets:
        return context.widgets[line]
    if _is_promotion(text, context):
        return NoiseKind.PROMOTION
    text = text[:HEAD]
    for_machines = _SKIP.occurs_in(text) or _PROBE.search(text)
    return NoiseKind.FOR_MACHINES if for_machines else NotNoise.UNDECIDED


def is_prose(texts: Collection[str]) -> bool:
    """Return whether a document is a text to read, such as terms or an article: most of it stands in long lines."""
    length = sum(map(len, texts))
    return length >= _MUCH and sum([len(text) for text in texts if len(text) >= _LONG_LINE]) >= length / 2


def _is_promotion(text: str, context: Context) -> bool:
    return len(text) <= _SLOGAN and _PROMOTION.search(text) is not None and context.prose


def jitter_of(pairs: Sequence[LinePair]) -> set[int]:
    """Return the shifts in days that several lone dates share: a server in another time zone, not an edit."""
    shifts = Counter(
        shift for one, other in pairs if one and other and (shift := shift_of_dates(one.text, other.text)) in (-1, 1)
    )
    return {shift for shift, count in shifts.items() if count > 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondFetch:
    """The text of the page in the second fetch, and the places where it differs at every fetch."""

    text: str
    lines: frozenset[str]
    unsteady: frozenset[bytes]

    def differs(self, one: Line | None, other: Line | None) -> bool:
        """Return whether the second fetch does not have the edit, or has another in its place."""
        if other:
            return other.folded not in self.lines
        return one is not None and (one.folded in self.lines or one.place in self.unsteady)


def fetched_again(text: str | None, matching: Matching, pairs: Sequence[LinePair]) -> SecondFetch | None:
    """Return the second fetch as these edits are compared with it; None if it is another page, such as an error.

    It is the same page if it has most of the lines that both versions share. Where they share none, nothing can be
    concluded, and the change stands.
    """
    if text is None:
        return None
    shared = {*matching.old.split("\n")}.intersection(matching.new.split("\n"))
    there = len(shared.intersection(text.split("\n")))
    if not there or there < _SAME_PAGE * len(shared):
        return None
    lines = frozenset(folded(text).split("\n"))
    return SecondFetch(text=text, lines=lines, unsteady=_unsteady(pairs, lines))


def _unsteady(pairs: Sequence[LinePair], again: frozenset[str]) -> frozenset[bytes]:
    """Return the places where at least as many lines were added as removed, none of which the second fetch has.

    A line removed there was replaced by one that does not stay either, although they have too little in common to be
    matched as one rewritten line. Where more lines were removed than added, something is really gone.
    """
    removed = Counter(one.place for one, other in pairs if one and not other and one.folded not in again)
    added = Counter(other.place for one, other in pairs if other and not one and other.folded not in again)
    return frozenset(place for place, count in removed.items() if count <= added[place])
