"""The gateway of a page that is rendered: a proxy on the loopback interface that checks every address.

Chromium resolves no names and opens no other connections: pages, scripts, images, redirects and web sockets go through
the gateway. It resolves a name unless that host is blocked, checks each IP address as for libcurl, and connects to the
very address that it checked, so that a name cannot change its meaning in between (DNS rebinding). With a proxy of the
user's own, it connects to that alone, which then has to check addresses.

Of https requests, the gateway sees only the host. Where single URLs are blocked, `browser_credentials` passes each URL
to it.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import secrets
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Self, TypeAlias
from urllib.parse import urlsplit

from driftline.errors import FailureKind
from driftline.fetch.address_guard import refused_failure
from driftline.fetch.browser.upstream_proxy import ProxyRefused
from driftline.fetch.failures import NOTHING, status_failure, unsafe_failure
from driftline.model.page import Failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from driftline.fetch.address_guard import AddressJudge, Refusal
    from driftline.fetch.browser.upstream_proxy import Streams, Upstream
    from driftline.fetch.failures import Blocked
    from driftline.http.credentials import CredentialScope

Resolve: TypeAlias = "Callable[[str, int], Awaitable[list[str]]]"

_LOG = logging.getLogger(__name__)
_LONGEST_HEAD = 256 * 1024
_CHUNK = 64 * 1024
_HOP_BY_HOP = (b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization", b"upgrade", b"te")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_USER = "driftline"
_NO_NAME = Failure(kind=FailureKind.DNS, sentence="The name of the host could not be resolved.")
_REFUSED = Failure(kind=FailureKind.REFUSED, sentence="The host refused the connection or could not be reached.")
_NO_PROXY = Failure(kind=FailureKind.REFUSED, sentence="The proxy refused the connection or could not be reached.")
_OTHER_PORT = Failure(
    kind=FailureKind.NOT_ALLOWED,
    sentence="This is another port of the host of the page, where the browser would send the page's cookies, too.",
)


async def resolve(host: str, port: int) -> list[str]:
    """Return the IP addresses of a name; raises OSError if it has none."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


