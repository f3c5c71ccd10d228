"""Select parts of an HTML document: those that filters name, or the main content."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from selectolax.lexbor import LexborHTMLParser

from driftline.detection.extract.annotations import BUTTONS
from driftline.detection.extract.filters import CSS, XPATH, failed_selection, nothing_selected, refuse_others
from driftline.detection.extract.formats.base import as_text, fit_for_xml, owner_of
from driftline.detection.extract.visibility import FOUND, above, is_hidden
from driftline.model.change import Region
from driftline.store.blobs import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

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
_WHOLE = ("html", "head", "body")  # never dropped
_ENOUGH = 1 / 3  # of the characters that may be content: a smaller main element is only a part of it


def refine(markup: str, steps: Sequence[Selector]) -> str:
    """Return the document with only the parts that these filters leave. Raise UnreadableBody if nothing is selected.

    All filters are evaluated on the document as it is, or what one removes would change what the next one counts. What
    any of the selections has is left, without what is dropped.
    """
    refuse_others(steps, (CSS, XPATH), "HTML")
    marks = _marks(markup)
    values: list[str] = []
    if any(step.language == XPATH for step in steps):
        markup, values = _mark_by_xpath(markup, steps, marks)
    tree = LexborHTMLParser(markup)
    for step in steps:
        # one after the other: an expression that is not closed would take in the next one
        for node in tree.css(step.expression) if step.language == CSS else ():
            node.attrs[marks.dropped if step.drops else marks.selected] = ""
    for node in _outermost([node for node in tree.css(f"[{marks.dropped}]") if node.tag not in _WHOLE]):
        node.decompose()
    selects = [step for step in steps if not step.drops]
    if not selects:
        return tree.html or ""
    parts = [*_parts(tree, marks), *map(escape, values)]
    if not any(parts):
        raise nothing_selected(selects)
    return _document(tree, parts)


class _Marks(NamedTuple):
    """Names of attributes, which no author can know: of what is selected and dropped, and of values that are selected.

    These values, texts and attributes, belong to the element. They are a list in JSON, each with the attribute's name.
    """

    selected: str
    dropped: str
    values: str


def _marks(markup: str) -> _Marks:
    unknown = digest(markup.encode("utf-8", "replace"))[:8].hex()
    return _Marks(*(f"data-{name}-{unknown}" for name in _Marks._fields))


def _mark_by_xpath(markup: str, steps: Iterable[Selector], marks: _Marks) -> tuple[str, list[str]]:
    """Return the document with what the XPath expressions find marked, and values that belong to no element."""
    from lxml import etree, html

    # as a browser builds it: an expression copied from there names elements that the author omitted
    whole = LexborHTMLParser(markup).html or ""
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    root = html.document_fromstring(fit_for_xml(whole), parser=parser)
    found: list[tuple[Selector, object]] = []
    for step in steps:
        if step.language == XPATH:
            try:
                results = root.xpath(step.expression)
            except etree.XPathError as error:
                raise failed_selection(step, error) from None
            found += [(step, item) for item in (results if isinstance(results, list) else [results])]
    unowned: list[str] = []
    owned: dict[html.HtmlElement, dict[tuple[str, str], None]] = {}
    for step, item in found:
        if isinstance(item, html.HtmlElement):
            item.set(marks.dropped if step.drops else marks.selected, "")
        elif not step.drops and not isinstance(item, etree._Element):
            owner, attribute = owner_of(item)
            if owner is None:
                unowned.append(as_text(item))
            else:
                owned.setdefault(owner, {})[attribute, as_text(item)] = None
    for element, values in owned.items():
        element.set(marks.values, json.dumps(list(values)))
    return str(html.tostring(root, encoding="unicode")), unowned


def _parts(tree: LexborHTMLParser, marks: _Marks) -> Iterator[str]:
    """Yield the markup of what is selected, in the order of the document, each part once."""
    selected = _outermost(tree.css(f"[{marks.selected}]"))
    outermost = {node.mem_id for node in selected}
    for node in selected:
        if is_hidden(node.attributes):
            node.attrs["hidden"] = FOUND
    # a list of selectors may match an element several times
    for node in {node.mem_id: node for node in tree.css(f"[{marks.selected}], [{marks.values}]")}.values():
        is_shown = node.mem_id in outermost or not outermost.isdisjoint(above(node))
        if node.mem_id in outermost:
            yield _part(node.tag or "", node.attributes, node.text(), node.html or "")
        for attribute, value in json.loads(node.attributes.get(marks.values) or "[]"):
            if attribute or not is_shown:  # the text of a selected element is shown already
                yield escape(value)


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
