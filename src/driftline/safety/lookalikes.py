"""Names that pass for others: a host with letters of another script that look like those of a host that is watched.

Browsers show such names as they are meant to be read, so that `раураl.com`, with Cyrillic letters, cannot be told from
the one that it stands for. Two names are compared by their skeletons: each letter replaced by the Latin one that it
looks like.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ada_url import idna_to_unicode

if TYPE_CHECKING:
    from collections.abc import Iterable

_PUNYCODE = "xn--"
_CYRILLIC = dict(zip("авеёіїјкмнорстухѕһԁԛԝӏьгпѵбзѡԍ", "abeeiijkmhopctyxshdqwlbrnv63wg", strict=True))
_GREEK = dict(zip("αβγεζηικνορστυχωϲϳ", "abyezniKvopotuxwcj".lower(), strict=True))
_LATIN = dict(zip("ıɑɡłøđħŀɩʋɪⅼƅꞵɴʏʀɢʜʟʙßẞ", "iagloDhlivilbbnyrghlbbb".lower(), strict=True))
_DIGITS = {"0": "o", "1": "l"}
_TABLE = str.maketrans(_CYRILLIC | _GREEK | _LATIN | _DIGITS)


def skeleton(host: str) -> str:
    """What a host looks like, in Latin letters."""
    return shown(host).translate(_TABLE).removeprefix("www.")


def shown(host: str) -> str:
    """A host as browsers show it."""
    return idna_to_unicode(host) if _PUNYCODE in host else host


def look_alikes(hosts: Iterable[str]) -> dict[str, str]:
    """Those of these hosts that look like another of them, which is written in plain letters, with that other one."""
    known = set(hosts)
    suspects = [host for host in known if _PUNYCODE in host]
    if not suspects:
        return {}
    plain = {skeleton(host): host for host in sorted(known, reverse=True) if _PUNYCODE not in host}
    return {host: plain[look] for host in suspects if (look := skeleton(host)) in plain}
