"""Find the lines in which two texts differ, pair those that belong together, and name the places they stand in."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from xxhash import xxh3_64_digest

from driftline.detection.noise.volatile import counts_audience, masked

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

_ALIKE = (
    ("’", "'"), ("‘", "'"), ("“", '"'), ("”", '"'), ("–", "-"), ("—", "-"),
    ("\u00ad", ""), ("\u200b", ""), ("\ufeff", ""),
)  # fmt: skip
# what a link says of itself to people who do not see where it opens, in brackets or not
_HINTS = re.compile(
    r"[(\[]?\b(?:(?:(?:this )?(?:external )?link )?(?:will )?opens? (?:in|an?) (?:an? )?(?:new|external|other|another)"
    r" (?:browser )?(?:window|tab|site)"
    r"|(?:link )?(?:wird |öffnet )(?:sich )?(?:in )?(?:eine[mnrs]? )?neue[mnrs]? (?:browser)?(?:fenster|tab)"
    r"(?: geöffnet)?"
    r"|(?:ouvre|s'ouvre|ouverture|ouvrir) (?:dans )?(?:une nouvelle fenêtre|un nouvel onglet)"
    r"|(?:se )?abre en (?:una )?(?:nueva (?:ventana|pestaña)|(?:ventana|pestaña) nueva)"
    r"|(?:si )?apre (?:in )?una nuova (?:finestra|scheda)|(?:se )?abre (?:n|em )?(?:uma )?nova (?:janela|aba|guia)"
    r"|opent (?:in )?(?:een )?nieuw (?:venster|tabblad)|öppnas i (?:ett )?ny(?:tt)? (?:fönster|flik)"
    r"|(?:åbner|åpnes) i (?:et )?nyt?t? (?:vindue?|fane)|otwiera się w nowe[jm] (?:karcie|oknie))\b[)\]]?"
    r"|[(\[](?:external link|link is external|new window|new tab|external site|nouvelle fenêtre|nouvel onglet"
    r"|lien externe)[)\]]",
    re.IGNORECASE,
)
_SIGNS_OF_HINTS = (
    "window", "new tab", "other tab", "external tab", "external site", "external link", "is external", "new site",
    "fenster", "neuem tab", "neuen tab", "fenêtre", "onglet", "lien externe", "ventana", "pestaña", "finestra",
    "scheda", "janela", "nova aba", "nova guia", "nieuw ", "fönster", "ny flik", " vindu", " fane", "oknie", "karcie",
)  # fmt: skip
_LETTER = re.compile(r"[^\W\d_]")
_GAP_IN_NUMBER = re.compile(r"\d+(?: \d+)+")
_GAP_OF_WORDS = re.compile(r"(?<!\d) | (?!\d)")
_DIGIT = re.compile(r"\d")
_NEAR = 6  # lines above a number in which its label is searched
_LIKE = 0.3  # share of words that two lines have in common if one was made from the other
_RARE = 20  # lines: a word in more of them does not help to pair lines
_CANDIDATES = 8
_SOME = 20  # pairs
_MOST = 400  # lines on one side: with more of them it is another page, and nothing is paired


@dataclass(slots=True, eq=False)
class Line:
    """A line that only one of the two texts has.

    `folded` is the line with one kind of quote and dash, and `masked` that without numbers, dates and identifiers.
    `place` is a hash of the lines above and below it that both texts have, and is empty if there are none. `label` is
    the nearest line above it with a word, and empty for a line that has words itself. `keys` caches those that
    `noise.learning` computes.
    """

    at: int
    text: str
    folded: str
    masked: str
    place: bytes
    label: str = ""
    keys: tuple[bytes, bytes] | None = None


LinePair = tuple[Line | None, Line | None]


@dataclass(frozen=True, kw_only=True)
class Matching:
    """The lines that were removed, added or rewritten, and both texts.

    Lines that differ in nothing but quotes, dashes, gaps, characters of no width and hints such as '(opens in a new
    window)' are `restyled`, and count for nothing else. Words that were only moved from one of these lines to another
    are neither added nor removed.
    """

    pairs: list[LinePair]
    restyled: list[LinePair]
    old: str
    new: str
    words_added: int
    words_removed: int
    places: int

    @cached_property
    def old_lines(self) -> Container[str]:
        """Return the lines of the old text, to test whether one is among them."""
        return self._lines(self.old)

    @cached_property
    def new_lines(self) -> Container[str]:
        """Return the lines of the new text, to test whether one is among them."""
        return self._lines(self.new)

    def _lines(self, text: str) -> Container[str]:
        # splitting a text costs as much as searching it for some twenty lines
        return _Searched(f"\n{text}\n") if len(self.pairs) < _SOME else frozenset(text.split("\n"))


def match(old: str, new: str) -> Matching:
    """Compare two texts by line."""
    before, after = _middles(old, new)
    old_counts, new_counts = Counter(before.lines), Counter(after.lines)
    removed = _lines(before, _left_over(before.lines, old_counts, new_counts))
    added = _lines(after, _left_over(after.lines, new_counts, old_counts))
    restyled = _restyled(removed, added)
    if restyled:
        same = {id(line) for pair in restyled for line in pair}
        removed, added = ([line for line in lines if id(line) not in same] for lines in (removed, added))
    gone, come = (" ".join([line.text for line in lines]).split() for lines in (removed, added))
    there, here = Counter(gone if come else ()), Counter(come if gone else ())
    stayed = sum([min(there[word], here[word]) for word in there.keys() & here.keys()])
    return Matching(
        pairs=_paired(removed, added), restyled=restyled, old=old, new=new, words_added=len(come) - stayed,
        words_removed=len(gone) - stayed, places=len({line.place for line in (*removed, *added)}),
    )  # fmt: skip


class _Searched:
    """The lines of a text, which is searched for each of them."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __contains__(self, line: object) -> bool:
        return f"\n{line}\n" in self._text


