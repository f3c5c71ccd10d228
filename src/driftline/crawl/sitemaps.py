"""Sitemaps, plain, packed or in an index, and feeds: lists of pages that a site makes for crawlers."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from lxml import etree

from driftline.detection.extract.charset import decode_text
from driftline.http.codings import decode_body

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 50_000  # addresses of one sitemap: the protocol's own limit; or entries of a feed
_LONGEST = 4_096
_GZIP = b"\x1f\x8b"
_WHOLE = ("http://", "https://")


class Listed(NamedTuple):
    """An address as a list has it, and when it says that the page changed, as it is written there."""

    url: str
    lastmod: str


class Lists(NamedTuple):
    """What a document lists: pages, and other sitemaps."""

    pages: list[Listed]
    sitemaps: list[Listed]


def read_lists(body: bytes, content_type: str, limit: int) -> Lists | None:
    """Return what a sitemap, an index of sitemaps or a feed lists; None if the body is none of these.

    The body may be packed once more than its headers say, as files that end in .gz are.
    """
    if body.startswith(_GZIP):
        body = decode_body(body, ["gzip"], limit)
    start = body[:512].lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start.startswith(b"<"):
        return _plain_list(body, content_type)
    if b"<!ENTITY" in body or not any(
        name in body[:4_096] for name in (b"urlset", b"sitemapindex", b"rss", b"feed", b"RDF")
    ):
        return None
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=True, remove_comments=True
    )
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    if root is None:
        return None
    name = _name(root)
    if name == "urlset":
        return Lists(list(_entries(root, "url")), [])
    if name == "sitemapindex":
        return Lists([], list(_entries(root, "sitemap")))
    if name in ("rss", "feed", "RDF"):
        return Lists(list(_items(root)), [])
    return None


def sitemaps_of(robots: str) -> list[str]:
    """Return the sitemaps that a robots.txt names, for any crawler."""
    named = [line.partition("#")[0].partition(":") for line in robots.splitlines()]
    return [value.strip() for field, colon, value in named if colon and field.strip().lower() == "sitemap"]


def _plain_list(body: bytes, content_type: str) -> Lists | None:
    """Return the addresses of a sitemap that is a text with an address on every line."""
    lines = [line.strip() for line in decode_text(body, content_type)[0].splitlines() if line.strip()][:_MOST]
    if not lines or not all(line.startswith(_WHOLE) for line in lines):
        return None
    return Lists([Listed(line, "") for line in lines], [])


def _entries(root: etree._Element, wanted: str) -> Iterator[Listed]:
    count = 0
    for entry in root:
        if _name(entry) == wanted and count < _MOST:
            fields = {_name(child): (child.text or "").strip() for child in entry}
            # one that is not whole is nothing that the protocol knows, and most often what is left of a broken file
            if fields.get("loc", "").lower().startswith(_WHOLE) and len(fields["loc"]) <= _LONGEST:
                count += 1
                yield Listed(fields["loc"], fields.get("lastmod", "")[:40])


def _items(root: etree._Element) -> Iterator[Listed]:
    """Return the page of each entry of a feed, without its date, which is that of the entry."""
    for entry in islice((one for one in root.iter() if _name(one) in ("item", "entry")), _MOST):
        for child in entry:
            if _name(child) != "link":
                continue
            target = child.get("href") if child.get("rel", "alternate") == "alternate" else None
            target = target or (child.text or "").strip()
            if 0 < len(target) <= _LONGEST:
                yield Listed(target, "")
                break


def _name(node: etree._Element) -> str:
    tag = node.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""
