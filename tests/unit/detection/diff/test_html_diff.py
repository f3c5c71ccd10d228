from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from driftline.detection.diff.html_diff import render
from driftline.detection.diff.markup import MarkupChange, kinds_between
from driftline.detection.diff.tables import ChangedCell
from driftline.durations import utc
from driftline.model.change import Change, ChangeKind, Importance
from driftline.model.outcome import Version
from support.properties import searched_briefly

HOSTILE = [
    "<script>alert(1)</script>",
    "</p></main><script src=//evil.example/x.js></script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "'\"`><a href='javascript:alert(1)'>x</a>",
    "javascript:alert(1)",
    "--><!--<iframe src=//evil.example>",
    "</style><style>@import url(//evil.example)</style>",
    "</title><base href=//evil.example>",
    "&lt;script&gt; &amp;#106;avascript",
    "\x00\x01\x1b[31m\x7f\x85\x9b",
    "\u202eevil\u202d \u2066x\u2069 \u2028 \u2029",
    "\ufdd0\ufffe\uffff\U0001ffff",
    "{{7*7}} ${x} <%= y %>",
]
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufdd0-\ufdef\ufffe\uffff]")
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "id", "dir", "href", "open"}
TEXTS = st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=20)), max_size=6).map("\n".join)


def version(text: str, number: int = 1, title: str = "A page", url: str = "https://a.example/") -> Version:
    return Version(
        url=url, number=number, at=utc(1_700_000_000.0 + number), size=1, title=title, content_type="text/html",
        charset="utf-8", final_url=url, body=text.encode("utf-8", "replace"), text=text.encode("utf-8", "replace"),
    )  # fmt: skip


def rendered(old: str, new: str, kinds: tuple[MarkupChange, ...] = (), change: Change | None = None) -> str:
    return render(version(old, 1), version(new, 2), kinds, change)


def words(document: str) -> str:
    body = LexborHTMLParser(document).body
    assert body is not None
    return " ".join(body.text(separator=" ").split())


