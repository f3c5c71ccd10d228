"""Warnings about pages: what was found in them, bad certificates, and hosts that look like another watched host.

Browsers show internationalised names in their own script, so that `раураl.com`, with Cyrillic letters, looks like the
Latin one. Two names are compared by their skeletons: each letter is replaced by the Latin one that it looks like.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ada_url import idna_to_unicode

from driftline.errors import FailureKind
from driftline.model.page import PageWarning, WarningKind
from driftline.store.safety_records import SafetyRecords
from driftline.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from driftline.model.page import Page
    from driftline.store.engine import Store


_PUNYCODE = "xn--"
_CYRILLIC = dict(zip("авеёіїјкмнорстухѕһԁԛԝӏьгпѵбзѡԍ", "abeeiijkmhopctyxshdqwlbrnv63wg", strict=True))
_GREEK = dict(zip("αβγεζηικνορστυχωϲϳ", "abyezniKvopotuxwcj".lower(), strict=True))
_LATIN = dict(zip("ıɑɡłøđħŀɩʋɪⅼƅꞵɴʏʀɢʜʟʙßẞ", "iagloDhlivilbbnyrghlbbb".lower(), strict=True))
_DIGITS = {"0": "o", "1": "l"}
_TABLE = str.maketrans(_CYRILLIC | _GREEK | _LATIN | _DIGITS)


def skeleton(host: str) -> str:
    """Return the Latin letters that a host looks like."""
    return shown(host).translate(_TABLE).removeprefix("www.")


def shown(host: str) -> str:
    """Return a host as browsers show it."""
    return idna_to_unicode(host) if _PUNYCODE in host else host


def look_alikes(hosts: Iterable[str]) -> dict[str, str]:
    """Return those of these hosts that look like another one in ASCII letters, each with that other one."""
    known = set(hosts)
    suspects = [host for host in known if _PUNYCODE in host]
    if not suspects:
        return {}
    plain = {skeleton(host): host for host in sorted(known, reverse=True) if _PUNYCODE not in host}
    return {host: plain[look] for host in suspects if (look := skeleton(host)) in plain}


def warnings_of(
    store: Store, listed: Sequence[Page], hosts: Callable[[], set[str]]
) -> dict[int, list[PageWarning]]:  # fmt: skip
    """Return the warnings about these pages, by page id: those stored since the current version, and those by URL.

    `hosts` returns the hosts of all watched pages.
    """
    found: dict[int, list[PageWarning]] = {}
    stored = SafetyRecords(store).current_warnings(page.id for page in listed)
    for page, warned in [*stored, *_by_certificate(listed), *_by_name(listed, hosts)]:
        found.setdefault(page, []).append(warned)
    return found


def _by_certificate(listed: Sequence[Page]) -> list[tuple[int, PageWarning]]:
    return [
        (page.id, PageWarning(WarningKind.CERTIFICATE, page.failure.sentence))
        for page in listed
        if page.failure is not None and page.failure.kind is FailureKind.CERTIFICATE
    ]


def _by_name(listed: Sequence[Page], hosts: Callable[[], set[str]]) -> list[tuple[int, PageWarning]]:
    """Return warnings for pages of hosts that look like another watched host."""
    suspects = [(page, host_of(page.url)) for page in listed if "xn--" in page.url]
    if not suspects:
        return []
    alike = look_alikes(hosts() | {host for _, host in suspects})
    return [
        (page.id, PageWarning(WarningKind.LOOK_ALIKE, f"The host {shown(host)} ({host}) looks like {alike[host]}."))
        for page, host in suspects
        if host in alike
    ]
