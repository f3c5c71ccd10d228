"""Refuse markup that is nested too deep for any parser.

At each tag a parser goes through all open tags, so that deep nesting takes quadratic time. A quick count of the tags
refuses it in milliseconds. End tags without start tags can mislead the count; then the deadline of the worker applies.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from driftline.errors import FailureKind, UnreadableBody

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selectolax.lexbor import LexborNode

_DEEPEST = 10_000  # levels: browsers stop at some hundred, and parsing so many takes a quarter of a second
_SHORTEST = len(b"<b>")
_STRIDE = 61  # bytes: a prime, so that no repeated tag has the same period
_BLOCKS = 64
# tags that need no end tag
_UNNESTED = (
    "p|li|td|th|tr|dt|dd|option|optgroup|thead|tbody|tfoot|colgroup|rp|rt"
    "|area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr"
)
_TAG = re.compile(rf"<(/?)(?!(?:{_UNNESTED})[\s/>])[a-z](?:[^<>]*[^<>/])?(/?)>".encode(), re.IGNORECASE)


def refuse_deep(markup: str | bytes) -> None:
    """Raise UnreadableBody if the tags of the markup are nested far deeper than in any real page.

    The cheapest test comes first, and is enough for nearly all pages.
    """
    if len(markup) < _SHORTEST * _DEEPEST:
        return
    body = markup if isinstance(markup, bytes) else markup.encode("utf-8", "replace")
    if body[::_STRIDE].count(b"<") * _STRIDE >= _DEEPEST and _may_be_deep(body) and _is_deep(body):
        raise UnreadableBody(FailureKind.HOSTILE, f"The page is nested more than {_DEEPEST:,} tags deep.")


def _may_be_deep(body: bytes) -> bool:
    """Return whether too many more tags start than end at some point, counting those that need no end tag."""
    size = len(body) // _BLOCKS + 1
    depth = 0
    for start in range(0, len(body), size):
        depth = max(0, depth + body.count(b"<", start, start + size) - 2 * body.count(b"</", start, start + size))
        if depth > _DEEPEST:
            return True
    return False


def _is_deep(body: bytes) -> bool:
    """Return whether too many tags are open at once."""
    depth = 0
    for tag in _TAG.finditer(body):
        end, whole = tag.groups()
        if end:
            depth = max(0, depth - 1)
        elif not whole:
            depth += 1
            if depth > _DEEPEST:
                return True
    return False


def above(node: LexborNode) -> Iterator[int]:
    """Yield the memory ids of the elements around a node, the innermost first."""
    parent = node.parent
    while parent is not None:
        yield parent.mem_id
        parent = parent.parent
