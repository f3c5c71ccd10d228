"""Words as they are searched for: without case and accents, in any script.

A word is a run of letters and digits. In a script without spaces between words, and in Korean, where particles are
attached to them, every character is a word of its own, so that any part of a text can be found. Everything else only
separates: 'opt-out', '1,299' and '退款' are phrases. Texts and queries are split by the same rules, on both databases.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import normalize

from driftline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LONGEST = 64  # characters of a word: longer ones are cut, and compared by their beginning
_MOST_WORDS = 50

# Thai and Lao, Burmese, Khmer, kana, Han, Hangul
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff"
)
# ignored within words: accents, Hebrew and Arabic points, soft hyphens, joiners
_ACCENTS = (
    *range(0x300, 0x370), *range(0x483, 0x488), *range(0x591, 0x5BE), 0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7,
    *range(0x610, 0x61B), *range(0x64B, 0x660), 0x670, 0xAD, 0x200C, 0x200D,
)  # fmt: skip
_INDIC = "\u0900-\u0963\u0966-\u0dff"  # their vowel signs are marks, and belong to the word
_WITHIN = "".join(map(chr, _ACCENTS)) + _INDIC
_WORD = re.compile(rf"[{_SPACELESS}]|(?:[^\W_{_SPACELESS}]++[{_WITHIN}]*+)++")
_TERM = re.compile(r'"([^"]*)"?|([^\s"]+)')

_TATWEEL = 0x640  # only stretches an Arabic word
_BETWEEN = re.compile(rf"[\W_{chr(_TATWEEL)}]+")
_DROPPED = dict.fromkeys((*_ACCENTS, _TATWEEL))
# a compatibility form may decompose to a word with a full stop, brackets or spaces around it
_DROPPED |= {code: None for code in range(0x80) if not chr(code).isalnum()}


class Token(NamedTuple):
    """A word of a line, and its position there."""

    word: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A search term: these words one after the other, the last of them perhaps only its beginning."""

    words: tuple[str, ...]
    is_prefix: bool = False

    def may_stand_in(self, letters: str) -> bool:
        """Return whether a line of these `letters_of` may have it: a quick test that rules most lines out."""
        return _letters_of_words(self.words) in letters

    def places(self, tokens: Sequence[Token]) -> list[tuple[int, int]]:
        """Return where it occurs in a line that has these words."""
        *first, last = self.words
        length = len(self.words)
        return [
            (tokens[at].start, tokens[at + length - 1].end)
            for at in range(len(tokens) - length + 1)
            if self._ends(tokens[at + length - 1].word, last)
            and all(tokens[at + step].word == word for step, word in enumerate(first))
        ]

    def _ends(self, word: str, last: str) -> bool:
        return word.startswith(last) if self.is_prefix else word == last


def parse(query: str) -> tuple[Term, ...]:
    """Return the terms of a query: words, "phrases in quotes" and beginnings*, all of which must be found.

    No character has any other meaning. UsageError if there is no word in it, or too many.
    """
    found: dict[Term, None] = {}
    for quoted, plain in _TERM.findall(query):
        text = (quoted or plain).rstrip()
        words = tuple(token.word for token in tokens_of(unified_text(text)))
        if words:
            is_prefix = text.endswith("*") and text.rstrip("*")[-1:].isalnum()
            found[Term(words=words, is_prefix=is_prefix)] = None
    if not found:
        raise UsageError("There is no word to search for: give one with at least one letter or digit.")
    if sum(len(term.words) for term in found) > _MOST_WORDS:
        raise UsageError(f"That is too much to search for: give at most {_MOST_WORDS} words.")
    return tuple(found)


def unified_text(text: str) -> str:
    """Return the text with every character in one form, so that equal letters are equal."""
    return normalize("NFC", text)


def lines_of(text: bytes) -> list[str]:
    """Return the lines of a stored text."""
    return unified_text(text.decode("utf-8", "replace")).split("\n")


def letters_of(line: str) -> str:
    """Return all letters and digits of a line, without case and accents, and without what is between them."""
    # before compatibility forms are decomposed: a trademark sign would become two letters
    letters = _BETWEEN.sub("", line)
    return letters.lower() if letters.isascii() else _BETWEEN.sub("", normalize("NFKD", letters)).casefold()


def tokens_of(line: str) -> list[Token]:
    """Return the words of a line in their order."""
    tokens = (Token(_folded(match[0]), *match.span()) for match in _WORD.finditer(line))
    return [token for token in tokens if token.word]


def count_words(lines: Iterable[str]) -> Counter[str]:
    """Return the words of these lines, and how often each occurs."""
    counts: Counter[str] = Counter()
    for word, count in Counter(_WORD.findall("\n".join(lines))).items():
        counts[_folded(word)] += count
    del counts[""]
    return counts


@lru_cache(maxsize=256)
def _letters_of_words(words: tuple[str, ...]) -> str:
    """Return the letters of the words in a row, up to the first that may have been longer."""
    whole = next((place for place, word in enumerate(words, start=1) if len(word) == _LONGEST), len(words))
    return letters_of("".join(words[:whole]))


@lru_cache(maxsize=65_536)
def _folded(word: str) -> str:
    if word.isascii():
        return word.lower()[:_LONGEST]
    return normalize("NFC", normalize("NFKD", word).translate(_DROPPED).casefold())[:_LONGEST]
