from __future__ import annotations

import pytest

from driftline.detection.extract.document import Extraction
from driftline.errors import UnreadableBody

SHELL = '<main><h1>Shop</h1><!--$?--><template id="B:0"></template><p>Loading</p><!--/$--><p>the end</p></main>'
PART = '<div hidden id="S:0"><p>A lamp for 5 euros</p></div>'
PUT = '<script>$RC=function(b,c){};$RC("B:0","S:0")</script>'


def text_of(markup: str, *filters: tuple[str, str]) -> str:
    return Extraction(markup.encode(), "text/html", filters or None).text()


def test_a_part_that_comes_late_is_read_where_a_browser_shows_it() -> None:
    assert text_of(SHELL + PART + PUT) == "Shop\nA lamp for 5 euros\nthe end"


def test_a_filter_finds_a_part_in_its_place() -> None:
    assert text_of(SHELL + PART + PUT, ("select", "main p")) == "A lamp for 5 euros\nthe end"


def test_a_part_may_be_completed_by_another_one() -> None:
    part = '<div hidden id="S:0"><p>A lamp for <template id="P:1"></template></p></div>'
    rest = '<div hidden id="S:1">5 <b>euros</b></div><script>$RS("S:1","P:1")</script>'
    assert text_of(SHELL + part + rest + PUT) == "Shop\nA lamp for 5 euros\nthe end"


def test_parts_within_what_is_shown_meanwhile_go_with_it() -> None:
    meanwhile = '<!--$?--><template id="B:1"></template>small<!--/$--><p>Loading</p>'
    assert text_of(SHELL.replace("<p>Loading</p>", meanwhile) + PART + PUT) == "Shop\nA lamp for 5 euros\nthe end"


@pytest.mark.parametrize(
    "markup",
    [
        SHELL + PART,
        SHELL + PART + '<script>$RC("B:7","S:0")</script>',
        SHELL + '<p id="S:0"></p>' + PUT,
        f"<p>the end</p>{PUT}{PART}",
    ],
)
def test_a_part_without_a_place_stays_hidden(markup: str) -> None:
    assert "lamp" not in text_of(markup)
    assert "the end" in text_of(markup)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        (f'<div hidden id="S:0"><p>in itself</p><template id="B:0"></template></div><p>the end</p>{PUT}', "the end"),
        (f'<p>x</p><template id="B:0"></template><div><div hidden id="S:0">in it</div></div>y{PUT}', "x\nin it"),
        (SHELL + PART + PUT * 500, "Shop\nA lamp for 5 euros\nthe end"),
        (SHELL + PART * 300 + PUT * 300, "Shop\nA lamp for 5 euros\nthe end"),
        (
            f'<p>x</p><template id="B:0"></template><p>one</p><!--/$-->{"<p>two</p>" * 100}{PART}{PUT}',
            "x\nA lamp for 5 euros" + "\ntwo" * 100,
        ),
    ],
)
def test_parts_that_stand_in_themselves_or_come_often_do_no_harm(markup: str, text: str) -> None:
    assert text_of(markup) == text


def test_a_shadow_root_is_read_as_the_inside_of_its_element() -> None:
    root = '<template shadowrootmode="open"><style>p{}</style><p>Price: <slot></slot></p></template>'
    assert text_of(f"<h1>Shop</h1><x-card>{root}5 euros</x-card><p>the end</p>") == "Shop\nPrice:\n5 euros\nthe end"


def test_a_template_within_a_shadow_root_is_not_shown() -> None:
    inner = "<template><p>row</p></template>"
    assert text_of(f"<x-list><template shadowrootmode=open>{inner}<p>a list</p></template></x-list>") == "a list"


def test_a_document_that_is_nested_too_deep_is_refused_before_its_templates_are_read() -> None:
    with pytest.raises(UnreadableBody, match="nested more than"):
        text_of("<div>" * 200_000 + SHELL + PART + PUT)


def test_all_of_many_parts_are_put_in_their_places() -> None:
    shell = "".join(f'<!--$?--><template id="B:{n:x}"></template>Loading<!--/$-->' for n in range(300))
    parts = "".join(f'<div hidden id="S:{n:x}"><p>part {n}</p></div>' for n in range(300))
    calls = "".join(f'<script>$RC("B:{n:x}","S:{n:x}")</script>' for n in range(300))
    assert text_of(f"<p>x</p>{shell}{parts}{calls}") == "\n".join(["x", *(f"part {n}" for n in range(300))])


def test_rows_of_a_table_may_come_late_too() -> None:
    shell = '<table><tbody><tr><td>one</td></tr><!--$?--><template id="B:0"></template><!--/$--></tbody></table>'
    part = '<table hidden><tbody id="S:0"><tr><td>two</td></tr></tbody></table>'
    assert text_of(shell + part + PUT) == "one\ntwo"