class Inspector(HTMLParser):
    """Collects all tags and attributes, by a parser that is not the one that the pages are read with."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str, str]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {(tag, name, value or "") for name, value in attrs}


def assert_safe(document: str) -> None:
    """No element and no attribute but ours, read by two parsers; nothing to load, to run or to go to."""
    inspector = Inspector()
    inspector.feed(document)
    nodes = LexborHTMLParser(document).css("*")
    found = {(node.tag or "", name, value or "") for node in nodes for name, value in node.attributes.items()}
    for tag in inspector.tags | {node.tag or "" for node in nodes}:
        assert tag in {
            "html", "head", "meta", "title", "style", "body", "header", "h1", "p", "span", "section", "ul", "li",
            "main", "div", "details", "summary", "ins", "del", "a", "b", "footer",
        }, tag  # fmt: skip
    for tag, name, value in inspector.attributes | found:
        assert name in ATTRIBUTES, (tag, name)
        if name == "href":
            assert re.fullmatch(r"#(?:from|to)-\d+", value)
        if name == "http-equiv":
            assert value == "Content-Security-Policy"
    style = LexborHTMLParser(document).css("style")
    assert len(style) == 1
    assert "url(" not in style[0].text()
    assert "@import" not in style[0].text()
    assert STEERING.search(document) is None


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_page_becomes_markup(text: str) -> None:
    kind = MarkupChange(name="links", count=1, words=text, examples=(text,))
    change = Change(
        id="1-2",
        url=text,
        at=utc(0.0),
        from_version=1,
        to_version=2,
        kind=ChangeKind.TEXT,
        importance=Importance.IMPORTANT,
        score=1.0,
        headline=text,
        reason=text,
    )
    for old, new in (("", text), (text, ""), (text, text), (f"words {text} words here", f"words {text} words there")):
        before, after = (version(side, title=text, url=text) for side in (old, new))
        assert_safe(render(before, after, (kind,), change))


@searched_briefly
@given(TEXTS, TEXTS)
def test_no_two_texts_make_a_document_that_does_anything(old: str, new: str) -> None:
    assert_safe(rendered(old, new))


def test_the_policy_allows_the_style_of_the_document_and_nothing_else() -> None:
    tree = LexborHTMLParser(rendered("a", "b"))
    (policy,) = tree.css("meta[http-equiv]")
    style = tree.css_first("style")
    assert style is not None
    own = b64encode(sha256(style.text().encode()).digest()).decode()
    assert policy.attributes["content"] == (
        f"default-src 'none'; style-src 'sha256-{own}'; base-uri 'none'; form-action 'none'"
    )


def test_added_and_removed_words_are_marked_as_such() -> None:
    document = rendered("The price is five euros.", "The price is six euros.")
    assert "The price is <del>five</del><ins>six</ins> euros." in document


def test_a_block_that_moved_shows_where_from_and_where_to() -> None:
    block, rest = "This paragraph goes to the end.", "One paragraph stays.\nSo does another one.\nAnd the third."
    tree = LexborHTMLParser(rendered(f"{block}\n{rest}", f"{rest}\n{block}"))
    assert [node.text() for node in tree.css(".away > summary")] == ["1 line moved to line 4"]
    assert [node.text() for node in tree.css(".note")] == ["1 line moved here from line 1"]
    assert [node.text() for node in tree.css(".row .moved")] == [block, block]
    assert tree.css("main ins, main del") == []
    targets = {f"#{node.attributes['id']}" for node in tree.css("[id]")}
    assert {node.attributes["href"] for node in tree.css("a")} == targets


def test_lines_far_from_every_change_are_folded() -> None:
    lines = [f"line {number}" for number in range(100)]
    tree = LexborHTMLParser(rendered("\n".join([*lines, "old"]), "\n".join([*lines, "new"])))
    (fold,) = tree.css("details.fold")
    assert len(fold.css(".row")) == 97
    summary = fold.css_first("summary")
    assert summary is not None
    assert summary.text() == "… 97 lines unchanged …"
    assert len(tree.css("main > .row.same")) == 3


@searched_briefly
@given(TEXTS, TEXTS)
def test_the_document_holds_every_line_of_the_new_text(old: str, new: str) -> None:
    rows = LexborHTMLParser(rendered(old, new)).css("main .row")
    there = [node for node in rows if not {"removed", "left"} & set((node.attributes["class"] or "").split())]
    assert [node.text(deep=False) for row in there for node in row.css(".at")] == [
        str(number + 1) for number in range(len(new.split("\n")))
    ]


def test_a_document_is_never_empty() -> None:
    link = MarkupChange(name="links", count=3, words="3 links", examples=("Terms: /a → /b",))
    assert "The text is the same; 3 links changed." in words(rendered("same", "same", (link,)))
    assert "Terms: /a → /b" in words(rendered("same", "same", (link,)))
    assert "The two versions are equal." in words(rendered("same", "same"))


def test_what_takes_no_room_is_named_where_it_is_what_changed() -> None:
    assert "⟨U+200B⟩" in rendered("some words", "some\u200b words")
    assert "⟨U+202E⟩evil" in rendered("same", "\u202eevil")
    assert "⟨U+200D⟩" not in rendered("नर्स \u200d stays\nold", "नर्स \u200d stays\nnew")


def test_the_header_shows_the_recorded_change() -> None:
    change = Change(
        id="1-2", url="https://a.example/", at=utc(0.0), from_version=1, to_version=2, kind=ChangeKind.TEXT,
        importance=Importance.IMPORTANT, score=0.876, headline="New: a word", reason="1 word added in one place.",
    )  # fmt: skip
    shown = words(rendered("old", "new", change=change))
    assert "New: a word 1 word added in one place. important, score 0.88" in shown
    assert "Version 1, 2023-11-14 22:13 UTC → version 2, 2023-11-14 22:13 UTC" in shown
    assert "1 word added and 1 word removed in one place." in words(rendered("old", "new"))


def test_kinds_of_real_bodies_are_listed() -> None:
    old, new = (
        version("<title>A</title><a href=/a>same</a>", 1),
        version("<title>A</title><a href=/b>same</a>", 2),
    )
    assert "Also changed: 1 link." in words(render(old, new, kinds_between(old, new)))


@pytest.mark.parametrize("hostile", HOSTILE)
def test_cells_are_shown_and_can_do_nothing(hostile: str) -> None:
    cells = [ChangedCell("", hostile, "price", "12", f"14 {hostile}")]
    document = render(version("12", 1), version("14", 2), (), None, cells)
    assert words(document).count("1 table cell changed price / ") == 1
    assert_safe(document)


@pytest.mark.parametrize(("letters", "is_open"), [(10, True), (2_000, False)])
def test_cells_are_open_at_once_only_if_they_are_short(letters: int, is_open: bool) -> None:
    cells = [ChangedCell("", "Model B", "price", "12", "x" * letters)]
    document = render(version("12", 1), version("14", 2), (), None, cells)
    assert ("<details open><summary>1 table cell changed" in document) == is_open


def test_pictures_of_the_versions_are_in_the_document_and_nothing_else_may_be_loaded() -> None:
    document = render(version("12", 1), version("14", 2), (), None, (), {1: b"before", 2: b"after"})
    assert '<img alt="Version 1" src="data:image/png;base64,YmVmb3Jl">' in document
    assert '<img alt="Version 2" src="data:image/png;base64,YWZ0ZXI=">' in document
    assert "form-action 'none'; img-src data:\"" in document
