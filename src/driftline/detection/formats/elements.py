"""XML, one line for each text and attribute, under the path that leads to it.

`/catalog/book[@id=7]/price: 12.5`: elements of the same name are told by what identifies them, where something does.
Feeds are read by entry (see `feeds`). Entities that a document declares are never expanded: such a document is taken as
plain text.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import chain
from typing import TYPE_CHECKING

from lxml import etree

from driftline.detection.filters import XPATH, failed_selection, nothing_selected, refuse_others
from driftline.detection.formats import feeds
from driftline.detection.formats.rendering import Rendering, bounded, fit_for_xml, folded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from driftline.detection.filters import Step

_ATTRIBUTES = ("id", "key", "name", "code", "href", "url")
_CHILDREN = ("id", "guid", "key", "code", "loc", "name", "title")
_LONGEST_IDENTIFIER = 200  # letters


def render(text: str, kind: str, steps: Sequence[Step]) -> Rendering | None:
    """The lines of an XML document or of a feed; None if it is neither, or declares entities."""
    if "<!ENTITY" in text:
        return None
    root = _parse(text)
    if root is None:
        return None
    refuse_others(steps, (XPATH,), kind)
    chosen = [step for step in steps if step.language == XPATH]
    if any(not step.drops for step in chosen):
        lines = _selected(root, chosen)
    else:
        for step in chosen:
            _drop(root, step)
        if feeds.is_feed(root):
            return feeds.render(root)
        lines = _lines(root, f"/{root.tag}")
    found = bounded(lines)
    return None if found is None else Rendering(lines=found)


def _parse(text: str) -> etree._Element | None:
    data = fit_for_xml(text.removeprefix("\ufeff").lstrip())
    for recover in (False, True):
        parser = etree.XMLParser(
            encoding="utf-8", resolve_entities=False, no_network=True, huge_tree=False, load_dtd=False,
            remove_comments=True, remove_pis=True, recover=recover,
        )  # fmt: skip
        try:
            root = etree.fromstring(data, parser)
        except (etree.XMLSyntaxError, ValueError):
            continue
        if root is None:
            return None
        _strip_namespaces(root)
        # feeds are often slightly broken, and everybody reads them all the same
        return root if not recover or feeds.is_feed(root) else None
    return None


def _strip_namespaces(root: etree._Element) -> None:
    """Names without their prefixes: nobody wants to declare namespaces to name an element."""
    for element in root.iter(etree.Element):
        try:
            element.tag = _local_name(element.tag)
        except ValueError:
            element.tag = "_"  # a broken document: what is left of its name is no name


def _local_name(name: object) -> str:
    """A name without namespace, or without its prefix where the document forgot to declare it."""
    return re.split("[}:]", str(name))[-1]


def _found(root: etree._Element, step: Step) -> list[object]:
    try:
        found = root.xpath(step.expression)
    except etree.XPathError as error:
        raise failed_selection(step, error) from None
    return list(found) if isinstance(found, list) else [found]


def _drop(root: etree._Element, step: Step) -> None:
    for element in _found(root, step):
        if isinstance(element, etree._Element) and (parent := element.getparent()) is not None:
            before = element.getprevious()
            if element.tail and before is not None:
                before.tail = f"{before.tail or ''}{element.tail}"
            elif element.tail:
                parent.text = f"{parent.text or ''}{element.tail}"
            parent.remove(element)


def _selected(root: etree._Element, steps: Sequence[Step]) -> Iterator[str]:
    """The lines of what is selected, each step within what the one before it left."""
    texts: list[str] = []
    for step in steps:
        if step.drops:
            _drop(root, step)
            continue
        found = _found(root, step)
        elements = [item for item in found if isinstance(item, etree._Element)]
        inside = {child for element in elements for child in element.iterdescendants()}
        texts = [folded(str(item)) for item in found if not isinstance(item, etree._Element)]
        if not elements and not any(texts):
            raise nothing_selected(step)
        root = etree.Element("selected")
        root.extend(element for element in elements if element not in inside)
    below = (line for path, child in _named(root, "") for line in _lines(child, path))
    return chain(below, filter(None, texts))


def _lines(element: etree._Element, path: str) -> Iterator[str]:
    for name, value in sorted(element.attrib.items()):
        yield _told(f"{path}/@{_local_name(name)}", folded(str(value)))
    text = folded(" ".join([element.text or "", *(child.tail or "" for child in element)]))
    if text or (not len(element) and not element.attrib):
        yield _told(path, text)
    for below, child in _named(element, path):
        yield from _lines(child, below)


def _told(path: str, value: str) -> str:
    return f"{path}: {value}" if value else f"{path}:"


def _named(element: etree._Element, path: str) -> Iterator[tuple[str, etree._Element]]:
    """The children with their paths, those of the same name told apart by what identifies them, or numbered."""
    by_name: dict[str, list[etree._Element]] = defaultdict(list)
    for child in element.iterchildren(etree.Element):
        by_name[str(child.tag)].append(child)
    labels = {name: iter(_labels(children)) for name, children in by_name.items()}
    for child in element.iterchildren(etree.Element):
        name = str(child.tag)
        yield f"{path}/{name}{next(labels[name])}", child


def _labels(elements: Sequence[etree._Element]) -> list[str]:
    if len(elements) == 1:
        return [""]
    for name in _ATTRIBUTES:
        labels = [folded(str(element.get(name) or "")) for element in elements]
        if _tell_apart(labels):
            return [f"[@{name}={label}]" for label in labels]
    for name in _CHILDREN:
        labels = [folded(element.findtext(name) or "") for element in elements]
        if _tell_apart(labels):
            return [f"[{name}={label}]" for label in labels]
    return [f"[{number}]" for number in range(1, len(elements) + 1)]


def _tell_apart(labels: Sequence[str]) -> bool:
    return all(0 < len(label) <= _LONGEST_IDENTIFIER for label in labels) and max(Counter(labels).values()) == 1
