"""From the bytes on the wire to text: content codings undone within a size limit, and the charset found."""

from __future__ import annotations

import codecs
import re
import sys
import zlib
from typing import TYPE_CHECKING, cast

import brotli
from isal import isal_zlib
from isal.igzip_lib import IsalError

from driftline.detection.charsets import find_charset
from driftline.model import Failure, FailureKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_CHARSET_IN_HEADER = re.compile(r"charset\s*=\s*[\"']?([^\s\"';,]+)", re.IGNORECASE)
_CHARSET_IN_MARKUP = re.compile(
    rb"<(?:meta|\?xml)[^>]*?(?:charset|encoding)\s*=\s*[\"']?\s*([^\s\"'/>;]+)", re.IGNORECASE
)
_UTF_8 = ("utf-8", "utf-8")
_MARKUP_SEARCHED = 2_048
_GUESSED_FROM = 65_536
# the stubs of isal call its exception class an instance
_ISAL = cast("type[Exception]", IsalError)
_BROKEN: tuple[type[Exception], ...] = (_ISAL, zlib.error, brotli.error, zstd.ZstdError, EOFError)
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_ALL_BOMS = tuple(mark for mark, _ in _BOMS)
_PIECE = 16_384  # bytes
_MOST_CODINGS = 4  # one within the other: nobody has a use for more, and each costs a body of the largest size
_ZSTD_WINDOW: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 23}  # 8 MB, as RFC 9659 says
_LOOKED_AT = 4_096  # letters
_SOME_CONTROLS, _FEW_CONTROLS = 30, 0.02  # and of the letters: text has none, and what is no text one in ten
_SAID_TO_BE_TEXT = ("text/", "application/xhtml")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


class UnreadableBody(Exception):
    """A body that cannot be decoded, or not within the limit; it becomes the failure of its page."""

    def __init__(self, kind: FailureKind, sentence: str) -> None:
        super().__init__(sentence)
        self.failure = Failure(kind=kind, sentence=sentence)


def decode_body(body: bytes, codings: Sequence[str], limit: int, *, cut: bool = False) -> bytes:
    """The body with its content codings undone, last applied first; UnreadableBody if broken or over `limit` bytes.

    With `cut`, of a larger one only the beginning is decoded.
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


def decode_text(body: bytes, content_type: str) -> tuple[str, str]:
    """The body as text with the name of its charset: by byte order mark, header, markup, then by the bytes.

    UnreadableBody if it is said to be text and is not.
    """
    text, charset = _decoded(body, content_type)
    start = text[:_LOOKED_AT]
    if not start.isascii() and content_type.lower().startswith(_SAID_TO_BE_TEXT):
        controls = len(_CONTROLS.findall(start))
        if controls > _SOME_CONTROLS and controls > _FEW_CONTROLS * len(start):
            raise UnreadableBody(FailureKind.BODY, "The body is not text, though the server says that it is.")
    return text, charset


def _decoded(body: bytes, content_type: str) -> tuple[str, str]:
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body.decode(name, "replace"), name.removesuffix("-sig")
    charset = _declared(body, content_type)
    for name, codec in filter(None, (charset, _UTF_8)):
        try:
            return body.decode(codec), name
        except UnicodeDecodeError:
            continue  # the declaration is wrong, or a few bytes are
    if charset is None or (charset == _UTF_8 and _is_mostly_wrong(body)):
        from charset_normalizer import from_bytes  # few pages leave their charset open: no worker loads it for others

        guess = from_bytes(body[:_GUESSED_FROM]).best()
        charset = _UTF_8 if guess is None else (guess.encoding, guess.encoding)
    name, codec = charset
    return body.decode(codec, "replace"), name


def _is_mostly_wrong(body: bytes) -> bool:
    """Whether more of what is not ASCII is no UTF-8 than is: words would be told apart by their lengths only."""
    text = body[:_GUESSED_FROM].decode("utf-8", "replace")
    wrong = text.count("\ufffd")
    return 2 * wrong > sum(not letter.isascii() for letter in text)


def is_utf_8(body: bytes, content_type: str, unwanted: str) -> bool:
    """Whether the body as it is is what `decode_text` says in UTF-8, and has none of the unwanted characters.

    Where it is declared, a wrong byte stands for itself only, and it is enough to see at its start that it is text. It
    is decoded in pieces that stay in the cache of the processor, in half the time that decoding the whole takes.
    """
    declared = _declared(body, content_type)
    if body.startswith(_ALL_BOMS) or declared not in (None, _UTF_8):
        return False
    doubtful = declared is None or any(first in body for first in {character.encode()[:1] for character in unwanted})
    whole, at, end = memoryview(body), 0, len(body) if doubtful else min(len(body), _PIECE)
    try:
        while at < end:
            piece, read = codecs.utf_8_decode(whole[at : at + _PIECE], "strict", at + _PIECE >= len(body))
            if not piece.isascii() and any(character in piece for character in unwanted):
                return False
            at += read
    except UnicodeDecodeError:
        return False
    return True


def _declared(body: bytes, content_type: str) -> tuple[str, str] | None:
    """The name and the codec of the charset that the header or the markup names."""
    in_header = _CHARSET_IN_HEADER.search(content_type)
    in_markup = None if in_header else _CHARSET_IN_MARKUP.search(body, 0, _MARKUP_SEARCHED)
    declared = in_header.group(1) if in_header else in_markup.group(1).decode("latin-1") if in_markup else ""
    charset = find_charset(declared)
    if in_markup and charset and charset[0].startswith("utf-16"):
        return _UTF_8  # markup that can be read as ASCII is not UTF-16, whatever it says
    return charset


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
            break  # bytes after the last member are padding, as every browser takes them
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _inflate(body: bytes, limit: int) -> bytes:
    # servers disagree whether 'deflate' has a zlib header: RFC 9110 says so, some send raw deflate
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
