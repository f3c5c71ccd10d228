"""Pages that say nearly the same are found among many others."""

from __future__ import annotations

import random

from driftline.crawl.simhash import NEAR, Lookalikes, distance, simhash

WORDS = [f"word{letter}{other}" for letter in "abcdefghijklmnopqrst" for other in "uvwxyz"]


def text(seed: int, length: int = 300) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=length))


def test_a_small_edit_changes_few_bits_and_another_text_many() -> None:
    """One word of three hundred leaves a page nearly the same."""
    page = text(1)
    assert distance(simhash(page), simhash(page.replace(page.split()[150], "another", 1))) <= NEAR
    others = [distance(simhash(page), simhash(text(seed))) for seed in range(2, 200)]
    assert min(others) > NEAR


def test_numbers_do_not_count() -> None:
    """The months of an empty calendar say the same."""
    assert simhash(f"{text(1)} 2026 11") == simhash(f"{text(1)} 2027 12")


def test_a_text_that_is_too_short_says_nothing() -> None:
    """A few words are like a few others too often."""
    assert simhash("Welcome to our site") == 0


def test_the_first_page_that_said_the_same_or_nearly_is_named() -> None:
    """Exact copies are distinguished from those that are nearly the same."""
    alike = Lookalikes()
    page = text(1)
    edited = page.replace(page.split()[150], "another", 1)
    for seed in range(2, 300):
        assert alike.add(seed, str(seed).encode(), simhash(text(seed))) == (None, None)
    assert alike.add(1, b"digest", simhash(page)) == (None, None)
    assert alike.add(500, b"digest", simhash(page)) == (1, None)
    assert alike.add(501, b"other digest", simhash(edited)) == (None, 1)
    assert alike.add(502, b"short", 0) == (None, None)


def test_every_pair_within_reach_is_found() -> None:
    """Whichever three bits differ, one of the four parts is the same."""
    drawn = random.Random(1)
    for _ in range(300):
        mark = drawn.getrandbits(63)
        other = mark
        for bit in drawn.sample(range(63), NEAR):
            other ^= 1 << bit
        alike = Lookalikes()
        alike.add(1, b"a", mark)
        assert alike.add(2, b"b", other) == (None, 1)
