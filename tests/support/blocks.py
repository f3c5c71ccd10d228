"""Pages that are not to be fetched."""

from __future__ import annotations


class Paths:
    """Blocks addresses with these words in them."""

    def __init__(self, *words: str) -> None:
        self.words = list(words)

    @property
    def any(self) -> bool:
        return bool(self.words)

    @property
    def single(self) -> bool:
        return bool(self.words)

    def why(self, url: str) -> str | None:
        return next((f"It has '{word}' in it." for word in self.words if word in url), None)
