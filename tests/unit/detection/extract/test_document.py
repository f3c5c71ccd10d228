from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.detection.extract.document import Extraction, letters_of
from support.properties import searched

HTML = "text/html; charset=utf-8"


def text_of(markup: str, content_type: str = HTML) -> str:
    return Extraction(markup.encode(), content_type).text()


def letters(markup: str, content_type: str = HTML) -> bytes:
    return Extraction(markup.encode(), content_type).letters()


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>one</p><p>two</p>", "one\ntwo"),
        ("<p>one <b>bold</b> and <i>leaning</i> word</p>", "one bold and leaning word"),
        ("<p>in<b>side</b> a word</p>", "inside a word"),
        ("<p>  much \n\t white   space </p>", "much white space"),
        ("<p>a&nbsp;b&amp;c&lt;d&eacute;</p>", "a b&c<dé"),
        ("<ul><li>one</li><li>two</li></ul>", "one\ntwo"),
        ("<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>", "1\n2\n3"),
        ("<nav><a>one</a><a>two</a></nav>", "one two"),
        ("<p>one<br>two</p>", "one\ntwo"),
        ("<h1>Title</h1>text after it", "Title\ntext after it"),
        ("<p>seen</p><script>unseen()</script><style>.unseen{}</style>", "seen"),
        ("<p>seen</p><noscript>unseen</noscript><template><p>unseen</p></template>", "seen"),
        ("<p>seen</p><svg><text>unseen</text></svg><iframe>unseen</iframe>", "seen"),
        ("<p>seen</p><p hidden>unseen</p><div style='display:none'>unseen</div>", "seen"),
        ("<p>seen</p><div style='color:red; display: none;'>unseen<p>unseen</p></div>", "seen"),
        ("<div hidden><p hidden>unseen<b hidden>unseen</b></p></div><p>seen</p>", "seen"),
        ("<body hidden><p>seen all the same</p>", "seen all the same"),
        ("<p style='text-decoration:none'>seen</p><p style='margin-left: -9999px'>unseen</p>", "seen"),
        ("<p hidden style='color:red'>unseen</p><p style>seen</p>", "seen"),
        ("<p>seen<!-- unseen --></p>", "seen"),
        ("<form><input type=hidden value=unseen><input value=unseen><input type=Submit value=Buy></form>", "Buy"),
        ("<title>unseen</title><p>seen</p>", "seen"),
        ("", ""),
        ("<html></html>", ""),
        ("<p>unclosed <b>tags <i>all over</p><p>the place", "unclosed tags all over\nthe place"),
        ("</div></p>stray ends</table>", "stray ends"),
        ("a < b and c > d", "a < b and c > d"),
        ("<p>one</p>" * 3, "one\none\none"),
        ("just words", "just words"),
    ],
)
def test_the_text_is_what_a_person_sees_one_block_a_line(markup: str, text: str) -> None:
    assert text_of(markup) == text


@pytest.mark.parametrize(
    "markup",
    [
        "<p>Price: 5 &euro; &amp; more</p><p>end</p>",
        "<p>Price: 5&nbsp;€ &#38; more</p>\n\n<p>end</p>\n",
        "<div>Price:\t5 € &amp; <b>mo</b>re</div><div>end</div>",
        "<P CLASS=x>Price: <span>5</span> &#x20AC; &amp; more<P>end<!-- note -->",
        "<p>Price: 5 € &amp; more</p><script>noise(1)</script><p>end</p><p hidden>x</p>",
        "<table><tr><td>Price:<td>5 €<td>&amp; more<tr><td>end</table>",
    ],
)
def test_letters_are_equal_but_for_spaces_however_entities_and_tags_are_written(markup: str) -> None:
    assert letters(markup).replace(b" ", b"") == "Price:5€&moreend".encode()


@pytest.mark.parametrize(("one", "other"), [("5 apples", "6 apples"), ("a b", "b a"), ("Word", "word"), ("a", "a.")])
def test_letters_differ_where_the_words_do(one: str, other: str) -> None:
    assert letters(f"<p>{one}</p>") != letters(f"<p>{other}</p>")


def test_the_title_is_read_apart_from_the_text() -> None:
    assert Extraction(b"<title> A\n title &amp; more </title><p>x", HTML).title() == "A title & more"
    assert Extraction(b"<p>x", HTML).title() == ""
    assert Extraction(b"{}", "application/json").title() == ""


def test_plain_text_is_never_read_as_markup() -> None:
    assert text_of("a <b>tag</b>\n\n\nand  more\r\n", "text/plain") == "a <b>tag</b>\nand more"
    assert letters("<p hidden>seen</p>", "text/plain") == b"<p hidden>seen</p>"


def test_a_document_without_a_type_is_read_by_its_looks() -> None:
    assert text_of("<!DOCTYPE html><p>one<p>two", "") == "one\ntwo"
    assert text_of("not <b>markup", "") == "not <b>markup"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [(b"\x89PNG\r\n\x1a\n", "image/png"), (b"%PDF-1.7", "application/pdf"), (b"\0\1\2", "application/octet-stream")],
)
def test_a_document_that_is_not_text_is_compared_by_its_bytes(body: bytes, content_type: str) -> None:
    reading = Extraction(body, content_type)
    assert reading.charset == "binary"
    assert reading.letters() != Extraction(body + b"x", content_type).letters()
    assert reading.letters() == Extraction(body, content_type).letters()
    assert reading.text().startswith(f"This document is not text: {len(body)} bytes of {content_type}")


