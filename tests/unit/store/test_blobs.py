from __future__ import annotations

import random
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import BrokenVersion
from driftline.model.outcome import Blob
from driftline.store.blobs import (
    DEEPEST,
    DEEPEST_BODY,
    MOST_DECODED,
    digest,
    pack,
    pack_next,
    repack,
    unpack,
    unpack_all,
    unpack_both,
)
from support.properties import searched, searched_briefly


def chain_of(contents: list[bytes]) -> dict[bytes, Blob]:
    """Each contents packed against the one before it, as successive versions are."""
    blobs: dict[bytes, Blob] = {}
    last: Blob | None = None
    last_data = b""
    for data in contents:
        blob = pack(data, digest(data), last, last_data)
        last = blobs.setdefault(blob.digest, blob)
        last_data = data
    return blobs


def bodies_of(contents: list[bytes]) -> dict[bytes, Blob]:
    """Each contents packed as the body that follows the one before it."""
    blobs: dict[bytes, Blob] = {}
    last: Blob | None = None
    last_data = b""
    for data in contents:
        blob = pack_next(data, digest(data), last, last_data, blobs)
        last = blobs.setdefault(blob.digest, blob)
        last_data = data
    return blobs


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


@searched
@given(st.binary(max_size=2_000))
def test_contents_on_their_own_read_back_to_the_byte(data: bytes) -> None:
    blob = pack(data, digest(data))
    assert (blob.base, blob.depth, blob.size) == (None, 0, len(data))
    assert unpack(blob.digest, {blob.digest: blob}) == data


@searched
@given(st.lists(st.binary(max_size=400), min_size=1, max_size=30))
def test_every_version_of_a_chain_reads_back_to_the_byte(contents: list[bytes]) -> None:
    blobs = chain_of(contents)
    for data in contents:
        assert unpack(digest(data), blobs) == data


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 1_000, 1_000_000])
@pytest.mark.parametrize("base_size", [0, 7, 8, 1_000_000])
def test_sizes_at_the_edges_read_back_against_any_base(size: int, base_size: int) -> None:
    base_data, data = noise(base_size, 2), noise(size)
    base = pack(base_data, digest(base_data))
    blob = pack(data, digest(data), base, base_data)
    assert unpack(blob.digest, {base.digest: base, blob.digest: blob}) == data


def test_a_large_version_finds_all_of_its_base_within_its_window() -> None:
    base_data = noise(600_000)
    data = base_data[:300_000] + b"a small change" + base_data[300_000:]
    base = pack(base_data, digest(base_data))
    blob = pack(data, digest(data), base, base_data)
    assert len(blob.data) < 20_000
    assert unpack(blob.digest, {base.digest: base, blob.digest: blob}) == data


def test_no_chain_is_longer_than_the_deepest_over_sixty_versions() -> None:
    page = [b"<p>line %d of a page that hardly changes</p>" % line for line in range(200)]
    contents = []
    for version in range(60):
        page[version] = b"<p>changed in version %d</p>" % version
        contents.append(b"\n".join(page))
    blobs = chain_of(contents)
    depths = [blobs[digest(data)].depth for data in contents]
    assert max(depths) == DEEPEST
    assert depths.count(0) == 3
    for data in contents:
        assert unpack(digest(data), blobs) == data
    assert sum(len(blob.data) for blob in blobs.values()) < sum(map(len, contents)) / 10


def test_a_page_that_stays_much_the_same_has_one_full_copy_and_every_body_is_near_it() -> None:
    page = [noise(40, line) for line in range(200)]
    contents = []
    for version in range(3 * DEEPEST):
        page[version] = noise(40, 1_000 + version)
        contents.append(b"\n".join(page))
    blobs = bodies_of(contents)
    depths = [blobs[digest(data)].depth for data in contents]
    assert max(depths) == DEEPEST_BODY
    assert depths.count(0) == 1
    for data in contents:
        assert unpack(digest(data), blobs) == data


@pytest.mark.parametrize("share", [3, 6, 11])
def test_large_bodies_are_fewer_steps_away_so_that_none_takes_long_to_read(share: int) -> None:
    size = MOST_DECODED // share
    contents = [noise(size - 100) + noise(100, seed) for seed in range(2, 2 + 2 * share)]
    blobs = bodies_of(contents)
    decoded = []
    for data in contents:
        blob = blobs[digest(data)]
        decoded.append(blob.size)
        while blob.base is not None:
            blob = blobs[blob.base]
            decoded[-1] += blob.size
    assert max(decoded) == share * size, "as much as is allowed"
    assert sum(blob.base is None for blob in blobs.values()) == 1, "the others branch off from the first"
    assert unpack(digest(contents[-1]), blobs) == contents[-1]