class Gateway:
    """A proxy for one page, for the time of an `async with` block, at whose end its connections are closed.

    It requires its password, and passes at most `most` bytes to the browser. `trouble` returns why a host could not be
    reached. `upstream` is the user's proxy, if there is one; `home` is set for a page with cookies, and keeps the
    browser from other ports of the host, to which it would send them.
    """

    def __init__(
        self, judge: AddressJudge, *, most: int, connect_timeout: float,
        resolve: Resolve = resolve, blocked: Blocked = NOTHING, upstream: Upstream | None = None,
        home: CredentialScope | None = None,
    ) -> None:  # fmt: skip
        self._judge = judge
        self._blocked = blocked
        self._left = most
        self._connect_timeout = connect_timeout
        self._resolve = resolve
        self._upstream = upstream
        self._home = home
        self._trouble: dict[tuple[str, int], Failure] = {}
        self._blocked_urls: dict[str, Failure] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.user, self.password = _USER, secrets.token_urlsafe(16)
        self._expected = b"Basic " + base64.b64encode(f"{_USER}:{self.password}".encode())

    def __repr__(self) -> str:
        return f"<Gateway connections={len(self._tasks)} bytes_left={self._left} failed_hosts={len(self._trouble)}>"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_LONGEST_HEAD)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def address(self) -> str:
        """Return the URL of this proxy, for Chromium."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def full(self) -> bool:
        """Return whether as many bytes as allowed were passed on."""
        return self._left <= 0

    @property
    def blocks_urls(self) -> bool:
        """Return whether single URLs are blocked, so that `blocks` has to be called for each."""
        return self._blocked.single

    def blocks(self, url: str) -> bool:
        """Return whether this very URL is blocked."""
        reason = self._blocked.why(url) if self.blocks_urls else None
        if reason is not None:
            self._blocked_urls[url] = unsafe_failure(reason, url)
        return reason is not None

    def trouble(self, url: str, *, redirected: bool) -> Failure | None:
        """Return why this URL or its host could not be reached; None if it could."""
        if url in self._blocked_urls:
            return self._blocked_urls[url]
        target = _target(url)
        found = self._trouble.get(target) if target is not None else None
        if found is not None and redirected and found.kind is FailureKind.NOT_ALLOWED:
            return Failure(kind=found.kind, sentence=f"The page redirects, and {found.sentence}")
        return found

    @property
    def latest(self) -> Failure | None:
        """Return the failure of the last host that could not be reached; None if all could."""
        return next(reversed(self._trouble.values()), None)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            pass  # one side closed the connection, or sent no HTTP
        except asyncio.CancelledError:
            pass  # the page is done
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line, *fields = head[:-4].split(b"\r\n")
        method, address, _ = line.decode("latin-1").split(" ", 2)
        if not any(secrets.compare_digest(_value(field, b"proxy-authorization"), self._expected) for field in fields):
            await _answer(writer, "407 Proxy Authentication Required", 'Proxy-Authenticate: Basic realm="gateway"\r\n')
            return
        tunnel = method == "CONNECT"
        target = _target(f"https://{address}" if tunnel else address)
        if target is None or not (tunnel or address.startswith("http://")):
            await _answer(writer, "400 Bad Request")
            return
        if not tunnel and self.blocks(address):
            await _answer(writer, "403 Forbidden")
            return
        found = await self._connect(*target, tunnel=tunnel)
        if isinstance(found, Failure):
            self._trouble[target] = found
            await _answer(writer, "403 Forbidden")
            return
        self._trouble.pop(target, None)
        source, sink = found
        try:
            if tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                sink.write(_forwarded(method, address, fields, self._upstream))
            await self._exchange(reader, writer, source, sink, target, raw=tunnel)
        finally:
            sink.transport.abort()

    async def _connect(self, host: str, port: int, *, tunnel: bool) -> Streams | Failure:
        """Return a connection to the host, or why there is none."""
        url = f"http://{f'[{host}]' if ':' in host else host.lower()}/"
        unsafe = self._blocked.why(url)
        if unsafe is not None:
            return unsafe_failure(unsafe, url)
        if self._home is not None and self._home.is_other_port(host, port):
            return _OTHER_PORT
        if self._upstream is not None:
            return await self._connect_through(self._upstream, host, port, tunnel=tunnel)
        return await self._connect_to(host, port, url)

    async def _connect_through(self, upstream: Upstream, host: str, port: int, *, tunnel: bool) -> Streams | Failure:
        """Return a connection through the user's proxy, or why there is none."""
        if not upstream.takes_names:
            try:
                addresses = await self._resolve(host, port)
            except (OSError, UnicodeError):
                return _NO_NAME
            host = next((one for one in addresses if ":" not in one), addresses[0])
        try:
            async with asyncio.timeout(self._connect_timeout):
                if upstream.forwards and not tunnel:
                    return await upstream.connect()
                return await upstream.tunnel(host, port)
        except ProxyRefused as refused:
            return _proxy_failure(str(refused))
        except (OSError, TimeoutError, EOFError, ValueError, IndexError, asyncio.LimitOverrunError):
            return _NO_PROXY

    async def _connect_to(self, host: str, port: int, url: str) -> Streams | Failure:
        """Return a connection to an IP address of the host that is allowed, or why there is none."""
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError):
            return _NO_NAME
        refusal: Refusal | None = None
        for address in addresses:
            verdict = self._judge(address.partition("%")[0])
            if verdict is not None:
                refusal = refusal or verdict
                continue
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(self._connect_timeout):
                    return await asyncio.open_connection(address, port, limit=_LONGEST_HEAD)
        if refusal is None:
            return _REFUSED
        failure = refused_failure(refusal, url, redirected=False)
        _LOG.debug("connection of the browser refused: %s", failure.sentence)
        return failure

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: asyncio.StreamReader,
        sink: asyncio.StreamWriter, target: tuple[str, int], *, raw: bool,
    ) -> None:  # fmt: skip
        """Copy bytes in both directions until the server has sent everything."""
        upload = asyncio.ensure_future(_copy(reader, sink))
        try:
            if not raw:
                await self._copy_head(source, writer, target)
            while self._left > 0 and (data := await source.read(_CHUNK)):
                self._left -= len(data)
                writer.write(data)
                await writer.drain()
            await _end(writer)
        finally:
            upload.cancel()
            await asyncio.gather(upload, return_exceptions=True)

    async def _copy_head(
        self, source: asyncio.StreamReader, writer: asyncio.StreamWriter, target: tuple[str, int]
    ) -> None:
        """Pass the head of the response on, with Connection: close: the next request may be for another host."""
        while True:
            head = await source.readuntil(b"\r\n\r\n")
            self._left -= len(head)
            line, *fields = head[:-4].split(b"\r\n")
            status = line.partition(b" ")[2]
            if status.startswith(b"1"):
                continue  # interim responses are not needed
            if status.startswith(b"407"):  # Chromium would take it for one of the gateway itself
                self._trouble[target] = (
                    status_failure(407) if self._upstream is None else _proxy_failure("it answered 407")
                )
                line = b"HTTP/1.1 403 Forbidden"
            kept = [field for field in fields if _name(field) not in _HOP_BY_HOP]
            writer.write(b"\r\n".join([line, *kept, b"Connection: close", b"", b""]))
            return


async def _copy(reader: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        sink.write(data)
        await sink.drain()
    sink.write_eof()


async def _answer(writer: asyncio.StreamWriter, status: str, more: str = "") -> None:
    writer.write(f"HTTP/1.1 {status}\r\n{more}Content-Length: 0\r\nConnection: close\r\n\r\n".encode("latin-1"))
    await _end(writer)


async def _end(writer: asyncio.StreamWriter) -> None:
    """Close the connection once everything is sent."""
    writer.close()
    await writer.wait_closed()


def _forwarded(method: str, address: str, fields: list[bytes], upstream: Upstream | None) -> bytes:
    """Return a request without hop-by-hop headers, with a path for the host or a URL for the next proxy."""
    kept = [field for field in fields if _name(field) not in _HOP_BY_HOP]
    if upstream is not None and upstream.forwards:
        target, kept = address, [*kept, *upstream.login]
    else:
        target = "/" + address.split("/", 3)[3] if address.count("/") > 2 else "/"
    return b"\r\n".join([f"{method} {target} HTTP/1.1".encode("latin-1"), *kept, b"Connection: close", b"", b""])


def _proxy_failure(why: str) -> Failure:
    return Failure(kind=FailureKind.CONNECTION, sentence=f"The proxy does not connect to the host: {why}.")


def _target(url: str) -> tuple[str, int] | None:
    """Return the host and port of a URL; None if it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None
    return (parts.hostname, port) if parts.hostname and port else None


def _name(field: bytes) -> bytes:
    return field.partition(b":")[0].strip().lower()


def _value(field: bytes, name: bytes) -> bytes:
    return field.partition(b":")[2].strip() if _name(field) == name else b""
