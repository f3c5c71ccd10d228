"""A blocked page gets no request, by the server's log."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from driftline.errors import FailureKind
from driftline.fetch.curl import Transfers, fetch_following_redirects
from driftline.model.outcome import Document
from support.blocks import Paths
from support.making import link, settings
from support.servers import Answer, Request, Server, html, redirect


def fetch_all(urls: Sequence[str], blocked: Paths) -> list[Document]:
    transfers = Transfers(settings(), blocked=blocked)
    try:
        return [
            fetch_following_redirects(link(url, page_id=number), transfers) for number, url in enumerate(urls, start=1)
        ]
    finally:
        transfers.close()


def test_a_page_that_is_blocked_is_not_requested() -> None:
    with Server(lambda _: html("here")) as server:
        bad, good = fetch_all([server.url("/bad"), server.url("/good")], Paths("/bad"))
        assert [request.path for request in server.requests] == ["/good"]
    assert good.failure is None
    assert bad.failure is not None
    assert bad.failure.kind is FailureKind.UNSAFE
    assert bad.failure.sentence == "The page is blocked: It has '/bad' in it."


@pytest.mark.parametrize(
    "target", ["/bad", "bad", "//{host}/bad", "http://{host}/bad", "http://{host}/./x/../bad", "HTTP://{host}\\bad"]
)
def test_a_redirect_to_a_page_that_is_blocked_is_not_followed(target: str) -> None:
    def script(request: Request) -> Answer:
        host = request.headers["host"]
        return redirect(target.format(host=host)) if request.path == "/" else html("should not be asked for")

    with Server(script) as server:
        (found,) = fetch_all([server.url("/")], Paths("/bad"))
        assert [request.path for request in server.requests] == ["/"]
    assert found.failure is not None
    assert found.failure.kind is FailureKind.UNSAFE
    assert "redirects to" in found.failure.sentence
    assert found.failure.sentence.endswith("which is blocked: It has '/bad' in it.")


def test_the_target_of_a_redirect_is_reported_without_the_password_of_the_page() -> None:
    with Server(lambda _: redirect("/bad")) as server:
        asked = server.url("/").replace("://", "://me:secret@")
        (found,) = fetch_all([asked], Paths("/bad"))
        target = server.url("/bad").replace("://", "://me:***@")
    assert found.failure is not None
    assert found.failure.sentence == f"The page redirects to {target}, which is blocked: It has '/bad' in it."


def test_the_last_of_several_redirects_counts_too() -> None:
    ways = {"/": "/one", "/one": "/two", "/two": "/bad"}
    with Server(lambda request: redirect(ways[request.path])) as server:
        (found,) = fetch_all([server.url("/")], Paths("/bad"))
        assert [request.path for request in server.requests] == ["/", "/one", "/two"]
    assert found.failure is not None
    assert found.failure.kind is FailureKind.UNSAFE


def test_a_redirect_to_another_host_that_is_blocked_opens_no_connection_to_it() -> None:
    with Server(lambda _: html("bad"), address="127.0.0.2") as bad:
        target = bad.url("/x")
        with Server(lambda _: redirect(target)) as server:
            (found,) = fetch_all([server.url("/")], Paths("127.0.0.2"))
        assert (bad.connections, bad.requests) == (0, [])
    assert found.failure is not None
    assert target in found.failure.sentence


def test_a_host_hidden_behind_a_backslash_and_a_sign_is_seen_too() -> None:
    with Server(lambda _: html("bad"), address="127.0.0.2") as bad:
        authority = bad.url("/").removeprefix("http://")
        with Server(lambda _: redirect(f"http://good.example\\@{authority}")) as server:
            (found,) = fetch_all([server.url("/")], Paths("127.0.0.2"))
        assert bad.connections == 0
    assert found.failure is not None


def test_other_redirects_are_followed_and_a_location_that_is_none_means_nothing() -> None:
    def script(request: Request) -> Answer:
        return redirect("/good") if request.path == "/" else html("here", "Location: /bad")

    with Server(script) as server:
        (found,) = fetch_all([server.url("/")], Paths("/bad"))
    assert found.failure is None
    assert found.final_url.endswith("/good")


def test_what_is_blocked_later_is_blocked_on_the_same_connection_and_comes_back_once_it_is_not() -> None:
    blocked = Paths()
    with Server(lambda request: html("here") if request.path != "/way" else redirect("/page")) as server:
        transfers = Transfers(settings(), blocked=blocked)

        def kind_of(path: str) -> FailureKind | None:
            failure = fetch_following_redirects(link(server.url(path)), transfers).failure
            return None if failure is None else failure.kind

        try:
            assert (kind_of("/page"), kind_of("/way")) == (None, None)
            blocked.words.append("/page")
            assert (kind_of("/page"), kind_of("/way")) == (FailureKind.UNSAFE, FailureKind.UNSAFE)
            blocked.words.clear()
            assert (kind_of("/page"), kind_of("/way")) == (None, None)
        finally:
            transfers.close()
        assert len(server.asked_for("/page")) == 4


def test_links_that_are_blocked_are_given_back_when_the_transfers_are_closed() -> None:
    transfers = Transfers(settings(), blocked=Paths("page"))
    transfers.start([link("http://page.example/")])
    assert transfers.active == 1
    assert [one.url for one in transfers.close()] == ["http://page.example/"]
