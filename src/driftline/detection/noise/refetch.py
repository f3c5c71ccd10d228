"""What a second fetch, right after a page seemed changed, says of its edits: what differs then differs by itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftline.detection.diff.lines import Line, Matching, Pair, folded

if TYPE_CHECKING:
    from collections.abc import Sequence

_SAME_PAGE = 0.7  # of the lines that two versions share must stand in a second fetch too


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """What the page says in the second fetch, and the places where it says something else at every fetch."""

    text: str
    lines: frozenset[str]
    unsteady: frozenset[bytes]

    def differs(self, one: Line | None, other: Line | None) -> bool:
        """Whether the second fetch undid the edit, or made another of it."""
        if other:
            return other.folded not in self.lines
        return one is not None and (one.folded in self.lines or one.place in self.unsteady)


def fetched_again(text: str | None, matching: Matching, pairs: Sequence[Pair]) -> Again | None:
    """What the second fetch says of these edits; None if it is not the same page at all, but a wall, say, or an error.

    It is the same page by the lines that it shares with both versions. One that has no such lines cannot be told from a
    wall: its change stands.
    """
    if text is None:
        return None
    shared = {*matching.old.split("\n")}.intersection(matching.new.split("\n"))
    there = len(shared.intersection(text.split("\n")))
    if not there or there < _SAME_PAGE * len(shared):
        return None
    lines = frozenset(folded(text).split("\n"))
    return Again(text=text, lines=lines, unsteady=_unsteady(pairs, lines))


def _unsteady(pairs: Sequence[Pair], again: frozenset[str]) -> frozenset[bytes]:
    """The places where at least as many lines came as went, of which the second fetch has none.

    A line that went from there was replaced by one that does not stay either, although they have too little in common
    to be taken for one line that was rewritten. What went beside it besides is a change.
    """
    went = Counter(one.place for one, other in pairs if one and not other and one.folded not in again)
    came = Counter(other.place for one, other in pairs if other and not one and other.folded not in again)
    return frozenset(place for place, count in went.items() if count <= came[place])
