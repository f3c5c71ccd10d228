"""What of a document nobody sees, and what is only folded away until a reader opens it.

Both are hidden in the markup. Tokens, templates and windows that never appear are left out, for they differ from fetch
to fetch. But many pages keep most of what they say in panels that open at a click: those are read as if they were open.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from selectolax.lexbor import LexborNode

    Attributes = Mapping[str, str | None]

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
