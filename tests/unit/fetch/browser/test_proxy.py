"""The gateway of rendered pages, tested without a browser."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable

import pytest

from driftline.errors import FailureKind
from driftline.fetch.address_guard import judge_for
from driftline.fetch.browser.proxy import Gateway
from support.blocks import Paths
from support.servers import Answer, Request, Server, answer, closed_port, html

ALLOWED = judge_for(["127.0.0.1"])
_END = b"</body>"


def asked(
    gateway: Gateway, head: str, *, authorised: bool = True, then: bytes = b"", until: bytes | None = None
) -> bytes:
    """All that the gateway answers to this request line and these headers."""

    async def talk() -> bytes:
        async with gateway:
            host, port = gateway.address.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            words = base64.b64encode(f"driftline:{gateway.password}".encode()).decode()
            login = f"Proxy-Authorization: Basic {words}\r\n" if authorised else ""
            writer.write(f"{head}\r\n{login}\r\n".encode() + then)
            try:
                return await (reader.read() if until is None else reader.readuntil(until))
            finally:
                writer.close()

    return asyncio.run(asyncio.wait_for(talk(), 20))


def gateway(resolve: Callable[[str, int], Awaitable[list[str]]] | None = None, most: int = 1_000_000) -> Gateway:
    if resolve is None:
        return Gateway(ALLOWED, most=most, connect_timeout=5.0)
    return Gateway(ALLOWED, most=most, connect_timeout=5.0, resolve=resolve)


def names(*answers: list[str]) -> Callable[[str, int], Awaitable[list[str]]]:
    """A resolver that gives one of these after the other."""
    left = list(answers)

    async def resolve(_host: str, _port: int) -> list[str]:
        return left.pop(0)

    return resolve


def test_a_request_reaches_its_host_without_what_was_meant_for_the_proxy() -> None:
    with Server(lambda _: html("hello", "Connection: keep-alive")) as server:
        got = asked(
            gateway(), f"GET {server.url('/a?b')} HTTP/1.1\r\nHost: x\r\nProxy-Connection: keep-alive", until=_END
        )
        (request,) = server.requests
    assert got.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"<p>hello</p>" in got
    assert b"keep-alive" not in got  # or the next request, of another host, would be sent to this one
    assert request.path == "/a?b"
    assert set(request.headers) == {"host", "connection"}
    assert request.headers["connection"] == "close"


def test_a_tunnel_carries_bytes_both_ways() -> None:
    with Server(lambda _: html("through")) as server:
        request = b"GET /inner HTTP/1.1\r\nHost: x\r\n\r\n"
        got = asked(gateway(), f"CONNECT 127.0.0.1:{server.port} HTTP/1.1", then=request, until=_END)
    assert b"<p>through</p>" in got


def test_no_client_is_served_without_the_password() -> None:
    with Server(lambda _: html("hello")) as server:
        got = asked(gateway(), f"GET {server.url()} HTTP/1.1", authorised=False)
        assert server.connections == 0
    assert got.startswith(b"HTTP/1.1 407 ")


@pytest.mark.parametrize(
    "address", ["127.0.0.2", "169.254.169.254", "10.0.0.1", "[::1]", "[::ffff:127.0.0.2]", "0x7f.2", "0177.0.0.2"]
)
@pytest.mark.parametrize("head", ["CONNECT {}:8099 HTTP/1.1", "GET http://{}:8099/ HTTP/1.1"])
def test_addresses_that_are_not_allowed_are_refused(address: str, head: str) -> None:
    way = gateway()
    assert asked(way, head.format(address)).startswith(b"HTTP/1.1 403 ")
    trouble = way.trouble(f"http://{address}:8099/", redirected=False)
    assert trouble is not None
    assert trouble.kind is FailureKind.NOT_ALLOWED


def test_what_is_connected_to_is_the_very_address_that_was_judged() -> None:
    """A name that moves between two looks is looked at once: DNS rebinding finds no gap to slip through."""
    with Server(lambda _: html("outer")) as server, Server(lambda _: html("inner"), address="127.0.0.2") as inner:
        rebound = names(["127.0.0.1"], ["127.0.0.2"])
        got = asked(gateway(rebound), f"GET http://moving.test:{server.port}/ HTTP/1.1", until=_END)
        assert b"outer" in got
        got = asked(gateway(rebound), f"GET http://moving.test:{inner.port}/ HTTP/1.1")
        assert got.startswith(b"HTTP/1.1 403 ")
        assert inner.connections == 0


def test_of_several_addresses_only_allowed_ones_are_tried() -> None:
    with Server(lambda _: html("outer")) as server:
        got = asked(
            gateway(names(["127.0.0.2", "127.0.0.1"])), f"GET http://both.test:{server.port}/ HTTP/1.1", until=_END
        )
    assert b"outer" in got


def test_why_a_host_was_not_reached_is_reported() -> None:
    way = gateway()
    url = f"http://127.0.0.1:{closed_port()}/"
    assert asked(way, f"GET {url} HTTP/1.1").startswith(b"HTTP/1.1 403 ")
    trouble = way.trouble(url, redirected=False)
    assert trouble is not None
    assert trouble.kind is FailureKind.REFUSED
    assert way.trouble("http://127.0.0.1/", redirected=False) is None


def test_a_name_without_an_address_is_a_failure_of_its_own() -> None:
    async def unknown(_host: str, _port: int) -> list[str]:
        raise OSError("no such name")

    way = gateway(unknown)
    asked(way, "CONNECT nowhere.test:443 HTTP/1.1")
    trouble = way.trouble("https://nowhere.test/", redirected=True)
    assert trouble is not None
    assert trouble.kind is FailureKind.DNS


@pytest.mark.parametrize(
    "head", ["GET / HTTP/1.1", "GET ftp://127.0.0.1/ HTTP/1.1", "GET file:///etc/passwd HTTP/1.1", "CONNECT x HTTP/1.1"]
)
def test_other_schemes_are_refused(head: str) -> None:
    assert asked(gateway(), head).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 403 "))


def test_no_more_bytes_come_in_than_are_allowed() -> None:
    def endless(_: Request) -> Answer:
        return answer(bytes(1_000_000))

    way = gateway(most=100_000)
    with Server(endless) as server:
        got = asked(way, f"GET {server.url()} HTTP/1.1")
    assert way.full
    assert len(got) < 300_000


@pytest.mark.parametrize("words", [b"\r\n\r\n", b"HTTP/1.1\r\n\r\n", b"\x00\x01\xff\r\n\r\n", b""])
def test_a_server_that_speaks_no_http_ends_the_connection_and_nothing_else(words: bytes) -> None:
    with Server(lambda _: Answer(data=words, close=True)) as server:
        assert asked(gateway(), f"GET {server.url()} HTTP/1.1") in (b"", words[:-4] + b"\r\nConnection: close\r\n\r\n")


def test_a_server_that_poses_as_the_gateway_is_not_shown_its_password() -> None:
    """Chromium takes a 407 for a question of its proxy."""
    way = gateway()
    with Server(lambda _: answer(b"", "407 Proxy Authentication Required", close=True)) as server:
        assert asked(way, f"GET {server.url()} HTTP/1.1").startswith(b"HTTP/1.1 403 ")
        trouble = way.trouble(server.url(), redirected=False)
    assert trouble is not None
    assert trouble.sentence == "The server answered 407 Proxy Authentication Required."


def test_a_host_that_is_blocked_is_neither_resolved_nor_connected_to() -> None:
    blocking = Gateway(ALLOWED, most=1_000, connect_timeout=5.0, resolve=names(), blocked=Paths("//bad.example/"))
    got = asked(blocking, "GET http://Bad.example/x HTTP/1.1\r\nHost: bad.example")
    assert got.startswith(b"HTTP/1.1 403")


def test_a_single_address_that_is_blocked_is_not_requested_and_its_host_is_not_blamed() -> None:
    blocking = Gateway(ALLOWED, most=1_000, connect_timeout=5.0, blocked=Paths("/bad"))
    with Server(lambda _: html("hello")) as server:
        got = asked(blocking, f"GET {server.url('/bad')} HTTP/1.1")
        assert server.connections == 0
        assert got.startswith(b"HTTP/1.1 403")
        trouble = blocking.trouble(server.url("/bad"), redirected=True)
        assert trouble is not None
        assert trouble.kind is FailureKind.UNSAFE
        assert blocking.trouble(server.url("/good"), redirected=False) is None
