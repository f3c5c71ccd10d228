"""Feeds, entry by entry: RSS, Atom and RDF.

Of the feed itself only the title is told: when it was built, by what, and how long it may be kept change by themselves.
Entries may come in any order; each is told by its guid, id or link, and by what it says where several share one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser

from driftline.detection.formats.rendering import Rendering, folded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lxml import etree

_ROOTS = ("rss", "RDF", "feed")
_ENTRIES = ("item", "entry")
_IDENTITIES = ("guid", "id", "link")
_DATES = ("updated", "pubDate", "published", "date", "modified", "issued")
_SUMMARIES = ("description", "summary", "encoded", "content")
_UNSEEN = ["script", "style", "template", "iframe", "noscript"]


def is_feed(root: etree._Element) -> bool:
    """Whether the document is a feed; its names are without prefixes."""
    return root.tag in _ROOTS and (root.tag == "feed" or root.find("channel") is not None)


def render(root: etree._Element) -> Rendering:
    """The title of the feed, then title, link, date, summaries and attached file of every entry, a line each."""
    channel = root if root.tag == "feed" else root.find("channel")
    title = "" if channel is None else _reduced(channel, "title")
    # the same entry may be listed twice
    entries = list(dict.fromkeys(map(_entry, root.iter(*_ENTRIES))))
    return Rendering(
        lines=[title, *(line for _, lines in entries for line in lines)],
        compared=[title, *(line for _, lines in sorted(entries) for line in lines)],
        title=title,
    )


def _entry(entry: etree._Element) -> tuple[str, tuple[str, ...]]:
    """What an entry is known by, and its lines."""
    said = (_reduced(entry, "title"), _link(entry), _plain(entry, _DATES), *_summaries(entry), _attached(entry))
    lines = tuple(filter(None, said))
    return _plain(entry, _IDENTITIES) or _link(entry) or "\n".join(lines), lines


def _summaries(entry: etree._Element) -> list[str]:
    """All that an entry says, without what is only the beginning or a part of the rest."""
    found = list(dict.fromkeys(_reduced(entry, name) for name in _SUMMARIES))
    return [text for at, text in enumerate(found) if not any(text in other for other in found[:at] + found[at + 1 :])]


def _attached(entry: etree._Element) -> str:
    """The address of an attached file, without what may change at every fetch."""
    attached = [one.get("url") for one in entry.iterchildren("enclosure")]
    attached += [one.get("href") for one in entry.iterchildren("link") if one.get("rel") == "enclosure"]
    return folded(next(filter(None, attached), "").partition("?")[0])


def _plain(entry: etree._Element, names: Iterable[str]) -> str:
    """The text of the first of these that says something."""
    for name in names:
        for found in entry.iterchildren(name):
            text = folded("".join(found.itertext(with_tail=False)))
            if text:
                return text
    return ""


def _reduced(entry: etree._Element, name: str) -> str:
    """The text of the element of that name, with the tags in it gone: titles and summaries are often HTML."""
    text = _plain(entry, (name,))
    if "<" not in text and "&" not in text:
        return text
    tree = LexborHTMLParser(text)
    tree.strip_tags(_UNSEEN)
    return "" if tree.body is None else folded(tree.body.text(separator=" ", strip=True))


def _link(entry: etree._Element) -> str:
    links = list(entry.iterchildren("link"))
    for link in links:
        if link.text and link.text.strip():
            return folded(link.text)
    found = [link for link in links if link.get("rel", "alternate") == "alternate"]
    return folded(str(found[0].get("href") or "")) if found else ""
