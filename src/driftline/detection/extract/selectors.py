"""Select parts of an HTML document: those that filters name, or the main content."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser

from driftline.detection.extract.annotations import BUTTONS
from driftline.detection.extract.filters import CSS, XPATH, failed_selection, nothing_selected, refuse_others
from driftline.detection.extract.formats.base import fit_for_xml
from driftline.detection.extract.visibility import FOUND, above, is_hidden
from driftline.model.change import Region

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from selectolax.lexbor import LexborNode

    from driftline.detection.extract.filters import Selector
    from driftline.detection.extract.visibility import Attributes
    from driftline.model.change import Block

# outside a table, the parser would drop the tags of its parts
_AROUND = dict.fromkeys(("tbody", "thead", "tfoot", "caption", "colgroup"), ("<table>", "</table>"))
_AROUND |= {"tr": ("<table>", "</table>")} | dict.fromkeys(("td", "th"), ("<table><tr>", "</tr></table>"))
#: elements whose only text is an attribute, and those whose text is not shown
_TEXT_ATTRIBUTES = {"input": "value", "img": "alt", "meta": "content"}
_RAW = ("script", "style", "noscript")
_ENOUGH = 1 / 3  # of the characters that may be content: a smaller main element is only a part of it


def refine(markup: str, steps: Sequence[Selector]) -> str:
    """Return the document with only the parts that these steps leave. Raise UnreadableBody if one selects nothing."""
    refuse_others(steps, (CSS, XPATH), "HTML")
    for step in steps:
        if step.language == CSS:
            markup = _by_css(markup, step)
        elif step.language == XPATH:
            markup = _by_xpath(markup, step)
    return markup


def main_content(blocks: Iterable[Block]) -> list[str]:
    """Return the lines of the main content, without navigation, footer, banners and lists of links."""
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


def _by_css(markup: str, step: Selector) -> str:
    tree = LexborHTMLParser(markup)
    found = _outermost(tree.css(step.expression))
    if step.drops:
        for node in found:
            if node.tag not in ("html", "head", "body"):
                node.decompose()
        return tree.html or ""
    if not found:
        raise nothing_selected(step)
    for node in found:
        if is_hidden(node.attributes):
            node.attrs["hidden"] = FOUND
    return _document(tree, [_part(node.tag or "", node.attributes, node.text(), node.html or "") for node in found])


def _by_xpath(markup: str, step: Selector) -> str:
    from lxml import etree, html

    tree = LexborHTMLParser(markup)
    # as a browser builds it: an expression copied from there names elements that the author omitted
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
    for element in elements:
        if is_hidden(element.attrib):
            element.set("hidden", FOUND)
    parts = [
        _part(
            str(item.tag),
            item.attrib,
            str(item.text_content()),
            str(html.tostring(item, encoding="unicode", with_tail=False)),
        )
        if isinstance(item, html.HtmlElement)
        else escape(str(item))
        for item in items
        if item not in inside and not (isinstance(item, etree._Element) and not isinstance(item, html.HtmlElement))
    ]
    if not any(parts):
        raise nothing_selected(step)
    return _document(tree, parts)


def _outermost(nodes: Sequence[LexborNode]) -> list[LexborNode]:
    """Return the nodes that are inside no other of them, each once: a list of selectors may match one several times."""
    found = {node.mem_id: node for node in nodes}
    outside: set[int] = set()  # elements known to be inside none of them
    kept: list[LexborNode] = []
    for node in found.values():
        passed: list[int] = []
        for number in above(node):
            if number in found:
                break
            passed.append(number)
            if number in outside:
                kept.append(node)
                outside.update(passed)
                break
        else:
            kept.append(node)
            outside.update(passed)
    return kept


def _part(tag: str, attributes: Attributes, text: str, markup: str) -> str:
    """Return the markup of a selected part, with the text of elements that have it in an attribute."""
    return _in_place(tag, markup) + _text_of(tag, attributes, text)


def _text_of(tag: str, attributes: Attributes, text: str) -> str:
    """Return the text of an element that shows none by itself."""
    if tag in _TEXT_ATTRIBUTES and (attributes.get("type") or "").lower() not in BUTTONS:
        return escape(attributes.get(_TEXT_ATTRIBUTES[tag]) or "")
    return f"<pre>{escape(text)}</pre>" if tag in _RAW else ""


def _in_place(tag: str, markup: str) -> str:
    before, after = _AROUND.get(tag, ("", ""))
    return f"{before}{markup}{after}"


def _document(tree: LexborHTMLParser, parts: Iterable[str]) -> str:
    """Return a document of these parts alone. They are its main content, in whatever region they were before."""
    title = tree.css_first("title")
    heading = "" if title is None else escape(title.text())
    body = "".join(f"<div>{part}</div>" for part in parts)
    return f"<!doctype html><title>{heading}</title><body><main>{body}</main></body>"
