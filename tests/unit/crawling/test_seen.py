"""The filter before the store never takes a seen address for a new one, and rarely the other way round."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from driftline.crawling.seen import BloomFilter, filter_of


@given(st.sets(st.binary(min_size=1, max_size=16), max_size=200))
def test_what_was_put_in_is_there(keys: set[bytes]) -> None:
    """Whatever else was put in."""
    filled = filter_of(keys, 10)
    assert all(key in filled for key in keys)
    assert all(filled.add(key) for key in keys)


def test_few_new_ones_are_taken_for_seen() -> None:
    """About one in a hundred when it is as full as it was made for."""
    filled = filter_of((f"in {n}".encode() for n in range(20_000)), 20_000)
    wrong = sum(f"out {n}".encode() in filled for n in range(20_000))
    assert wrong < 400


def test_it_says_when_it_holds_more_than_it_was_made_for() -> None:
    """So that a larger one can be made of what the store has."""
    small = BloomFilter(1)
    for n in range(small.expected):
        small.add(str(n).encode())
    assert not small.full
    for n in range(small.expected, small.expected * 2):
        small.add(str(n).encode())
    assert small.full
