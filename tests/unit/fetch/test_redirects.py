"""The target of a redirect, what is sent along with it, and when it is not followed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driftline.errors import BadURL, FailureKind
from driftline.fetch.redirects import document_of_page, link_to_target, redirect_refusal, target_of
from driftline.http.credentials import Access
from driftline.http.headers import redirect_targets
from driftline.model.outcome import Link
from support.making import document, known, link, settings


def answer(location: str, *lines: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 302 Found", *lines, f"Location: {location}", "", ""]).encode("latin-1")


def led(url: str, *locations: str) -> Link:
    """The link at the end of a chain of redirects."""
    found = link(url)
    for location in locations:
        target = target_of(found.url, answer(location))
        assert target
        found = link_to_target(found, target, 302, answer(location), 0.5, [])
    return found


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/b", "http://a/b"), ("b", "http://a/x/b"), ("?q", "http://a/x/y?q"), ("../../b", "http://a/b"),
        ("//b/c", "http://b/c"), ("https://b", "https://b/"), ("HTTP://B:80/C", "http://b/C"),
        ("http://b\\c", "http://b/c"), ("http://b/c d", "http://b/c%20d"),
        ("/b\xc3\xbccher", "http://a/b%C3%BCcher"), ("/b\xfccher", "http://a/b%FCcher"),
        ("http://b\xc3\xbccher.example/", "http://xn--bcher-kva.example/"),
        ("http://good.example\\@bad.example/", "http://good.example/@bad.example/"),
        ("", None),
    ],
)  # fmt: skip
def test_a_target_is_read_as_browsers_read_it(location: str, target: str | None) -> None:
    assert target_of("http://a/x/y", answer(location)) == target


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd", "ftp://b/", "javascript:alert(1)", "data:,x", "http://", "http://[b", "http://b:99999/",
        "/" + "x" * 9_000,
    ],
)  # fmt: skip
def test_a_target_that_is_not_on_the_web_is_refused(location: str) -> None:
    with pytest.raises(BadURL):
        target_of("http://a/x/y", answer(location))


def test_headers_of_an_earlier_response_do_not_count() -> None:
    assert target_of("http://a/", b"HTTP/1.1 103 Hints\r\nLocation: /early\r\n\r\nHTTP/1.1 302 Found\r\n\r\n") is None


def test_a_chain_ends_in_the_document_of_the_page_that_it_began_at() -> None:
    last = led("http://a/", "/b", "http://c/")
    fetched = document(last, headers="ETag: x\r\n")
    found = document_of_page(fetched)
    assert fetched.link is last, "the document of the target is as it was"
    assert (found.link.url, found.link.way, found.final_url) == ("http://a/", None, "http://c/")
    assert redirect_targets(found.headers) == ["/b", "http://c/"]
    assert found.seconds == pytest.approx(0.5 + 0.5 + 0.01)


def test_other_headers_of_a_redirect_are_not_kept_while_its_target_waits() -> None:
    wordy = answer("/b", *[f"X-{number}: {'x' * 1_000}" for number in range(100)])
    way = link_to_target(link("http://a/"), "http://a/b", 302, wordy, 0.1, [b"x" * 1_000] * 100).way
    assert way is not None
    assert len(way.headers) < 100
    assert way.cookies == ()


def test_validators_stay_behind_and_access_goes_along() -> None:
    page = replace(link("http://a/", known=known(etag='"x"')), access=Access(bearer="token"))
    found = link_to_target(page, "http://b/", 302, answer("http://b/"), 0.1, [b"cookie"])
    assert (found.known, found.access, found.way and found.way.cookies) == (None, page.access, (b"cookie",))


@pytest.mark.parametrize(
    ("locations", "url"),
    [
        (["/b"], "http://me:pass@a/b"), (["http://a/b"], "http://me:pass@a/b"),
        (["http://b/", "http://a/c"], "http://me:pass@a/c"), (["http://b/"], "http://b/"),
        (["http://a:8080/"], "http://a:8080/"), (["https://a/"], "https://a/"), (["http://a.b/"], "http://a.b/"),
        (["http://you@a/"], "http://you@a/"),
    ],
)  # fmt: skip
def test_a_password_in_an_address_goes_to_its_origin_alone(locations: list[str], url: str) -> None:
    assert led("http://me:pass@a/", *locations).url == url


def test_there_are_only_so_many_redirects_over_all_hosts() -> None:
    given = settings(max_redirects=3)
    assert redirect_refusal(led("http://a/", "http://b/", "http://a/"), 0.1, given) is None
    failure = redirect_refusal(led("http://a/", "http://b/", "http://a/", "http://b/"), 0.1, given)
    assert failure is not None
    assert failure.kind is FailureKind.REDIRECTS
    assert "more than 3 times" in failure.sentence


def test_the_answers_of_all_hosts_share_one_time_limit() -> None:
    given = settings(total_timeout=1.2)
    assert redirect_refusal(led("http://a/", "/b"), 0.6, given) is None
    failure = redirect_refusal(led("http://a/", "/b"), 0.8, given)
    assert failure is not None
    assert failure.kind is FailureKind.TIMED_OUT
