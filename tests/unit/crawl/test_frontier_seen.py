"""URL-seen is exact: the filter only spares questions to the store."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from driftline.crawl.frontier import BloomFilter, UrlSeen


class Store:
    """Has keys, and counts how many it was asked for."""

    def __init__(self) -> None:
        self.keys: set[bytes] = set()
        self.asked = 0

    def look(self, keys: Sequence[bytes]) -> set[bytes]:
        self.asked += len(keys)
        return self.keys.intersection(keys)


@given(st.sets(st.binary(min_size=1, max_size=16), max_size=200))
def test_what_was_put_into_the_filter_is_there(keys: set[bytes]) -> None:
    """Whatever else was put in."""
    filled = BloomFilter(10)
    for key in keys:
        filled.add(key)
    assert all(key in filled for key in keys)
    assert all(filled.add(key) for key in keys)


def test_few_new_keys_are_taken_for_seen_by_the_filter() -> None:
    """About one in a hundred when it is as full as it was made for."""
    filled = BloomFilter(20_000)
    for n in range(20_000):
        filled.add(f"in {n}".encode())
    assert sum(f"out {n}".encode() in filled for n in range(20_000)) < 400


def test_no_new_key_is_lost_however_full_the_filter_is() -> None:
    """What the filter takes for seen wrongly is looked for in the store."""
    store = Store()
    seen = UrlSeen(lambda: store.keys, store.look)
    found = []
    for start in range(0, 60_000, 500):
        keys = [str(n).encode() for n in range(start, start + 500)]
        assert seen.new([*keys, *keys]) == keys
        found += keys
        store.keys.update(keys)
        seen.add(keys)
        assert seen.new(keys[:50]) == []
    assert len(found) == 60_000
    assert store.asked < 60_000 * 0.05 + 60_000 / 500 * 50  # those that were met, and few others


def test_what_the_store_has_from_before_was_seen() -> None:
    """A crawl that goes on makes its filter of it."""
    store = Store()
    store.keys = {b"a", b"b"}
    assert UrlSeen(lambda: store.keys, store.look).new([b"a", b"c"]) == [b"c"]
