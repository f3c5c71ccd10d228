"""Parts of an HTML document: those that filters name, and the main content found by itself."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser

from driftline.detection.filters import CSS, XPATH, failed_selection, nothing_selected, refuse_others
from driftline.detection.formats.rendering import fit_for_xml
from driftline.model import Region

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from selectolax.lexbor import LexborNode

    from driftline.detection.filters import Step
    from driftline.model import Block

# a part of a table means nothing outside of one: the parser would let its tags fall
_AROUND = dict.fromkeys(("tbody", "thead", "tfoot", "caption", "colgroup"), ("<table>", "</table>"))
_AROUND |= {"tr": ("<table>", "</table>")} | dict.fromkeys(("td", "th"), ("<table><tr>", "</tr></table>"))
_ENOUGH = 1 / 3  # of the letters that could be content: a smaller main element is only a part of it


def refine(markup: str, steps: Sequence[Step]) -> str:
    """The document with only the parts that these steps leave; UnreadableBody if one selects nothing."""
    refuse_others(steps, (CSS, XPATH), "HTML")
    for step in steps:
        if step.language == CSS:
            markup = _by_css(markup, step)
        elif step.language == XPATH:
            markup = _by_xpath(markup, step)
    return markup


def main_content(blocks: Iterable[Block]) -> list[str]:
    """The lines that a page is there for, without its navigation, footer, banners and lists of links."""
    blocks = list(blocks)
    main = [block for block in blocks if block.region is Region.MAIN]
    content = [block for block in blocks if block.region is Region.MAIN or _may_be_content(block)]
    if content and _letters(main) >= _ENOUGH * _letters(content):
        content = main
    return [block.text for block in content or blocks]


def _may_be_content(block: Block) -> bool:
    return block.region is Region.BODY and not block.linked


def _letters(blocks: Iterable[Block]) -> int:
    return sum(len(block.text) for block in blocks)


def _by_css(markup: str, step: Step) -> str:
    tree = LexborHTMLParser(markup)
    found = _outermost(tree.css(step.expression))
    if step.drops:
        for node in found:
            if node.tag not in ("html", "head", "body"):
                node.decompose()
        return tree.html or ""
    if not found:
        raise nothing_selected(step)
    return _document(tree, [_in_place(node.tag or "", node.html or "") for node in found])


def _by_xpath(markup: str, step: Step) -> str:
    from lxml import etree, html

    tree = LexborHTMLParser(markup)
    # as a browser has it: an expression copied from there names elements that the author left out
    root = html.document_fromstring(fit_for_xml(tree.html or ""), parser=html.HTMLParser(encoding="utf-8"))
    try:
        found = root.xpath(step.expression)
    except etree.XPathError as error:
        raise failed_selection(step, error) from None
    items = found if isinstance(found, list) else [found]
    elements = [item for item in items if isinstance(item, html.HtmlElement)]
    inside = {child for element in elements for child in element.iterdescendants()}
    if step.drops:
        for element in elements:
            if element not in inside and element.getparent() is not None:
                element.drop_tree()
        return str(html.tostring(root, encoding="unicode"))
    parts = [
        _in_place(str(item.tag), str(html.tostring(item, encoding="unicode", with_tail=False)))
        if isinstance(item, html.HtmlElement)
        else escape(str(item))
        for item in items
        if item not in inside and not (isinstance(item, etree._Element) and not isinstance(item, html.HtmlElement))
    ]
    if not any(parts):
        raise nothing_selected(step)
    return _document(tree, parts)


def _outermost(nodes: Sequence[LexborNode]) -> list[LexborNode]:
    """Those of the nodes that stand in no other of them, each once: a list of selectors may find one several times."""
    found = {node.mem_id: node for node in nodes}
    return [node for node in found.values() if not any(above in found for above in _above(node))]


def _above(node: LexborNode) -> Iterator[int]:
    parent = node.parent
    while parent is not None:
        yield parent.mem_id
        parent = parent.parent


def _in_place(tag: str, markup: str) -> str:
    before, after = _AROUND.get(tag, ("", ""))
    return f"{before}{markup}{after}"


def _document(tree: LexborHTMLParser, parts: Iterable[str]) -> str:
    """A document of these parts alone. What was asked for is what it is about, wherever it stood before."""
    title = tree.css_first("title")
    heading = "" if title is None else escape(title.text())
    body = "".join(f"<div>{part}</div>" for part in parts)
    return f"<!doctype html><title>{heading}</title><body><main>{body}</main></body>"
