"""Use a second fetch, right after a page seemed changed, to find edits that differ from one fetch to the next."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftline.detection.diff.lines import Line, Matching, Pair, folded

if TYPE_CHECKING:
    from collections.abc import Sequence

_SAME_PAGE = 0.7  # share of the lines of both versions that the second fetch must have too


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


def fetched_again(text: str | None, matching: Matching, pairs: Sequence[Pair]) -> SecondFetch | None:
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


def _unsteady(pairs: Sequence[Pair], again: frozenset[str]) -> frozenset[bytes]:
    """Return the places where at least as many lines were added as removed, none of which the second fetch has.

    A line removed there was replaced by one that does not stay either, although they have too little in common to be
    matched as one rewritten line. Where more lines were removed than added, something is really gone.
    """
    removed = Counter(one.place for one, other in pairs if one and not other and one.folded not in again)
    added = Counter(other.place for one, other in pairs if other and not one and other.folded not in again)
    return frozenset(place for place, count in removed.items() if count <= added[place])
