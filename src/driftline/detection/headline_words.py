"""The words of a headline: what differs between two lines, and as much of the rest as it takes to understand it.

In CSV, JSON and XML every line is a record or a value with its path, and is worded as that.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, NamedTuple

from driftline.detection.diff.lines import without_hints
from driftline.detection.messages import REORDERED, excerpts
from driftline.detection.noise.edits import line_of
from driftline.detection.noise.volatile import dates_in, masked, names_money, names_revision
from driftline.model.change import ChangeKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.detection.noise.edits import LineEdit

LONGEST = 120  # characters of a headline
LONGEST_SIDE = 44  # characters of what was, and of what is
LONGEST_ENTRY = 90  # characters of an entry that was added or removed
ROOM_FOR_REST = 16  # characters for '(and 1,234 more)'
PUNCTUATION = " \t,;:–—-|·•"
ENDS_SENTENCE, ENDS_CLAUSE = (".", "!", "?"), (".", "!", "?", ",", ";", ":", ")")
_LONGEST_LABEL, _LONGEST_PATH = 40, 60
_UNSEEN = dict.fromkeys((0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF))
_FEW_WORDS, _MANY_WORDS = 4, 6
_AROUND = 3  # words
_APART = 3  # words that two differences of a line have between them, unless they are one
_LONGEST_COMPARED = 100  # words of a line in which differences are told apart
# a value of XML: its path, in which brackets name the element by one of its values
_XML_PATH = re.compile(r"(/[^\s:\[]+(?:\[[^\]]*\][^\s:\[]*)*): (.*)", re.DOTALL)
_XML_NAME = re.compile(r".*\[([^=\]]+)=([^\]]*)\]/?(.*)")
_JSON_NAME = re.compile(r"(.*\[([^=\]]+)=([^\]]*)\])\.\2: \3")
_FIELD = re.compile(r"([^|:]+): (.*)")
_JSON_PATH = re.compile(r"(\$[^\s:]*(?:\[[^\]]*\][^\s:]*)*): (.*)", re.DOTALL)
_UNIT = re.compile(
    r"(?:%|°[cf]?|[€$£¥]|eur|euros?|usd|gbp|chf|kr|sek|dollars?|days?|hours?|minutes?|weeks?|months?|years?|people|tage?n?"
    r"|jours|días|giorni|stunden|wochen|monate|mois|jahre|ans|km|kg|mb|gb|tb|ms|points?|seats?|items?|stars?)\W*",
    re.IGNORECASE,
)
_SECTION = re.compile(r"[(]?\d+(?:\.\d+)*[.)]|\d+(?:\.\d+)+")
_CURRENCY = re.compile(r"[€$£¥]|\b(?:eur|usd|gbp|chf|sek|kr)\b", re.IGNORECASE)
_MEASURE = re.compile(r" (?:%|°|days?|hours?|weeks?|months?|years?|[ckm]?m\b|k?g\b)", re.IGNORECASE)
_TIME = re.compile(r"\b\d{1,2}:\d{2}\b")
_NUMBER = re.compile(r"[€$£¥]?\d")
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # also those of the direction of writing
_VERSION = re.compile(r"\bv?\d+(?:\.\d+)+\b")


_LETTERS = re.compile(r"[^\W\d_]{2,}")
# a phrase does not end with one of these
_STOPS = re.compile(
    r"(?:an?|and|are|as|at|by|for|from|in|is|of|on|or|per|that|the|to|was|with|der|die|das|und|von|de|du|la|le|les|et)\Z",
    re.IGNORECASE,
)
_AGES = re.compile(r"\b(?:just now|(?:a|an|second|minute|hour|day|week|month|year)s?)\b")
_BETWEEN = ("·", "|", "–", "-", "—", "•")
_LONGEST_PATTERN = 1_000  # characters of a line in which a path is looked for


class Difference(NamedTuple):
    """The words that two lines begin with, those that only the old or the new one has, and those that both end with."""

    prefix: list[str]
    gone: list[str]
    come: list[str]
    suffix: list[str]

    @property
    def is_few(self) -> bool:
        """Whether a few words became others."""
        return bool(self.gone) and bool(self.come) and max(len(self.gone), len(self.come)) <= _MANY_WORDS

    @property
    def is_sentence(self) -> bool:
        """Whether a sentence, or many words, were added to a line or removed from it."""
        within = bool(self.prefix) and not self.prefix[-1].endswith(ENDS_SENTENCE)
        words = self.come or self.gone
        return not (self.gone and self.come) and len(words) >= (_MANY_WORDS if within else _FEW_WORDS)

    @property
    def is_dated(self) -> bool:
        """Whether the number that differs is one of a date, or of when the document was changed."""
        before, after = (" ".join([*self.prefix, *words, *self.suffix]) for words in (self.gone, self.come))
        old, new = dates_in(before), dates_in(after)
        return bool(new) and old != new and (bool(old) or names_revision(after))

    @property
    def is_numbering(self) -> bool:
        """Whether only the number of a section changed, as by sections that were added above it."""
        both = self.gone, self.come
        starts = not self.prefix and bool(self.suffix)
        return starts and all(len(words) == 1 and _SECTION.fullmatch(words[0]) for words in both)


class ChangedNumber(NamedTuple):
    """A number, price, date or version that became another: the words before, both, and the words after."""

    prefix: list[str]
    bare: tuple[str, str]
    tail: str
    money: bool
    version: bool
    dated: bool

    @classmethod
    def of(cls, found: Difference, kind: ChangeKind, *, dated: bool) -> ChangedNumber:
        """Return the number that differs, with its currency, and the day of a date with its month."""
        prefix, gone, come, suffix = found
        if _CURRENCY.fullmatch(suffix[0].strip(".,;")) if suffix else False:
            gone, come, suffix = [*gone, suffix[0]], [*come, suffix[0]], suffix[1:]
        if prefix and _CURRENCY.fullmatch(prefix[-1]):
            gone, come, prefix = [prefix[-1], *gone], [prefix[-1], *come], prefix[:-1]
        while suffix and not come[-1].endswith(ENDS_CLAUSE) and masked(f"1 {suffix[0]}") == "":
            gone, come, suffix = [*gone, suffix[0]], [*come, suffix[0]], suffix[1:]
        old, new = (_without_punctuation(" ".join(words)).rstrip(".") for words in (gone, come))
        money = kind is ChangeKind.PRICE or names_money(old) or names_money(new)
        measured = bool(suffix) and _UNIT.fullmatch(suffix[0]) is not None
        version = not measured and bool(_VERSION.search(old) and _VERSION.search(new))
        tail = "" if version or dated or come[-1].endswith(ENDS_CLAUSE) else tail_of(suffix, whole=money)
        return cls(prefix, (old, new), tail, money, version, dated)

    @property
    def rank(self) -> int:
        """How important it is: a price more than a version, and a count less than words."""
        if self.dated:
            return 8
        if self.money or self.version:
            return 1 if self.money else 2
        is_time = _TIME.search(self.bare[1]) is not None and not _LETTERS.search(masked(self.bare[1]))
        return 7 if is_time else 4 if _MEASURE.match(self.tail) else 6

    def named(self) -> str:
        """Return the number where nothing else on the page says what it is."""
        noun = "Price " if self.money else "Version " if self.version else ""
        return f"{'' if _LETTERS.search(masked(self.bare[0])) else noun}{arrow(*self.bare)}{self.tail}"


def _without_punctuation(text: str) -> str:
    """Return a number without the signs around it, but with its minus."""
    bare = text.strip(PUNCTUATION)
    return f"-{bare}" if text.lstrip(PUNCTUATION[:-4]).startswith("-") and _NUMBER.match(bare) else bare


def difference(before: str, after: str) -> Difference:
    """Return where two lines differ: all from the first word that differs to the last."""
    one, other = before.split(), after.split()
    most = min(len(one), len(other))
    start = next((at for at, (old, new) in enumerate(zip(one, other, strict=False)) if old != new), most)
    end = 0
    while end < most - start and one[-1 - end] == other[-1 - end]:
        end += 1
    return Difference(
        one[:start], one[start : len(one) - end], other[start : len(other) - end], one[len(one) - end :]
    )  # fmt: skip


def largest_difference(found: Difference) -> Difference:
    """Return the largest of several differences that are far apart, in which more than numbers and signs differ."""
    if max(len(found.gone), len(found.come)) > _LONGEST_COMPARED:
        return found
    one, other = found.gone, found.come
    i, j, k, m = _telling_part(one, other)
    # only words that both have stand around it: of other differences, neither the old nor the new words are shown
    before, after = _same_at_end(one[:i], other[:k]), _same_at_end(one[j:][::-1], other[m:][::-1])
    prefix = [*found.prefix, *one[:i]] if before == max(i, k) else ["…", *one[i - before : i]]
    suffix = [*one[j:], *found.suffix] if after == max(len(one) - j, len(other) - m) else [*one[j : j + after], "…"]
    return Difference(prefix, one[i:j], other[k:m], suffix)


def _same_at_end(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words two texts have in common at their ends."""
    same = 0
    while same < min(len(one), len(other)) and one[-1 - same] == other[-1 - same]:
        same += 1
    return same


