"""Recognise dangerous content: programs in the place of a page, mixed content, hidden frames, obfuscated scripts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from driftline.model.page import WarningKind

if TYPE_CHECKING:
    from collections.abc import Iterator


_TYPES = frozenset((
    "application/x-msdownload", "application/x-msdos-program", "application/x-dosexec", "application/x-msi",
    "application/vnd.microsoft.portable-executable", "application/x-ms-installer", "application/x-executable",
    "application/x-elf", "application/x-pie-executable", "application/x-sharedlib", "application/x-mach-binary",
    "application/vnd.android.package-archive", "application/java-archive", "application/x-java-archive",
    "application/x-apple-diskimage", "application/hta", "application/x-debian-package", "application/x-rpm",
    "application/vnd.debian.binary-package", "application/x-redhat-package-manager", "application/x-ms-shortcut",
))  # fmt: skip
_ENDINGS = (
    ".exe", ".msi", ".msix", ".scr", ".com", ".bat", ".cmd", ".ps1", ".vbs", ".hta", ".lnk", ".dll", ".jar", ".apk",
    ".dmg", ".pkg", ".deb", ".rpm", ".appimage", ".xpi", ".crx",
)  # fmt: skip
_NAME = re.compile(r"filename\*?\s*=\s*(?:[\w-]+'[\w-]*')?\"?([^\";]+)", re.IGNORECASE)
_STARTS: tuple[tuple[bytes, str], ...] = (
    (b"\x7fELF", "Linux"),
    (b"\xcf\xfa\xed\xfe", "macOS"),
    (b"\xce\xfa\xed\xfe", "macOS"),
    (b"\xfe\xed\xfa\xcf", "macOS"),
    (b"\xfe\xed\xfa\xce", "macOS"),
    (b"dex\n03", "Android"),
)
_ALL_STARTS = (b"MZ", *(start for start, _ in _STARTS))
_WHERE = 0x3C  # offset in a Windows program at which the offset of its header stands


def why_executable(body: bytes, content_type: str, disposition: str) -> str | None:
    """Return a sentence that says why a decoded body is a program, None if it is not."""
    system = _system(body) if body.startswith(_ALL_STARTS) else None
    if system is not None:
        return f"The response is a program for {system}, not a page: it is not stored."
    kind = content_type.partition(";")[0].strip().lower()
    if kind in _TYPES:
        return f"The server sends a program ({kind}), not a page: it is not stored."
    if disposition:
        for name in _NAME.findall(disposition):
            if unquote(name).strip().lower().endswith(_ENDINGS):
                return f"The server sends a program to download ({name.strip()[:60]}), not a page: it is not stored."
    return None


def _system(body: bytes) -> str | None:
    """Return the operating system of a program; None for what only begins like one."""
    for start, system in _STARTS:
        if body.startswith(start):
            return system
    at = int.from_bytes(body[_WHERE : _WHERE + 4], "little")
    return "Windows" if body[at : at + 4] == b"PE\0\0" or (body.startswith(b"MZ") and b"\0" in body[2:64]) else None


_SHOWN = 80  # characters of an address
_FRAME_TAKES, _SCRIPT_TAKES = 40, 100  # bytes at least
_INSECURE = b'src="http://'
_TAG = re.compile(rb"<(script|iframe|frame|img|audio|video|source|embed|input|track)\b[^<>]*$", re.IGNORECASE)
_FRAME = re.compile(rb"<iframe\b[^>]{0,2000}>", re.IGNORECASE)
_SOURCE = re.compile(rb"\bsrc\s*=\s*[\"']?\s*((?:https?:)?//[^\s\"'>]+)", re.IGNORECASE)
_HIDDEN = re.compile(
    rb"\b(?:width|height)\s*=\s*[\"']?[01](?:px)?[\"'\s>/]|display\s*:\s*none|visibility\s*:\s*hidden"
    rb"|\b(?:width|height)\s*:\s*[01](?:px)?\s*[;\"']|(?:left|top)\s*:\s*-\d{3,}|opacity\s*:\s*0\s*[;\"']|\shidden[\s>=]",
    re.IGNORECASE,
)
_NOSCRIPT = 500  # bytes before a frame that are searched for an open <noscript>
_HOST = re.compile(rb"//([^/?#:\s]+)")
_NUMBERS = re.compile(rb"String\.fromCharCode\((?:\s*(?:0x[0-9a-fA-F]+|\d+)\s*,){40}")
_ESCAPES = re.compile(rb"(?:\\x[0-9a-fA-F]{2}){30}")
#: what obfuscated scripts contain
_WORDS = (
    (b"eval(function(p,a,c,k,e", "packed code that unpacks itself"),
    (b"eval(atob(", "code that is decoded and then run"),
    (b"document.write(unescape(", "markup that is decoded and then written"),
)
_IDENTIFIER = b"_0x"  # how obfuscators begin names
_MANY = 5  # of them in a sample
_SAMPLE, _APART = 256, 4_096  # bytes: how long a sample is, and how far apart they are
_STRIDE = 64  # bytes: in a text of escapes, which have four bytes each, every 64th is a backslash
_BACKSLASHES = b"\\" * 3


class Threat(NamedTuple):
    """What looks dangerous: its kind, a sentence, and bytes that show whether another version has it too."""

    kind: WarningKind
    sentence: str
    mark: bytes


def mixed_content(body: bytes, url: str) -> Threat | None:
    """Return a part of an HTTPS page that is loaded over HTTP, so that anyone on its way may replace it."""
    if not url.startswith("https://"):
        return None
    at = body.find(_INSECURE)
    while at >= 0:
        tag = _TAG.search(body, max(0, body.rfind(b"<", 0, at)), at)
        if tag is not None:
            address = _address(body, at + len(_INSECURE) - len(b"http://"))
            sentence = (
                f"The page is encrypted, but loads a part without encryption: {tag[1].decode().lower()} {address}."
            )
            return Threat(WarningKind.MIXED_CONTENT, sentence, address.encode("latin-1", "replace"))
        at = body.find(_INSECURE, at + 1)
    return None


def intruders(body: bytes, url: str, old_size: int) -> list[Threat]:
    """Return a hidden frame and an obfuscated script of a page that grew from this size. They may be old ones."""
    more = len(body) - old_size
    frame = _hidden_frame(body, url) if more >= _FRAME_TAKES else None
    code = _hidden_code(body) if more >= _SCRIPT_TAKES else None
    return [found for found in (frame, code) if found is not None]


def _hidden_frame(body: bytes, url: str) -> Threat | None:
    """Return an invisible frame that loads a page of another host."""
    own = _HOST.search(url.encode("latin-1", "replace"))
    for frame in _at_each(body, b"<iframe", _FRAME):
        source = _SOURCE.search(frame[0])
        if source is None or not _HIDDEN.search(frame[0]):
            continue
        host = _HOST.search(source[1])
        if host is None or (own is not None and host[1].lower() == own[1].lower()):
            continue
        before = body[max(0, frame.start() - _NOSCRIPT) : frame.start()].lower()
        if before.rfind(b"<noscript") > before.rfind(b"</noscript"):
            continue  # for browsers without scripts, as frames that count visits have it
        address = source[1][:_SHOWN].decode("latin-1")
        return Threat(WarningKind.HIDDEN_FRAME, f"A hidden frame appeared that loads {address}.", host[1])
    return None


def _hidden_code(body: bytes) -> Threat | None:
    """Return an obfuscated script."""
    for words, what in _WORDS:
        at = body.find(words)
        if at >= 0:
            return _code(what, body[at : at + 200])
    for found in _at_each(body, b"String.fromCharCode(", _NUMBERS):
        return _code("text spelled by numbers", found[0])
    escaped = _escaped(body)
    if escaped is not None:
        return _code("text spelled by escapes", escaped)
    if any(body.count(_IDENTIFIER, at, at + _SAMPLE) >= _MANY for at in range(0, len(body), _APART)):
        return _code("names that mean nothing", _IDENTIFIER)  # the names may be others at every fetch
    return None


def _at_each(body: bytes, words: bytes, pattern: re.Pattern[bytes]) -> Iterator[re.Match[bytes]]:
    """Yield the matches of the pattern where these words stand: many times faster than to search for the pattern."""
    at = body.find(words)
    while at >= 0:
        found = pattern.match(body, at)
        if found is not None:
            yield found
        at = body.find(words, at + len(words))


def _escaped(body: bytes) -> bytes | None:
    """Return a long text of escapes only: all samples of it are backslashes at one of four offsets."""
    for offset in range(4):
        samples = body[offset::_STRIDE]
        at = samples.find(_BACKSLASHES)
        while at >= 0:
            found = _ESCAPES.match(body, offset + at * _STRIDE)
            if found is not None:
                return found[0]
            at = samples.find(_BACKSLASHES, at + 1)
    return None


def _code(what: str, mark: bytes) -> Threat:
    return Threat(WarningKind.OBFUSCATED_SCRIPT, f"A script appeared that hides what it does: {what}.", mark)


def _address(body: bytes, start: int) -> str:
    end = re.compile(rb"[\s\"'<>]").search(body, start)
    return body[start : min(end.start() if end else len(body), start + _SHOWN)].decode("latin-1")
