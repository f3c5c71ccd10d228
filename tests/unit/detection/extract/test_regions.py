from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from driftline.detection.extract.document import Extraction
from driftline.detection.extract.regions import Blocks, read_marks
from driftline.model.change import Region

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = "<p>" + "words of the page itself " * 20 + "</p>"


def blocks(markup: str) -> list[tuple[str, Region, bool]]:
    read = Extraction(f"<body>{markup}</body>".encode(), "text/html; charset=utf-8").blocks()
    return [(block.text, block.region, block.linked) for block in read if not block.text.startswith("words of")]


@pytest.mark.parametrize(
    ("markup", "region"),
    [
        ("<p>x</p>", Region.BODY),
        ("<main><p>x</p></main>", Region.MAIN),
        ("<nav>x</nav>", Region.NAVIGATION),
        ("<div role=navigation>x</div>", Region.NAVIGATION),
        ("<header>x</header>", Region.HEADER),
        ("<footer><div><p>x</p></div></footer>", Region.FOOTER),
        ("<div class='site-footer dark'>x</div>", Region.FOOTER),
        ("<div id=pageFooter>x</div>", Region.FOOTER),
        ("<aside>x</aside>", Region.ASIDE),
        ("<div class=related-articles>x</div>", Region.ASIDE),
        ("<form><p>x</p></form>", Region.FORM),
        ("<div role=dialog>x</div>", Region.DIALOG),
        ("<div class=CookieConsent>x</div>", Region.CONSENT),
        ("<main><footer>x</footer></main>", Region.MAIN),
        ("<main><nav>x</nav></main>", Region.NAVIGATION),
        ("<footer><main>x</main></footer>", Region.FOOTER),
        ("<div class=headline>x</div>", Region.BODY),
        ("<div class=navy>x</div>", Region.BODY),
        ("<li role=navigation>x</li>", Region.NAVIGATION),
        ("<p class=footer>x</p>", Region.FOOTER),
        ("<p id=footer>x</p>", Region.BODY),
        ("<span class=footer role=navigation>x</span>", Region.BODY),
    ],
)
def test_a_block_knows_its_region(markup: str, region: Region) -> None:
    assert blocks(LONG + markup + LONG) == [("x", region, False)]


def test_a_region_that_holds_most_of_the_text_is_none() -> None:
    assert blocks(f"<form>{LONG}<p>x</p></form>") == [("x", Region.BODY, False)]


def test_a_block_that_is_nearly_all_links_is_a_link() -> None:
    found = blocks("<p><a>one</a><a>two</a></p><p>see <a>this</a> for more</p>")
    assert found == [("one two", Region.BODY, True), ("see this for more", Region.BODY, False)]


def test_a_link_around_several_blocks_makes_links_of_all_of_them() -> None:
    found = blocks("<a><div>one</div><div>two  \n three</div></a><p>four</p>")
    assert found == [
        ("one", Region.BODY, True), ("two three", Region.BODY, True), ("four", Region.BODY, False),
    ]  # fmt: skip


def test_a_line_that_a_link_ends_in_is_one_if_little_follows() -> None:
    found = blocks("<a>one<div>two</div>three</a> | <a>four</a><p>five <a>six<div>seven</div></a> and more</p>")
    assert [(text, linked) for text, _, linked in found] == [
        ("one", True), ("two", True), ("three | four", True), ("five six", False), ("seven", True),
        ("and more", False),
    ]  # fmt: skip


def test_marks_in_the_markup_of_an_author_are_not_ours() -> None:
    assert blocks("<p>a\x80nb\x82\x83c\x84</p>") == [("anbc", Region.BODY, False)]


def test_marks_cannot_be_written_as_character_references() -> None:
    found = blocks("<p>&#128;one&#x82; two &#131;three &#x84;</p><p>&#x86;</p>")
    assert [text for text, _, _ in found] == ["€one‚ two ƒthree „", "†"]


@pytest.mark.parametrize("mark", ["\x80", "\x80z", "\x82", "\x83", "\x84", "\x86"])
def test_a_mark_that_an_author_wrote_does_no_harm(mark: str) -> None:
    lines = Extraction(f"<p>Before.</p><p>{mark}</p><p>After.</p>".encode(), "text/html").blocks().lines
    assert (lines[0], lines[-1]) == ("Before.", "After.")


def test_whether_there_is_a_main_part_is_looked_up_once() -> None:
    looks: list[int] = []

    class Counted(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            looks.append(len(self))
            return super().__iter__()

    parts = read_marks("one\x00two")
    blocks = Blocks(parts.lines, Counted(parts._spans))
    assert [blocks.has_main for _ in range(9)] == [False] * 9
    assert looks == [2]


def test_a_heading_that_holds_a_region_is_a_heading_too() -> None:
    body = b"<main><h2><div class=related-title>Also <a href=/b>bought</a></div></h2><p>Desk</p></main>"
    assert Extraction(body, "text/html; charset=utf-8").blocks().headings == {"Also bought"}
