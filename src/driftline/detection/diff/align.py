"""Align two texts line by line: which lines stayed, which were rewritten, which moved.

Lines that occur once in each text, in the same order, are the anchors of the alignment, as in a patience diff: the
result reads well, and takes time in proportion to the texts. Where no line occurs once, several lines together may.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

_Item = TypeVar("_Item", bound="Hashable")

# scripts without spaces between words: each of their characters counts as a word
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
WORD = rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+"
_WORD = re.compile(WORD)
_SPANS = (1, 4, 16)  # lines or words that make up one anchor
_SCANS = 50  # passes over a text: only one made to be slow needs more
_REPETITIVE = 20_000  # pairs of equal items in one gap: past that, trying them all takes seconds
_SHARED = 5_000  # items on one side: the time is their number times that of the matches
_LIKE = 0.35  # share of words that two lines have in common if one was made from the other
_TRIED = 1_600  # pairs of lines whose similarity is computed at once
_SLICE = 40  # lines on one side
_BLOCK = 20  # bytes: a shorter line that stands elsewhere, such as 'Home', need not be the one that was here

StepKind = Literal["same", "edited", "removed", "added", "left", "came"]


class AlignedLine(NamedTuple):
    """A line of the old text, of the new one, or of both, named by its index; -1 where a text has none.

    A line that moved has two rows, each with both indexes: 'left' where it stood, and 'came' where it stands now.
    """

    kind: StepKind
    old: int
    new: int


class Gap(NamedTuple):
    """What does not match: items `i` up to `j` of the old sequence, `k` up to `m` of the new one."""

    i: int
    j: int
    k: int
    m: int


def align(old: Sequence[str], new: Sequence[str]) -> list[AlignedLine]:
    """Return the lines of both texts in one order that keeps theirs, removed lines before added ones."""
    open_gaps = gaps(old, new)
    moved_to = moves(old, new, open_gaps)
    moved_from = {there: here for here, there in moved_to.items()}
    rows: list[AlignedLine] = []
    i = k = 0
    for gap in [*open_gaps, Gap(len(old), len(old), len(new), len(new))]:
        rows += [AlignedLine("same", *pair) for pair in zip(range(i, gap.i), range(k, gap.k), strict=True)]
        rows += _gap_rows(gap, old, new, moved_to, moved_from)
        i, k = gap.j, gap.m
    return rows


def gaps(old: Sequence[_Item], new: Sequence[_Item]) -> list[Gap]:
    """Return the gaps between matching items, in order."""
    found: list[Gap] = []
    i = k = 0
    for one, other in [*matching(old, new), (len(old), len(new))]:
        if one > i or other > k:
            found.append(Gap(i, one, k, other))
        i, k = one + 1, other + 1
    return found


def matching(old: Sequence[_Item], new: Sequence[_Item]) -> list[tuple[int, int]]:
    """Return the indexes of equal items in the same order: not always the most possible, but those that read well."""
    pairs: list[tuple[int, int]] = []
    unseen = [Gap(0, len(old), 0, len(new))]
    left = _SCANS * (len(old) + len(new))
    while unseen:
        i, j, k, m = unseen.pop()
        while i < j and k < m and old[i] == new[k]:
            pairs.append((i, k))
            i, k = i + 1, k + 1
        while i < j and k < m and old[j - 1] == new[m - 1]:
            j, m = j - 1, m - 1
            pairs.append((j, m))
        left -= j - i + m - k
        if i == j or k == m or left < 0:
            continue
        before, after = old[i:j], new[k:m]
        anchors = [(i + one, k + other) for one, other in _anchors(before, after)]
        if anchors:
            # each gap but the first begins with an anchor, which is then matched as its equal beginning
            starts, ends = [(i, k), *anchors], [*anchors, (j, m)]
            unseen += [Gap(one, to, other, until) for (one, other), (to, until) in zip(starts, ends, strict=True)]
        else:
            pairs += [(i + one, k + other) for one, other in _tried(before, after)]
    return sorted(pairs)


def moves(old: Sequence[str], new: Sequence[str], open_gaps: Sequence[Gap]) -> dict[int, int]:
    """Return the lines that moved to another gap of the new text, old index to new.

    A block is found by a line that occurs once, and extended to its neighbours.
    """
    gone = [at for gap in open_gaps for at in range(gap.i, gap.j)]
    come = [at for gap in open_gaps for at in range(gap.k, gap.m)]
    before, after = _once([old[at] for at in gone]), _once([new[at] for at in come])
    moved: dict[int, int] = {}
    here, there = set(gone), set(come)

    def both_moved(i: int, k: int) -> bool:
        return i in here and k in there and old[i] == new[k]

    for text in [text for text in before if text in after]:
        i, k = gone[before[text]], come[after[text]]
        if not both_moved(i, k):
            continue
        first, end = 0, 1
        while both_moved(i + first - 1, k + first - 1):
            first -= 1
        while both_moved(i + end, k + end):
            end += 1
        if sum(len(old[i + step].encode("utf-8", "replace")) for step in range(first, end)) >= _BLOCK:
            moved |= {i + step: k + step for step in range(first, end)}
            here.difference_update(range(i + first, i + end))
            there.difference_update(range(k + first, k + end))
    return moved


def _anchors(old: Sequence[_Item], new: Sequence[_Item]) -> list[tuple[int, int]]:
    """Return the longest choice of items that occur once in each sequence, in the same order."""
    for span in _SPANS:
        before, after = _once(_together(old, span)), _once(_together(new, span))
        both = [(at, after[item]) for item, at in before.items() if item in after]
        if both:
            return _ascending(both)
    return []


def _together(items: Sequence[_Item], span: int) -> Iterable[Hashable]:
    return items if span == 1 else zip(*(items[start:] for start in range(span)), strict=False)


def _once(items: Iterable[Hashable]) -> dict[Hashable, int]:
    """Return the indexes of the items that occur once, in order."""
    found: dict[Hashable, int] = {}
    for at, item in enumerate(items):
        found[item] = -1 if item in found else at
    return {item: at for item, at in found.items() if at >= 0}


def _ascending(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest choice of these pairs, which ascend on their first side, that ascends on the second too."""
    lasts: list[int] = []
    chosen: list[int] = []
    before: list[int] = []
    for at, (_, other) in enumerate(pairs):
        length = bisect_left(lasts, other)
        before.append(chosen[length - 1] if length else -1)
        lasts[length : length + 1] = [other]
        chosen[length : length + 1] = [at]
    found: list[tuple[int, int]] = []
    at = chosen[-1]
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _tried(old: Sequence[_Item], new: Sequence[_Item]) -> Iterator[tuple[int, int]]:
    """Yield equal items of a gap in which nothing occurs once; none if there are too many to try."""
    counts, others = Counter(new), Counter(old)
    if 0 < sum(counts[item] for item in old) <= _REPETITIVE:
        # items of only one side match nothing, and would be scanned again for each match
        here, there = (
            [at for at, item in enumerate(old) if item in counts],
            [at for at, item in enumerate(new) if item in others],
        )
        if len(here) > _SHARED or len(there) > _SHARED:
            return
        shared = SequenceMatcher(None, [old[at] for at in here], [new[at] for at in there], autojunk=False)
        for i, k, size in shared.get_matching_blocks():
            yield from zip(here[i : i + size], there[k : k + size], strict=True)


