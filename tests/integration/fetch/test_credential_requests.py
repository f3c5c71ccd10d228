"""Credentials for one server are sent to no other: two servers with addresses of their own."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from driftline.fetch.curl import Transfers, fetch_following_redirects
from driftline.model.outcome import Document
from support.making import link, settings
from support.servers import Answer, Request, Server, answer, redirect

WHO = f"Basic {base64.b64encode(b'me:open-sesame').decode()}"


@pytest.fixture
def other() -> Iterator[Server]:
    with Server(lambda _: answer(b"elsewhere"), address="127.0.0.2") as server:
        yield server


def with_password(url: str) -> str:
    return url.replace("://", "://me:open-sesame@")


def fetch(url: str, *hosts: str) -> Document:
    transfers = Transfers(settings(), hosts=hosts)
    got = fetch_following_redirects(link(url), transfers)
    transfers.close()
    assert got.failure is None, got.failure.sentence
    return got


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_a_redirect_to_another_host_takes_no_password_along(status: str, other: Server) -> None:
    with Server(lambda _: redirect(other.url(), status=status)) as server:
        got = fetch(with_password(server.url()))
        assert server.requests[0].headers["authorization"] == WHO
    assert got.body == b"elsewhere"
    assert "authorization" not in other.requests[0].headers
    assert "open-sesame" not in str(other.requests)
    assert "open-sesame" not in got.final_url


def test_nor_does_one_to_another_port_of_the_host() -> None:
    with Server(lambda _: answer(b"elsewhere")) as other, Server(lambda _: redirect(other.url())) as server:
        fetch(with_password(server.url()))
        assert server.requests[0].headers["authorization"] == WHO
        assert "authorization" not in other.requests[0].headers


def test_nor_one_over_two_hosts_and_a_detour_to_the_first(other: Server) -> None:
    def script(request: Request) -> Answer:
        return redirect("/second") if request.path == "/" else redirect(other.url("/third"))

    with Server(script) as server:
        fetch(with_password(server.url()))
        assert [request.headers.get("authorization") for request in server.requests] == [WHO, WHO]
    assert "authorization" not in other.requests[0].headers


def test_a_challenge_of_another_host_gets_no_password_either() -> None:
    challenge = answer(b"", "401 Unauthorized", 'WWW-Authenticate: Basic realm="give it to me"')
    with Server(lambda _: challenge, address="127.0.0.2") as other, Server(lambda _: redirect(other.url())) as server:
        transfers = Transfers(settings())
        got = fetch_following_redirects(link(with_password(server.url())), transfers)
        transfers.close()
        assert got.status == 401
        assert all("authorization" not in request.headers for request in other.requests)


def test_the_next_page_of_the_same_handle_gets_no_password(other: Server) -> None:
    transfers = Transfers(settings())
    with Server(lambda _: answer(b"here")) as server:
        fetch_following_redirects(link(with_password(server.url())), transfers)
        fetch_following_redirects(link(other.url()), transfers)
        fetch_following_redirects(link(server.url()), transfers)
        assert [request.headers.get("authorization") for request in server.requests] == [WHO, None]
    transfers.close()
    assert "authorization" not in other.requests[0].headers


@pytest.mark.parametrize("attribute", ["", "; Domain=127.0.0.2", "; Domain=.127.0.0.2", "; Domain=0.0.2"])
def test_a_cookie_of_one_host_does_not_reach_another(attribute: str, other: Server) -> None:
    with Server(lambda _: redirect(other.url(), f"Set-Cookie: session=secret{attribute}; Path=/")) as server:
        fetch(server.url())
    assert "cookie" not in other.requests[0].headers


@pytest.mark.parametrize("domain", ["co.uk", ".co.uk", "uk", "b.co.uk"])
def test_a_cookie_for_all_hosts_of_a_public_suffix_is_not_taken(domain: str, other: Server) -> None:
    away = f"http://b.co.uk:{other.port}/"
    with Server(lambda _: redirect(away, f"Set-Cookie: session=secret; Domain={domain}; Path=/")) as server:
        hosts = (f"a.co.uk:{server.port}:127.0.0.1", f"b.co.uk:{other.port}:127.0.0.2")
        fetch(f"http://a.co.uk:{server.port}/", *hosts)
    assert "cookie" not in other.requests[0].headers


def test_a_redirect_is_followed_with_the_usual_headers_only(other: Server) -> None:
    with Server(lambda _: redirect(other.url())) as server:
        fetch(with_password(server.url("/private?token=1")))
    assert set(other.requests[0].headers) == {"host", "user-agent", "accept", "accept-encoding"}
