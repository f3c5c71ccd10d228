"""What differs between two texts: by line for reading, by word for seeing."""

from __future__ import annotations

import re
from difflib import SequenceMatcher, unified_diff
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WORD = re.compile(r"\w+|[^\w\s]|\s+")
_LARGEST_WORD_DIFF = 20_000  # words on one side: past that, whole lines say more than words anyway
_REPETITIVE = (
    500  # lines or words: past that, those that stand everywhere are no help, and trying them all takes minutes
)


class Piece(NamedTuple):
    """A run of text that is in both, or was added, or was removed."""

    kind: Literal["same", "added", "removed"]
    text: str


class _Hunk(NamedTuple):
    old: Sequence[str]
    new: Sequence[str]


def unified(old: str, new: str, old_name: str, new_name: str, context: int = 3) -> str:
    """The unified diff of two texts, by line; empty if they are equal."""
    lines = unified_diff(old.splitlines(), new.splitlines(), old_name, new_name, lineterm="", n=context)
    return "".join(f"{line}\n" for line in lines)


def by_word(old: str, new: str) -> list[list[Piece]]:
    """The places that differ, each as a list of pieces that reads as the old and the new text at once."""
    return [_word_pieces("\n".join(hunk.old), "\n".join(hunk.new)) for hunk in _hunks(old.split("\n"), new.split("\n"))]


def _hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[_Hunk]:
    """The runs of lines that differ. Equal ends are cut off first: most changes are small and the rest is quadratic."""
    start = 0
    shortest = min(len(old), len(new))
    while start < shortest and old[start] == new[start]:
        start += 1
    end = 0
    while end < shortest - start and old[-1 - end] == new[-1 - end]:
        end += 1
    before, after = old[start : len(old) - end], new[start : len(new) - end]
    for tag, i, j, k, m in _opcodes(before, after):
        if tag != "equal":
            yield _Hunk(before[i:j], after[k:m])


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    return list(SequenceMatcher(None, old, new, autojunk=max(len(old), len(new)) > _REPETITIVE).get_opcodes())


def _word_pieces(old: str, new: str) -> list[Piece]:
    before, after = _WORD.findall(old), _WORD.findall(new)
    if max(len(before), len(after)) > _LARGEST_WORD_DIFF:
        return [Piece("removed", old), Piece("added", new)]
    pieces: list[Piece] = []
    removed = added = ""
    for tag, i, j, k, m in _opcodes(before, after):
        same = "".join(before[i:j]) if tag == "equal" else ""
        if same and (not (removed or added) or any(character.isalnum() for character in same)):
            pieces += _changed(removed, added)
            pieces.append(Piece("same", same))
            removed = added = ""
        else:
            # spaces and stops that happen to stand in both would only tear a rewritten sentence apart
            removed += same or "".join(before[i:j])
            added += same or "".join(after[k:m])
    return pieces + _changed(removed, added)


def _changed(removed: str, added: str) -> list[Piece]:
    """What is left of a change without the ends that both sides share."""
    start = _shared(removed, added)
    head, removed, added = removed[:start], removed[start:], added[start:]
    end = _shared(removed[::-1], added[::-1])
    tail = removed[len(removed) - end :]
    removed, added = removed[: len(removed) - end], added[: len(added) - end]
    pieces = (Piece("same", head), Piece("removed", removed), Piece("added", added), Piece("same", tail))
    return [piece for piece in pieces if piece.text]


def _shared(one: str, other: str) -> int:
    """How many white-space characters both begin with."""
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count] and one[count].isspace():
        count += 1
    return count