def _telling_part(one: Sequence[str], other: Sequence[str]) -> tuple[int, int, int, int]:
    """Return where the largest part begins and ends in which more than numbers and signs differ, in both."""
    whole = 0, len(one), 0, len(other)
    parts: list[tuple[int, int, int, int]] = []
    for tag, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if parts and a - parts[-1][1] < _APART:
            parts[-1] = parts[-1][0], b, parts[-1][2], d
        else:
            parts.append((a, b, c, d))
    if len(parts) < 2:
        return whole
    texts = [(" ".join(one[part[0] : part[1]]), " ".join(other[part[2] : part[3]])) for part in parts]
    telling = [
        part
        for part, (before, after) in zip(parts, texts, strict=True)
        if not is_trivial(before, after) and _lasting(before) != _lasting(after)
    ]
    return max(telling, key=lambda part: part[1] - part[0] + part[3] - part[2], default=whole)


def _lasting(text: str) -> list[str]:
    """Return the words of a text without numbers, dates and how long ago something was."""
    return _AGES.sub(" ", masked(text)).split()


def is_trivial(before: str, after: str) -> bool:
    """Return whether two texts differ in capital letters, white space and punctuation alone."""
    one, other = ("".join(filter(str.isalnum, text)).casefold() for text in (before, after))
    return one == other


