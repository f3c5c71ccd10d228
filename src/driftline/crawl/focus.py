"""The focused mode: keywords, looked for in texts, anchors and addresses, say which links come first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from driftline.errors import BadSetting

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ENOUGH = 5  # times that a keyword stands in a text, after which more of it says no more
_ANCHOR, _ADDRESS, _PAGE = 0.5, 0.2, 0.3  # the weight of each for a link


class Focus:
    """Keywords, each a word or several; case does not matter."""

    def __init__(self, keywords: Sequence[str]) -> None:
        self._patterns = [re.compile(rf"(?<!\w){re.escape(one)}") for one in keywords]

    def text(self, text: str) -> float:
        """Return how much a text is about the keywords, from 0 to 1."""
        if not self._patterns:
            return 0.0
        folded = text.casefold()
        return self._mean(min(len(pattern.findall(folded)), _ENOUGH) / _ENOUGH for pattern in self._patterns)

    def link(self, url: str, anchor: str, page: float) -> float:
        """Return how promising a link is, from 0 to 1: by its anchor, its address, and the page that it is on."""
        if not self._patterns:
            return 0.0
        return _ANCHOR * self._share(anchor) + _ADDRESS * self._share(_words_of(url)) + _PAGE * page

    def _share(self, text: str) -> float:
        folded = text.casefold()
        return self._mean(float(pattern.search(folded) is not None) for pattern in self._patterns)

    def _mean(self, shares: Iterable[float]) -> float:
        return sum(shares) / len(self._patterns)


def keywords_of(given: Iterable[str]) -> tuple[str, ...]:
    """Return the keywords of a list with commas or of several options, folded, each once; BadSetting if none."""
    texts = [*given]
    found = dict.fromkeys(" ".join(word.casefold().split()) for text in texts for word in text.split(","))
    found.pop("", None)
    if texts and not found:
        raise BadSetting("--keywords names no word: write --keywords 'privacy, cookies'.")
    return tuple(found)


def _words_of(url: str) -> str:
    return re.sub(r"[\W_]+", " ", unquote(url.partition("://")[2].partition("/")[2]))
