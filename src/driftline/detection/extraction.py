"""The text of a document that a person sees, one block a line.

White space and the way characters are written (entities, non-breaking spaces) leave no trace in it, so two documents
with equal text look the same to a reader. The work is done by the parser's own loops: a walk over the nodes in Python
would cost more than everything else in a check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from selectolax.lexbor import LexborHTMLParser

from driftline.detection.decoding import decode_text

if TYPE_CHECKING:
    from collections.abc import Iterable

_UNSEEN = [
    "audio", "canvas", "iframe", "noscript", "object", "script", "style", "svg", "template", "video",
]  # fmt: skip
_INLINE = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins",
    "kbd", "label", "mark", "nobr", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt",
    "u", "var", "wbr",
]  # fmt: skip
_HIDDEN = "[hidden], [style*='display:none'], [style*='display: none']"
_BLOCK = "\x00"  # no text of a document can hold it: the parser replaces it
_TEXT_TYPES = ("json", "xml", "javascript", "ecmascript", "csv", "yaml", "x-ndjson", "x-www-form-urlencoded")


class Extract(NamedTuple):
    """What a reader gets of a document."""

    title: str
    text: str
    content_type: str
    charset: str


def extract(body: bytes, content_type: str) -> Extract:
    """Title and visible text of a decoded body, by its content type or, where there is none, by its first bytes."""
    kind = content_type.partition(";")[0].strip().lower()
    if _is_binary(body, kind):
        return Extract("", f"This document is not text: {len(body)} bytes of {kind or 'unknown type'}.", kind, "binary")
    text, charset = decode_text(body, content_type)
    if kind in ("text/html", "application/xhtml+xml") or (not kind and _looks_like_html(text)):
        title, seen = _read_html(text)
        return Extract(title, seen, kind or "text/html", charset)
    return Extract("", _lines(text.splitlines()), kind or "text/plain", charset)


def _read_html(markup: str) -> tuple[str, str]:
    # links side by side are one word only in the markup: on the screen there is a gap between them
    tree = LexborHTMLParser(markup.replace("</a><a", "</a> <a"))
    heading = tree.css_first("title")
    title = " ".join(heading.text().split()) if heading is not None else ""
    tree.strip_tags(_UNSEEN)
    if "hidden" in markup or "display" in markup:
        for node in tree.css(_HIDDEN):
            if node.tag not in ("html", "body"):
                node.decompose()
    tree.unwrap_tags(_INLINE)
    tree.merge_text_nodes()
    body = tree.body
    if body is None:
        return title, ""
    seen = body.text(separator=_BLOCK, strip=True)
    return title, _lines(seen.split(_BLOCK))


def _lines(blocks: Iterable[str]) -> str:
    lines: list[str] = []
    for block in blocks:
        # splitting into words is the dear part, so it is done only where there is something to fold
        if (
            "\n" in block
            or "  " in block
            or "\t" in block
            or "\xa0" in block
            or "\r" in block
            or not block.isprintable()
        ):
            block = " ".join(block.split())
        if block:
            lines.append(block)
    return "\n".join(lines)


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
