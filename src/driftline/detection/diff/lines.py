"""Which lines of two texts differ, which of them belong together, and where they stand."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from xxhash import xxh3_64_digest

from driftline.detection.noise.volatile import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

_ALIKE = (
    ("’", "'"), ("‘", "'"), ("“", '"'), ("”", '"'), ("–", "-"), ("—", "-"),
    ("\u00ad", ""), ("\u200b", ""), ("\ufeff", ""),
)  # fmt: skip
_LIKE = 0.3  # share of words that two lines have in common if one was made from the other
_RARE = 20  # lines: a word that stands in more of them says nothing about which is which
_CANDIDATES = 8
_SOME = 20  # pairs
_MOST = 400  # lines on one side: past that they are not matched, for it is another page


@dataclass(slots=True, eq=False)
class Line:
    """A line that only one of the two texts has.

    `folded` is how it is compared, with one kind of quote and dash, and `masked` that without what may change by
    itself. `place` names the gap between the two lines around it that both texts have, and is empty if there are none.
    `keys` are those that `lessons` gives it, for they are asked for often.
    """

    at: int
    text: str
    folded: str
    masked: str
    place: bytes
    keys: tuple[bytes, bytes] | None = None


Pair = tuple[Line | None, Line | None]


@dataclass(frozen=True, kw_only=True)
class Matching:
    """The lines that were removed, added or rewritten, and both texts.

    Words that were only moved from one of these lines to another are neither added nor removed.
    """

    pairs: list[Pair]
    old: str
    new: str
    words_added: int
    words_removed: int
    places: int

    @cached_property
    def old_lines(self) -> Container[str]:
        """What the old text says, to ask whether a line is among it."""
        return self._lines(self.old)

    @cached_property
    def new_lines(self) -> Container[str]:
        """What the new text says, to ask whether a line is among it."""
        return self._lines(self.new)

    def _lines(self, text: str) -> Container[str]:
        # to take a text apart costs as much as to search it for some twenty lines
        return _Searched(f"\n{text}\n") if len(self.pairs) < _SOME else frozenset(text.split("\n"))


def match(old: str, new: str) -> Matching:
    """Compare two texts by line."""
    before, after = _middles(old, new)
    old_counts, new_counts = Counter(before.lines), Counter(after.lines)
    removed = _lines(before, _left_over(before.lines, old_counts, new_counts))
    added = _lines(after, _left_over(after.lines, new_counts, old_counts))
    removed, added = _unlike(removed, added), _unlike(added, removed)
    gone, come = (" ".join([line.text for line in lines]).split() for lines in (removed, added))
    there, here = Counter(gone if come else ()), Counter(come if gone else ())
    stayed = sum([min(there[word], here[word]) for word in there.keys() & here.keys()])
    return Matching(
        pairs=_paired(removed, added), old=old, new=new, words_added=len(come) - stayed,
        words_removed=len(gone) - stayed, places=len({line.place for line in (*removed, *added)}),
    )  # fmt: skip


class _Searched:
    """The lines of a text that is searched for each."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __contains__(self, line: object) -> bool:
        return f"\n{line}\n" in self._text


class _Middle(NamedTuple):
    """The lines of a text between those that it begins and ends with as another one does, and the two around them."""

    lines: list[str]
    start: int
    above: str
    below: str


def _middles(old: str, new: str) -> tuple[_Middle, _Middle]:
    """Where the two texts differ, from the first such line to the last: most changes are near to each other."""
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
    """How many letters are the same in both texts, at most so many: by asking for half of those that are left."""
    least = 0
    while least < most:
        half = (least + most + 1) // 2
        if are_same(least, half):
            least = half
        else:
            most = half - 1
    return least


def folded(text: str) -> str:
    """The text with one kind of quote and dash, and without what has no width."""
    if text.isascii():
        return text
    for found, used in _ALIKE:
        # ten times faster than one pass that looks every character up
        if found in text:
            text = text.replace(found, used)
    return text


def key_of(kind: str, text: str) -> bytes:
    """A short name for a text, apart from those of other kinds."""
    return xxh3_64_digest(f"{kind}\n{text}".encode("utf-8", "surrogatepass"))


def _left_over(texts: Sequence[str], counts: Counter[str], others: Counter[str]) -> list[int]:
    """Where the texts stand that there are more of than in the other document, the last of each, in order."""
    extra = {text: count - n for text, count in counts.items() if text and count > (n := others.get(text, 0))}
    found: list[int] = []
    for at in reversed([at for at, text in enumerate(texts) if text in extra] if extra else []):
        text = texts[at]
        if extra[text]:
            extra[text] -= 1
            found.append(at)
    return found[::-1]


def _lines(middle: _Middle, left_over: Sequence[int]) -> list[Line]:
    """The lines at these numbers, each with its place; lines that follow on each other share one."""
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
            found.append(Line(middle.start + at, texts[at], plain, masked(plain), place))
        start = end
    return found


def _unlike(lines: list[Line], others: list[Line]) -> list[Line]:
    """The lines without those that the other side has too, but for quotes and dashes."""
    if all(line.text is line.folded for line in lines) and all(line.text is line.folded for line in others):
        return lines
    there = Counter(line.folded for line in others)
    left: list[Line] = []
    for line in lines:
        there[line.folded] -= 1
        if there[line.folded] < 0:
            left.append(line)
    return left


def _paired(removed: Sequence[Line], added: Sequence[Line]) -> list[Pair]:
    """Each removed line with the added one that it turned into, if there is one."""
    pairs: list[Pair] = []
    by_mask: dict[str, list[Line]] = defaultdict(list)
    for line in reversed(added):
        by_mask[line.masked].append(line)
    taken: set[int] = set()
    unlike: list[Line] = []
    for line in removed:
        same = by_mask.get(line.masked)
        if same:
            other = same.pop()
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


def _likely(removed: Sequence[Line], added: Sequence[Line]) -> list[Pair]:
    """Each removed line with the added one that has the most words in common with it, if those are many."""
    if not added:
        return [(line, None) for line in removed]
    vocabularies = [set(line.folded.split()) for line in added] if removed else []
    asked = set(" ".join([line.folded for line in removed]).split())
    where: dict[str, list[int]] = defaultdict(list)
    for at, words in enumerate(vocabularies):
        for word in words & asked:
            where[word].append(at)
    rare = {word: found for word, found in where.items() if len(found) <= _RARE}
    gone: set[int] = set()
    pairs: list[Pair] = []
    for line in removed:
        in_order = dict.fromkeys(line.folded.split())
        words = set(in_order)
        shared = Counter([at for word in in_order if word in rare for at in rare[word]])
        best, most = -1, _LIKE
        for at, _ in sorted(shared.items(), key=itemgetter(1), reverse=True)[:_CANDIDATES]:
            others = vocabularies[at]
            fewer, more = sorted((len(words), len(others)))
            if at in gone or fewer <= most * more:
                continue  # they cannot have so much in common
            common = len(words & others)
            likeness = common / (fewer + more - common)
            if likeness > most:
                best, most = at, likeness
        if best >= 0:
            gone.add(best)
        pairs.append((line, added[best] if best >= 0 else None))
    return pairs
