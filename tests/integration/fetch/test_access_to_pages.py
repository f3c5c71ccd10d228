"""Pages that need credentials, which are sent to their own origin only."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from driftline.errors import FailureKind
from driftline.fetch.curl import Transfers, fetch_following_redirects
from driftline.http.credentials import Access, read_access
from driftline.model.outcome import Document, Known
from support.making import known, link, settings
from support.servers import Answer, Request, Server, answer, redirect, self_signed

SECRETS = read_access(
    headers=["X-Key: open-sesame", "User-Agent: mine"], cookies=["session=open-sesame"], bearer="open-sesame"
)


@pytest.fixture
def other() -> Iterator[Server]:
    with Server(lambda _: answer(b"elsewhere"), address="127.0.0.2") as server:
        yield server


def fetch(url: str, access: Access = SECRETS, before: Known | None = None, **given: object) -> Document:
    transfers = Transfers(settings(**given))
    one = replace(link(url, known=before), access=access)
    try:
        return fetch_following_redirects(one, transfers)
    finally:
        transfers.close()


def secrets_of(request: Request) -> list[str | None]:
    return [request.headers.get(name) for name in ("x-key", "cookie", "authorization")]


SENT = ["open-sesame", "session=open-sesame", "Bearer open-sesame"]
NOT_SENT = [None, None, None]


def test_the_server_of_the_page_gets_them() -> None:
    with Server(lambda _: answer(b"welcome")) as server:
        assert fetch(server.url()).body == b"welcome"
        assert secrets_of(server.requests[0]) == SENT
        assert server.requests[0].headers["user-agent"] == "mine"


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_no_other_host_does(status: str, other: Server) -> None:
    with Server(lambda _: redirect(other.url("/there"), status=status)) as server:
        got = fetch(server.url())
        assert secrets_of(server.requests[0]) == SENT
    assert (got.body, got.final_url, got.redirects) == (b"elsewhere", other.url("/there"), 1)
    assert secrets_of(other.requests[0]) == NOT_SENT
    assert "open-sesame" not in str(other.requests)


def test_no_other_port_does() -> None:
    with Server(lambda _: answer(b"elsewhere")) as other, Server(lambda _: redirect(other.url())) as server:
        fetch(server.url())
        assert secrets_of(other.requests[0]) == NOT_SENT


def test_a_redirect_within_the_host_takes_them_along_and_drops_the_body_on_the_way() -> None:
    def script(request: Request) -> Answer:
        return answer(b"welcome") if request.path == "/in" else redirect("/in", "Content-Type: text/html")

    with Server(script) as server:
        got = fetch(server.url())
        assert [secrets_of(request) for request in server.requests] == [SENT, SENT]
    assert (got.body, got.failure) == (b"welcome", None)


def test_back_from_another_host_they_are_sent_again() -> None:
    with Server(lambda _: redirect(home.url("/back")), address="127.0.0.2") as other:

        def script(request: Request) -> Answer:
            return answer(b"welcome") if request.path == "/back" else redirect(other.url())

        with Server(script) as home:
            assert fetch(home.url()).body == b"welcome"
            assert [secrets_of(request) for request in home.requests] == [SENT, SENT]
        assert secrets_of(other.requests[0]) == NOT_SENT


def test_validators_go_to_the_page_itself_only(other: Server) -> None:
    with Server(lambda _: redirect(other.url())) as server:
        fetch(server.url(), before=known(etag='"one"'))
        assert server.requests[0].headers["if-none-match"] == '"one"'
    assert "if-none-match" not in other.requests[0].headers


def test_the_next_page_gets_nothing_of_it() -> None:
    with Server(lambda _: answer(b"welcome")) as server:
        transfers = Transfers(settings())
        with_access = replace(link(server.url("/one")), access=SECRETS)
        for one in (with_access, link(server.url("/two"))):
            fetch_following_redirects(one, transfers)
        transfers.close()
        assert secrets_of(server.requests[1]) == NOT_SENT


def test_redirects_without_end_are_counted() -> None:
    with Server(lambda request: redirect(request.path + "x")) as server:
        got = fetch(server.url(), max_redirects=3)
        assert len(server.requests) == 4
    assert got.failure is not None
    assert got.failure.kind is FailureKind.REDIRECTS


def test_as_many_redirects_as_there_may_be_are_followed() -> None:
    with Server(lambda request: answer(b"in") if request.path == "/xxx" else redirect(request.path + "x")) as server:
        assert fetch(server.url(), max_redirects=3).body == b"in"


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/"])
def test_redirects_off_the_web_are_not_followed(target: str) -> None:
    with Server(lambda _: redirect(target)) as server:
        got = fetch(server.url())
    assert got.failure is not None
    assert got.failure.kind is FailureKind.REDIRECTS


def test_the_guard_stands_at_every_redirect(other: Server) -> None:
    with Server(lambda _: redirect(other.url())) as server:
        got = fetch(server.url(), allow_networks=["127.0.0.1/32"])
    assert got.failure is not None
    assert got.failure.kind is FailureKind.NOT_ALLOWED
    assert other.requests == []


def test_a_variable_that_is_not_set_fails_the_page_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRIFTLINE_TEST_TOKEN", raising=False)
    with Server(lambda _: answer(b"welcome")) as server:
        got = fetch(server.url(), read_access(bearer="env:DRIFTLINE_TEST_TOKEN"))
        assert got.failure is not None
        assert got.failure.kind is FailureKind.ACCESS
        assert "DRIFTLINE_TEST_TOKEN" in got.failure.sentence
        assert server.requests == []
        monkeypatch.setenv("DRIFTLINE_TEST_TOKEN", "now")
        assert fetch(server.url(), read_access(bearer="env:DRIFTLINE_TEST_TOKEN")).body == b"welcome"
        assert server.requests[0].headers["authorization"] == "Bearer now"


def test_a_page_goes_through_its_own_proxy() -> None:
    with Server(lambda _: answer(b"by proxy")) as proxy:
        got = fetch("http://page.example/x", read_access(proxy=proxy.url()))
        assert (got.body, proxy.requests[0].headers["host"]) == (b"by proxy", "page.example")


def test_a_header_without_a_value_is_sent_as_such() -> None:
    with Server(lambda _: answer(b"welcome")) as server:
        fetch(server.url(), read_access(headers=["X-Empty:"]))
        assert server.requests[0].headers["x-empty"] == ""


def test_a_variable_that_names_no_proxy_opens_no_way_around_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTLINE_TEST_PROXY", "")
    with Server(lambda _: answer(b"inner")) as server:
        got = fetch(server.url(), read_access(proxy="env:DRIFTLINE_TEST_PROXY"), allow_networks=[])
        assert server.connections == 0
    assert got.failure is not None
    assert got.failure.kind is FailureKind.ACCESS


def test_a_proxy_behind_tls_is_trusted_by_the_same_certificates_as_pages(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    if certificate is None:
        pytest.skip("there is no openssl to make a certificate with")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with Server(lambda _: answer(b"by proxy"), context) as proxy:
        access = read_access(proxy=proxy.url(""))
        assert fetch("http://page.example/x", access, ca_file=str(certificate)).body == b"by proxy"
        failure = fetch("http://page.example/x", access).failure
    assert failure is not None
    assert failure.kind is FailureKind.CERTIFICATE
