"""Answers that are not the document that was there, of whatever format it is: empty ones, error messages of programs,
web pages in the place of a feed, and data that breaks off.
"""

from __future__ import annotations

import json
import re
from typing import Any

_EMPTY = "The answer is empty, where there was something."
_NO_FEED = "The answer is a web page, where there was a feed."
_MESSAGE = "The answer is an error message, though the server calls it good."
_HALVED = "The document broke off in the middle."

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
_HALF = 0.5  # of what the document had


def why_faulty(body: bytes, old_body: bytes) -> str | None:
    """Why this is not the document that was there before, in a sentence; None if it may well be."""
    if not body or body.isspace():
        return _EMPTY if old_body and not old_body.isspace() else None
    if _PAGE.match(body[:_START]) and _FEED.match(old_body[:_START]):
        return _NO_FEED
    if _became_error(body, old_body):
        return _MESSAGE
    return _HALVED if _broke_off(body, old_body) else None


def _broke_off(body: bytes, old_body: bytes) -> bool:
    """Whether data that ended as it should does not any more, though it begins the same way."""
    root, old_root = (_ROOT.match(some[:_START]) for some in (body, old_body))
    if root is not None and old_root is not None:
        end = b"</" + root[1]
        return root[1] == old_root[1] and end in old_body[-_END:] and end not in body[-_END:]
    if len(body) >= len(old_body) or body[:1] not in _BRACKETS or body[:1] != old_body[:1]:
        return False
    end = _BRACKETS[body[:1]]
    return old_body.rstrip().endswith(end) and not body.rstrip().endswith(end)


def _became_error(body: bytes, old_body: bytes) -> bool:
    """Whether a program answers with an error, and with little of what it had to say before."""
    found = _object(body) if len(body) <= _LONGEST else None
    if found is None or not _tells_error(found):
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


def _tells_error(found: dict[str, Any]) -> bool:
    """Whether an object says that something went wrong, in one of the ways that are common among programs."""
    if any(found.get(name) for name in _ERRORS):
        return True
    states = [found.get(name) for name in _STATES]
    failed = any(state in _FAILED if isinstance(state, str) else _is_status(state) for state in states)
    return failed and any(found.get(name) for name in _WORDS)


def _is_status(state: object) -> bool:
    return isinstance(state, int) and 400 <= state < 600
