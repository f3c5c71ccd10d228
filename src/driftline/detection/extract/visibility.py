"""Decide what of a document is visible: hidden elements are removed, content of templates that browsers show is kept.

React streams slow parts at the end of the document, hidden, until a script moves each to the place of a template.
Without a browser that script does not run, and the text would be 'Loading…' for ever. A shadow root needs no script: a
browser shows it as the content of its parent element.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser

from driftline.detection.extract.regions import INLINE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from selectolax.lexbor import LexborNode

    Attributes = Mapping[str, str | None]


_TEMPLATE = b"<template "  # a long text is found faster than a short one, and most documents have none
_PLACEHOLDER, _SHADOW_ROOT = b'<template id="B:', b"<template shadowroot"
_SHADOWED = re.compile(r"<template(\s+shadowroot)?[^<>]*>|</template\s*>", re.IGNORECASE)
# a placeholder and its part, or the part and the placeholder inside of it
_PUT = re.compile(r'\$R(?:[CR]\("(B:[0-9a-f]{1,8})","(S:[0-9a-f]{1,8})"|S\("(S:[0-9a-f]{1,8})","(P:[0-9a-f]{1,8})")')
_NEAR = 100  # bytes before a comment in which text or a tag is found
_INLINE = "|".join(INLINE).encode()
_TEXT_BEFORE = re.compile(rb"(?:[^>\s]|</?(?:%b)\b[^<>]*>)\s*\Z" % _INLINE, re.IGNORECASE)
_TEXT_AFTER = re.compile(rb"\s*(?:[^<\s]|</?(?:%b)\b)" % _INLINE, re.IGNORECASE)
_MOST = 1_000  # parts: for each, all its ancestors are visited
_NAMED = "template[id^='B:'], template[id^='P:'], [id^='S:']"
_BEGINS, _ENDS = ("$", "$?", "$!", "$~"), "/$"


def shows_templates(body: bytes) -> bool:
    """Return whether templates of the document may have content that a browser shows."""
    return _TEMPLATE in body and (_PLACEHOLDER in body or _SHADOW_ROOT in body)


def with_templates_shown(markup: str) -> str:
    """Return the document with its templates replaced by their content, as a browser shows it."""
    markup = _with_shadow_roots(markup)
    found = list(islice(_PUT.finditer(markup), _MOST))
    if not found:
        return markup
    tree = LexborHTMLParser(markup)
    named = {node.id: node for node in reversed(tree.css(_NAMED))}
    for one in found:
        placeholder, part = named.get(one[1] or one[4]), named.get(one[2] or one[3])
        if placeholder is not None and part is not None:
            _move(placeholder, part)
    return tree.html or ""


def _with_shadow_roots(markup: str) -> str:
    shown: list[bool] = []  # for each open template, whether it is a shadow root

    def replaced(tag: re.Match[str]) -> str:
        if tag[0].startswith("</"):
            return "</div>" if shown and shown.pop() else tag[0]
        shown.append(tag[1] is not None)
        return "<div>" if shown[-1] else tag[0]

    return _SHADOWED.sub(replaced, markup)


def _move(placeholder: LexborNode, part: LexborNode) -> None:
    if placeholder.parent is None or part.parent is None or part.mem_id in above(placeholder):
        return  # it was moved before, or would be moved into itself
    placeholder.insert_before(part, move=True)
    part.unwrap()
    for node in list(_fallback(placeholder)):
        node.decompose()
    placeholder.decompose()


def _fallback(placeholder: LexborNode) -> Iterator[LexborNode]:
    """Yield the nodes that are shown until the part arrives."""
    if not (placeholder.id or "").startswith("B:"):
        return
    depth, node = 0, placeholder.next
    while node is not None:
        comment = node.comment_content if node.is_comment_node else None
        if comment == _ENDS and depth == 0:
            return
        depth += (comment in _BEGINS) - (comment == _ENDS)
        yield node
        node = node.next


def has_comments_in_text(body: bytes) -> bool:
    """Return whether a comment stands beside text or inline elements, where it would divide a line.

    Most comments stand between the tags of blocks, and to find them in the parsed document takes long.
    """
    end = 0
    while (start := body.find(b"<!--", end)) >= 0:
        if _TEXT_BEFORE.search(body[max(0, start - _NEAR) : start]):
            return True
        end = body.find(b"-->", start) + len(b"-->")
        if end < start:
            return False
        if _TEXT_AFTER.match(body, end):
            return True
    return False


def remove_comments(tree: LexborHTMLParser) -> None:
    """Remove all comments: frameworks put them between the words of a sentence, which would be several texts then."""
    found = (
        [] if tree.root is None else [node for node in tree.root.traverse(include_text=True) if node.is_comment_node]
    )
    for node in found:
        node.decompose()


#: value of `hidden` for an element that a search in the browser reveals
FOUND = "until-found"
_MAYBE_HIDDEN = "[hidden], [style*='none'], [style*='-9999']"  # each selector costs a pass over all elements
_HIDDEN = re.compile(r"display: ?none|(?:left|top): ?-9999")
_NEVER_HIDDEN = ("html", "body")
_PANEL = re.compile(r"accordion|collaps|disclosure|expand|(?<![a-z])(?:faq|tabs?|tabpanel)(?![a-z])", re.IGNORECASE)
_OPENERS = ", ".join(f"{opener}[aria-controls]" for opener in ("button", "a", "[role=tab]", "[role=button]"))


def drop_hidden(tree: LexborHTMLParser) -> None:
    """Remove hidden elements, except those that readers can open."""
    for node, opened in _hidden(tree):
        if not opened:
            node.decompose()


def mark_opened(markup: str) -> str:
    """Return the document with hidden panels marked, because a part of it no longer shows what opens them."""
    tree = LexborHTMLParser(markup)
    found = [node for node, opened in _hidden(tree) if opened]
    for node in found:
        node.attrs["hidden"] = FOUND
    return (tree.html or "") if found else markup


def is_hidden(attributes: Attributes) -> bool:
    """Return whether an element with these attributes is hidden at first."""
    return "hidden" in attributes or _HIDDEN.search(attributes.get("style") or "") is not None


def _hidden(tree: LexborHTMLParser) -> Iterator[tuple[LexborNode, bool]]:
    """Yield the hidden elements, and whether readers can open them."""
    named: set[str] | None = None
    for node in tree.css(_MAYBE_HIDDEN):
        attributes = node.attributes
        if not is_hidden(attributes) or node.tag in _NEVER_HIDDEN:
            continue
        opened, name = _is_panel(attributes), attributes.get("id")
        if not opened and name:
            named = _opened(tree) if named is None else named
            opened = name in named
        yield node, opened


def _is_panel(attributes: Attributes) -> bool:
    """Return whether the attributes of an element are those of a panel that readers can open."""
    role = attributes.get("role")
    if role == "tabpanel" or (role == "region" and "aria-labelledby" in attributes):
        return True
    name = f"{attributes.get('id') or ''} {attributes.get('class') or ''}"
    return attributes.get("hidden") == FOUND or _PANEL.search(name) is not None


def _opened(tree: LexborHTMLParser) -> set[str]:
    """Return the ids of the elements that a button or a link opens."""
    found = {(node.attributes["href"] or "")[1:] for node in tree.css("a[href^='#']")}
    for node in tree.css(_OPENERS):
        found.update((node.attributes["aria-controls"] or "").split())
    return found


def above(node: LexborNode) -> Iterator[int]:
    """Yield the memory ids of the elements around a node, the innermost first."""
    parent = node.parent
    while parent is not None:
        yield parent.mem_id
        parent = parent.parent
