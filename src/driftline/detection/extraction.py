"""The text of a document that a person sees, one block a line, and its letters: the same without any white space.

The letters are what is compared. Two documents with equal letters say the same, however their white space, entities
and tags are written, and the letters are had far cheaper than lines that read well, which only a new version needs. The
work is done by the parser's own loops: a walk over the nodes in Python would cost more than everything else in a check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser

from driftline.detection.decoding import decode_text
from driftline.detection.regions import BREAK, INLINE, Blocks, folded, read_marks, set_marks, without_marks
from driftline.versions.codec import digest

if TYPE_CHECKING:
    from collections.abc import Iterable

_UNSEEN = [
    "audio", "canvas", "iframe", "noscript", "object", "script", "style", "svg", "template", "video",
]  # fmt: skip
_HIDDEN = (
    "[hidden], [style*='display:none'], [style*='display: none'], [style*='left:-9999'], [style*='left: -9999'], "
    "[style*='top:-9999'], [style*='top: -9999']"
)
_SIDE_BY_SIDE = "a + a"
_TEXT_TYPES = ("json", "xml", "javascript", "ecmascript", "csv", "yaml", "x-ndjson", "x-www-form-urlencoded")
_WHITE_SPACE = b" \t\n\r\f\v\x00"
_NO_BREAK_SPACE = "\u00a0".encode()


class Reading:
    """A decoded body, read as far as somebody asks."""

    def __init__(self, body: bytes, content_type: str) -> None:
        self.content_type = kind = content_type.partition(";")[0].strip().lower()
        self._tree: LexborHTMLParser | None = None
        self._source = ""
        if _is_binary(body, kind):
            # a document without text is compared by its bytes
            size = f"{len(body)} bytes of {kind or 'unknown type'}"
            self._source = f"This document is not text: {size}, digest {digest(body).hex()}."
            self.charset = "binary"
            return
        text, self.charset = decode_text(body, content_type)
        if kind in ("text/html", "application/xhtml+xml") or (not kind and _looks_like_html(text)):
            self._tree = _parse(text)
        else:
            self._source = text

    @property
    def is_html(self) -> bool:
        """Whether it is a document that a browser would show as a page."""
        return self._tree is not None

    def letters(self) -> bytes:
        """All that can be seen, without white space."""
        body = None if self._tree is None else self._tree.body
        return letters_of(self._source if body is None else body.text())

    def title(self) -> str:
        """What the document calls itself, or nothing."""
        heading = None if self._tree is None else self._tree.css_first("title")
        return "" if heading is None else " ".join(heading.text().split())

    def blocks(self) -> Blocks:
        """The lines of `text` with the regions that they stand in: dearer, and instead of it."""
        tree = self._tree
        if tree is None:
            return Blocks(_lines(self._source.splitlines()))
        set_marks(tree)
        return read_marks(self._runs(tree))

    def _runs(self, tree: LexborHTMLParser) -> str:
        """The runs of text between two tags that set something off, parted by BREAK."""
        for node in tree.css(_SIDE_BY_SIDE):
            # one word in the markup, but on the screen there is a gap between two links
            node.insert_before(" ")
        tree.unwrap_tags(INLINE)
        tree.merge_text_nodes()
        body = tree.body
        return "" if body is None else body.text(separator=BREAK, strip=True)

    def text(self) -> str:
        """All that can be seen, one block a line. To be asked last: it takes the document apart."""
        tree = self._tree
        if tree is None:
            return "\n".join(_lines(self._source.splitlines()))
        return "\n".join(_lines(self._runs(tree).split(BREAK)))


def letters_of(text: str) -> bytes:
    """The text without its white space."""
    data = text.encode("utf-8", "replace")
    if "\xa0" in text:
        data = data.replace(_NO_BREAK_SPACE, b"")
    return data.translate(None, _WHITE_SPACE)


def _parse(markup: str) -> LexborHTMLParser:
    """The document without what nobody sees."""
    tree = LexborHTMLParser(without_marks(markup))
    tree.strip_tags(_UNSEEN)
    for node in tree.css(_HIDDEN):
        if node.tag not in ("html", "body"):
            node.decompose()
    return tree


def _lines(runs: Iterable[str]) -> list[str]:
    return [line for run in runs if (line := folded(run))]


def _is_binary(body: bytes, kind: str) -> bool:
    if kind.startswith("text/") or any(part in kind for part in _TEXT_TYPES):
        return False
    if kind.startswith(("image/", "audio/", "video/", "font/")) or kind in (
        "application/pdf",
        "application/zip",
    ):
        return True
    return b"\x00" in body[:1024]


def _looks_like_html(text: str) -> bool:
    start = text[:1024].lstrip().lower()
    return start.startswith(("<!doctype html", "<html", "<head", "<body", "<!--")) or "<body" in start
