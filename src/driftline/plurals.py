"""Numbers with their nouns, in every message that counts something."""

from __future__ import annotations


def count(amount: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: '1 page', '6,540 pages'; `plural` is for nouns that take no 's'."""
    return f"{amount:,} {noun if amount == 1 else plural or f'{noun}s'}"
