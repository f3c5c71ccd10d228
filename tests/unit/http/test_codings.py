"""Content codings are undone, in order, up to a limit."""

from __future__ import annotations

import gzip
import sys
import zlib
from contextlib import suppress

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import FailureKind, UnreadableBody
from driftline.http.codings import decode_body
from support.properties import searched, searched_briefly

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PLENTY = 10_000_000


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def encode(data: bytes, coding: str) -> bytes:
    if coding == "br":
        packed: bytes = brotli.compress(data, quality=5)
        return packed
    if coding == "deflate":
        return zlib.compress(data)
    return zstd.compress(data) if coding == "zstd" else gzip.compress(data)


CODINGS = ["gzip", "x-gzip", "deflate", "br", "zstd"]


def fails_as(kind: FailureKind, body: bytes, codings: list[str], limit: int = PLENTY) -> None:
    with pytest.raises(UnreadableBody) as refused:
        decode_body(body, codings, limit)
    assert refused.value.kind is kind
    assert str(refused.value).endswith(".")


@searched
@given(st.sampled_from(CODINGS), st.binary(min_size=1, max_size=3_000))
def test_each_coding_is_undone(coding: str, data: bytes) -> None:
    assert decode_body(encode(data, coding), [coding], PLENTY) == data


@searched_briefly
@given(st.lists(st.sampled_from(CODINGS), min_size=2, max_size=4), st.binary(min_size=1, max_size=500))
def test_codings_are_undone_last_applied_first(codings: list[str], data: bytes) -> None:
    body = data
    for coding in codings:
        body = encode(body, coding)
    assert decode_body(body, codings, PLENTY) == data


def test_a_body_without_codings_is_the_body() -> None:
    assert decode_body(b"plain", [], 3) == b"plain"


@pytest.mark.parametrize("coding", CODINGS)
def test_an_empty_body_is_empty_in_every_coding(coding: str) -> None:
    assert decode_body(b"", [coding], PLENTY) == b""
    assert decode_body(encode(b"", coding), [coding], PLENTY) == b""


def test_deflate_without_its_header_is_undone_too() -> None:
    assert decode_body(raw_deflate(b"some words" * 50), ["deflate"], PLENTY) == b"some words" * 50


def test_a_gzip_of_several_members_is_read_to_its_end() -> None:
    assert decode_body(gzip.compress(b"one ") + gzip.compress(b"two"), ["gzip"], PLENTY) == b"one two"


def test_padding_after_a_gzip_is_passed_over() -> None:
    assert decode_body(gzip.compress(b"one") + b"\0" * 100, ["gzip"], PLENTY) == b"one"


def test_a_zstd_of_several_frames_is_read_to_its_end() -> None:
    assert decode_body(zstd.compress(b"one ") + zstd.compress(b"two"), ["zstd"], PLENTY) == b"one two"


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("keep", [1, 5, 0.5, -1])
def test_a_body_cut_short_is_broken(coding: str, keep: float) -> None:
    whole = encode(bytes(range(256)) * 40, coding)
    end = int(len(whole) * keep) if isinstance(keep, float) else keep
    fails_as(FailureKind.BODY, whole[:end], [coding])


@pytest.mark.parametrize("coding", CODINGS)
def test_a_body_that_is_not_in_its_coding_is_broken(coding: str) -> None:
    fails_as(FailureKind.BODY, b"<html>certainly not compressed</html>", [coding])


def test_an_unknown_coding_is_named() -> None:
    fails_as(FailureKind.BODY, b"x", ["compress"])
    fails_as(FailureKind.BODY, b"x", ["y" * 5_000])


@pytest.mark.parametrize("coding", CODINGS)
def test_a_bomb_is_cut_off_at_the_limit(coding: str) -> None:
    fails_as(FailureKind.TOO_LARGE, encode(b"\0" * 5_000_000, coding), [coding], limit=100_000)


def test_a_bomb_of_many_small_members_is_cut_off_at_the_limit() -> None:
    fails_as(FailureKind.TOO_LARGE, gzip.compress(b"\0" * 1_000) * 200, ["gzip"], limit=100_000)


def test_a_bomb_in_a_bomb_is_cut_off_at_the_limit() -> None:
    twice = gzip.compress(gzip.compress(b"\0" * 20_000_000))
    fails_as(FailureKind.TOO_LARGE, twice, ["gzip", "gzip"], limit=1_000_000)


@pytest.mark.parametrize("coding", CODINGS)
def test_the_limit_is_the_last_size_that_is_read(coding: str) -> None:
    body = encode(b"x" * 70_000, coding)
    assert len(decode_body(body, [coding], 70_000)) == 70_000
    fails_as(FailureKind.TOO_LARGE, body, [coding], limit=69_999)


@searched
@given(st.sampled_from([*CODINGS, "unknown"]), st.binary(max_size=300))
def test_no_bytes_make_anything_but_a_body_or_a_failure(coding: str, body: bytes) -> None:
    with suppress(UnreadableBody):
        assert len(decode_body(body, [coding], 1_000)) <= 1_000


def test_a_body_in_too_many_codings_is_not_decoded() -> None:
    with pytest.raises(UnreadableBody, match="5 content codings"):
        decode_body(b"x", ["gzip"] * 5, 1_000)
