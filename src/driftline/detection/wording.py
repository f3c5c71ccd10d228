"""Patterns of words that are looked for in any case, in a fraction of the time that a pattern of any case takes.

A pattern that ignores case is tried letter by letter at every place of a text. It costs several times less to lower the
text once and to look for what is written in lower case, and nothing at all to leave a pattern out whose most telling
word the text does not have.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Wording:
    """Patterns in lower case, each under a part of a word that every text has in which it is found."""

    def __init__(self, patterns: Mapping[str, str]) -> None:
        self._patterns = [(part, re.compile(pattern)) for part, pattern in patterns.items()]

    def stands_in(self, text: str) -> bool:
        """Whether one of the patterns is found in the text, in whatever case."""
        text = text.lower()
        return any(part in text and pattern.search(text) for part, pattern in self._patterns)
