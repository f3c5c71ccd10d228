"""Servers that mean harm, or are badly broken: what each says on the wire, and what a check of its page may cost."""

from __future__ import annotations

import socket
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING, Protocol, TypeAlias

import brotli

if TYPE_CHECKING:
    from collections.abc import Iterable

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_PAUSE = 0.02  # seconds between two bytes of a drip: too fast to be taken for a stall
_MANY = 1 << 16  # bytes sent at once by who sends without end
_ZEROS = bytes(1 << 20)
_HTML = "Content-Type: text/html; charset=utf-8"


class Scene(Protocol):
    """One request at a server: how often it was asked before, and how to answer."""

    asked: int
    stream: socket.socket

    def wait(self, seconds: float) -> None:
        """Let so long pass; OSError once the server is to end."""


Act: TypeAlias = Callable[[Scene], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Villain:
    """A server, and what a check of its page has to come to.

    `ends` is the kind of the failure, or 'new' or 'changed' where all that it does is legal; with a | between where it
    depends on how fast the machine is. The reason holds `says`.
    `seconds` and `mb` are what it may cost at most, the latter beside what an ordinary page takes. `checks` in a row
    are made, of which the last one counts for `ends`. `certificate` names that of a server that speaks TLS.
    """

    name: str
    act: Act
    ends: str
    says: str = ""
    seconds: float = 10.0
    mb: int = 30
    checks: int = 1
    certificate: str | None = None


def head(*lines: str, status: str = "200 OK") -> bytes:
    """The head of an answer with these header lines."""
    return "\r\n".join((f"HTTP/1.1 {status}", *lines, "", "")).encode("latin-1")


def says(*parts: bytes | Iterable[bytes]) -> Act:
    """Send these parts, one after the other; a part may go on without end."""

    def act(scene: Scene) -> None:
        for part in parts:
            for some in (part,) if isinstance(part, bytes) else part:
                scene.stream.sendall(some)

    return act


def page(*lines: str, body: bytes) -> Act:
    """A whole answer with this body."""
    return says(head(*lines, f"Content-Length: {len(body)}"), body)


def edited(*lines: str, body: Callable[[int], bytes]) -> Act:
    """A page whose body is another one whenever it is asked for."""

    def act(scene: Scene) -> None:
        page(_HTML if not lines else lines[0], *lines[1:], body=body(scene.asked))(scene)

    return act


def redirects(to: str) -> Act:
    """An answer that sends the client elsewhere."""
    return says(head(f"Location: {to}", "Content-Length: 0", "Connection: close", status="302 Found"))


def drips(data: bytes) -> Act:
    """Send these bytes one at a time, and the last of them for ever."""

    def act(scene: Scene) -> None:
        for byte in (*data, *repeat(data[-1], 1_000_000)):
            scene.stream.sendall(bytes([byte]))
            scene.wait(_PAUSE)

    return act


def _silent(scene: Scene) -> None:
    scene.wait(3_600)


def _reset(scene: Scene) -> None:
    """Break the connection off in the middle, so that what was sent last may never arrive."""
    scene.stream.sendall(head(_HTML, "Content-Length: 100000") + b"<p>half of it")
    scene.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    scene.stream.close()


def _further(scene: Scene) -> None:
    redirects(f"/{scene.asked + 1}")(scene)


def _forever(data: bytes) -> Iterator[bytes]:
    """These bytes again and again, some thousand at a time."""
    return repeat(data * max(1, _MANY // len(data)))


def _deflated(bits: int) -> Iterator[bytes]:
    """A gigabyte of zeros in a megabyte: blocks that a full flush set apart may be repeated."""
    packer = zlib.compressobj(wbits=bits)
    yield packer.compress(_ZEROS) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(_ZEROS) + packer.flush(zlib.Z_FULL_FLUSH)
    yield from repeat(block, 1_000)


@cache
def _in_brotli() -> bytes:
    packer = brotli.Compressor(quality=5)
    parts: list[bytes] = [packer.process(_ZEROS) for _ in range(256)]
    return b"".join([*parts, packer.finish()])


@cache
def _in_zstd() -> bytes:
    return zstd.compress(_ZEROS * 64) * 16


@cache
def _in_itself(times: int) -> bytes:
    body = b"<p>words at last</p>"
    for _ in range(times):
        packer = zlib.compressobj(wbits=31)
        body = packer.compress(body) + packer.flush()
    return body


def _wide_window() -> bytes:
    """A frame that asks its reader for 128 MB before it says anything."""
    return b"\x28\xb5\x2f\xfd\x00\x88" + b"\x01\x00\x00"


def _text(size: int, number: int) -> bytes:
    """One line of words without an end, another one for each number."""
    words = b"one long line that never ends "
    middle = b"and says %d now " % number
    times = (size - 200) // len(words) // 2
    return b"<!doctype html><title>Line</title><p>" + words * times + middle + words * times + b"</p>"


def _nested(number: int) -> bytes:
    return b"<div>" * 100_000 + b"the innermost words, of state %d" % number + b"</div>" * 100_000


def _binary(number: int) -> bytes:
    """Bytes without any meaning, as of a picture, the same for the same number."""
    state, parts = number + 1, []
    for _ in range(4_096):
        state = state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407 & (1 << 64) - 1
        parts.append(state.to_bytes(8, "little"))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts) * 4


def _laughs() -> bytes:
    """Nine levels of entities that are each ten of the one before: a billion words, if they are written out."""
    levels = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    return f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY l0 "laugh">{levels}]><r>&l9;</r>'.encode()


_CODED = (_HTML, "Connection: close")
_CHUNKED = head(_HTML, "Transfer-Encoding: chunked")
_GOOD = b"<!doctype html><title>Page</title><p>words of a page that is as it should be</p>"
_LONG = 20_000_000

ORDINARY = Villain(name="ordinary page", act=page(_HTML, body=_GOOD), ends="new", mb=0)

VILLAINS = (
    Villain(name="silence", act=_silent, ends="timed-out", says="too long"),
    Villain(name="drip of headers", act=drips(b"HTTP/1.1 200 OK\r\nX-Drip: a"), ends="timed-out", says="too long"),
    Villain(name="drip of a body", act=drips(head(_HTML) + b"<p>"), ends="timed-out", says="too long"),
    Villain(name="body without end", act=says(head(_HTML), _forever(b"<p>on and on ")), ends="too-large", mb=80),
    Villain(
        name="chunks without end",
        act=says(_CHUNKED, _forever(b"8\r\n<p>on on\r\n")),
        ends="too-large",
        mb=80,
    ),
    Villain(name="body announced as huge", act=says(head(_HTML, f"Content-Length: {10**15}")), ends="too-large"),
    Villain(
        name="gzip bomb",
        act=says(head(*_CODED, "Content-Encoding: gzip"), _deflated(31)),
        ends="too-large",
        says="decoded",
        mb=80,
    ),
    Villain(
        name="deflate bomb",
        act=says(head(*_CODED, "Content-Encoding: deflate"), _deflated(15)),
        ends="too-large",
        says="decoded",
        mb=80,
    ),
    Villain(
        name="brotli bomb",
        act=lambda scene: page(*_CODED, "Content-Encoding: br", body=_in_brotli())(scene),
        ends="too-large",
        says="decoded",
        mb=80,
    ),
    Villain(
        name="zstd bomb",
        act=lambda scene: page(*_CODED, "Content-Encoding: zstd", body=_in_zstd())(scene),
        ends="too-large",
        says="decoded",
        mb=80,
    ),
    Villain(
        name="zstd with a window of 128 MB",
        act=page(_HTML, "Content-Encoding: zstd", body=_wide_window()),
        ends="body",
    ),
    Villain(
        name="gzip in gzip, 50 times",
        act=lambda scene: page(_HTML, f"Content-Encoding: {'gzip, ' * 49}gzip", body=_in_itself(50))(scene),
        ends="body",
        says="content codings",
    ),
    Villain(name="gzip that is none", act=page(_HTML, "Content-Encoding: gzip", body=_GOOD), ends="body"),
    Villain(
        name="one giant header",
        act=says(b"HTTP/1.1 200 OK\r\nX-Giant: ", _forever(b"a")),
        ends="too-large",
        says="headers",
    ),
    Villain(
        name="headers without end",
        act=says(b"HTTP/1.1 200 OK\r\n", _forever(b"X-More: and more\r\n")),
        ends="too-large",
        says="headers",
    ),
    Villain(
        name="interim answers without end",
        act=says(_forever(b"HTTP/1.1 100 Continue\r\n\r\n")),
        ends="too-large",
        says="headers",
    ),
    Villain(
        name="trailers without end",
        act=says(_CHUNKED, b"5\r\nwords\r\n0\r\n", _forever(b"X-More: and more\r\n")),
        ends="too-large",
        says="headers",
    ),
    Villain(name="line break in a Location", act=redirects("/a\rX-Injected: 1"), ends="protocol"),
    Villain(name="NUL in a Location", act=redirects("/a\0b"), ends="protocol"),
    Villain(
        name="NUL in a cookie",
        act=page(_HTML, "Set-Cookie: a=b\0c", body=_GOOD),
        ends="protocol",
    ),
    Villain(name="line break in a cookie", act=page(_HTML, "Set-Cookie: a=b\rX: 1", body=_GOOD), ends="protocol"),
    Villain(
        name="line break in an ETag",
        act=page(_HTML, 'ETag: "a\rX-Injected: 1"', body=_GOOD),
        ends="protocol",
    ),
    Villain(name="Content-Length too long", act=says(head(_HTML, "Content-Length: 5000"), _GOOD), ends="body"),
    Villain(name="Content-Length too short", act=says(head(_HTML, "Content-Length: 60"), _GOOD), ends="new"),
    Villain(name="Content-Length below zero", act=says(head(_HTML, "Content-Length: -5"), _GOOD), ends="protocol"),
    Villain(
        name="two Content-Lengths",
        act=says(head(_HTML, "Content-Length: 5", "Content-Length: 50"), _GOOD),
        ends="protocol",
    ),
    Villain(name="reset in mid-body", act=_reset, ends="connection"),
    Villain(name="chunk that is no number", act=says(_CHUNKED, b"zzzz\r\nwords\r\n"), ends="body"),
    Villain(name="chunk beyond all numbers", act=says(_CHUNKED, b"f" * 17, b"\r\nwords\r\n"), ends="body"),
    Villain(
        name="chunk extension without end", act=says(_CHUNKED, b"5;", _forever(b"a")), ends="timed-out", seconds=12
    ),
    Villain(name="last chunk missing", act=says(_CHUNKED, b"5\r\nwords\r\n"), ends="body"),
    Villain(name="an answer of another protocol", act=says(b"SSH-2.0-OpenSSH_9.2p1\r\n"), ends="protocol"),
    Villain(name="redirect to itself", act=redirects("/"), ends="redirects"),
    Villain(name="redirects ever further", act=_further, ends="redirects"),
    Villain(name="redirect to file:", act=redirects("file:///etc/hostname"), ends="redirects"),
    Villain(name="redirect to ftp:", act=redirects("ftp://127.0.0.1/x"), ends="redirects"),
    Villain(name="redirect to javascript:", act=redirects("javascript:alert(1)"), ends="redirects"),
    Villain(name="redirect to data:", act=redirects("data:text/html,hello"), ends="redirects"),
    Villain(name="TLS of garbage", act=_silent, ends="tls", certificate="garbage"),
    Villain(name="certificate that expired", act=_silent, ends="tls", says="expired", certificate="expired"),
    Villain(name="certificate signed by itself", act=_silent, ends="tls", says="itself", certificate="self-signed"),
    Villain(name="certificate of another name", act=_silent, ends="tls", says="another name", certificate="other-name"),
    Villain(
        name="wrong charset",
        act=page("Content-Type: text/html; charset=utf-8", body="<p>Привет, мир".encode("cp1251")),
        ends="new",
    ),
    Villain(
        name="charset that is none",
        act=page("Content-Type: text/html; charset=base64", body=_GOOD),
        ends="new",
    ),
    Villain(name="binary as text", act=edited(_HTML, body=_binary), ends="body", says="text"),
    Villain(name="100,000 nested tags", act=edited(body=_nested), ends="hostile", says="nested"),
    Villain(name="a line of 20 MB", act=edited(body=lambda n: _text(_LONG, n)), ends="new", mb=300),
    Villain(
        name="a line of 20 MB, edited",
        act=edited(body=lambda n: _text(_LONG, n)),
        ends="changed|hostile",
        checks=2,
        mb=1_200,
        seconds=30,
    ),
    Villain(name="entities in entities", act=page("Content-Type: application/xml", body=_laughs()), ends="new"),
    Villain(
        name="JSON of 100,000 levels",
        act=page("Content-Type: application/json", body=b"[" * 100_000),
        ends="new",
    ),
    Villain(
        name="a million open tags",
        act=page(_HTML, body=b"<b><a href=x>" * 1_000_000),
        ends="hostile",
        says="nested",
        mb=150,
    ),
    Villain(
        name="tags closed by others",
        act=page(_HTML, body=b"<div></b>" * 200_000),
        ends="hostile",
        says="longer than",
    ),
    Villain(
        name="a million attributes",
        act=page(_HTML, body=b"<p " + b"a b c d " * 250_000 + b">words"),
        ends="new",
        mb=400,
        seconds=60,
    ),
)
