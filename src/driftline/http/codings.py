"""Content codings (gzip, deflate, br, zstd), undone within a size limit."""

from __future__ import annotations

import sys
import zlib
from typing import TYPE_CHECKING, cast

import brotli
from isal import isal_zlib
from isal.igzip_lib import IsalError

from driftline.errors import FailureKind, UnreadableBody

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# the stubs of isal call its exception class an instance
_ISAL = cast("type[Exception]", IsalError)
_BROKEN: tuple[type[Exception], ...] = (_ISAL, zlib.error, brotli.error, zstd.ZstdError, EOFError)
_MOST_CODINGS = 4  # nested codings: no server needs more, and each may cost a body of the largest size
_ZSTD_WINDOW: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 23}  # 8 MB, the limit of RFC 9659


def decode_body(body: bytes, codings: Sequence[str], limit: int, *, cut: bool = False) -> bytes:
    """Return the body with its content codings undone; raises UnreadableBody if broken or over `limit` bytes.

    With `cut`, only the beginning of a larger one is decoded, and nothing is raised for its size.
    """
    if len(codings) > _MOST_CODINGS:
        raise UnreadableBody(
            FailureKind.BODY, f"The body is in {len(codings):,} content codings, one within the other."
        )
    for coding in reversed(codings):
        decoder = _DECODERS.get(coding)
        if decoder is None:
            raise UnreadableBody(FailureKind.BODY, f"The body is in an unknown content coding '{coding[:40]}'.")
        if not body:
            return b""
        try:
            body = decoder(body, limit)
        except _BROKEN:
            raise UnreadableBody(FailureKind.BODY, f"The body is broken: it is not valid {coding}.") from None
        if len(body) > limit and cut:
            body = body[:limit]
        if len(body) > limit:
            raise UnreadableBody(FailureKind.TOO_LARGE, f"The body is larger than {limit:,} bytes when decoded.")
    return body


def _gunzip(body: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    room = limit + 1
    while body and room > 0:
        decoder = isal_zlib.decompressobj(wbits=31)
        part = decoder.decompress(body, room)
        parts.append(part)
        room -= len(part)
        if not decoder.eof and room > 0:
            raise EOFError
        body = decoder.unused_data
        if not body.startswith(b"\x1f\x8b"):
            break  # bytes after the last member are padding, as in every browser
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _inflate(body: bytes, limit: int) -> bytes:
    # RFC 9110 defines 'deflate' with a zlib header, but some servers send it without
    wrapped = body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0
    decoder = zlib.decompressobj(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
    data = decoder.decompress(body, limit + 1)
    if not decoder.eof and len(data) <= limit:
        raise EOFError
    return data


def _unbrotli(body: bytes, limit: int) -> bytes:
    decoder = brotli.Decompressor()
    parts: list[bytes] = []
    room = limit + 1
    chunk = body
    while room > 0:
        part = decoder.process(chunk, output_buffer_limit=room)
        parts.append(part)
        room -= len(part)
        chunk = b""
        if decoder.is_finished():
            break
        if not part and decoder.can_accept_more_data():
            raise EOFError
    return b"".join(parts)


def _unzstd(body: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    room = limit + 1
    while body and room > 0:
        decoder = zstd.ZstdDecompressor(options=_ZSTD_WINDOW)
        part = decoder.decompress(body, room)
        parts.append(part)
        room -= len(part)
        if not decoder.eof and room > 0:
            raise EOFError
        body = decoder.unused_data if decoder.eof else b""
    return b"".join(parts)


_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _inflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
