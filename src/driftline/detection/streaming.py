"""Documents that come in parts: what React sends late stands hidden at the end, until a script puts it in its place.

Without a browser nobody runs that script, and a page of which the most is sent so would say 'Loading…' for ever.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selectolax.lexbor import LexborNode

_STAND_IN = b'<template id="B:'
# what stands for a part that comes late, and that part: the other way round where it completes another such part
_PLACED = re.compile(r'\$R(?:[CR]\("(B:[0-9a-f]{1,8})","(S:[0-9a-f]{1,8})"|S\("(S:[0-9a-f]{1,8})","(P:[0-9a-f]{1,8})")')
_MOST = 100  # parts: each is copied with all that was put into it
_BEGINS, _ENDS = ("$", "$?", "$!", "$~"), "/$"


def is_streamed(body: bytes) -> bool:
    """Whether parts of the document may have come late."""
    return _STAND_IN in body


def put_in_place(markup: str) -> str:
    """The document with the parts that came late where they belong, as a browser shows it."""
    tree = LexborHTMLParser(markup)
    for found in islice(_PLACED.finditer(markup), _MOST):
        stand_in, part = found[1] or found[4], found[2] or found[3]
        _put(tree.css_first(f'template[id="{stand_in}"]'), tree.css_first(f'div[hidden][id="{part}"]'))
    return tree.html or ""


def _put(stand_in: LexborNode | None, part: LexborNode | None) -> None:
    if stand_in is None or part is None or part.mem_id in _above(stand_in):
        return
    stand_in.insert_before(part)  # a copy
    copy = stand_in.prev
    part.decompose()
    if copy is not None:
        copy.unwrap()
    for node in list(_meanwhile(stand_in)):
        node.decompose()
    stand_in.decompose()


def _above(node: LexborNode) -> Iterator[int]:
    parent = node.parent
    while parent is not None:
        yield parent.mem_id
        parent = parent.parent


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