@pytest.mark.parametrize(
    ("body", "charset"),
    [
        ("<p>Größe</p>".encode(), "utf-8"),
        ("<p>Größe</p>".encode("utf-8-sig"), "utf-8"),
        ("<p>Größe</p>".encode("latin-1"), "windows-1252"),
        ("<p>Größe</p>".encode("utf-16"), "utf-16"),
    ],
)
def test_a_page_has_the_same_text_in_whatever_charset_it_is_written(body: bytes, charset: str) -> None:
    reading = Extraction(body, f"text/html; charset={charset}")
    assert (reading.charset, reading.text()) == (charset, "Größe")


def test_a_few_broken_bytes_cost_no_more_than_themselves() -> None:
    assert Extraction(b"<p>Gr\xc3\xb6\xff\xc3\x9fe</p>", HTML).text() == "Grö\ufffdße"


def test_a_wrong_byte_far_into_a_page_costs_no_more_than_itself_either() -> None:
    far = b"<p>words</p>" * 5_000
    assert Extraction(far + b"<p>Gr\xc3\xb6\xff\xc3\x9fe</p>", HTML).text().endswith("\nGr\u00f6\ufffd\u00dfe")


def test_marks_far_into_a_page_are_not_ours_either() -> None:
    far = "<p>words</p>" * 5_000 + "<p>The \x80end\x83.</p>"
    assert Extraction(far.encode(), HTML).blocks().lines[-1] == "The end."


def test_the_content_type_is_given_without_its_parameters() -> None:
    assert Extraction(b"x", "Text/HTML ; charset=utf-8").content_type == "text/html"


WORD = st.text(alphabet="abcäß€日&<>0.,", min_size=1, max_size=6)
GAP = st.text(alphabet=" \t\n\r\f", max_size=4)
TAG = st.sampled_from(["p", "div", "b", "span", "li", "em", "h2", "a"])


@searched
@given(st.lists(st.tuples(TAG, WORD, GAP, GAP, GAP), max_size=12))
def test_pages_that_differ_only_in_white_space_between_words_and_tags_have_equal_letters(
    parts: list[tuple[str, str, str, str, str]],
) -> None:
    def escape(word: str) -> str:
        return word.replace("&", "&amp;").replace("<", "&lt;")

    tight = "".join(f"<{tag}>{escape(word)}</{tag}>" for tag, word, *_ in parts)
    loose = "".join(f"{a}<{tag}>{b}{escape(word)}{c}</{tag}>" for tag, word, a, b, c in parts)
    assert letters(f"<body>{tight}</body>") == letters(f"<body>{loose}</body>")


@searched
@given(st.text(max_size=200), st.sampled_from([HTML, "text/plain", "application/json", "", "application/xml", "x/y"]))
def test_no_document_is_too_broken_to_be_read(text: str, content_type: str) -> None:
    reading = Extraction(text.encode("utf-8", "replace"), content_type)
    assert isinstance(reading.text(), str)
    assert isinstance(reading.title(), str)
    assert not set(reading.letters()) & set("\t\r\n")


@searched
@given(st.text(alphabet="ab<>/&;p hiden='\"!-", max_size=200))
def test_the_text_of_a_document_has_the_letters_of_the_document(markup: str) -> None:
    reading = Extraction(f"<body>{markup}".encode(), HTML)
    seen = reading.letters()
    assert letters_of(reading.text()).replace(b" ", b"") == seen.replace(b" ", b"")


def test_a_gap_within_a_text_is_part_of_it() -> None:
    assert letters("<p>Uptime Robot</p>") != letters("<p>UptimeRobot</p>")
    assert letters("<p>Uptime Robot</p>\n<p>It</p>") == letters("<p> Uptime\u00a0Robot</p><p>It </p>")
    assert letters('["Uptime Robot"]', "application/json") != letters('["UptimeRobot"]', "application/json")


NESTED = st.recursive(
    st.sampled_from(["word", " ", "7", "\n"]),
    lambda inside: st.builds(
        lambda tag, parts: f"<{tag}>{''.join(parts)}</{tag}>",
        st.sampled_from(["a", "form", "table", "select", "p", "b", "nav", "footer", "div", "td", "button", "li", "h1"]),
        st.lists(inside, max_size=3),
    ),
    max_leaves=20,
)


@searched
@given(st.lists(NESTED, max_size=4))
def test_the_blocks_of_a_document_are_the_lines_of_its_text(parts: list[str]) -> None:
    body = f"<body>{''.join(parts)}".encode()
    assert Extraction(body, HTML).blocks().lines == list(filter(None, Extraction(body, HTML).text().split("\n")))


def test_a_link_within_another_leaves_no_mark() -> None:
    markup = "<a href=/1>one<form><table><a href=/2>two</a></table></form></a><p>end</p>"
    assert "\x84" not in "".join(Extraction(markup.encode(), HTML).blocks().lines)


@searched
@given(st.text())
def test_the_text_holds_no_empty_lines_and_no_space_twice(text: str) -> None:
    lines = text_of(f"<body><p>{text}</p>").split("\n")
    assert lines == [""] or all(line.strip() for line in lines)
    assert not any("  " in line for line in lines)
