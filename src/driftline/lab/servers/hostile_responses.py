"""Responses of servers that are malicious or badly broken, as bytes."""

from __future__ import annotations

import socket
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
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
_MANY = 1 << 16  # bytes that are sent at once where there is no end
_ZEROS = bytes(1 << 20)
HTML = "Content-Type: text/html; charset=utf-8"


class Scene(Protocol):
    """One request to a server: how many there were before, and the stream for the answer."""

    earlier_requests: int
    stream: socket.socket

    def wait(self, seconds: float) -> None:
        """Wait this long. Raise OSError when the server is to end."""


Act: TypeAlias = Callable[[Scene], None]


def head(*lines: str, status: str = "200 OK") -> bytes:
    """Return the head of a response with these header lines."""
    return "\r\n".join((f"HTTP/1.1 {status}", *lines, "", "")).encode("latin-1")


def sends(*parts: bytes | Iterable[bytes]) -> Act:
    """Return an act that sends these parts one after the other; a part may be endless."""

    def act(scene: Scene) -> None:
        for part in parts:
            for some in (part,) if isinstance(part, bytes) else part:
                scene.stream.sendall(some)

    return act


def page(*lines: str, body: bytes) -> Act:
    """Return an act that sends a whole response with this body."""
    return sends(head(*lines, f"Content-Length: {len(body)}"), body)


NOT_THERE: Act = sends(head("Content-Length: 0", status="404 Not Found"))


def edited(*lines: str, body: Callable[[int], bytes]) -> Act:
    """Return an act that sends a different body at every request."""

    def act(scene: Scene) -> None:
        page(HTML if not lines else lines[0], *lines[1:], body=body(scene.earlier_requests))(scene)

    return act


def redirects(to: str) -> Act:
    """Return an act that redirects the client."""
    return sends(head(f"Location: {to}", "Content-Length: 0", "Connection: close", status="302 Found"))


def drips(data: bytes) -> Act:
    """Return an act that sends these bytes one at a time, and the last of them for ever."""

    def act(scene: Scene) -> None:
        for byte in (*data, *repeat(data[-1], 1_000_000)):
            scene.stream.sendall(bytes([byte]))
            scene.wait(_PAUSE)

    return act


def stays_silent(scene: Scene) -> None:
    scene.wait(3_600)


def breaks_off(scene: Scene) -> None:
    """Reset the connection in the middle, so that the last bytes may never arrive."""
    scene.stream.sendall(head(HTML, "Content-Length: 100000") + b"<p>half of it")
    scene.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    scene.stream.close()


def redirects_further(scene: Scene) -> None:
    redirects(f"/{scene.earlier_requests + 1}")(scene)


def forever(data: bytes) -> Iterator[bytes]:
    """Yield these bytes again and again, some thousand at a time."""
    return repeat(data * max(1, _MANY // len(data)))


def deflated(bits: int) -> Iterator[bytes]:
    """Yield a gigabyte of zeros in a megabyte of deflate: blocks separated by full flushes can be repeated."""
    packer = zlib.compressobj(wbits=bits)
    yield packer.compress(_ZEROS) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(_ZEROS) + packer.flush(zlib.Z_FULL_FLUSH)
    yield from repeat(block, 1_000)


@cache
def in_brotli() -> bytes:
    packer = brotli.Compressor(quality=5)
    parts: list[bytes] = [packer.process(_ZEROS) for _ in range(256)]
    return b"".join([*parts, packer.finish()])


@cache
def in_zstd() -> bytes:
    return zstd.compress(_ZEROS * 64) * 16


@cache
def in_itself(times: int) -> bytes:
    body = b"<p>words at last</p>"
    for _ in range(times):
        packer = zlib.compressobj(wbits=31)
        body = packer.compress(body) + packer.flush()
    return body


def wide_window() -> bytes:
    """Return a zstd frame that makes its reader allocate 128 MB before any content."""
    return b"\x28\xb5\x2f\xfd\x00\x88" + b"\x01\x00\x00"


def one_line(size: int, number: int) -> bytes:
    """Return a page of one line of about `size` bytes, a different one for each number."""
    words = b"one long line that never ends "
    middle = b"and says %d now " % number
    times = (size - 200) // len(words) // 2
    return b"<!doctype html><title>Line</title><p>" + words * times + middle + words * times + b"</p>"


def nested(number: int) -> bytes:
    return b"<div>" * 100_000 + b"the innermost words, of state %d" % number + b"</div>" * 100_000


def binary(number: int) -> bytes:
    """Return random bytes, as of a picture, the same for the same number."""
    state, parts = number + 1, []
    for _ in range(4_096):
        state = state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407 & (1 << 64) - 1
        parts.append(state.to_bytes(8, "little"))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts) * 4


def laughs() -> bytes:
    """Return nine levels of XML entities, each ten times the one before: a billion words when expanded."""
    levels = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    return f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY l0 "laugh">{levels}]><r>&l9;</r>'.encode()
