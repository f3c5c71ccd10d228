"""Programs that are sent in the place of a page: told by what the server says of them, or by their first bytes."""

from __future__ import annotations

import re
from urllib.parse import unquote

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
_WHERE = 0x3C  # of a Windows program: the place where the place of its header is written


def why_executable(body: bytes, content_type: str, disposition: str) -> str | None:
    """Why a decoded body is a program and no page, in a sentence; None if it is not."""
    system = _system(body) if body.startswith(_ALL_STARTS) else None
    if system is not None:
        return f"The answer is a program for {system}, not a page: it is not kept."
    kind = content_type.partition(";")[0].strip().lower()
    if kind in _TYPES:
        return f"The server sends a program ({kind}), not a page: it is not kept."
    if disposition:
        for name in _NAME.findall(disposition):
            if unquote(name).strip().lower().endswith(_ENDINGS):
                return f"The server sends a program to download ({name.strip()[:60]}), not a page: it is not kept."
    return None


def _system(body: bytes) -> str | None:
    """The system that a program runs on; None for what only begins like one."""
    for start, system in _STARTS:
        if body.startswith(start):
            return system
    at = int.from_bytes(body[_WHERE : _WHERE + 4], "little")
    return "Windows" if body[at : at + 4] == b"PE\0\0" or (body.startswith(b"MZ") and b"\0" in body[2:64]) else None
