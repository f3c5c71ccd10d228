"""What of a document nobody sees, and what is only folded away until a reader opens it.

Both are hidden in the markup. Tokens, templates and windows that never appear are left out, for they differ from fetch
to fetch. But many pages keep most of what they say in panels that open at a click: those are read as if they were open.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from selectolax.lexbor import LexborHTMLParser

_MAYBE_HIDDEN = "[hidden], [style*='none'], [style*='-9999']"  # each selector costs a look at every element
_HIDDEN = re.compile(r"display: ?none|(?:left|top): ?-9999")
_NEVER_HIDDEN = ("html", "body")
_PANEL = re.compile(r"accordion|collaps|disclosure|expand|(?<![a-z])(?:faq|tabs?|tabpanel)(?![a-z])", re.IGNORECASE)
_OPENERS = ", ".join(f"{opener}[aria-controls]" for opener in ("button", "a", "[role=tab]", "[role=button]"))
_FOUND_BY_SEARCH = "until-found"


def drop_hidden(tree: LexborHTMLParser) -> None:
    """Leave out what nobody sees."""
    opened: set[str] | None = None
    for node in tree.css(_MAYBE_HIDDEN):
        attributes = node.attributes
        hidden = "hidden" in attributes or _HIDDEN.search(attributes["style"] or "")
        if not hidden or node.tag in _NEVER_HIDDEN or _is_panel(attributes):
            continue
        name = attributes.get("id")
        if name and opened is None:
            opened = _opened(tree)
        if not (name and opened and name in opened):
            node.decompose()


def _is_panel(attributes: Mapping[str, str | None]) -> bool:
    """Whether an element says that readers open it."""
    role = attributes.get("role")
    if role == "tabpanel" or (role == "region" and "aria-labelledby" in attributes):
        return True
    name = f"{attributes.get('id') or ''} {attributes.get('class') or ''}"
    return attributes.get("hidden") == _FOUND_BY_SEARCH or _PANEL.search(name) is not None


def _opened(tree: LexborHTMLParser) -> set[str]:
    """The names of the elements that a button or a link opens."""
    found = {(node.attributes["href"] or "")[1:] for node in tree.css("a[href^='#']")}
    for node in tree.css(_OPENERS):
        found.update((node.attributes["aria-controls"] or "").split())
    return found
