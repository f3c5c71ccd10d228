"""Which region of a document an element says it is: by its tag, its role, or the names that its author gave it."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from driftline.model import Region

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_BY_TAG: dict[str, Region] = {
    "nav": Region.NAVIGATION, "menu": Region.NAVIGATION, "footer": Region.FOOTER, "header": Region.HEADER,
    "aside": Region.ASIDE, "dialog": Region.DIALOG, "form": Region.FORM, "select": Region.FORM, "main": Region.MAIN,
    "article": Region.MAIN, "h1": Region.BODY,
}  # fmt: skip
_BY_CLASS = {"p", "table"}
_BY_ID_TOO = {"div", "section", "ul"}
#: the tags of elements that may be a region without saying so by their role
CLAIMANTS = {*_BY_TAG, *_BY_CLASS, *_BY_ID_TOO}
_BY_ROLE: dict[str, Region] = {
    "navigation": Region.NAVIGATION, "menu": Region.NAVIGATION, "menubar": Region.NAVIGATION,
    "tablist": Region.NAVIGATION, "contentinfo": Region.FOOTER, "banner": Region.HEADER,
    "complementary": Region.ASIDE, "dialog": Region.DIALOG, "alertdialog": Region.DIALOG,
    "search": Region.FORM, "main": Region.MAIN, "article": Region.MAIN,
}  # fmt: skip
# parts of names, in lower case; what stands between < and > is a whole word of one
_NAMES: dict[Region, str] = {
    Region.CONSENT: "cookie consent gdpr onetrust ccpa",
    Region.FOOTER: "<foot> <footer> copyright colophon",
    Region.NAVIGATION: "<nav> <navi> <navbar> <navigation> <menu> <breadcrumb> <breadcrumbs> <pagination> <pager>"
    " <sitemap> <tabs> <toc> <lang> <language> <languages> <locale> <switcher>",
    Region.HEADER: "<header> <masthead> <topbar> <logo>",
    Region.DIALOG: "modal popup overlay lightbox toast snackbar tooltip drawer offcanvas help-button"
    " <chat> <chatbot> <chatbox> <livechat> <livechatbot> <livechatbox>",
    Region.ADVERTISEMENT: "advert <ad> <ads> adslot sponsor",
    Region.ASIDE: "sidebar side-bar related recommend <recent popular trending <share social newsletter subscri promo"
    " ticker carousel announce survey helpful",
}


def _any_of(parts: Iterable[str]) -> re.Pattern[str]:
    """A pattern for any of these parts of names, told apart by their first letter: ten times as fast as one by one."""
    rest: dict[str, list[str]] = defaultdict(list)
    for part in parts:
        first = part.strip("<")[0]
        begins = f"(?<![a-z]{first})" if part.startswith("<") else ""
        ends = "(?![a-z])" if part.endswith(">") else ""
        rest[first].append(f"{begins}{part.strip('<>')[1:]}{ends}")
    return re.compile("|".join(f"{first}(?:{'|'.join(others)})" for first, others in rest.items()))


_BY_PART = {part.strip("<>"): region for region, parts in _NAMES.items() for part in parts.split()}
_PART = _any_of(part for parts in _NAMES.values() for part in parts.split())
_HUMP = re.compile(r"([a-z])([A-Z])")


def claimed(tag: str, attributes: Mapping[str, str | None]) -> Region | None:
    """Which region an element says it is."""
    role = attributes.get("role")
    region = (_BY_ROLE.get(role) if role else None) or _BY_TAG.get(tag)
    if region is not None:
        return region
    if not attributes or (tag in _BY_CLASS and "class" not in attributes and "role" not in attributes):
        return None
    name = f"{attributes.get('id') or ''} {attributes.get('class') or ''}"
    if len(name) > _LONGEST_NAME:
        return _named(name[:_LONGEST_NAME])
    if name not in _NAMED:
        if len(_NAMED) > _MOST_NAMES:
            _NAMED.clear()
        _NAMED[name] = _named(name)
    return _NAMED[name]


def _named(name: str) -> Region | None:
    """Which region the name of an element tells."""
    found = _PART.search(name if name.islower() else _HUMP.sub(r"\1-\2", name).lower())
    return _BY_PART[found.group()] if found else None


# the same few names come again and again, within a page and from check to check
_NAMED: dict[str, Region | None] = {}
_MOST_NAMES = 20_000
_LONGEST_NAME = 500  # letters: longer ones are rarely seen twice, and a hostile page must not fill the memory with them