class _Middle(NamedTuple):
    """The lines of a text between a start and an end that another text shares, and the lines above and below."""

    lines: list[str]
    start: int
    above: str
    below: str


def _middles(old: str, new: str) -> tuple[_Middle, _Middle]:
    """Return the part of each text from the first line that differs to the last: most changes are close together."""
    shared = min(len(old), len(new))
    ends = len(old), len(new)

    def same_tail(start: int, end: int) -> bool:
        return old[ends[0] - end : ends[0] - start] == new[ends[1] - end : ends[1] - start]

    head = old.rfind("\n", 0, _same(lambda start, end: old[start:end] == new[start:end], shared)) + 1
    tail = _same(same_tail, shared - head)
    last = old.find("\n", len(old) - tail) if tail else -1
    tail = len(old) - last if last >= 0 else 0
    above = old[old.rfind("\n", 0, head - 1) + 1 : head - 1] if head else ""
    below = old[last + 1 :].partition("\n")[0] if tail else ""
    start = old.count("\n", 0, head)
    before, after = (_Middle(text[head : len(text) - tail].split("\n"), start, above, below) for text in (old, new))
    return before, after


def _same(are_same: Callable[[int, int], bool], most: int) -> int:
    """Return how many characters are the same in both texts, at most `most`, by bisection."""
    least = 0
    while least < most:
        half = (least + most + 1) // 2
        if are_same(least, half):
            least = half
        else:
            most = half - 1
    return least


def folded(text: str) -> str:
    """Return the text with one kind of quote and dash, and without characters of no width."""
    if text.isascii():
        return text
    for found, used in _ALIKE:
        # ten times faster than one pass with a lookup for every character
        if found in text:
            text = text.replace(found, used)
    return text


def key_of(kind: str, text: str) -> bytes:
    """Return a hash of a text. The same text has another one for each kind."""
    return xxh3_64_digest(f"{kind}\n{text}".encode("utf-8", "surrogatepass"))


def _left_over(texts: Sequence[str], counts: Counter[str], others: Counter[str]) -> list[int]:
    """Return the indexes of lines that occur more often than in the other document: the last ones, in order."""
    extra = {text: count - n for text, count in counts.items() if text and count > (n := others.get(text, 0))}
    found: list[int] = []
    for at in reversed([at for at, text in enumerate(texts) if text in extra] if extra else []):
        text = texts[at]
        if extra[text]:
            extra[text] -= 1
            found.append(at)
    return found[::-1]


def _lines(middle: _Middle, left_over: Sequence[int]) -> list[Line]:
    """Return the lines at these indexes, each with its place; adjacent lines share one."""
    texts = middle.lines
    found: list[Line] = []
    start = 0
    while start < len(left_over):
        end = start + 1
        while end < len(left_over) and left_over[end] == left_over[end - 1] + 1:
            end += 1
        first, last = left_over[start], left_over[end - 1]
        above = texts[first - 1] if first else middle.above
        below = texts[last + 1] if last + 1 < len(texts) else middle.below
        place = key_of("place", f"{above}\n{below}") if above or below else b""
        for at in left_over[start:end]:
            plain = folded(texts[at])
            stable = masked(plain)
            label = "" if _LETTER.search(stable) else label_above(texts, at, middle.above)
            found.append(Line(middle.start + at, texts[at], plain, stable, place, label))
        start = end
    return found


def label_above(texts: Sequence[str], at: int, first: str = "") -> str:
    """Return the nearest line above with a word that is no number or date, `first` being above all; else nothing."""
    for above in range(at - 1, max(-1, at - 1 - _NEAR), -1):
        if _LETTER.search(stable := masked(folded(texts[above]))):
            return stable
    return masked(folded(first)) if at < _NEAR else ""


def is_value(text: str) -> bool:
    """Return whether a line is a number, a price or the like, but no count of comments and such."""
    return _DIGIT.search(text) is not None and not _LETTER.search(masked(folded(text))) and not counts_audience(text)


