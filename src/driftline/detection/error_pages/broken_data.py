"""Recognise responses that are not the document of before, in any format: empty ones, error messages of programs, web
pages in the place of a feed, and data that is cut off.
"""

from __future__ import annotations

import json
import re
from typing import Any

from driftline.detection import messages

_START = 4_096  # bytes
_PROLOGUE = rb"\A(?:\xef\xbb\xbf)?\s*(?:<\?[^>]*>\s*|<!--[^>]*>\s*)*"
_FEED = re.compile(_PROLOGUE + rb"<(?:rss|feed|rdf:rdf)\b", re.IGNORECASE)
_PAGE = re.compile(_PROLOGUE + rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_ROOT = re.compile(
    rb"\A(?:\xef\xbb\xbf)?\s*(?:<\?xml\b[^>]*>\s*(?:<[!?][^>]*>\s*)*|(?=<(?:rss|feed|rdf:rdf)\b))<([\w:.-]+)",
    re.IGNORECASE,
)
_END = 200  # bytes
_BRACKETS = {b"{": b"}", b"[": b"]"}
_LONGEST = 10_000  # bytes: error messages are short
_ERRORS = ("error", "errors")
_STATES = ("status", "statusCode", "code")
_WORDS = ("message", "title", "detail", "reason")
_FAILED = ("error", "fail", "failed", "failure")
_HALF = 0.5  # of the old fields


def why_faulty(body: bytes, old_body: bytes) -> str | None:
    """Return a sentence with the reason why this is not the document of before; None if it may be."""
    if not body or body.isspace():
        return messages.BECAME_EMPTY if old_body and not old_body.isspace() else None
    if _PAGE.match(body[:_START]) and _FEED.match(old_body[:_START]):
        return messages.NO_FEED
    if _became_error(body, old_body):
        return messages.ERROR_MESSAGE
    return messages.CUT_OFF_DOCUMENT if _broke_off(body, old_body) else None


def _broke_off(body: bytes, old_body: bytes) -> bool:
    """Return whether data that was complete before is cut off now, although it begins the same way."""
    root, old_root = (_ROOT.match(some[:_START]) for some in (body, old_body))
    if root is not None and old_root is not None:
        end = b"</" + root[1]
        return root[1] == old_root[1] and end in old_body[-_END:] and end not in body[-_END:]
    if len(body) >= len(old_body) or body[:1] not in _BRACKETS or body[:1] != old_body[:1]:
        return False
    end = _BRACKETS[body[:1]]
    return old_body.rstrip().endswith(end) and not body.rstrip().endswith(end)


def _became_error(body: bytes, old_body: bytes) -> bool:
    """Return whether JSON became an error message, with little of its old content."""
    found = _object(body) if len(body) <= _LONGEST else None
    if found is None or not _reports_error(found):
        return False
    before = {name for name, value in (_object(old_body) or {}).items() if value}
    gone = {name for name in before if not found.get(name)}
    return not before or (len(gone) >= _HALF * len(before) and not before.intersection(_ERRORS))


def _object(body: bytes) -> dict[str, Any] | None:
    if body.lstrip()[:1] != b"{":
        return None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _reports_error(found: dict[str, Any]) -> bool:
    """Return whether an object reports an error in one of the common ways."""
    if any(found.get(name) for name in _ERRORS):
        return True
    states = [found.get(name) for name in _STATES]
    failed = any(state in _FAILED if isinstance(state, str) else _is_status(state) for state in states)
    return failed and any(found.get(name) for name in _WORDS)


def _is_status(state: object) -> bool:
    return isinstance(state, int) and 400 <= state < 600