def test_bodies_too_large_for_any_chain_are_one_step_from_the_first() -> None:
    contents = [noise(MOST_DECODED * 2 // 3) + noise(100, seed) for seed in (2, 3, 4)]
    blobs = bodies_of(contents)
    assert [blobs[digest(data)].depth for data in contents] == [0, 1, 1]


def test_a_page_that_has_become_another_one_branches_off_with_a_full_copy() -> None:
    first, other = noise(5_000, 1), noise(5_000, 2)
    contents = [first] + [other + b"%d" % version for version in range(DEEPEST)]
    blobs = bodies_of(contents)
    assert [blobs[digest(data)].depth for data in contents] == [*range(DEEPEST_BODY + 1), 0]
    assert unpack(digest(contents[-1]), blobs) == contents[-1]


@searched
@given(st.lists(st.binary(max_size=400), min_size=1, max_size=45))
def test_every_body_of_a_page_reads_back_within_the_deepest_whatever_came_before_it(contents: list[bytes]) -> None:
    blobs = bodies_of(contents)
    assert all(blob.depth <= DEEPEST_BODY for blob in blobs.values())
    for data in contents:
        assert unpack(digest(data), blobs) == data


@searched
@given(st.lists(st.binary(max_size=400), min_size=1, max_size=30), st.data())
def test_any_two_contents_are_read_together_as_each_on_its_own(contents: list[bytes], draw: st.DataObject) -> None:
    blobs = bodies_of(contents)
    one, other = (draw.draw(st.sampled_from(contents)) for _ in range(2))
    assert unpack_both(digest(one), digest(other), blobs) == (one, other)


@searched
@given(st.lists(st.binary(max_size=400), min_size=1, max_size=30))
def test_contents_packed_again_are_no_larger_and_read_back_in_any_mixture_of_old_and_new(contents: list[bytes]) -> None:
    old = bodies_of(contents)
    new = {
        name: repack(blob, unpack(name, old), unpack(blob.base, old) if blob.base else b"")
        for name, blob in old.items()
    }
    for name, blob in new.items():
        assert (blob.base, blob.depth, blob.size) == (old[name].base, old[name].depth, old[name].size)
        assert len(blob.data) <= len(old[name].data)
    mixed = {name: (old if number % 2 else new)[name] for number, name in enumerate(old)}
    for data in contents:
        assert unpack(digest(data), new) == unpack(digest(data), mixed) == data


def test_a_page_packed_again_takes_fewer_bytes() -> None:
    words = random.Random(3).choices([b"price", b"terms", b"service", b"you", b"we", b"data", b"<p>", b"</p>"], k=9_000)
    data = b" ".join(words)
    blob = pack(data, digest(data))
    assert len(repack(blob, data, b"").data) < 0.9 * len(blob.data)


def test_the_same_contents_are_never_packed_against_themselves() -> None:
    data = b"the same page as before"
    base = pack(data, digest(data))
    assert pack(data, digest(data), base, data).base is None


@searched_briefly
@given(st.binary(min_size=20, max_size=300), st.data())
def test_damage_to_any_byte_is_noticed_or_harmless(data: bytes, draw: st.DataObject) -> None:
    blob = pack(data, digest(data))
    at = draw.draw(st.integers(0, len(blob.data) - 1))
    value = draw.draw(st.integers(0, 255))
    broken = Blob(blob.digest, None, 0, blob.size, blob.data[:at] + bytes([value]) + blob.data[at + 1 :])
    with suppress(BrokenVersion):
        assert unpack(blob.digest, {blob.digest: broken}) == data


@pytest.mark.parametrize("keep", [0, 1, 10, -1])
def test_a_blob_cut_short_is_a_broken_version(keep: int) -> None:
    data = noise(100)
    blob = pack(data, digest(data))
    with pytest.raises(BrokenVersion):
        unpack(blob.digest, {blob.digest: Blob(blob.digest, None, 0, blob.size, blob.data[:keep])})


def test_a_chain_without_its_start_is_a_broken_version() -> None:
    contents = [noise(100, 1), noise(100, 2)]
    blobs = chain_of(contents)
    del blobs[digest(contents[0])]
    with pytest.raises(BrokenVersion, match="incomplete"):
        unpack(digest(contents[1]), blobs)


def test_a_chain_that_bites_its_tail_is_a_broken_version() -> None:
    one = Blob(b"1" * 32, b"2" * 32, 1, 5, b"x")
    two = Blob(b"2" * 32, b"1" * 32, 1, 5, b"x")
    with pytest.raises(BrokenVersion):
        unpack(one.digest, {one.digest: one, two.digest: two})


def test_other_contents_under_a_name_are_a_broken_version() -> None:
    name = digest(b"what was stored")
    other = pack(b"something else", name)
    with pytest.raises(BrokenVersion, match="not what was stored"):
        unpack(name, {name: other})


def test_all_contents_of_a_page_are_unpacked_and_what_is_broken_is_named() -> None:
    contents = [b"the first version of a page", b"the second version of a page", b"the third version of a page"]
    first, second, third = bodies_of(contents).values()
    alone = pack(b"something else", digest(b"something else"))
    assert list(unpack_all([third, alone, second, first])) == []
    damaged = Blob(second.digest, second.base, second.depth, second.size, b"no zstd")
    broken, incomplete = unpack_all([first, damaged, third, alone])
    assert f"{second.digest.hex()[:12]} cannot be read" in broken
    assert f"{third.digest.hex()[:12]} is incomplete" in incomplete
    (missing,) = unpack_all([second])
    assert f"{second.digest.hex()[:12]} is incomplete" in missing
