from __future__ import annotations

import gzip
import sys
import zlib
from contextlib import suppress

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.detection.extract.charset import decode_text
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


WORDS = "Größe, naïve, 日本"


@pytest.mark.parametrize(
    ("body", "content_type", "text", "charset"),
    [
        (WORDS.encode(), "text/html; charset=utf-8", WORDS, "utf-8"),
        (WORDS.encode(), 'text/html; charset="UTF8"', WORDS, "utf-8"),
        (WORDS.encode(), "text/html", WORDS, "utf-8"),
        ("Größe".encode("latin-1"), "text/html; charset=ISO-8859-1", "Größe", "windows-1252"),
        (b"\x80 5", "text/html; charset=latin1", "€ 5", "windows-1252"),
        ("日本".encode("shift_jis"), "text/html; charset=Shift_JIS", "日本", "shift_jis"),
        ("日本".encode("euc-jp"), "text/html;charset=euc-jp", "日本", "euc-jp"),
        ("привет".encode("koi8-r"), "text/html; charset=koi8-r", "привет", "koi8-r"),
        (b"\xef\xbb\xbf" + WORDS.encode(), "text/html; charset=latin-1", WORDS, "utf-8"),
        (WORDS.encode("utf-16"), "text/html; charset=utf-8", WORDS, "utf-16"),
        (b"\xfe\xff" + WORDS.encode("utf-16-be"), "text/plain", WORDS, "utf-16"),
        (WORDS.encode(), "text/html; charset=no-such-thing", WORDS, "utf-8"),
        (b"", "text/html", "", "utf-8"),
    ],
)
def test_the_charset_is_found_by_mark_then_header(body: bytes, content_type: str, text: str, charset: str) -> None:
    assert decode_text(body, content_type) == (text, charset)


@pytest.mark.parametrize(
    "declaration",
    [
        b'<meta charset="windows-1251">',
        b"<META CHARSET=windows-1251 />",
        b'<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">',
        b'<?xml version="1.0" encoding="windows-1251"?>',
    ],
)
def test_the_charset_is_found_in_the_markup_where_the_header_has_none(declaration: bytes) -> None:
    text, charset = decode_text(declaration + "привет".encode("cp1251"), "text/html")
    assert text.endswith("привет")
    assert charset == "windows-1251"


def test_the_header_counts_more_than_the_markup() -> None:
    body = b'<meta charset="koi8-r">' + "привет".encode("cp1251")
    assert decode_text(body, "text/html; charset=windows-1251")[0].endswith("привет")


def test_an_undeclared_charset_is_guessed_from_the_bytes() -> None:
    words = "Съешь же ещё этих мягких французских булок да выпей чаю, потом ещё раз. " * 20
    assert decode_text(words.encode("cp1251"), "text/html")[0] == words


def test_a_character_cut_off_at_the_end_does_not_change_the_charset() -> None:
    text, charset = decode_text("Größe 日本".encode()[:-1], "text/html; charset=utf-8")
    assert text.startswith("Größe 日")
    assert charset == "utf-8"


@searched
@given(
    st.binary(max_size=300), st.sampled_from(["text/html", "text/html; charset=utf-8", "text/html; charset=big5", ""])
)
def test_any_bytes_become_text(body: bytes, content_type: str) -> None:
    text, charset = decode_text(body, content_type)
    assert isinstance(text, str)
    assert charset


PICTURE = bytes(range(256)) * 8


@pytest.mark.parametrize("content_type", ["text/html; charset=utf-8", "text/html", "text/plain; charset=iso-8859-1"])
def test_bytes_that_are_no_text_are_not_read_as_such(content_type: str) -> None:
    with pytest.raises(UnreadableBody, match="not text"):
        decode_text(PICTURE, content_type)


def test_a_few_control_characters_do_not_make_it_unreadable() -> None:
    text = "Grüße\x01 aus der Küche\x02 " * 100
    assert decode_text(text[:300].encode("latin-1"), "text/html; charset=iso-8859-1")[0] == text[:300]
    tidy = "Grüße aus der Küche " * 100
    assert decode_text(tidy.encode("cp1252"), "text/html; charset=utf-8")[0].startswith("Gr")


def test_a_body_in_too_many_codings_is_not_decoded() -> None:
    with pytest.raises(UnreadableBody, match="5 content codings"):
        decode_body(b"x", ["gzip"] * 5, 1_000)


def test_a_page_in_another_charset_than_declared_is_not_read_as_question_marks() -> None:
    words = "Музей закрыт сегодня, и откроется только завтра."
    assert decode_text(words.encode("cp1251"), "text/html; charset=utf-8")[0] == words
