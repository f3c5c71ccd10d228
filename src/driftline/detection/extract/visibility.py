"""What stands in templates and is shown all the same: parts of a document that come late, and shadow roots.

React sends what takes long at the end of the document, hidden, until a script puts it in the place of a template.
Without a browser nobody runs that script, and the page would say 'Loading…' for ever. A shadow root needs no script: a
browser shows it as the inside of the element that it stands in.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser

from driftline.detection.extract.depth import above

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from selectolax.lexbor import LexborNode

    Attributes = Mapping[str, str | None]


_TEMPLATE = b"<template "  # a long word is found faster than a short one, and most documents have none
_STAND_IN, _SHADOW_ROOT = b'<template id="B:', b"<template shadowroot"
_SHADOWED = re.compile(r"<template(\s+shadowroot)?[^<>]*>|</template\s*>", re.IGNORECASE)
# what stands for a part that comes late, and that part: the other way round where it completes another such part
_PUT = re.compile(r'\$R(?:[CR]\("(B:[0-9a-f]{1,8})","(S:[0-9a-f]{1,8})"|S\("(S:[0-9a-f]{1,8})","(P:[0-9a-f]{1,8})")')
_MOST = 1_000  # parts: for each, all that it stands in is gone through
_NAMED = "template[id^='B:'], template[id^='P:'], [id^='S:']"
_BEGINS, _ENDS = ("$", "$?", "$!", "$~"), "/$"


def shows_templates(body: bytes) -> bool:
    """Whether there may be something in the templates of the document that a browser shows."""
    return _TEMPLATE in body and (_STAND_IN in body or _SHADOW_ROOT in body)


def with_templates_shown(markup: str) -> str:
    """The document with what its templates stand for in their places, as a browser shows it."""
    markup = _with_shadow_roots(markup)
    found = list(islice(_PUT.finditer(markup), _MOST))
    if not found:
        return markup
    tree = LexborHTMLParser(markup)
    named = {node.id: node for node in reversed(tree.css(_NAMED))}
    for one in found:
        stand_in, part = named.get(one[1] or one[4]), named.get(one[2] or one[3])
        if stand_in is not None and part is not None:
            _put(stand_in, part)
    return tree.html or ""


def _with_shadow_roots(markup: str) -> str:
    shown: list[bool] = []  # of the templates that are open: whether it is a shadow root

    def replaced(tag: re.Match[str]) -> str:
        if tag[0].startswith("</"):
            return "</div>" if shown and shown.pop() else tag[0]
        shown.append(tag[1] is not None)
        return "<div>" if shown[-1] else tag[0]

    return _SHADOWED.sub(replaced, markup)


def _put(stand_in: LexborNode, part: LexborNode) -> None:
    if stand_in.parent is None or part.parent is None or part.mem_id in above(stand_in):
        return  # it was put somewhere before, or stands in itself
    stand_in.insert_before(part, move=True)
    part.unwrap()
    for node in list(_meanwhile(stand_in)):
        node.decompose()
    stand_in.decompose()


def _meanwhile(stand_in: LexborNode) -> Iterator[LexborNode]:
    """What is shown as long as the part is not there."""
    if not (stand_in.id or "").startswith("B:"):
        return
    depth, node = 0, stand_in.next
    while node is not None:
        said = node.comment_content if node.is_comment_node else None
        if said == _ENDS and depth == 0:
            return
        depth += (said in _BEGINS) - (said == _ENDS)
        yield node
        node = node.next


#: what the attribute `hidden` says of a part that is shown once somebody finds it
FOUND = "until-found"
_MAYBE_HIDDEN = "[hidden], [style*='none'], [style*='-9999']"  # each selector costs a look at every element
_HIDDEN = re.compile(r"display: ?none|(?:left|top): ?-9999")
_NEVER_HIDDEN = ("html", "body")
_PANEL = re.compile(r"accordion|collaps|disclosure|expand|(?<![a-z])(?:faq|tabs?|tabpanel)(?![a-z])", re.IGNORECASE)
_OPENERS = ", ".join(f"{opener}[aria-controls]" for opener in ("button", "a", "[role=tab]", "[role=button]"))


def drop_hidden(tree: LexborHTMLParser) -> None:
    """Leave out what nobody sees."""
    for node, opened in _hidden(tree):
        if not opened:
            node.decompose()


def mark_opened(markup: str) -> str:
    """The document with what readers open marked as found: a part of it does not tell any more by what it is opened."""
    tree = LexborHTMLParser(markup)
    found = [node for node, opened in _hidden(tree) if opened]
    for node in found:
        node.attrs["hidden"] = FOUND
    return (tree.html or "") if found else markup


def is_hidden(attributes: Attributes) -> bool:
    """Whether an element with these attributes is not shown at first."""
    return "hidden" in attributes or _HIDDEN.search(attributes.get("style") or "") is not None


def _hidden(tree: LexborHTMLParser) -> Iterator[tuple[LexborNode, bool]]:
    """The elements that are hidden, and whether readers open them."""
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
    """Whether an element says that readers open it."""
    role = attributes.get("role")
    if role == "tabpanel" or (role == "region" and "aria-labelledby" in attributes):
        return True
    name = f"{attributes.get('id') or ''} {attributes.get('class') or ''}"
    return attributes.get("hidden") == FOUND or _PANEL.search(name) is not None


def _opened(tree: LexborHTMLParser) -> set[str]:
    """The names of the elements that a button or a link opens."""
    found = {(node.attributes["href"] or "")[1:] for node in tree.css("a[href^='#']")}
    for node in tree.css(_OPENERS):
        found.update((node.attributes["aria-controls"] or "").split())
    return found