def sides(before: str, after: str) -> str:
    """Return what was and what is: 'ok → degraded'."""
    return arrow(cut(before.strip(), LONGEST_SIDE), cut(after.strip(), LONGEST_SIDE))


def arrow(before: str, after: str) -> str:
    """Return both with an arrow between them, in quotes if they have arrows of their own."""
    return f"“{before}” → “{after}”" if "→" in before or "→" in after else f"{before} → {after}"


def in_words(found: Difference, room: int) -> str:
    """Return the words that differ with some that stand around them: '… due within ten days → … due within a week'.

    The whole lines are shown if there is room for so many characters, else some words of the same sentence.
    """
    prefix, gone, come, suffix = found
    if max(map(len, (*gone, *come)), default=0) > LONGEST_SIDE:
        # a script without spaces: what differs is somewhere within the word
        return arrow(*excerpts(" ".join(gone), " ".join(come), LONGEST_SIDE))
    lead, tail = [*prefix], [*suffix]
    room -= len(" → ")

    def widths() -> list[int]:
        dots = 2 if len(lead) < len(prefix) else 0
        return [dots + len(" ".join([*lead, *words, *tail])) for words in (gone, come)]

    if len(lead) + len(tail) > room or sum(widths()) > room:
        lead, tail = (
            lead[-_AROUND:],
            _same_sentence([*(come or gone)[-1:], *tail[:_AROUND]])[len((come or gone)[-1:]) :],
        )
        while tail and sum(widths()) > room:
            tail.pop()
        least = 0 if gone and come else 1
        while len(lead) > least and sum(widths()) > room:
            lead.pop(0)
        while tail and len(tail) < len(suffix) and _STOPS.fullmatch(tail[-1]):
            tail.pop()
    dots = "… " if len(prefix) > len(lead) else ""
    width = widths()
    half = room // 2
    most = max(half, room - width[1]), max(half, room - width[0])
    both = [dots + " ".join([*lead, *words, *tail]) for words in (gone, come)]
    return arrow(*(cut(text, size) for text, size in zip(both, most, strict=True)))


