"""Where in a document its text stands: marks are set in the tree, and read back from the text that comes out of it.

A region is told by tags and roles where the author used them, and by the names of classes otherwise. A name may
mislead, as 'cookie' does on a page that is about cookies: so a region that would hold a good part of all that the
document says is none. Marks let the parser's own loops do the work: a walk over all nodes in Python costs thrice as
much.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from driftline.model import Block, Region

if TYPE_CHECKING:
    from collections.abc import Set

    from selectolax.lexbor import LexborHTMLParser, LexborNode

BREAK = "\x00"  # between two runs of text; no text of a document can hold it: the parser replaces it
_OPEN, _CLOSE, _LINK, _LINK_END = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3"  # code points that no text may hold
_REGION_MARKS = re.compile(f"({_OPEN}.|{_CLOSE})")
_ALL = (_OPEN, _CLOSE, _LINK, _LINK_END)

_CLAIMANTS = (
    "nav, menu, header, footer, aside, dialog, form, select, main, article, [role], div[class], div[id], "
    "section[class], section[id], ul[class], ul[id], p[class], table[class]"
)
_BY_TAG: dict[str, Region] = {
    "nav": Region.NAVIGATION, "menu": Region.NAVIGATION, "footer": Region.FOOTER, "header": Region.HEADER,
    "aside": Region.ASIDE, "dialog": Region.DIALOG, "form": Region.FORM, "select": Region.FORM, "main": Region.MAIN,
    "article": Region.MAIN,
}  # fmt: skip
_BY_ROLE: dict[str, Region] = {
    "navigation": Region.NAVIGATION, "menu": Region.NAVIGATION, "menubar": Region.NAVIGATION,
    "tablist": Region.NAVIGATION, "contentinfo": Region.FOOTER, "banner": Region.HEADER,
    "complementary": Region.ASIDE, "dialog": Region.DIALOG, "alertdialog": Region.DIALOG, "alert": Region.DIALOG,
    "status": Region.DIALOG, "search": Region.FORM, "main": Region.MAIN, "article": Region.MAIN,
}  # fmt: skip
_BY_NAME = re.compile(
    r"""(?P<CONSENT>cookie|consent|gdpr|onetrust|ccpa)
    |(?P<FOOTER>(?<![a-z])foot(?:er)?(?![a-z])|copyright|colophon)
    |(?P<NAVIGATION>(?<![a-z])(?:nav|navi|navbar|navigation|menu|breadcrumbs?|pagination|pager|sitemap|tabs|toc
        |lang|languages?|locale|switcher)(?![a-z]))
    |(?P<HEADER>(?<![a-z])(?:header|masthead|topbar|logo)(?![a-z]))
    |(?P<DIALOG>modal|popup|overlay|lightbox|toast|snackbar|tooltip|drawer|offcanvas)
    |(?P<ASIDE>sidebar|side-bar|related|recommend|(?<![a-z])recent|popular|trending|(?<![a-z])share|social|newsletter
        |subscri|promo|advert|(?<![a-z])ads?(?![a-z])|sponsor|ticker|carousel|teaser|announce|survey|helpful)""",
    re.VERBOSE,
)
_HUMP = re.compile(r"([a-z])([A-Z])")
_START = 4  # letters by which a line that is not wanted is told cheaply
_TOO_MUCH = 0.3  # of the letters outside links: what holds more of them is what the page is about
_LINKED = 0.8  # of the letters of a block: what holds more of them in links is a link


def without_marks(markup: str) -> str:
    """The markup, without marks that a hostile author put there."""
    return markup.translate(dict.fromkeys(map(ord, _ALL))) if any(mark in markup for mark in _ALL) else markup


def set_marks(tree: LexborHTMLParser, wanted: Set[str] | None = None) -> None:
    """Mark the regions and the links of the document, for `read_marks` to find in its text."""
    starts = None if wanted is None else {text[:_START] for text in wanted}
    for node in tree.css(_CLAIMANTS):
        region = _claimed(node)
        if region is not None:
            node.insert_before(_OPEN + region.value)
            node.insert_after(_CLOSE)
    links = tree.css("a")
    if starts is not None:
        # a wanted line that is all links begins with one, and the others are beside it
        first = [node for node in links if node.text().lstrip()[:_START] in starts]
        links = [node for start in first if start.parent is not None for node in start.parent.css("a")]
    for node in links:
        node.insert_before(_LINK)
        node.insert_after(_LINK_END)


def read_marks(text: str, wanted: Set[str] | None = None) -> list[Block]:
    """The blocks of a text that came out of a document with marks, runs parted by BREAK; or only those wanted."""
    reader = _Reader(wanted)
    reader.read(text)
    spans = reader.spans
    for span in reversed(spans):
        if span.parent is not None:
            span.parent.letters += span.letters
    most = _TOO_MUCH * spans[0].letters
    for span in spans:
        span.settle(most)
    return [Block(text, span.region, linked) for text, span, linked in reader.blocks]


class _Span:
    """What lies between two marks of a region."""

    __slots__ = ("claim", "letters", "parent", "region")

    def __init__(self, parent: _Span | None, claim: Region | None) -> None:
        self.parent = parent
        self.claim = claim
        self.letters = 0
        self.region = Region.BODY

    def settle(self, most: float) -> None:
        around = Region.BODY if self.parent is None else self.parent.region
        if self.claim is None or (self.claim is not Region.MAIN and self.letters > most):
            self.region = around
        elif around is Region.MAIN and self.claim in (Region.HEADER, Region.FOOTER):
            self.region = around  # an article has a head and a foot of its own, which belong to what it says
        else:
            self.region = self.claim if around in (Region.BODY, Region.MAIN) else around


class _Reader:
    """Goes through a text with marks, knowing where it is."""

    def __init__(self, wanted: Set[str] | None) -> None:
        self._wanted = wanted
        self._starts = None if wanted is None else {text[:_START] for text in wanted}
        self.spans = [_Span(None, None)]
        self._span = self.spans[0]
        self._in_link = False
        self.blocks: list[tuple[str, _Span, bool]] = []

    def read(self, text: str) -> None:
        """Collect every block with the span that it stands in, and whether it is a link."""
        starts = self._starts
        for run in text.split(BREAK):
            if run.isascii() or (_LINK not in run and _LINK_END not in run and _OPEN not in run and _CLOSE not in run):
                if not self._in_link and starts is not None and run[:_START] not in starts:
                    self._span.letters += len(run)  # most runs of most documents end here
                else:
                    self._add(run, len(run) if self._in_link else 0)
            elif _OPEN in run or _CLOSE in run:
                for token in _REGION_MARKS.split(run):
                    if token[:1] == _OPEN:
                        self._span = _Span(self._span, Region(token[1]))
                        self.spans.append(self._span)
                    elif token == _CLOSE:
                        self._span = self._span.parent or self._span
                    else:
                        self._with_links(token)
            else:
                self._with_links(run)

    def _with_links(self, run: str) -> None:
        if not run:
            return
        linked = 0
        parts: list[str] = []
        for number, part in enumerate(run.split(_LINK)):
            inside, end, outside = part.partition(_LINK_END)
            if self._in_link if number == 0 else True:
                linked += len(inside.strip())
                self._in_link = not end
            parts += (inside, outside)
        self._add("".join(parts), linked)

    def _add(self, run: str, linked: int) -> None:
        self._span.letters += max(0, len(run) - linked)
        if self._starts is not None and run.lstrip()[:_START] not in self._starts:
            return
        whole = " ".join(run.split())
        if whole and (self._wanted is None or whole in self._wanted):
            self.blocks.append((whole, self._span, linked > _LINKED * len(whole)))


def _claimed(node: LexborNode) -> Region | None:
    """Which region an element says it is."""
    attributes = node.attributes
    role = attributes.get("role")
    region = (_BY_ROLE.get(role) if role else None) or _BY_TAG.get(node.tag or "")
    if region is not None:
        return region
    name = f"{attributes.get('id') or ''} {attributes.get('class') or ''}"
    if name not in _NAMED:
        found = _BY_NAME.search(_HUMP.sub(r"\1-\2", name).lower())
        if len(_NAMED) > _MOST_NAMES:
            _NAMED.clear()
        _NAMED[name] = Region[found.lastgroup] if found and found.lastgroup else None
    return _NAMED[name]


# the same few names come again and again, within a page and from check to check
_NAMED: dict[str, Region | None] = {}
_MOST_NAMES = 20_000
