"""XML, one line for each value with its path, and feeds (RSS, Atom, RDF), entry by entry.

Of a feed itself only the title is kept: its build date, generator and time to live change by themselves. The order of
entries means nothing; an entry is identified by its guid, id or link, or else by its text.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from html import unescape
from html.entities import html5
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from driftline.detection.extract.filters import XPATH, failed_selection, nothing_selected, refuse_others
from driftline.detection.extract.formats.base import (
    MOST_CHARACTERS,
    TEXT,
    FormattedText,
    as_text,
    bounded,
    fit_for_xml,
    folded,
    owner_of,
)
from driftline.detection.extract.regions import INLINE
from driftline.detection.extract.visibility import remove_comments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from driftline.detection.extract.filters import Selector


_ROOTS = ("rss", "RDF", "feed")
_ENTRIES = ("item", "entry")
_IDENTITIES = ("guid", "id", "link")
_DATES = ("updated", "pubDate", "published", "date", "modified", "issued")
_SUMMARIES = ("description", "summary", "encoded", "content")
_INLINE = ", ".join(INLINE)
_UNSEEN = ["script", "style", "template", "iframe", "noscript"]


def is_feed(root: etree._Element) -> bool:
    """Return whether the document, its namespaces stripped, is a feed."""
    return root.tag in _ROOTS and (root.tag == "feed" or root.find("channel") is not None)


def render_feed(root: etree._Element) -> FormattedText:
    """Return the title of the feed, then title, link, date, summaries and attachment of every entry, a line each."""
    channel = root if root.tag == "feed" else root.find("channel")
    title = "" if channel is None else _stripped(channel, "title")
    # the same entry may be listed twice
    entries = list(dict.fromkeys(map(_entry, root.iter(*_ENTRIES))))
    return FormattedText(
        lines=[title, *(line for _, lines in entries for line in lines)],
        compared=[title, *(line for _, lines in sorted(entries) for line in lines)],
        title=title,
    )


def _entry(entry: etree._Element) -> tuple[str, tuple[str, ...]]:
    """Return the identity of an entry, and its lines."""
    parts = (_stripped(entry, "title"), _link(entry), _plain(entry, _DATES), *_summaries(entry), _attached(entry))
    lines = tuple(filter(None, parts))
    return _plain(entry, _IDENTITIES) or _link(entry) or "\n".join(lines), lines


def _summaries(entry: etree._Element) -> list[str]:
    """Return the summaries of an entry, without those that another contains."""
    found = list(dict.fromkeys(_stripped(entry, name) for name in _SUMMARIES))
    return [text for at, text in enumerate(found) if not any(text in other for other in found[:at] + found[at + 1 :])]


def _attached(entry: etree._Element) -> str:
    """Return the address of an attachment without its query, which may change at every fetch."""
    attached = [one.get("url") for one in entry.iterchildren("enclosure")]
    attached += [one.get("href") for one in entry.iterchildren("link") if one.get("rel") == "enclosure"]
    return folded(next(filter(None, attached), "").partition("?")[0])


def _plain(entry: etree._Element, names: Iterable[str]) -> str:
    """Return the text of the first of these elements that has any."""
    for name in names:
        for found in entry.iterchildren(name):
            text = folded("".join(found.itertext()))
            if text:
                return text
    return ""


def _stripped(entry: etree._Element, name: str) -> str:
    """Return the text of an element without tags: titles and summaries are often HTML, escaped or not."""
    for found in entry.iterchildren(name):
        if found.get("type") == "text":
            return folded("".join(found.itertext()))
        markup = found.text or ""
        markup += "".join(etree.tostring(child, encoding="unicode") for child in found) if len(found) else ""
        text = _visible(markup)
        if text:
            return text
    return ""


def _visible(markup: str) -> str:
    """Return the visible text of some markup on one line."""
    if "<" not in markup and "&" not in markup:
        return folded(markup)
    tree = LexborHTMLParser(markup)
    if "<!--" in markup:
        remove_comments(tree)
    tree.strip_tags(_UNSEEN)
    for node in tree.css(_INLINE):
        node.unwrap()
    tree.merge_text_nodes()
    return "" if tree.body is None else folded(tree.body.text(separator=" ", strip=True))


def _link(entry: etree._Element) -> str:
    links = list(entry.iterchildren("link"))
    for link in links:
        if link.text and link.text.strip():
            return folded(link.text)
    found = [link for link in links if link.get("rel", "alternate") == "alternate"]
    return folded(str(found[0].get("href") or "")) if found else ""


_DOCTYPE = re.compile(r"<!DOCTYPE\b[^\[<>]*\[((?:[^\]\"']|\"[^\"]*\"|'[^']*')*)\]\s*>")
_ENTITY = re.compile(r"<!ENTITY\s+([\w.:-]+)\s+(?:\"([^\"]*)\"|'([^']*)')\s*>")
_PROLOG = re.compile(r"\ufeff?(?:\s+|<\?[^>]*\?>|<!--.*?-->)*", re.DOTALL)
_CDATA, _CDATA_END = "<![CDATA[", "]]>"
_BARE = re.compile(r"&(?!#?[\w.:-]{1,100};)")  # in 'AT&T', as many feeds have it
_REFERENCE = re.compile(r"&([A-Za-z][\w.:-]{0,100});")
_MARKUP = re.compile(r"[<>&\"']")
_LONGEST_ENTITY = 1_000  # characters
_ATTRIBUTES = ("id", "key", "name", "code", "href", "url")
_CHILDREN = ("id", "guid", "key", "code", "loc", "name", "title")
_LONGEST_IDENTIFIER = 200  # characters


def render_xml(text: str, kind: str, steps: Sequence[Selector]) -> FormattedText | None:
    """Return the lines of an XML document or of a feed; None if it is neither, or declares entities with markup."""
    resolved = _with_entities(text)
    root = None if resolved is None else _parse(resolved)
    if root is None:
        return None
    refuse_others(steps, (XPATH,), kind)
    chosen = [step for step in steps if step.language == XPATH]
    found = [(step, _found(root, step)) for step in chosen]  # all on the document as it is, as in HTML
    selects = [step for step in chosen if not step.drops]
    in_order = {element: number for number, element in enumerate(root.iter())} if selects else {}
    for step, items in found:
        if step.drops:
            _drop(items)
    if selects:
        items = [item for step, items in found if not step.drops for item in items]
        lines = _selected(root, selects, items, in_order)
    elif is_feed(root):
        return render_feed(root)
    else:
        lines = _lines(root, f"/{root.tag}")
    kept = bounded(lines)
    return None if kept is None else FormattedText(lines=kept)


def _with_entities(text: str) -> str | None:
    """Return the document with its entities replaced, also those of HTML, which many feeds use without declaring them.

    None if it declares others than short texts: such entities may stand for files, or for gigabytes.
    """
    declared: dict[str, str] = {}
    prolog = _PROLOG.match(text)
    start = 0 if prolog is None else prolog.end()
    if text.startswith("<!DOCTYPE", start) and "<!ENTITY" in text:
        doctype = _DOCTYPE.match(text, start)
        if doctype is None:
            return None
        for name, *quoted in _ENTITY.findall(doctype[1]):
            declared.setdefault(name, unescape("".join(quoted)))
        text = text[:start] + text[doctype.end() :]
        harmless = all(len(value) <= _LONGEST_ENTITY and not _MARKUP.search(value) for value in declared.values())
        if not harmless or "<!ENTITY" in _ENTITY.sub("", doctype[1]):
            return None
        if text.count("&") * max(map(len, declared.values()), default=0) > MOST_CHARACTERS:
            return None

    def replaced(reference: re.Match[str]) -> str:
        value = declared.get(reference[1], html5.get(f"{reference[1]};"))
        if value is None:
            return f"&amp;{reference[1]};"  # the parser would lose it
        return reference[0] if _MARKUP.search(value) else value

    if "&" not in text:
        return text
    parts: list[str] = []
    done = 0
    while (begin := text.find(_CDATA, done)) >= 0 and (end := text.find(_CDATA_END, begin)) >= 0:
        # within CDATA, nothing is a reference
        parts += _REFERENCE.sub(replaced, _BARE.sub("&amp;", text[done:begin])), text[begin:end]
        done = end
    return "".join([*parts, _REFERENCE.sub(replaced, _BARE.sub("&amp;", text[done:]))])


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
        # feeds are often slightly broken, and feed readers accept that
        return root if not recover or is_feed(root) else None
    return None


def _strip_namespaces(root: etree._Element) -> None:
    """Remove namespaces from all names, so that filters need not declare them."""
    for element in root.iter(etree.Element):
        try:
            element.tag = _local_name(element.tag)
        except ValueError:
            element.tag = "_"  # a broken document: the rest of its name is not valid


def _local_name(name: object) -> str:
    """Return a name without its namespace, or without an undeclared prefix."""
    return re.split("[}:]", str(name))[-1]


def _found(root: etree._Element, step: Selector) -> list[object]:
    try:
        found = root.xpath(step.expression)
    except etree.XPathError as error:
        raise failed_selection(step, error) from None
    return list(found) if isinstance(found, list) else [found]


def _drop(items: Iterable[object]) -> None:
    for element in items:
        if isinstance(element, etree._Element) and (parent := element.getparent()) is not None:
            before = element.getprevious()
            if element.tail and before is not None:
                before.tail = f"{before.tail or ''}{element.tail}"
            elif element.tail:
                parent.text = f"{parent.text or ''}{element.tail}"
            parent.remove(element)


def _selected(
    root: etree._Element, steps: Sequence[Selector], items: Sequence[object], in_order: Mapping[etree._Element, int]
) -> Iterator[str]:
    """Return the lines of what these filters selected and no other one dropped: elements first, then other values.

    Both are in the order of the document, which `in_order` has the elements of. A text of a selected element is a line
    of that already.
    """
    chosen = {item for item in items if isinstance(item, etree._Element)}
    inside = {child for element in chosen for child in element.iterdescendants()}
    elements = [element for element in root.iter() if element in chosen and element not in inside]
    values: dict[tuple[object, ...], str] = {}
    for item in items:
        if isinstance(item, etree._Element):
            continue
        owner, kind = owner_of(item)
        is_shown = kind == TEXT and (owner in chosen or owner in inside)
        if owner is None:
            values[len(in_order), kind, as_text(item)] = folded(as_text(item))
        elif not is_shown and (owner is root or root in owner.iterancestors()):
            values[in_order[owner], kind, as_text(item)] = folded(as_text(item))
    texts = [values[key] for key in sorted(values, key=itemgetter(0))]
    if not elements and not any(texts):
        raise nothing_selected(steps)
    selection = etree.Element("selected")
    selection.extend(elements)
    below = (line for path, child in _named(selection, "") for line in _lines(child, path))
    return chain(below, filter(None, texts))


def _lines(element: etree._Element, path: str) -> Iterator[str]:
    for name, value in sorted(element.attrib.items()):
        yield _line(f"{path}/@{_local_name(name)}", folded(str(value)))
    text = folded(" ".join([element.text or "", *(child.tail or "" for child in element)]))
    if text or (not len(element) and not element.attrib):
        yield _line(path, text)
    for below, child in _named(element, path):
        yield from _lines(child, below)


def _line(path: str, value: str) -> str:
    return f"{path}: {value}" if value else f"{path}:"


def _named(element: etree._Element, path: str) -> Iterator[tuple[str, etree._Element]]:
    """Yield the children with their paths; those of the same name are labelled by an identifier or a number."""
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
        if _are_unique(labels):
            return [f"[@{name}={label}]" for label in labels]
    for name in _CHILDREN:
        labels = [folded(element.findtext(name) or "") for element in elements]
        if _are_unique(labels):
            return [f"[{name}={label}]" for label in labels]
    return [f"[{number}]" for number in range(1, len(elements) + 1)]


def _are_unique(labels: Sequence[str]) -> bool:
    return all(0 < len(label) <= _LONGEST_IDENTIFIER for label in labels) and max(Counter(labels).values()) == 1
