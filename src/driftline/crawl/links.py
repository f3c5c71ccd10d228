"""The link extractor: what an HTML page links to, and what its meta tags say to crawlers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ada_url import join_url
from selectolax.lexbor import LexborHTMLParser

from driftline.errors import BadURL
from driftline.urls.canonical import canonical
from driftline.urls.equivalence import as_user_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selectolax.lexbor import LexborNode

    from driftline.urls.tracking import Tracking

_MOST = 10_000  # links of one page
_LONGEST_ANCHOR = 200  # letters
_LINKS = "a[href], area[href], frame[src], iframe[src], link[rel][href]"
_TO_PAGES = {"next", "prev", "previous", "start", "contents", "index", "up"}
_FEEDS = ("application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json")
_REFRESH = re.compile(r"^\s*[\d.]+\s*[;,]\s*(?:url\s*=\s*)?[\"']?([^\"'>\s]+)", re.IGNORECASE)


class Found(NamedTuple):
    """A link: where to, in canonical form, and what it is called."""

    url: str
    anchor: str


class Extracted(NamedTuple):
    """What a page says to crawlers; `held_back` counts the links that are marked as not to be followed."""

    links: list[Found]
    feeds: list[str]
    canonical: str
    indexed: bool
    held_back: int


def extract(
    markup: str | bytes, url: str, tracking: Tracking, *, robots: str = "", obeys: bool = True, anchors: bool = True
) -> Extracted:
    """Return the links of a page that was found at `url`; `robots` is its header X-Robots-Tag.

    Links are resolved against the base that the page names. With `obeys`, `nofollow` of the page or of single links is
    respected: such links are only counted.
    """
    tree = LexborHTMLParser(markup)
    base_node = tree.css_first("base[href]")
    base = url if base_node is None else _joined(url, base_node.attributes.get("href") or "") or url
    rules = "" if not obeys else f"{robots},{','.join(_meta(tree, 'robots'))}".lower()
    follow = "nofollow" not in rules and not re.search(r"\bnone\b", rules)
    links: dict[str, str] = {}
    feeds: dict[str, None] = {}
    own, held_back = "", 0
    for node in tree.css(_LINKS)[:_MOST]:
        attributes = node.attributes
        rel = (attributes.get("rel") or "").lower().split()
        address = _address(base, attributes.get("href") or attributes.get("src") or "", tracking, url)
        if not address:
            continue
        if node.tag == "link":
            if "canonical" in rel:
                own = own or address
            elif "alternate" in rel and (attributes.get("type") or "").partition(";")[0].strip().lower() in _FEEDS:
                feeds[address] = None
            elif ("alternate" in rel and "hreflang" in attributes) or _TO_PAGES.intersection(rel):
                links.setdefault(address, "")
        elif not follow or (obeys and "nofollow" in rel):
            held_back += 1
        else:
            links[address] = links.get(address, "") or (_anchor(node) if anchors else "")
    for target in _refreshes(tree):
        if address := _address(base, target, tracking, url):
            links.setdefault(address, "")
    if not follow:
        links = {}
    indexed = "noindex" not in rules and not re.search(r"\bnone\b", rules)
    return Extracted([Found(*one) for one in links.items()], [*feeds], own, indexed, held_back)


def _address(base: str, target: str, tracking: Tracking, page: str) -> str:
    """Return a target in canonical form; nothing if it is not on the web, or within the page."""
    target = target.strip()
    if not target or target.startswith("#") or len(target) > 4_096:
        return ""
    address = _joined(base, target)
    if not address.startswith(("http://", "https://")):
        return ""
    try:
        # a space is written as %20 by the standard; what is left over is for people who type
        return as_user_of(page, canonical(address, tracking))
    except BadURL:
        return ""


def _joined(base: str, target: str) -> str:
    try:
        return join_url(base, target)
    except ValueError:
        return ""


def _anchor(node: LexborNode) -> str:
    text = " ".join((node.text() or "").split())[:_LONGEST_ANCHOR]
    return text or " ".join((node.attributes.get("title") or "").split())[:_LONGEST_ANCHOR]


def _meta(tree: LexborHTMLParser, name: str) -> Iterator[str]:
    for node in tree.css("meta[name][content]"):
        attributes = node.attributes
        if (attributes.get("name") or "").strip().lower() in (name, "driftline"):
            yield attributes.get("content") or ""


def _refreshes(tree: LexborHTMLParser) -> Iterator[str]:
    for node in tree.css("meta[http-equiv][content]"):
        attributes = node.attributes
        if (attributes.get("http-equiv") or "").strip().lower() == "refresh":
            found = _REFRESH.match(attributes.get("content") or "")
            if found:
                yield found[1]
