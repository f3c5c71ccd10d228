"""Outline a document: its blocks, each with its role, a CSS selector, its links and visible attributes.

It helps people to write selectors. A check needs only lines and regions, and gets them from `regions`, many times
faster.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from driftline.detection.extract.annotations import seen_attributes
from driftline.detection.extract.formats.base import folded
from driftline.detection.extract.regions import INLINE
from driftline.errors import UnreadableBody
from driftline.model.page import FilterKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from selectolax.lexbor import LexborNode

    from driftline.detection.extract.regions import Blocks
    from driftline.model.change import Region
    from driftline.model.page import Filter

_INLINE = frozenset(INLINE)
_MOST_TRIED = 30  # filters
_LEAVING_OUT = (
    FilterKind.SELECT, FilterKind.DROP, FilterKind.IGNORE, FilterKind.KEEP, FilterKind.EXTRACT, FilterKind.REPLACE,
)  # fmt: skip
_PLAIN = re.compile(r"[A-Za-z][\w-]*")  # an id that needs no escaping in a selector


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBlock:
    """A block; `path` is the CSS selector of its element, empty in a document without elements."""

    text: str
    role: str
    path: str
    links: tuple[str, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Run:
    """Text that is being collected, with its links and attributes."""

    texts: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str]] = field(default_factory=list)


def outline(body: LexborNode | None, blocks: Blocks) -> list[TextBlock]:
    """Return the blocks of a parsed body, with the roles of the extracted `blocks`."""
    roles: dict[str, list[Region]] = defaultdict(list)
    for block in blocks:
        roles[block.text].append(block.region)
    if body is None:
        return [TextBlock(text=block.text, role=block.region.name.lower(), path="") for block in blocks]
    paths = _Paths()
    found: list[TextBlock] = []
    for node, run in _runs(body):
        text = folded("".join(run.texts))
        if text:
            known = roles.get(text)
            role = known.pop(0).name.lower() if known else ""
            found.append(
                TextBlock(
                    text=text, role=role, path=paths.of(node), links=tuple(run.links), attributes=tuple(run.attributes)
                )
            )
    return found


def idle_filters(body: bytes, content_type: str, filters: Sequence[Filter], text: str) -> list[Filter]:
    """Return the filters of a page without which its `text` would be the same, although they leave out or change some.

    They may be misspelled, or wait for something that the page does not have now.
    """
    from driftline.detection.extract.document import Extraction

    found: list[Filter] = []
    for place, one in enumerate(filters[:_MOST_TRIED]):
        others = [*filters[:place], *filters[place + 1 :]]
        if one.kind not in _LEAVING_OUT or (one.kind is FilterKind.SELECT and not others):
            continue
        try:
            same = Extraction(body, content_type, others).text() == text
        except UnreadableBody:  # nothing is left without it
            continue
        if same:
            found.append(one)
    return found


def _runs(body: LexborNode) -> Iterator[tuple[LexborNode, _Run]]:
    """Yield the runs of text between block-level tags, each with its element."""
    run = _Run()
    around = [body]
    waiting: list[Iterator[LexborNode]] = [body.iter(include_text=True)]
    while waiting:
        node = next(waiting[-1], None)
        if node is None:
            waiting.pop()
            ended = around.pop()
            if ended.tag not in _INLINE:
                yield ended, run
                run = _Run()
            continue
        tag = node.tag or ""
        if node.is_text_node:
            run.texts.append(node.text_content or "")
            continue
        if tag not in _INLINE:
            yield next(one for one in reversed(around) if one.tag not in _INLINE), run
            run = _Run()
        elif tag == "a" and node.prev is not None and node.prev.tag == "a":
            run.texts.append(" ")
        if tag == "a" and (address := node.attributes.get("href")):
            run.links.append(address)
        run.attributes += seen_attributes(node)
        around.append(node)
        waiting.append(node.iter(include_text=True))


class _Paths:
    """The selectors of elements, each computed once."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}
        self._steps: dict[int, str] = {}

    def of(self, node: LexborNode) -> str:
        """Return the selector of an element, starting at its nearest ancestor with an id, or at the body."""
        passed: list[LexborNode] = []
        at: LexborNode | None = node
        while at is not None and at.mem_id not in self._known and at.tag not in ("body", "html"):
            passed.append(at)
            at = None if self._name(at) else at.parent
        path = "" if at is None else self._known.get(at.mem_id, at.tag or "")
        for one in reversed(passed):
            path = self._name(one) or f"{path} > {self._step(one)}"
            self._known[one.mem_id] = path
        return path

    def _name(self, node: LexborNode) -> str:
        name = node.attributes.get("id") or ""
        return f"#{name}" if _PLAIN.fullmatch(name) else ""

    def _step(self, node: LexborNode) -> str:
        if node.mem_id not in self._steps:
            parent = node.parent
            children = [] if parent is None else list(parent.iter())
            counts: dict[str, int] = defaultdict(int)
            for child in children:
                counts[child.tag or ""] += 1
            numbers: dict[str, int] = defaultdict(int)
            for child in children:
                tag = child.tag or ""
                numbers[tag] += 1
                self._steps[child.mem_id] = f"{tag}:nth-of-type({numbers[tag]})" if counts[tag] > 1 else tag
        return self._steps.get(node.mem_id, node.tag or "")
