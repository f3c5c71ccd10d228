"""Which lines of two texts belong together: those that stayed, those that were rewritten, those that moved.

What stands once in either text and in the same order is what the rest is held against, as in a patience diff: it gives
places that read well, and takes time in proportion to the texts. Where nothing stands once, several lines together may.
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

# scripts that put no space between words: each of their characters is taken for a word
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
WORD = rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+"
_WORD = re.compile(WORD)
_SPANS = (1, 4, 16)  # lines or words that are looked for together
_SCANS = 50  # times that a text may be gone through: more are needed only for one that is made to be slow
_REPETITIVE = 20_000  # pairs of equal items in one gap: past that, trying them all takes seconds
_SHARED = 5_000  # items on one side: the time is their number by that of the matches
_LIKE = 0.35  # share of words that two lines have in common if one was made from the other
_TRIED = 1_600  # pairs of lines whose likeness is asked for at once
_SLICE = 40  # lines on one side
_BLOCK = 20  # bytes: a shorter line that stands elsewhere, such as 'Home', need not be the one that was here

Kind = Literal["same", "edited", "removed", "added", "left", "came"]


class AlignedLine(NamedTuple):
    """A line of the old text, of the new one, or of both, named by its index; -1 where a text has none.

    A line that moved has two rows, each with both indexes: 'left' where it stood, and 'came' where it stands now.
    """

    kind: Kind
    old: int
    new: int


class Gap(NamedTuple):
    """What does not match: items `i` up to `j` of the old sequence, `k` up to `m` of the new one."""

    i: int
    j: int
    k: int
    m: int


def align(old: Sequence[str], new: Sequence[str]) -> list[AlignedLine]:
    """All lines of both texts in one order that keeps theirs; what was removed before what was added."""
    open_gaps = gaps(old, new)
    went = moves(old, new, open_gaps)
    came = {there: here for here, there in went.items()}
    rows: list[AlignedLine] = []
    i = k = 0
    for gap in [*open_gaps, Gap(len(old), len(old), len(new), len(new))]:
        rows += [AlignedLine("same", *pair) for pair in zip(range(i, gap.i), range(k, gap.k), strict=True)]
        rows += _gap_rows(gap, old, new, went, came)
        i, k = gap.j, gap.m
    return rows


def gaps(old: Sequence[_Item], new: Sequence[_Item]) -> list[Gap]:
    """What lies between the items that match, in order."""
    found: list[Gap] = []
    i = k = 0
    for one, other in [*matching(old, new), (len(old), len(new))]:
        if one > i or other > k:
            found.append(Gap(i, one, k, other))
        i, k = one + 1, other + 1
    return found


def matching(old: Sequence[_Item], new: Sequence[_Item]) -> list[tuple[int, int]]:
    """The indexes of equal items that keep their order; not always the most there are, but those that read well."""
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
            # each gap but the first begins with an anchor, which is then taken for its equal beginning
            starts, ends = [(i, k), *anchors], [*anchors, (j, m)]
            unseen += [Gap(one, to, other, until) for (one, other), (to, until) in zip(starts, ends, strict=True)]
        else:
            pairs += [(i + one, k + other) for one, other in _tried(before, after)]
    return sorted(pairs)


def moves(old: Sequence[str], new: Sequence[str], open_gaps: Sequence[Gap]) -> dict[int, int]:
    """Where lines of the gaps stand in another gap of the new text, old index to new.

    A block is found by a line that there is one of, and takes its neighbours along.
    """
    gone = [at for gap in open_gaps for at in range(gap.i, gap.j)]
    come = [at for gap in open_gaps for at in range(gap.k, gap.m)]
    before, after = _once([old[at] for at in gone]), _once([new[at] for at in come])
    went: dict[int, int] = {}
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
            went |= {i + step: k + step for step in range(first, end)}
            here.difference_update(range(i + first, i + end))
            there.difference_update(range(k + first, k + end))
    return went


def _anchors(old: Sequence[_Item], new: Sequence[_Item]) -> list[tuple[int, int]]:
    """The most that stands once in either sequence and in the same order in both."""
    for span in _SPANS:
        before, after = _once(_together(old, span)), _once(_together(new, span))
        both = [(at, after[item]) for item, at in before.items() if item in after]
        if both:
            return _ascending(both)
    return []


def _together(items: Sequence[_Item], span: int) -> Iterable[Hashable]:
    return items if span == 1 else zip(*(items[start:] for start in range(span)), strict=False)


def _once(items: Iterable[Hashable]) -> dict[Hashable, int]:
    """Where the items stand that there is only one of, in order."""
    found: dict[Hashable, int] = {}
    for at, item in enumerate(items):
        found[item] = -1 if item in found else at
    return {item: at for item, at in found.items() if at >= 0}


def _ascending(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest choice of these pairs, which ascend on their first side, that ascends on the other too."""
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
    """Equal items of a gap in which nothing stands once; none if there are too many to try."""
    counts, others = Counter(new), Counter(old)
    if 0 < sum(counts[item] for item in old) <= _REPETITIVE:
        # what only one side has matches nothing, and would be gone through again for each match
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
    gap: Gap, old: Sequence[str], new: Sequence[str], went: dict[int, int], came: dict[int, int]
) -> Iterator[AlignedLine]:
    """The rows of a gap: what was rewritten in one row, and before it what is only in one of the texts."""
    i, k = gap.i, gap.k
    removed = [at for at in range(gap.i, gap.j) if at not in went]
    added = [at for at in range(gap.k, gap.m) if at not in came]
    for one, other in [*_rewritten(removed, added, old, new), (gap.j, gap.m)]:
        for at in range(i, one):
            yield AlignedLine("left", at, went[at]) if at in went else AlignedLine("removed", at, -1)
        for at in range(k, other):
            yield AlignedLine("came", came[at], at) if at in came else AlignedLine("added", -1, at)
        if one < gap.j:
            yield AlignedLine("same" if old[one] == new[other] else "edited", one, other)
        i, k = one + 1, other + 1


def _rewritten(
    removed: Sequence[int], added: Sequence[int], old: Sequence[str], new: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """The removed lines with the added ones that they were turned into, in order."""
    if not removed or not added:
        return
    # a long gap is looked at in slices, which stand at about the same height in both texts
    most = max(len(removed), len(added))
    slices = 1 if len(removed) * len(added) <= _TRIED else -(-most // _SLICE)
    for part in range(slices):
        before, after = (
            lines[len(lines) * part // slices : len(lines) * (part + 1) // slices] for lines in (removed, added)
        )
        chosen = _likest([_words(old[at]) for at in before], [_words(new[at]) for at in after])
        yield from ((before[one], after[other]) for one, other in chosen)


def _words(line: str) -> frozenset[str]:
    return frozenset(_WORD.findall(line)) or frozenset((line,))


def _likest(old: Sequence[frozenset[str]], new: Sequence[frozenset[str]]) -> list[tuple[int, int]]:
    """The pairs, in order, that are the most alike in all."""
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
        likeness = [2 * common / (len(words) + len(others)) for common, others in zip(shared, new, strict=True)]
        above = best[-1]
        if max(likeness, default=0.0) < _LIKE:
            best.append(above)
            continue
        row = [0.0]
        for at, like in enumerate(likeness):
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
