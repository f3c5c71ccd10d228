"""Read the canonical address that a page declares from the body of a version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ada_url import join_url
from selectolax.lexbor import LexborHTMLParser

from driftline.detection.diff.markup import decoded, is_html
from driftline.detection.extract.annotations import CANONICAL, metadata_of

if TYPE_CHECKING:
    from driftline.model import Version


def declared_address(version: Version) -> str | None:
    """Return the absolute `rel=canonical` address of an HTML page; None if it has none, or none with http or https.

    It is only a claim of the page, which may name any address: nothing is identified by it.
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
