"""Patterns of words that are looked for in any case, in a fraction of the time that a pattern of any case takes.

A pattern that ignores case is tried letter by letter at every place of a text. It costs several times less to lower the
text once and to look for what is written in lower case, and nothing at all to leave a pattern out whose most telling
word the text does not have.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from driftline.detection.noise.edits import BY_ITSELF, Experience
from driftline.detection.noise.learning import said_before, why_again
from driftline.detection.noise.volatile import (
    AUDIENCE,
    CLOCK,
    COUNTER,
    IDENTIFIER,
    dates_in,
    names_money,
    says_when,
    shift_of_dates,
    why_fleeting,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from driftline.detection.diff.lines import Line, Matching, Pair
    from driftline.detection.noise.refetch import Again


class Wording:
    """Patterns in lower case, each under a part of a word that every text has in which it is found."""

    def __init__(self, patterns: Mapping[str, str]) -> None:
        self._patterns = [(part, re.compile(pattern)) for part, pattern in patterns.items()]

    def stands_in(self, text: str) -> bool:
        """Whether one of the patterns is found in the text, in whatever case."""
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
_PROBE = re.compile(r"mmMwWLliI0|^(\S+)(?: \1){8,}")  # texts that scripts measure fonts by
SHORT = 40  # letters
_MUCH, _LONG_LINE, _SLOGAN = 3_000, 80, 100  # letters
_PROMOTED = "a promotion"
_TOLD_IF_SMALL = (CLOCK, IDENTIFIER, AUDIENCE)
HEAD = 1_000  # letters of a line that are looked at
COPY = "another copy of what stands there anyway"


@dataclass(frozen=True, kw_only=True)
class Context:
    """What must be known of the two documents to explain an edit."""

    old_at: float
    new_at: float
    matching: Matching
    titles: set[str]
    jitter: set[int]
    small: bool
    widgets: Mapping[Line, str]
    experience: Experience
    again: Again | None

    @cached_property
    def prose(self) -> bool:
        """Whether the document is there to be read."""
        return is_prose({*self.matching.new.split("\n")})

    @cached_property
    def exchanged(self) -> set[bytes]:
        """The places in which as many lines came as went: what stood there says something else now."""
        balance: Counter[bytes] = Counter()
        for one, other in self.matching.pairs:
            if one is None or other is None:
                line = one or other
                assert line is not None
                balance[line.place] += 1 if one is None else -1
        return {place for place, left in balance.items() if place and not left}


def why_wherever(one: Line | None, other: Line | None, context: Context) -> str | None:
    """What explains the edit wherever it stands; nothing if it matters anyway, None if it depends on where it is."""
    said = said_before(one, other, context.experience)
    if said is not None:
        return said
    if context.again is not None and context.again.differs(one, other):
        return BY_ITSELF
    found = _why_rewritten(one, other, context) if one and other else _why_there_at_all(one, other, context)
    if found is None and not context.small:
        # where there is little else, what changes all the time may be what the page is watched for
        found = why_again(one, other, context.experience)
    return found


def _why_rewritten(one: Line, other: Line, context: Context) -> str | None:
    """What explains that one line became the other."""
    before, after = one.folded, other.folded
    fleeting = why_means_nothing(one, other, context)
    # where there is little else, a number may be all that the page is watched for
    if fleeting and fleeting != COUNTER and not (context.small and fleeting in _TOLD_IF_SMALL):
        return fleeting
    if shift_of_dates(before, after) in context.jitter:
        return "dates that move with the time zone"
    if _is_promotion(before, context) and _is_promotion(after, context):
        return _PROMOTED
    if one.masked != other.masked:
        return None
    # a date that stands alone may be that on which the site was built: where it is decides
    return "" if dates_in(after) and one.masked and not names_money(after) else None


def why_means_nothing(one: Line, other: Line, context: Context) -> str | None:
    """Why the difference of two lines means nothing, if it is none of words."""
    if one.masked != other.masked:
        return None
    return why_fleeting(one.folded, other.folded, context.old_at, context.new_at)


def _why_there_at_all(one: Line | None, other: Line | None, context: Context) -> str | None:
    """What explains that a line came or went."""
    line = other or one
    assert line is not None
    text = line.folded
    if dates_in(text) and says_when(text):
        return ""
    if text in context.titles:
        return "the title"
    there = context.matching.old_lines if other else context.matching.new_lines
    if len(text) < SHORT and text in there and line.place not in context.exchanged:
        return COPY
    if line in context.widgets:
        return context.widgets[line]
    if _is_promotion(text, context):
        return _PROMOTED
    text = text[:HEAD]
    return "what is there for machines" if _SKIP.stands_in(text) or _PROBE.search(text) else None


def is_prose(texts: Collection[str]) -> bool:
    """Whether a document is there to be read, as terms and articles are: most of it stands in long lines."""
    letters = sum(map(len, texts))
    return letters >= _MUCH and sum([len(text) for text in texts if len(text) >= _LONG_LINE]) >= letters / 2


def _is_promotion(text: str, context: Context) -> bool:
    return len(text) <= _SLOGAN and _PROMOTION.search(text) is not None and context.prose


def jitter_of(pairs: Sequence[Pair]) -> set[int]:
    """The shifts in days that several lone dates made alike: a server in another time zone, not an edit."""
    shifts = Counter(
        shift for one, other in pairs if one and other and (shift := shift_of_dates(one.text, other.text)) in (-1, 1)
    )
    return {shift for shift, count in shifts.items() if count > 1}