def _same_sentence(words: Sequence[str]) -> list[str]:
    """Return the words up to the end of the sentence."""
    end = next((at for at, word in enumerate(words) if word.endswith(ENDS_SENTENCE)), len(words))
    return [*words[: end + 1]]


def value_of(line: str) -> str:
    """Return a line of XML as the value, with the name of its element if it has one; any other line as it is.

    A value of JSON that names an object stands for the object: '$.plans[name=Team].name: Team'.
    """
    if line.startswith("$"):
        named = _JSON_NAME.fullmatch(line[:_LONGEST_PATTERN])
        return named[1] if named else line
    found = _XML_PATH.fullmatch(line) if line.startswith("/") and len(line) <= _LONGEST_PATTERN else None
    if found is None:
        return line
    label = _xml_label(found[1], found[2])
    return f"{label}: {found[2]}" if label else found[2]


def object_of(line: str) -> str:
    """Return which object a line of JSON or XML is a value of: its path up to the name; empty if it has none."""
    path = line[:_LONGEST_PATTERN].partition(": ")[0]
    return path[: path.rfind("]") + 1]


def _xml_label(path: str, value: str) -> str:
    """Return what names a value of XML, which is nothing if the value itself names its element."""
    found = _XML_NAME.fullmatch(path)
    if found is None:
        return path
    if found[2] == value:
        return ""
    return f"{found[2]} / {found[3]}" if found[3] else found[2]


def changed_field(before: str, after: str) -> str | None:
    """Return the words for a row of CSV, whose fields have names, in which one or two fields changed."""
    if " | " not in before or " | " not in after:
        return None
    fields = [[_FIELD.fullmatch(part) for part in line.split(" | ")] for line in (before, after)]
    if len(fields[0]) != len(fields[1]) or not all(map(all, fields)):
        return None
    pairs = [(one, other) for one, other in zip(*fields, strict=True) if one and other and one[1] == other[1]]
    changed = [(one, other) for one, other in pairs if one[2] != other[2]]
    named = [one[2] for one, other in pairs if one[2] == other[2] and one[2]]
    if len(pairs) != len(fields[0]) or not 0 < len(changed) <= 2 or not named:
        return None
    what = ", ".join(f"{one[1].strip()} {sides(one[2], other[2])}" for one, other in changed)
    return f"{cut(', '.join(named[:2]), _LONGEST_LABEL)}: {what}"


def changed_value(before: str, after: str) -> str | None:
    """Return the words for a value of JSON or XML that changed."""
    if before[:1] not in ("$", "/") or max(len(before), len(after)) > _LONGEST_PATTERN:
        return None
    json = _JSON_PATH.fullmatch(before), _JSON_PATH.fullmatch(after)
    if json[0] and json[1] and json[0][1] == json[1][1]:
        return f"{cut(json[0][1], _LONGEST_PATH)}: {sides(json[0][2], json[1][2])}"
    one, other = _XML_PATH.fullmatch(before), _XML_PATH.fullmatch(after)
    if one is None or other is None:
        return None
    if one[1] == other[1]:
        return f"{cut(_xml_label(other[1], other[2]), _LONGEST_PATH)}: {sides(one[2], other[2])}"
    # the value that names the element is another one
    names = _XML_NAME.fullmatch(one[1]), _XML_NAME.fullmatch(other[1])
    if not names[0] or not names[1] or names[0][2] == names[1][2]:
        return None
    return arrow(*excerpts(names[0][2], names[1][2], LONGEST_SIDE))


