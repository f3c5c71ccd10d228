"""Diff two texts: as a unified diff of lines, or word by word."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

from driftline.detection.diff.align import WORD, AlignedLine, Gap, align, gaps, matching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

# a number is one token with its separators and a currency before it: half a price says nothing
_NUMBER = r"(?:(?<![\w.])[-−+])?[$€£¥]?v?\d+(?:[.,:]\d+)+(?!\w)|(?:(?<![\w.])[-−+])?[$€£¥]?\d+(?!\w)"
_TOKEN = re.compile(rf"(\s*)({_NUMBER}|{WORD}|[^\w\s]|\Z)")
_TORN = 12  # characters of unchanged text between two changes that would only split a rewritten sentence


class Move(NamedTuple):
    """The old and new line number of a block that moved; `arrived` at its new place, otherwise at its old one."""

    from_line: int
    to_line: int
    arrived: bool


class WordPiece(NamedTuple):
    """A run of text that is in both texts, was added, was removed, or was moved."""

    kind: Literal["same", "added", "removed", "moved"]
    text: str
    move: Move | None = None


class _Edit(NamedTuple):
    """Text of a line that was replaced, and the unchanged words after it."""

    removed: str
    added: str
    then: list[str]


def unified(
    old: str, new: str, old_name: str, new_name: str, context: int = 3,
    headed: Callable[[Sequence[str], Sequence[str]], str] | None = None,
) -> str:  # fmt: skip
    """Return the unified diff of two texts; empty if they are equal.

    `headed` returns the heading of a hunk, given the lines it removes and adds.
    """
    before, after = (text.split("\n") if text else [] for text in (old, new))
    lines: list[str] = []
    for place in _unified_places(before, after, context):
        head, *hunk = _unified_lines(place, before, after, context)
        removed, added = ([line[1:] for line in hunk if line.startswith(sign)] for sign in "-+")
        lines += [f"{head} {headed(removed, added) if headed else ''}".rstrip(), *hunk]
    return "".join(f"{line}\n" for line in (f"--- {old_name}", f"+++ {new_name}", *lines)) if lines else ""


def by_word(old: str, new: str) -> list[list[WordPiece]]:
    """Return the places that differ, each as a list of pieces of both texts in reading order.

    A block that moved is a piece of its own in two places: its old one and its new one.
    """
    before, after = old.split("\n"), new.split("\n")
    places = groupby(align(before, after), key=lambda row: row.kind == "same")
    return [_place(rows, before, after) for same, rows in places if not same]


def starts(old: str, new: str) -> list[int]:
    """Return the number of the line of the new text, from 0, at which each place of `by_word` begins."""
    found: list[int] = []
    following = 0
    for same, rows in groupby(align(old.split("\n"), new.split("\n")), key=lambda row: row.kind == "same"):
        numbers = [row.new for row in rows if row.kind not in ("removed", "left")]
        if not same:
            found.append(numbers[0] if numbers else following)
        following = max(numbers, default=following - 1) + 1
    return found


def moves_of(rows: Iterable[AlignedLine]) -> Iterator[tuple[AlignedLine, Move | None]]:
    """Yield each row with the move of its block, the same for all rows of the block; None if it did not move."""
    last: AlignedLine | None = None
    move: Move | None = None
    for row in rows:
        if row.kind not in ("left", "came"):
            move = None
        elif last is None or row != AlignedLine(row.kind, last.old + 1, last.new + 1) or row.kind != last.kind:
            move = Move(row.old + 1, row.new + 1, row.kind == "came")
        yield row, move
        last = row


def in_line(old: str, new: str) -> list[WordPiece]:
    """Return the difference of two lines as pieces of both in reading order."""
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    edits = [_Edit("", "", [])]
    i = k = 0
    for one, other in matching([word for _, word in before], [word for _, word in after]):
        removed = _joined(before[i:one]) if one > i else ""
        added = _joined(after[k:other]) if other > k else ""
        (old_space, word), (new_space, _) = before[one], after[other]
        if old_space == new_space:
            word = old_space + word
        else:
            removed, added = removed + old_space, added + new_space
        if removed or added:
            edits.append(_Edit(removed, added, [word]))
        else:
            edits[-1].then.append(word)
        i, k = one + 1, other + 1
    edits.append(_Edit(_joined(before[i:]), _joined(after[k:]), []))
    return _merged(piece for edit in _merged_edits(edits) for piece in _pieces(edit))


def _unified_places(old: Sequence[str], new: Sequence[str], context: int) -> Iterator[list[Gap]]:
    """Yield the gaps of each hunk: those whose contexts touch."""
    place: list[Gap] = []
    for gap in gaps(old, new):
        if place and gap.i - place[-1].j > 2 * context:
            yield place
            place = []
        place.append(gap)
    if place:
        yield place


def _unified_lines(place: Sequence[Gap], old: Sequence[str], new: Sequence[str], context: int) -> Iterator[str]:
    before = min(context, place[0].i)
    after = min(context, len(old) - place[-1].j)
    i, k = place[0].i - before, place[0].k - before
    yield f"@@ -{_range(i, place[-1].j + after)} +{_range(k, place[-1].m + after)} @@"
    for gap in place:
        yield from (f" {line}" for line in old[i : gap.i])
        yield from (f"-{line}" for line in old[gap.i : gap.j])
        yield from (f"+{line}" for line in new[gap.k : gap.m])
        i = gap.j
    yield from (f" {line}" for line in old[i : i + after])


def _range(start: int, end: int) -> str:
    """Return a range of lines as a unified diff writes it: no count for one line, the line before for none."""
    if end - start == 1:
        return str(end)
    return f"{start + 1 if end > start else start},{end - start}"


def _place(rows: Iterable[AlignedLine], old: Sequence[str], new: Sequence[str]) -> list[WordPiece]:
    """Return the pieces of adjacent rows, line ends included, so that either side reads as its own lines."""
    pieces: list[WordPiece] = []
    in_old = in_new = False
    for row, move in moves_of(rows):
        if row.kind == "edited":
            if in_old and in_new:
                pieces.append(WordPiece("same", "\n"))
            elif pieces:
                pieces[-1] = pieces[-1]._replace(text=pieces[-1].text + "\n")
            pieces += in_line(old[row.old], new[row.new])
            in_old = in_new = True
        elif row.kind in ("added", "came"):
            text = f"\n{new[row.new]}" if in_new else new[row.new]
            pieces.append(WordPiece("moved" if move else "added", text, move))
            in_new = True
        else:
            text = f"\n{old[row.old]}" if in_old else old[row.old]
            pieces.append(WordPiece("moved" if move else "removed", text, move))
            in_old = True
    return _merged(pieces)


def _merged(pieces: Iterable[WordPiece]) -> list[WordPiece]:
    """Return the pieces without empty ones, adjacent pieces of one kind merged."""
    runs = groupby((piece for piece in pieces if piece.text), key=lambda piece: (piece.kind, piece.move))
    return [WordPiece(kind, "".join(piece.text for piece in run), move) for (kind, move), run in runs]


def _merged_edits(edits: Iterable[_Edit]) -> list[_Edit]:
    """Return the edits, merged where only little unchanged text separates them."""
    found: list[_Edit] = []
    for edit in edits:
        whole = edit
        while found and _belong_together(found[-1], whole):
            last = found.pop()
            stayed = "".join(last.then)
            whole = _Edit(last.removed + stayed + whole.removed, last.added + stayed + whole.added, whole.then)
        found.append(whole)
    return found


def _belong_together(one: _Edit, other: _Edit) -> bool:
    """Return whether the text between two edits is shorter than either of them, or has no letter or digit."""
    least = min(max(len(edit.removed), len(edit.added)) for edit in (one, other))
    stayed = "".join(one.then).strip()
    return least > 0 and (len(stayed) <= min(least, _TORN) or not any(character.isalnum() for character in stayed))


def _pieces(edit: _Edit) -> list[WordPiece]:
    return [*_changed(edit.removed, edit.added), WordPiece("same", "".join(edit.then))]


def _joined(tokens: Iterable[tuple[str, str]]) -> str:
    return "".join(space + word for space, word in tokens)


def _changed(removed: str, added: str) -> list[WordPiece]:
    """Return the pieces of a replacement, white space that both sides share at their ends left out of it."""
    start = _shared(removed, added)
    head, removed, added = removed[:start], removed[start:], added[start:]
    end = _shared(removed[::-1], added[::-1])
    tail = removed[len(removed) - end :]
    removed, added = removed[: len(removed) - end], added[: len(added) - end]
    pieces = (
        WordPiece("same", head),
        WordPiece("removed", removed),
        WordPiece("added", added),
        WordPiece("same", tail),
    )
    return [piece for piece in pieces if piece.text]


def _shared(one: str, other: str) -> int:
    """Return how many white-space characters both start with."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count] and one[count].isspace():
        count += 1
    return count
