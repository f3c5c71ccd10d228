"""Recognise the format of a document by its type, or by its start where the type says nothing."""

from __future__ import annotations

import io
import json
import logging
import re
from typing import TYPE_CHECKING

from driftline.detection.extract.filters import refuse_others
from driftline.detection.extract.formats.base import FormattedText, folded
from driftline.errors import MissingExtra
from driftline.store.blobs import digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.detection.extract.filters import Selector

_HTML = ("text/html", "application/xhtml+xml")
_XML = ("text/xml", "application/xml")
_TEXT_TYPES = ("json", "xml", "javascript", "ecmascript", "csv", "yaml", "x-ndjson", "x-www-form-urlencoded")
_JSON = ("json", "ndjson", "jsonl", "json-seq", "jsonlines")
_CALENDAR = "calendar"
_SHEETS = ("csv", "tab-separated-values", "comma-separated-values")
_PDF = ("application/pdf", "application/x-pdf")
_SAYS_NOTHING = ("", "text/plain", "application/octet-stream", "binary/octet-stream")
_XML_STARTS = ("<?xml", "<rss", "<feed", "<rdf:rdf")
_HTML_STARTS = ("<!doctype html", "<html", "<head", "<body", "<!--")
_LOOKED_AT = 1024
_MOST_PAGES = 200  # of a PDF
_JSON_TYPE = "application/json"
_BEFORE_MARKUP = b"\xef\xbb\xbf \t\r\n\f"
_USUAL = (b"!doc", b"html")  # what most pages begin with
_DATA = re.compile(
    rb"(?:<!--[^>]*-->|<\?[^>]*\?>|<!DOCTYPE\s+(?:rss|feed|rdf)\b[^>]*>|\s)*"
    rb"<(?:[\w.-]+:)?(?:rss|feed|rdf|urlset|sitemapindex|opml)[\s>]",
    re.IGNORECASE,
)
_HTML_IN_XML = re.compile(r"(?:<[?!][^>]*>|\s)*<html\b")


# a format is imported with the first document of it: most runs need none of them


def render_binary(body: bytes, kind: str, steps: Sequence[Selector]) -> FormattedText | None:
    """Return the lines of a PDF, or one line with the digest of another binary document; None if it is text."""
    is_pdf = kind in _PDF or (kind in _SAYS_NOTHING and body.startswith(b"%PDF-"))
    if not is_pdf and not _is_binary(body, kind):
        return None
    refuse_others(steps, (), kind)
    hint = ""
    if is_pdf:
        try:
            paper = _render_pdf(body)
            if paper is not None:
                return paper
        except MissingExtra as error:
            hint = f" {error}"
    size = f"{len(body)} bytes of {kind or 'unknown type'}"
    return FormattedText(lines=[f"This document is not text: {size}, digest {digest(body).hex()}.{hint}"])


def _render_pdf(body: bytes) -> FormattedText | None:
    """Return the lines of all pages, one page after the other; None if it is encrypted, broken or has no text.

    Raise MissingExtra if the `pdf` extra is not installed.
    """
    try:
        from pypdf import PdfReader
    except ImportError:
        raise MissingExtra("Reading the text of a PDF", "pdf") from None
    logging.getLogger("pypdf").disabled = True  # it logs every oddity of a file
    try:
        document = PdfReader(io.BytesIO(body))
        lines = [folded(line) for page in document.pages[:_MOST_PAGES] for line in page.extract_text().splitlines()]
        title = folded(str((document.metadata and document.metadata.title) or ""))
        more = len(document.pages) - _MOST_PAGES
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 a document that the parser fails on is compared by its bytes
        return None
    if not any(lines):
        return None
    if more > 0:
        lines.append(f"The {more} pages after these are compared by their bytes: digest {digest(body).hex()}.")
    return FormattedText(lines=lines, title=title)


def real_type(body: bytes, kind: str) -> str:
    """Return the type of a document as it is read: that of its header, unless it is data that was sent as HTML."""
    if kind not in _HTML:
        return kind
    start = body[:_LOOKED_AT].lstrip(_BEFORE_MARKUP)
    if start.startswith((b"{", b"[")):
        return _JSON_TYPE if body.rstrip().endswith((b"}", b"]")) and _is_json(body) else kind
    if start[:1] == b"<" and start[1:5].lower() not in _USUAL and _DATA.match(start):
        return _XML[1]
    return kind


def _is_json(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict | list)
    except (ValueError, RecursionError):
        return False


def is_html(text: str, kind: str) -> bool:
    """Return whether a document is HTML."""
    if kind in _HTML:
        return True
    start = text[:_LOOKED_AT].lstrip("\ufeff \t\r\n\f").lower()
    if kind in _XML:
        return bool(_HTML_IN_XML.match(start))
    if kind == _SAYS_NOTHING[1]:
        return False  # a browser shows it as it is
    return kind in _SAYS_NOTHING and (start.startswith(_HTML_STARTS) or "<body" in start)


def render(text: str, kind: str, steps: Sequence[Selector]) -> FormattedText:
    """Return the lines of a document that is not HTML, as plain text if it is no valid JSON, XML or CSV."""
    found: FormattedText | None = None
    is_untyped = kind in _SAYS_NOTHING
    start = text[:_LOOKED_AT].lstrip("\ufeff \t\r\n").lower()
    name = kind.rpartition("/")[2].removeprefix("x-")
    if name in _JSON or name.endswith("+json") or (is_untyped and start.startswith(("{", "["))):
        from driftline.detection.extract.formats import json_text

        found = json_text.render(text, kind, steps)
    elif name == "xml" or name.endswith("+xml") or (is_untyped and start.startswith(_XML_STARTS)):
        from driftline.detection.extract.formats import xml_text

        found = xml_text.render_xml(text, kind, steps)
    if found is not None:
        return found
    refuse_others(steps, (), kind)
    if name in _SHEETS:
        from driftline.detection.extract.formats import csv_text

        found = csv_text.render(text, kind)
    elif name == _CALENDAR or (is_untyped and start.startswith("begin:vcalendar")):
        from driftline.detection.extract.formats import calendar_text

        found = calendar_text.render(text)
    return found or FormattedText(lines=text.splitlines())


def _is_binary(body: bytes, kind: str) -> bool:
    if kind.startswith("text/") or any(part in kind for part in _TEXT_TYPES):
        return False
    if kind.startswith(("image/", "audio/", "video/", "font/")) or kind in (*_PDF, "application/zip"):
        return True
    return b"\x00" in body[:_LOOKED_AT]