def _restyled(removed: Sequence[Line], added: Sequence[Line]) -> list[LinePair]:
    """Return the lines that both texts have, apart from quotes, dashes, gaps and hints; lines that are only a hint."""
    if not removed and not added:
        return []
    pairs: list[LinePair] = []
    # to search each line for every sign would take as long as all the rest of the comparison
    signs = _signs_in("\n".join([line.folded for line in (*removed, *added)]), _SIGNS_OF_HINTS)
    there: dict[str, list[Line]] = defaultdict(list)
    for line in reversed(added):
        if key := _styleless(line, signs):
            there[key].append(line)
        else:
            pairs.append((None, line))
    for line in removed:
        key = _styleless(line, signs)
        if not key:
            pairs.append((line, None))
        elif (same := there.get(key)) and _has_same_numbers(line, same[-1]):
            pairs.append((line, same.pop()))
    return pairs


def _styleless(line: Line, signs: Sequence[str]) -> str:
    hinted = signs and _signs_in(line.folded, signs)
    return (_HINTS.sub("", line.folded) if hinted else line.folded).replace(" ", "")


def _has_same_numbers(one: Line, other: Line) -> bool:
    """Return whether two lines that are equal without gaps have the same gaps between digits."""
    return _GAP_IN_NUMBER.findall(one.folded) == _GAP_IN_NUMBER.findall(other.folded)


def without_gaps(text: str) -> str:
    """Return the text without its spaces, but for those between digits: '2 11' is not '21 1'."""
    return _GAP_OF_WORDS.sub("", text) if _GAP_IN_NUMBER.search(text) else text.replace(" ", "")


def _signs_in(text: str, signs: Sequence[str]) -> list[str]:
    """Return those of these signs of hints for links that are in the text."""
    lower = text.lower()
    return [sign for sign in signs if sign in lower]


def without_hints(text: str) -> str:
    """Return the text without words that say how a link opens, as '(opens in a new window)'."""
    return _HINTS.sub("", text) if _signs_in(text, _SIGNS_OF_HINTS) else text


def _paired(removed: Sequence[Line], added: Sequence[Line]) -> list[LinePair]:
    """Return each removed line with the added line that it became, if there is one."""
    pairs: list[LinePair] = []
    by_mask: dict[str, list[Line]] = defaultdict(list)
    for line in reversed(added):
        by_mask[line.masked].append(line)
    taken: set[int] = set()
    unlike: list[Line] = []
    for line in removed:
        same = by_mask.get(line.masked)
        if same:
            other = same.pop(_most_alike(line, same) if len(same) > 1 and _LETTER.search(line.masked) else -1)
            taken.add(other.at)
            pairs.append((line, other))
        else:
            unlike.append(line)
    left = [line for line in added if line.at not in taken]
    if max(len(unlike), len(left)) <= _MOST:
        likely = _likely(unlike, left)
        pairs += likely
        taken = {line.at for _, line in likely if line}
        return pairs + [(None, line) for line in left if line.at not in taken]
    return pairs + [(line, None) for line in unlike] + [(None, line) for line in left]


def _most_alike(line: Line, others: Sequence[Line]) -> int:
    """Return the index of the line with most tokens in common, among the next ones, which are last; else the last."""
    tokens = set(line.folded.split())
    candidates = range(len(others) - 1, max(-1, len(others) - 1 - _CANDIDATES), -1)
    return max(candidates, key=lambda at: len(tokens.intersection(others[at].folded.split())))


def _likely(removed: Sequence[Line], added: Sequence[Line]) -> list[LinePair]:
    """Return each removed line with the added line that shares most words with it, if these are many."""
    if not added:
        return [(line, None) for line in removed]
    vocabularies = [set(line.folded.split()) for line in added] if removed else []
    removed_words = set(" ".join([line.folded for line in removed]).split())
    where: dict[str, list[int]] = defaultdict(list)
    for at, words in enumerate(vocabularies):
        for word in words & removed_words:
            where[word].append(at)
    rare = {word: found for word, found in where.items() if len(found) <= _RARE}
    gone: set[int] = set()
    pairs: list[LinePair] = []
    for line in removed:
        in_order = dict.fromkeys(line.folded.split())
        words = set(in_order)
        shared = Counter([at for word in in_order if word in rare for at in rare[word]])
        best, most = -1, _LIKE
        for at, _ in sorted(shared.items(), key=itemgetter(1), reverse=True)[:_CANDIDATES]:
            others = vocabularies[at]
            fewer, more = sorted((len(words), len(others)))
            if at in gone or fewer <= most * more:
                continue  # they cannot share enough words
            common = len(words & others)
            similarity = common / (fewer + more - common)
            if similarity > most:
                best, most = at, similarity
        if best >= 0:
            gone.add(best)
        pairs.append((line, added[best] if best >= 0 else None))
    return pairs