def are_stamps(before: str, after: str) -> bool:
    """Return whether two values are points in time."""
    values = (text.partition(": ")[2] for text in (before, after))
    return all(bool(dates_in(value)) and not masked(value) for value in values)


def tail_of(suffix: Sequence[str], *, whole: bool = False) -> str:
    """Return what follows a number: its unit, or a few words up to the end of the clause.

    Of a longer clause, the first words are enough, unless it is to be `whole`.
    """
    if not suffix:
        return ""
    if _UNIT.fullmatch(suffix[0]):
        return f" {suffix[0].rstrip('.,;)')}"
    clause: list[str] = []
    for word in suffix:
        if word in _BETWEEN:
            break
        clause.append(word)
        if word.endswith(ENDS_CLAUSE):
            break
    if len(clause) > _AROUND:
        del clause[0 if whole else _AROUND - 1 :]
        while clause and _STOPS.fullmatch(clause[-1]):
            clause.pop()
    return f" {cut(' '.join(clause), _LONGEST_LABEL)}".rstrip(PUNCTUATION + ".!?)")


def reordered(line: str) -> str:
    """Return the headline of a page of which lines such as this one have another order."""
    named = any(map(str.isalpha, line))
    return f"In another order: {cut(line, LONGEST_ENTRY)}" if named else REORDERED.removesuffix(".")


def exchanged(lines: Sequence[tuple[str, str, str]]) -> str:
    """Return the headline of lines that changed places, each with the line above it: 'Gold: Ann → Bob (and 1 more)'."""
    above, before, after = lines[0]
    label = f"{cut(above, _LONGEST_LABEL)}: " if above else ""
    return counted(f"{label}{sides(before, after)}", len(lines) - 1)


def restyled(edits: Sequence[LineEdit]) -> str:
    """Return the headline of lines with other quotes, dashes, gaps or hints; empty if they differ in more."""
    if not all(_looks_alike(edit) for edit in edits):
        return ""
    before, after = (line.text if line else "" for line in (edits[0].old, edits[0].new))
    if not before or not after:
        return counted(f"{'New' if after else 'Removed'}: {cut(after or before, LONGEST_ENTRY)}", len(edits) - 1)
    if _seen(before) == _seen(after):
        return counted(f"Characters that cannot be seen: {cut(after, LONGEST_SIDE)}", len(edits) - 1)
    shown = [cut(text, LONGEST_SIDE) for text in excerpts(before, after, LONGEST_SIDE)]
    return counted(arrow(*shown), len(edits) - 1)


def _looks_alike(edit: LineEdit) -> bool:
    if edit.old is None or edit.new is None:
        return without_hints(line_of(edit).folded) == ""
    one, other = (without_hints(line.folded).replace(" ", "") for line in (edit.old, edit.new))
    return one == other


def _seen(text: str) -> str:
    """Return the text without characters of no width, and with plain spaces."""
    return " ".join(text.translate(_UNSEEN).split())


def counted(first: str, more: int) -> str:
    """Return a headline with how many other parts there are."""
    if not more:
        return cut(first, LONGEST)
    return f"{cut(first, LONGEST - ROOM_FOR_REST)} (and {more:,} more)"


def cut(text: str, most: int = LONGEST) -> str:
    """Return a text on one line without control characters, cut at a word to at most so many characters."""
    text = " ".join(text[: 4 * most].split())
    if not text.isprintable():
        text = _CONTROLS.sub("", text)
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut[most // 2 :] else cut).rstrip(PUNCTUATION) + "…"
