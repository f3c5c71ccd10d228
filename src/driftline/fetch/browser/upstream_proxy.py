"""Connections through the user's own proxy: HTTP, HTTPS or SOCKS, each with a login.

The gateway connects to it, and not Chromium, which cannot log in at a SOCKS proxy and would have to resolve its name.
So a page behind a proxy has the same limits, blocklists and rules for cookies as any other.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Self, TypeAlias
from urllib.parse import unquote, urlsplit

from driftline.errors import DriftlineError

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_LONGEST_HEAD = 256 * 1024
_USUAL_PORT = 1080  # as in libcurl
_PORTS = {"https": 443}
_SOCKS4_GRANTED = 90
_NO_LOGIN, _LOGIN = 0, 2
_IPV4, _NAME, _IPV6 = 1, 3, 4
_LENGTHS = {_IPV4: 4, _IPV6: 16}


class ProxyRefused(DriftlineError):
    """A proxy was reached and does not connect to the host."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Upstream:
    """A proxy of the user."""

    scheme: str
    host: str
    port: int
    user: str
    password: str
    ca_file: str

    @classmethod
    def named(cls, proxy: str, ca_file: str) -> Self:
        """Return the proxy with this URL; raises ValueError if the URL is malformed."""
        parts = urlsplit(proxy)
        return cls(
            scheme=parts.scheme, host=parts.hostname or "",
            port=_PORTS.get(parts.scheme, _USUAL_PORT) if parts.port is None else parts.port,
            user=unquote(parts.username or ""), password=unquote(parts.password or ""), ca_file=ca_file,
        )  # fmt: skip

    @property
    def forwards(self) -> bool:
        """Return whether it forwards http requests, instead of opening a tunnel for them."""
        return self.scheme in ("http", "https")

    @property
    def takes_names(self) -> bool:
        """Return whether it resolves host names; as in libcurl, socks4 and socks5 get IP addresses."""
        return self.scheme not in ("socks4", "socks5")

    @property
    def login(self) -> list[bytes]:
        """Return the header line with the login, if there is one."""
        if not self.user:
            return []
        credentials = base64.b64encode(f"{self.user}:{self.password}".encode())
        return [b"Proxy-Authorization: Basic " + credentials]

    async def connect(self) -> Streams:
        """Return a connection to the proxy itself; raises OSError."""
        secure = ssl.create_default_context(cafile=self.ca_file) if self.scheme == "https" else None
        return await asyncio.open_connection(self.host, self.port, limit=_LONGEST_HEAD, ssl=secure)

    async def tunnel(self, host: str, port: int) -> Streams:
        """Return a connection to this host through the proxy; raises OSError or ProxyRefused."""
        reader, writer = await self.connect()
        try:
            if self.forwards:
                await self._connect_by_http(reader, writer, host, port)
            else:
                connect = self._connect_by_socks4 if self.scheme.startswith("socks4") else self._connect_by_socks5
                await connect(reader, writer, host, port)
        except BaseException:
            writer.transport.abort()
            raise
        return reader, writer

    async def _connect_by_http(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
    ) -> None:
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = [f"CONNECT {place} HTTP/1.1".encode(), f"Host: {place}".encode(), *self.login, b"", b""]
        writer.write(b"\r\n".join(lines))
        status = (await reader.readuntil(b"\r\n\r\n")).split(None, 2)[1]
        if not status.startswith(b"2"):
            raise ProxyRefused(f"it answered {status.decode('latin-1')[:3]}")

    async def _connect_by_socks4(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
    ) -> None:
        address = _numeric(host)
        if address is not None and not isinstance(address, IPv4Address):
            raise ProxyRefused("SOCKS4 does not support IPv6")
        # an invalid address with the name after it has the proxy resolve the name (SOCKS4a)
        place = b"\x00\x00\x00\x01" if address is None else address.packed
        name = host.encode() + b"\x00" if address is None else b""
        writer.write(b"\x04\x01" + port.to_bytes(2) + place + self.user.encode() + b"\x00" + name)
        reply = (await reader.readexactly(8))[1]
        if reply != _SOCKS4_GRANTED:
            raise ProxyRefused(f"it answered {reply}")

    async def _connect_by_socks5(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
    ) -> None:
        writer.write(bytes([5, 2, _NO_LOGIN, _LOGIN] if self.user else [5, 1, _NO_LOGIN]))
        method = (await reader.readexactly(2))[1]
        if method == _LOGIN and self.user:
            writer.write(b"\x01" + _counted(self.user.encode()) + _counted(self.password.encode()))
            if (await reader.readexactly(2))[1] != 0:
                raise ProxyRefused("it does not accept the password")
        elif method != _NO_LOGIN:
            raise ProxyRefused("it requires another kind of login")
        address = _numeric(host)
        if address is None:
            place = bytes([_NAME]) + _counted(host.encode())
        else:
            place = bytes([_IPV4 if isinstance(address, IPv4Address) else _IPV6]) + address.packed
        writer.write(b"\x05\x01\x00" + place + port.to_bytes(2))
        _, reply, _, kind = await reader.readexactly(4)
        if reply != 0:
            raise ProxyRefused(f"it answered {reply}")
        length = (await reader.readexactly(1))[0] if kind == _NAME else _LENGTHS.get(kind, 0)
        await reader.readexactly(length + 2)  # the address that it connects from is not needed


def _numeric(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _counted(words: bytes) -> bytes:
    if len(words) > 255:
        raise ProxyRefused("SOCKS5 allows 255 bytes at most")
    return bytes([len(words)]) + words