def _gap_rows(
    gap: Gap, old: Sequence[str], new: Sequence[str], moved_to: dict[int, int], moved_from: dict[int, int]
) -> Iterator[AlignedLine]:
    """Yield the rows of a gap: a rewritten line is one row, after the lines that only one of the texts has."""
    i, k = gap.i, gap.k
    removed = [at for at in range(gap.i, gap.j) if at not in moved_to]
    added = [at for at in range(gap.k, gap.m) if at not in moved_from]
    for one, other in [*_rewritten(removed, added, old, new), (gap.j, gap.m)]:
        for at in range(i, one):
            yield AlignedLine("left", at, moved_to[at]) if at in moved_to else AlignedLine("removed", at, -1)
        for at in range(k, other):
            yield AlignedLine("came", moved_from[at], at) if at in moved_from else AlignedLine("added", -1, at)
        if one < gap.j:
            yield AlignedLine("same" if old[one] == new[other] else "edited", one, other)
        i, k = one + 1, other + 1


def _rewritten(
    removed: Sequence[int], added: Sequence[int], old: Sequence[str], new: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """Yield the removed lines with the added lines that they became, in order."""
    if not removed or not added:
        return
    # a long gap is compared in slices at about the same height in both texts
    most = max(len(removed), len(added))
    slices = 1 if len(removed) * len(added) <= _TRIED else -(-most // _SLICE)
    for part in range(slices):
        before, after = (
            lines[len(lines) * part // slices : len(lines) * (part + 1) // slices] for lines in (removed, added)
        )
        chosen = _most_similar([_words(old[at]) for at in before], [_words(new[at]) for at in after])
        yield from ((before[one], after[other]) for one, other in chosen)


def _words(line: str) -> frozenset[str]:
    return frozenset(_WORD.findall(line)) or frozenset((line,))


def _most_similar(old: Sequence[frozenset[str]], new: Sequence[frozenset[str]]) -> list[tuple[int, int]]:
    """Return the pairs, in order, whose similarities have the largest sum."""
    where: dict[str, list[int]] = defaultdict(list)
    for at, words in enumerate(new):
        for word in words:
            where[word].append(at)
    best = [[0.0] * (len(new) + 1)]
    for words in old:
        shared = [0] * len(new)
        for word in words:
            for at in where.get(word, ()):
                shared[at] += 1
        similarity = [2 * common / (len(words) + len(others)) for common, others in zip(shared, new, strict=True)]
        above = best[-1]
        if max(similarity, default=0.0) < _LIKE:
            best.append(above)
            continue
        row = [0.0]
        for at, like in enumerate(similarity):
            row.append(max(above[at] + like if like >= _LIKE else 0.0, above[at + 1], row[at]))
        best.append(row)
    pairs: list[tuple[int, int]] = []
    i, k = len(old), len(new)
    while i and k:
        if best[i][k] == best[i - 1][k]:
            i -= 1
        elif best[i][k] == best[i][k - 1]:
            k -= 1
        else:
            i, k = i - 1, k - 1
            pairs.append((i, k))
    return pairs[::-1]
