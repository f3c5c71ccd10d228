"""The charset of a page is found by mark, header, markup, or its bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.detection.extract.charset import decode_text
from driftline.errors import UnreadableBody
from support.properties import searched

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


def test_a_page_in_another_charset_than_declared_is_not_read_as_question_marks() -> None:
    words = "Музей закрыт сегодня, и откроется только завтра."
    assert decode_text(words.encode("cp1251"), "text/html; charset=utf-8")[0] == words
