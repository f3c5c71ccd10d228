from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.http.headers import (
    content_encodings,
    header,
    last_response,
    lifetime,
    redirect_targets,
    retry_after,
    validators,
)
from support.properties import searched

REDIRECTED = (
    b"HTTP/1.1 302 Found\r\nLocation: /next\r\nETag: \"redirect\"\r\nContent-Encoding: br\r\n\r\n"
    b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
    b"HTTP/2 200 \r\nContent-Type: text/html\r\nLast-Modified: Tue, 01 Jul 2025 00:00:00 GMT\r\n\r\n"
)  # fmt: skip


def block(*lines: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode("latin-1")


def test_the_last_response_is_what_follows_the_redirects() -> None:
    assert last_response(REDIRECTED).startswith(b"HTTP/2 200")
    assert last_response(b"HTTP/1.1 200 OK\r\n\r\n") == b"HTTP/1.1 200 OK\r\n\r\n"
    assert last_response(b"") == b""


def test_validators_are_those_of_the_last_response_only() -> None:
    assert validators(REDIRECTED) == (None, "Tue, 01 Jul 2025 00:00:00 GMT")


def test_a_header_is_found_in_any_case_and_without_the_space_around_it() -> None:
    assert header(block("cOnTeNt-TyPe:   text/html  "), b"content-type") == "text/html"


def test_a_header_keeps_the_case_of_its_value() -> None:
    assert header(block('ETag: W/"AbC"'), b"etag") == 'W/"AbC"'


def test_a_name_is_found_as_a_whole_and_not_inside_another() -> None:
    assert header(block("X-ETag: no", "Note: etag: no"), b"etag") is None


def test_a_header_that_is_there_twice_counts_the_last_time() -> None:
    assert header(block("ETag: one", "ETag: two"), b"etag") == "two"


def test_an_empty_header_is_an_empty_text_and_a_missing_one_is_nothing() -> None:
    assert header(block("ETag:"), b"etag") == ""
    assert header(block(), b"etag") is None
    assert header(b"", b"etag") is None


def test_bytes_outside_ascii_are_kept_one_for_one() -> None:
    assert header(block("ETag: \xe9\xff"), b"etag") == "\xe9\xff"


def test_a_block_that_ends_without_a_line_end_is_read_all_the_same() -> None:
    assert header(b"HTTP/1.1 200 OK\r\nETag: x", b"etag") == "x"


@pytest.mark.parametrize(
    ("value", "codings"),
    [
        ("gzip", ["gzip"]),
        ("GZIP", ["gzip"]),
        ("gzip, br", ["gzip", "br"]),
        (" gzip ,, identity , br ", ["gzip", "br"]),
        ("identity", []),
        ("", []),
    ],
)
def test_codings_come_in_the_order_in_which_they_were_applied(value: str, codings: list[str]) -> None:
    assert content_encodings(block(f"Content-Encoding: {value}")) == codings


def test_no_coding_is_named_where_there_is_no_header() -> None:
    assert content_encodings(block("X-Content-Encoding: gzip")) == []


def test_redirect_targets_are_listed_in_order() -> None:
    twice = b"HTTP/1.1 301 X\r\nLOCATION:  /a\r\n\r\nHTTP/1.1 302 X\r\nlocation: http://b.example/\r\n\r\n" + REDIRECTED
    assert redirect_targets(twice) == ["/a", "http://b.example/", "/next"]


@searched
@given(st.binary(max_size=200), st.sampled_from([b"etag", b"content-type", b"x"]))
def test_any_block_of_headers_can_be_read(data: bytes, name: bytes) -> None:
    value = header(data, name)
    assert value is None or "\n" not in value
    assert all(one is None or isinstance(one, str) for one in validators(data))
    assert all(coding == coding.strip().lower() for coding in content_encodings(data))
    assert all(target == target.strip() for target in redirect_targets(data))


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        ("", None),
        ("Cache-Control: max-age=600", 600.0),
        ("Cache-Control: public, Max-Age = 600\r\nAge: 100", 500.0),
        ("Cache-Control: max-age=600\r\nAge: 700", 0.0),
        ("Cache-Control: no-cache, max-age=600", 0.0),
        ("Cache-Control: no-store", 0.0),
        ("Cache-Control: max-age=never", None),
        ("Date: Mon, 01 Jun 2026 12:00:00 GMT\r\nExpires: Mon, 01 Jun 2026 13:00:00 GMT", 3_600.0),
        ("Date: Mon, 01 Jun 2026 12:00:00 GMT\r\nExpires: 0\r\nLast-Modified: Mon, 01 Jun 2026 02:00:00 GMT", 0.0),
        ("Date: Mon, 01 Jun 2026 12:00:00 GMT\r\nLast-Modified: Mon, 01 Jun 2026 02:00:00 GMT", 3_600.0),
        ("Date: nonsense\r\nExpires: Mon, 01 Jun 2026 13:00:00 GMT", None),
        ("Date: Mon, 01 Jun 2026 12:00:00 GMT\r\nExpires: Mon, 01 Jun 1970 13:00:00 GMT", 0.0),
    ],
)
def test_the_lifetime_that_headers_declare(lines: str, seconds: float | None) -> None:
    block = f"HTTP/1.1 301 X\r\nCache-Control: max-age=9\r\n\r\nHTTP/1.1 200 OK\r\n{lines}\r\n\r\n".encode()
    assert lifetime(block) == seconds


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        (("Retry-After: 120",), 120.0),
        (("Date: Tue, 01 Jul 2025 00:00:00 GMT", "Retry-After: Tue, 01 Jul 2025 01:00:00 GMT"), 3_600.0),
        (("Date: Tue, 01 Jul 2025 02:00:00 GMT", "Retry-After: Tue, 01 Jul 2025 01:00:00 GMT"), 0.0),
        (("Retry-After: Tue, 01 Jul 2025 01:00:00 GMT",), 60.0),
        (("Retry-After: soon", "Date: Tue, 01 Jul 2025 00:00:00 GMT"), None),
        (("Retry-After: -5",), None),
        (("Retry-After: " + "9" * 400,), 9_999_999_999.0),
        ((), None),
    ],
)
def test_when_to_ask_again_is_given_in_seconds_or_by_the_servers_own_clock_or_else_by_ours(
    lines: tuple[str, ...], seconds: float | None
) -> None:
    now = datetime(2025, 7, 1, 0, 59, tzinfo=UTC).timestamp()
    assert retry_after(block(*lines), now) == seconds


@pytest.mark.parametrize("etag", ['"a\rX-Injected: 1"', '"a\0b"', '"a\x7f"', f'"{"a" * 1_000}"'])
def test_a_validator_that_cannot_be_sent_back_is_none(etag: str) -> None:
    block = f"HTTP/1.1 200 OK\r\nETag: {etag}\r\nLast-Modified: {etag}\r\n\r\n".encode("latin-1")
    assert validators(block) == (None, None)
