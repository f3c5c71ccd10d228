from __future__ import annotations

from driftline.detection.extract.document import Extraction
from driftline.detection.extract.outline import TextBlock, outline

HTML = "text/html; charset=utf-8"
PAGE = """<nav><a href=/>Home</a><a href=/news>News</a></nav><main id=content><h1>Pens</h1>
<p>A pen that <b>writes</b>, see <a href=/pens title="All of them">the list</a>.</p><p>In<br>stock</p>
<p hidden>token</p><img alt="A pen" src=/pen.png></main><footer><div><p>Imprint</p></div></footer>"""


def blocks(markup: str, content_type: str = HTML) -> list[TextBlock]:
    return outline(Extraction(markup.encode(), content_type).body, Extraction(markup.encode(), content_type).blocks())


def test_each_block_has_its_role_and_its_selector() -> None:
    assert [(one.text, one.role, one.path) for one in blocks(PAGE)] == [
        ("Home News", "navigation", "body > nav"),
        ("Pens", "main", "#content > h1"),
        ("A pen that writes, see the list.", "main", "#content > p:nth-of-type(1)"),
        ("In", "main", "#content > p:nth-of-type(2)"),
        ("stock", "main", "#content > p:nth-of-type(2)"),
        ("Imprint", "footer", "body > footer > div > p"),
    ]


def test_a_selector_selects_the_block_that_it_was_given_for() -> None:
    for one in blocks(PAGE):
        assert one.text in " ".join(Extraction(PAGE.encode(), HTML, [("select", one.path)]).text().split("\n"))


def test_links_and_what_attributes_show_stand_with_the_block_that_they_are_in() -> None:
    found = {one.text: one for one in blocks(PAGE)}
    assert found["Home News"].links == ("/", "/news")
    said = found["A pen that writes, see the list."]
    assert (said.links, said.attributes) == (("/pens",), (("title", "All of them"),))


def test_the_blocks_of_other_documents_are_their_lines() -> None:
    assert blocks('{"a": 1}', "application/json") == [TextBlock(text="$.a: 1", role="body", path="")]
