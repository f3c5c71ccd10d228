from __future__ import annotations

import sys

import pytest

from driftline.fetch.curl import Body


@pytest.mark.parametrize("chunks", [[], [b"one"], [b"one", b"two"], [b"", b"x"]])
def test_a_body_is_all_that_came_and_is_taken_once(chunks: list[bytes]) -> None:
    body = Body()
    for chunk in chunks:
        body.add(chunk)
    assert body.take() == b"".join(chunks)
    assert body.take() == b""


def test_one_chunk_is_not_copied() -> None:
    chunk, body = bytes(100_000), Body()
    body.add(chunk)
    assert body.take() is chunk


def test_many_small_chunks_take_little_more_than_the_body() -> None:
    body = Body()
    for number in range(100_000):
        body.add(bytes([number % 256]))
    held = sum(map(sys.getsizeof, (*body._chunks, *body._parts)))
    assert held < 2 * 100_000 + 4_096 * 40
    assert body.take() == bytes(number % 256 for number in range(100_000))
