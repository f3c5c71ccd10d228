from __future__ import annotations

import json

import pytest

from driftline.detection.error_pages.broken_data import why_faulty
from driftline.detection.examine import examine
from driftline.errors import FailureKind
from support.making import failure_kind, job

FEED = b"<?xml version='1.0'?>\n<rss><channel><title>News</title><item><title>One</title></item></channel></rss>"
PAGE = b"<!doctype html><html><body>Page not found</body></html>"
ITEMS = json.dumps({"items": ["lamp", "chair"], "total": 2, "error": None}).encode()


@pytest.mark.parametrize("old", [b"some words", ITEMS, FEED, b"\x89PNG\r\n"])
def test_an_empty_response_is_reported_where_there_was_something(old: bytes) -> None:
    for body in (b"", b" \r\n"):
        assert why_faulty(body, old) == "The response is empty, but the document was not."
        assert why_faulty(body, b"\n") is None
    assert why_faulty(old, b"") is None


def test_a_page_in_the_place_of_a_feed_is_reported() -> None:
    atom = b"\xef\xbb\xbf<?xml version='1.0'?><!-- made today --><feed xmlns='http://www.w3.org/2005/Atom'></feed>"
    for old in (FEED, atom):
        for body in (PAGE, b"<html><body>Page not found</body></html>", b"<?xml version='1.0'?><html/>"):
            assert why_faulty(body, old) == "The response is a web page, but the document was a feed."
        assert why_faulty(old.replace(b"feed", b"rss"), old) is None
    assert why_faulty(PAGE, PAGE + b"<rss>") is None
    assert why_faulty(PAGE, b"some words") is None, "it may have been made a page"


@pytest.mark.parametrize(
    "message",
    [
        {"error": "not found"},
        {"error": {"code": 500, "message": "internal server error"}},
        {"errors": [{"message": "no such field"}], "items": None},
        {"status": 503, "title": "Service unavailable", "detail": "Try again later."},
        {"status": "error", "message": "no such shop"},
        {"statusCode": 404, "message": "Cannot GET /"},
    ],
)
def test_an_error_message_in_the_place_of_what_was_there_is_reported(message: object) -> None:
    body = json.dumps(message).encode()
    for old in (ITEMS, PAGE, b"[1, 2]"):
        assert why_faulty(body, old) == "The response is an error message, although its status says that all is well."
    assert why_faulty(body, b'{"error": "gone", "at": 1}') is None, "it always was one"


@pytest.mark.parametrize(
    "body",
    [
        ITEMS.replace(b"null", b'"the third is missing"'),
        b'{"status": "ok", "message": "All is well."}',
        b'{"code": 42, "message": "The answer."}',
        b'{"error": ""}', b"[" * 9_000, b'{"x":' * 1_900, b'["error"]',
    ],
)  # fmt: skip
def test_other_answers_of_programs_are_what_they_are(body: bytes) -> None:
    assert why_faulty(body, ITEMS) is None


def test_data_that_breaks_off_in_the_middle_is_reported() -> None:
    for old in (FEED, ITEMS, b"[1, 2, 3]\n", b"<?xml version='1.0'?><!-- x --><a:b><c>one</c><c>two</c></a:b>\n"):
        assert why_faulty(old[: len(old) * 2 // 3], old) == "The document broke off in the middle."
        assert why_faulty(old, old[: len(old) * 2 // 3]) is None
        assert why_faulty(old + b"\n", old) is None


def test_no_version_is_made_of_such_an_answer_whatever_its_type() -> None:
    for kind, old, new in (
        ("text/plain", b"some words", b""),
        ("image/png", b"\x89PNG\r\n", b""),
        ("application/rss+xml", FEED, b"<html><body>Page not found</body></html>"),
        ("application/json", ITEMS, b'{"error":{"code":500,"message":"internal server error"}}'),
        ("text/html", PAGE, b'{"error":"not found"}'),
    ):
        first = examine(job(old, content_type=kind))
        assert first.failure is None
        found = examine(job(new, content_type=kind, after=first))
        assert (failure_kind(found), found.blobs) == (FailureKind.BROKEN, ()), kind
        assert examine(job(new, content_type=kind)).failure != found.failure, "the first version may be anything"


def test_a_selected_part_of_a_response_is_never_an_error_and_an_ignored_one_may_be() -> None:
    for filters, kind in (([["select", "json:$.error"]], None), ([["ignore", "total"]], FailureKind.BROKEN)):
        first = examine(job(ITEMS, content_type="application/json", filters=filters))
        failing = b'{"error": "no such shop"}'
        found = examine(job(failing, content_type="application/json", after=first, filters=filters))
        assert (first.failure, failure_kind(found), found.change is None) == (None, kind, kind is not None)
