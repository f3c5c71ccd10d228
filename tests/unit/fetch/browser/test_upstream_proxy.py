"""Connections of the gateway through each kind of user's proxy."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import certifi
import pytest

from driftline.errors import FailureKind
from driftline.fetch.address_guard import judge_for
from driftline.fetch.browser.proxy import Gateway
from driftline.fetch.browser.upstream_proxy import Upstream
from driftline.http.credentials import CredentialScope
from driftline.model.page import Failure
from support.servers import Answer, Request, Server, answer, closed_port, self_signed

_PLAIN = "GET http://page.test/x HTTP/1.1\r\nHost: page.test"
_TUNNEL = "CONNECT page.test:443 HTTP/1.1"
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_LOGIN = "Basic " + base64.b64encode(b"me:open sesame").decode()


async def looked_up(host: str, _port: int) -> list[str]:
    if host != "page.test":
        raise OSError("no such name")
    return ["::9", "127.0.0.9"]


def asked(
    proxy: str, head: str, home: CredentialScope | None = None, ca_file: str = ""
) -> tuple[bytes, Failure | None]:
    """All that a gateway in front of this proxy answers, and why the host was not reached."""
    gateway = Gateway(
        judge_for([]),
        most=1_000_000,
        connect_timeout=5.0,
        resolve=looked_up,
        upstream=Upstream.named(proxy, ca_file),
        home=home,
    )

    async def talk() -> bytes:
        async with gateway:
            host, port = gateway.address.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            words = base64.b64encode(f"{gateway.user}:{gateway.password}".encode()).decode()
            writer.write(f"{head}\r\nProxy-Authorization: Basic {words}\r\n\r\n".encode())
            try:
                return await reader.read()
            finally:
                writer.close()

    return asyncio.run(asyncio.wait_for(talk(), 20)), gateway.latest


@contextmanager
def speaking(*turns: tuple[bytes, bytes]) -> Iterator[str]:
    """A proxy that hears these words, to the byte, and says the words after each; then it hangs up. Its place."""
    heard: list[bytes] = []

    def talk() -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as source:
            for words, reply in turns:
                heard.append(source.read(len(words)))
                connection.sendall(reply)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join(10)
    assert heard == [words for words, _ in turns]


def said_by(proxy: Server) -> Callable[[str], list[str | None]]:
    return lambda name: [request.headers.get(name) for request in proxy.requests]


def test_a_request_is_handed_on_with_the_password_of_the_proxy_and_not_that_of_the_gateway() -> None:
    with Server(lambda _: answer(b"by proxy", close=True)) as proxy:
        got, trouble = asked(proxy.url("").replace("://", "://me:open%20sesame@"), _PLAIN)
        assert [request.path for request in proxy.requests] == ["http://page.test/x"]
        assert said_by(proxy)("proxy-authorization") == [_LOGIN]
    assert got.endswith(b"by proxy")
    assert trouble is None


def test_a_proxy_behind_tls_has_to_be_trusted(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    if certificate is None:
        pytest.skip("there is no openssl to make a certificate with")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with Server(lambda _: answer(b"by proxy", close=True), context) as proxy:
        assert asked(proxy.url(""), _PLAIN, ca_file=str(certificate))[0].endswith(b"by proxy")
        _, trouble = asked(proxy.url(""), _PLAIN, ca_file=certifi.where())
        assert len(proxy.requests) == 1
    assert trouble is not None
    assert trouble.kind is FailureKind.REFUSED


def test_what_is_encrypted_goes_through_a_tunnel() -> None:
    def tunnel(request: Request) -> Answer:
        return Answer(data=b"HTTP/1.1 200 OK\r\n\r\nbytes", close=True)

    with Server(tunnel) as proxy:
        got, _ = asked(proxy.url("").replace("://", "://me:open%20sesame@"), _TUNNEL)
        assert [request.path for request in proxy.requests] == ["page.test:443"]
        assert said_by(proxy)("proxy-authorization") == [_LOGIN]
    assert got == _ESTABLISHED + b"bytes"


@pytest.mark.parametrize("head", [_PLAIN, _TUNNEL])
def test_a_proxy_that_requires_another_password_is_reported_as_such(head: str) -> None:
    wants = answer(b"", "407 Proxy Authentication Required", 'Proxy-Authenticate: Basic realm="x"', close=True)
    with Server(lambda _: wants) as proxy:
        got, trouble = asked(proxy.url(""), head)
    assert got.startswith(b"HTTP/1.1 403 ")
    assert trouble == Failure(
        kind=FailureKind.CONNECTION, sentence="The proxy does not connect to the host: it answered 407."
    )


_SOCKS4 = b"\x04\x01\x01\xbb"
_GRANTED4 = b"\x00\x5a" + bytes(6)
_ASK5 = b"\x05\x01\x00"
_GRANTED5 = b"\x05\x00\x00\x01" + bytes(6)


@pytest.mark.parametrize(
    ("scheme", "turns"),
    [
        ("socks4://", [(_SOCKS4 + b"\x7f\x00\x00\x09\x00", _GRANTED4)]),
        ("socks4a://me@", [(_SOCKS4 + b"\x00\x00\x00\x01me\x00page.test\x00", _GRANTED4)]),
        ("socks5://", [(b"\x05\x01\x00", b"\x05\x00"), (_ASK5 + b"\x01\x7f\x00\x00\x09\x01\xbb", _GRANTED5)]),
        (
            "socks5h://me:open%20sesame@",
            [
                (b"\x05\x02\x00\x02", b"\x05\x02"),
                (b"\x01\x02me\x0bopen sesame", b"\x01\x00"),
                (_ASK5 + b"\x03\x09page.test\x01\xbb", b"\x05\x00\x00\x03\x01x\x00\x00"),
            ],
        ),
    ],
)
def test_each_kind_of_socks_is_spoken(scheme: str, turns: list[tuple[bytes, bytes]]) -> None:
    words, reply = turns[-1]
    with speaking(*turns[:-1], (words, reply + b"bytes")) as place:
        got, trouble = asked(scheme + place, _TUNNEL)
    assert got == _ESTABLISHED + b"bytes"
    assert trouble is None


@pytest.mark.parametrize(
    ("scheme", "turns", "why"),
    [
        ("socks4a://", [(_SOCKS4 + b"\x00\x00\x00\x01\x00page.test\x00", b"\x00\x5b" + bytes(6))], "it answered 91"),
        ("socks5h://", [(b"\x05\x01\x00", b"\x05\xff")], "it requires another kind of login"),
        (
            "socks5h://me:no@",
            [(b"\x05\x02\x00\x02", b"\x05\x02"), (b"\x01\x02me\x02no", b"\x01\x01")],
            "it does not accept the password",
        ),
        (
            "socks5h://",
            [(b"\x05\x01\x00", b"\x05\x00"), (_ASK5 + b"\x03\x09page.test\x01\xbb", b"\x05\x02\x00\x01")],
            "it answered 2",
        ),
    ],
)
def test_a_socks_proxy_that_refuses_is_reported_with_its_reason(
    scheme: str, turns: list[tuple[bytes, bytes]], why: str
) -> None:
    with speaking(*turns) as place:
        got, trouble = asked(scheme + place, _TUNNEL)
    assert got.startswith(b"HTTP/1.1 403 ")
    assert trouble is not None
    assert trouble.sentence == f"The proxy does not connect to the host: {why}."


@pytest.mark.parametrize("reply", [b"", b"\x00", b"HTTP/1.1\r\n\r\n", b"\r\n\r\n"])
@pytest.mark.parametrize("scheme", ["http", "socks4", "socks5h"])
def test_a_proxy_that_is_none_fails_the_page_alone(scheme: str, reply: bytes) -> None:
    with Server(lambda _: Answer(data=reply, close=True)) as proxy, socket.create_server(("127.0.0.1", 0)) as mute:
        if scheme == "http":
            got, trouble = asked(proxy.url(""), _TUNNEL)
        else:
            threading.Thread(target=_hang_up, args=(mute, reply), daemon=True).start()
            got, trouble = asked(f"{scheme}://127.0.0.1:{mute.getsockname()[1]}", _TUNNEL)
    assert got.startswith(b"HTTP/1.1 403 ")
    assert trouble is not None
    assert trouble.kind in (FailureKind.REFUSED, FailureKind.CONNECTION)


def _hang_up(listener: socket.socket, words: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.recv(1)
        connection.sendall(words)


def test_a_name_that_is_resolved_here_and_has_no_address_is_not_the_fault_of_the_proxy() -> None:
    _, trouble = asked("socks5://127.0.0.1:1", _TUNNEL.replace("page", "nowhere"))
    assert trouble is not None
    assert trouble.kind is FailureKind.DNS


@pytest.mark.parametrize("head", [_PLAIN, _TUNNEL])
def test_without_its_proxy_a_page_is_not_fetched_in_another_way(head: str) -> None:
    got, trouble = asked(f"http://127.0.0.1:{closed_port()}", head)
    assert got.startswith(b"HTTP/1.1 403 ")
    assert trouble is not None
    assert trouble.sentence == "The proxy refused the connection or could not be reached."


def test_another_port_of_the_host_of_a_page_with_cookies_gets_no_request() -> None:
    with Server(lambda _: answer(b"by proxy", close=True)) as proxy:
        got, trouble = asked(
            proxy.url(""), _PLAIN.replace("page.test/", "page.test:8080/"), CredentialScope("http://page.test/")
        )
        assert proxy.requests == []
        assert asked(proxy.url(""), _PLAIN, CredentialScope("http://page.test/"))[0].endswith(b"by proxy")
    assert got.startswith(b"HTTP/1.1 403 ")
    assert trouble is not None
    assert "another port of the host of the page" in trouble.sentence


def test_the_usual_ports_are_those_of_libcurl() -> None:
    proxies = ("http://p", "https://p", "socks5h://p/", "http://p:8080")
    assert [Upstream.named(proxy, "").port for proxy in proxies] == [1080, 443, 1080, 8080]
