"""The address that a page gives as its own: kept with each version, as a part of its body, and read from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ada_url import join_url
from selectolax.lexbor import LexborHTMLParser

from driftline.detection.diff.markup import decoded, is_html
from driftline.detection.extract.annotations import CANONICAL, metadata_of

if TYPE_CHECKING:
    from driftline.model import Version


def declared_address(version: Version) -> str | None:
    """Where an HTML page says that it stands (`rel=canonical`), in full; None if it does not, or not on the web.

    It is a claim and no more: the page is not called by it, for it may name whatever it likes.
    """
    if not is_html(version):
        return None
    tree = LexborHTMLParser(decoded(version))
    target = metadata_of(tree).get(CANONICAL)
    if not target:
        return None
    base = tree.css_first("base[href]")
    try:
        start = version.final_url if base is None else join_url(version.final_url, base.attributes.get("href") or "")
        address = join_url(start, target)
    except ValueError:
        return None
    return address if address.startswith(("http://", "https://")) else None
