"""What an answer says that the page did not say before, and whether it says a thing plainly or only mentions it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from html import unescape

from driftline.detection.matching import folded

_MUCH, _MOST = 0.4, 0.5  # of a heading, and of all that is said
_FIRST = 3  # lines, one of which may be a heading
_TITLE = re.compile(rb"<title\b[^>]{0,500}>([^<]{0,1000})", re.IGNORECASE)
_PARTS = re.compile(r"\s*[|·:]\s|\s-\s")  # of a title, one of which may name the site


@dataclass(frozen=True, kw_only=True)
class Saying:
    """The title of an answer, its text and its body, and what the page was before."""

    title: str
    text: str
    body: bytes
    before: str
    old_body: bytes

    @cached_property
    def fresh(self) -> list[str]:
        """The lines that the page did not have before."""
        return [folded(line) for line in self.text.split("\n") if line and line not in self._known]

    @cached_property
    def new_title(self) -> str:
        """Its title, unless the page had the same before."""
        found = _TITLE.search(self.old_body)
        known = "" if found is None else " ".join(unescape(found[1].decode("utf-8", "replace")).split())
        return "" if self.title == known else folded(self.title)

    @property
    def headings(self) -> list[str]:
        """What the answer calls itself, as the page never did: its title, and the lines that it begins with."""
        return [self.new_title, *self.fresh[:_FIRST]]

    @cached_property
    def left(self) -> float:
        """The share of the letters of what the page said before that it still says: menus have many lines of few."""
        letters = sum(map(len, self._known))
        return sum(map(len, self._kept)) / letters if letters else 0.0

    @property
    def lines_left(self) -> float:
        """The same by line."""
        return len(self._kept) / len(self._known) if self._known else 0.0

    @cached_property
    def _known(self) -> set[str]:
        return set(self.before.split("\n")) - {""}

    @cached_property
    def _kept(self) -> set[str]:
        return self._known.intersection(self.text.split("\n"))

    def is_headed(self, words: re.Pattern[str]) -> bool:
        """Whether these words stand in a heading."""
        return any(map(words.search, self.headings))

    def is_mainly(self, words: re.Pattern[str]) -> bool:
        """Whether these words are what it has to say: they make a heading, or there is little else.

        A page may well mention or quote them, for it may be about such things.
        """
        parts = [part for text in self.headings for part in (text, *_PARTS.split(text))]
        if any(len(found) >= _MUCH * len(part) for part in parts if (found := _said(words, part))):
            return True
        telling = sum(len(line) for line in self.fresh if _said(words, line))
        return telling > 0 and telling >= _MOST * sum(map(len, self.fresh))


def _said(words: re.Pattern[str], text: str) -> str:
    """What of the text these words match; nothing if they only stand in quotes."""
    found = words.search(text)
    return "" if found is None or text.count('"', 0, found.start()) % 2 else found.group()
