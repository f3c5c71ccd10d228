"""Find the regions of a document, such as navigation, footer or main content, and the region of each line.

An element is declared to be a region by its tag, its role, or the id and classes that its author gave it. Marks are
inserted before and after such elements, so that the regions can be read from the text that the parser extracts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser

from driftline.model.change import Block, Region

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from selectolax.lexbor import LexborNode


_BY_TAG: dict[str, Region] = {
    "nav": Region.NAVIGATION, "menu": Region.NAVIGATION, "footer": Region.FOOTER, "header": Region.HEADER,
    "aside": Region.ASIDE, "dialog": Region.DIALOG, "form": Region.FORM, "select": Region.FORM, "main": Region.MAIN,
    "article": Region.MAIN, "h1": Region.BODY,
}  # fmt: skip
_BY_CLASS = {"p", "table"}
_BY_ID_TOO = {"div", "section", "ul"}
#: tags of elements that may be a region without a role
REGION_TAGS = {*_BY_TAG, *_BY_CLASS, *_BY_ID_TOO}
_BY_ROLE: dict[str, Region] = {
    "navigation": Region.NAVIGATION, "menu": Region.NAVIGATION, "menubar": Region.NAVIGATION,
    "tablist": Region.NAVIGATION, "contentinfo": Region.FOOTER, "banner": Region.HEADER,
    "complementary": Region.ASIDE, "dialog": Region.DIALOG, "alertdialog": Region.DIALOG,
    "search": Region.FORM, "main": Region.MAIN, "article": Region.MAIN,
}  # fmt: skip
# parts of names, in lower case; < and > stand for the start and the end of a word, ^ for the start of a whole class:
# an overlay of its own is a dialog, but a "link-overlay" lies over a part of the content
_NAMES: dict[Region, str] = {
    Region.CONSENT: "cookie consent gdpr onetrust ccpa",
    Region.FOOTER: "<foot> <footer> copyright colophon",
    Region.NAVIGATION: "<nav> <navi> <navbar> <navigation> <menu> <breadcrumb> <breadcrumbs> <pagination> <pager>"
    " <sitemap> <tabs> <toc> <lang> <language> <languages> <locale> <switcher>",
    Region.HEADER: "<header> <masthead> <topbar> <logo>",
    Region.DIALOG: "modal popup ^overlay lightbox toast snackbar tooltip drawer offcanvas help-button"
    " <chat> <chatbot> <chatbox> <livechat> <livechatbot> <livechatbox>",
    Region.ADVERTISEMENT: "advert <ad> <ads> adslot sponsor",
    Region.ASIDE: "sidebar side-bar related recommend <recent popular trending <share social newsletter subscri promo"
    " <ticker> <marquee> carousel announce survey helpful notice-bar noticebar notification-bar alert-bar top-banner"
    " site-banner hello-bar usp-bar",
}


def _any_of(parts: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for any of these parts of names, grouped by first letter: ten times faster than one by one."""
    by_first: dict[str, list[str]] = defaultdict(list)
    for part in parts:
        first = part.strip("<^")[0]
        begins = f"(?<![a-z]{first})" if part.startswith("<") else rf"(?<!\S{first})" if part.startswith("^") else ""
        ends = "(?![a-z])" if part.endswith(">") else ""
        by_first[first].append(f"{begins}{part.strip('<>^')[1:]}{ends}")
    return re.compile("|".join(f"{first}(?:{'|'.join(others)})" for first, others in by_first.items()))


_BY_PART = {part.strip("<>^"): region for region, parts in _NAMES.items() for part in parts.split()}
_PART = _any_of(part for parts in _NAMES.values() for part in parts.split())
_HUMP = re.compile(r"([a-z])([A-Z])")
#: words in front of such a part by which a name says what an element has, or does not have, instead of what it is
_HAVING = re.compile(r"\b(?:no|not|non|has|have|with|without|hide|hides)[-_]$")


def region_of_element(tag: str, attributes: Mapping[str, str | None]) -> Region | None:
    """Return the region that an element is by its tag, role, id or classes; None if it is none."""
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
    """Return the region that the name of an element stands for, if any."""
    name = name if name.islower() else _HUMP.sub(r"\1-\2", name).lower()
    found = _PART.search(name)
    while (
        found is not None
        and name[found.start() - 1 : found.start()] in ("-", "_")
        and _HAVING.search(name, 0, found.start())
    ):
        found = _PART.search(name, found.end())
    return None if found is None else _BY_PART[found.group()]


# the same few names recur within a page and from check to check
_NAMED: dict[str, Region | None] = {}
_MOST_NAMES = 20_000
_LONGEST_NAME = 500  # characters: longer ones are not cached, so that a hostile page cannot fill the memory


BREAK = "\x00"  # between two runs of text; no document can contain it: the parser replaces it
# control characters that no text needs, and that a character reference cannot stand for: '&#128;' is the euro sign.
# Python keeps a text with them in one byte a character, which is twice as fast as two
_OPEN, _CLOSE, _LINK, _LINK_END = "\x80", "\x82", "\x83", "\x84"
MARKS = _OPEN + _CLOSE + _LINK + _LINK_END
_IN_UTF_8 = re.compile(b"\xc2[\x80-\x87]")
NOTE, NOTE_END = "\x86", "\x87"  # around notes (see `annotations`)
_NOTES = re.compile(f"{NOTE}([^{NOTE}{NOTE_END}]*){NOTE_END}")

# the common ones only: each costs a pass over the document, and a missing one only breaks a line
INLINE = [
    "a", "abbr", "b", "code", "em", "font", "i", "label", "mark", "small", "span", "strong", "sub", "sup", "time", "u",
]  # fmt: skip
_INLINE = set(INLINE)


def _by_number(tags: Iterable[str]) -> dict[int, str]:
    """Return the tags by the parser's tag ids: reading an id costs a third of reading a name."""
    markup = "".join(f"<{tag}></{tag}>" for tag in tags)
    return {node.tag_id: node.tag or "" for node in LexborHTMLParser(markup).css("body *")}


_INLINE_IDS, _REGION_TAG_IDS = _by_number(INLINE), _by_number(REGION_TAGS)
_HEADING_IDS = _by_number(["h1", "h2", "h3", "h4", "h5", "h6"])
_CONCERNED_IDS = {*_INLINE_IDS, *_REGION_TAG_IDS, *_HEADING_IDS}
(_LINK_ID,) = _by_number(["a"])
# header, footer and asides of an article belong to its content; what changes there all the time is learned
_PARTS_OF_MAIN = {Region.HEADER, Region.FOOTER, Region.ASIDE}
_SIGNS = dict(zip(Region, "\x88\x89\x8a\x8b\x8c\x8e\x91\x92\x93\x94", strict=True))  # as above
_REGIONS = {sign: region for region, sign in _SIGNS.items()}
_ALL_MARKS = (*MARKS, NOTE, NOTE_END, *_REGIONS)
# those after U+00FF cost nothing in a text without such characters, as most are
_SPACES = "\n\t\xa0\r\f\u2002\u2003\u2009\u202f\u3000"
_GAP = "  "
_CONTENT = (Region.BODY, Region.MAIN)
_SEVERAL_LINKS = 10
_TOO_MUCH = 0.3  # of the characters outside links: a region with more of them is content
_OUTSIDE = 0.2  # of the characters of a block: with fewer of them outside links, it is a link


def has_marks(body: bytes) -> bool:
    """Return whether a document in UTF-8 has marks that a hostile author put there."""
    return b"\xc2" in body and _IN_UTF_8.search(body) is not None


def without_marks(markup: str, *, noted: bool = False) -> str:
    """Return the markup without marks that a hostile author put there; also without those of notes if `noted`."""
    marks = MARKS + NOTE + NOTE_END if noted else MARKS
    return markup.translate(dict.fromkeys(map(ord, marks))) if any(mark in markup for mark in marks) else markup


def set_marks(tree: LexborHTMLParser) -> tuple[list[LexborNode], list[LexborNode]]:
    """Mark the regions and the links of the document, for `read_marks` to find in its text.

    Return the inline elements and the headings: to search for them again would cost as much as all the marking.
    """
    inline: list[LexborNode] = []
    headings: list[LexborNode] = []
    for node in tree.css("*"):
        number = node.tag_id
        if number not in _CONCERNED_IDS:
            continue
        if number in _INLINE_IDS:
            inline.append(node)
            if number == _LINK_ID:
                node.insert_before(_LINK)
                node.insert_after(_LINK_END)
            continue
        if number in _HEADING_IDS:
            headings.append(node)
        tag = _REGION_TAG_IDS.get(number)
        if tag is not None:
            attributes = node.attributes
            if attributes or tag in _BY_TAG:  # most paragraphs have none
                _mark(node, region_of_element(tag, attributes))
    for node in tree.css("[role]"):
        tag = node.tag or ""
        if tag not in _INLINE and tag not in REGION_TAGS:
            _mark(node, region_of_element(tag, node.attributes))
    return inline, headings


def _mark(node: LexborNode, region: Region | None) -> None:
    if region is not None:
        node.insert_before(_OPEN + _SIGNS[region])
        node.insert_after(_CLOSE)


def spaced(text: str) -> str:
    """Return the text with spaces for the white space that pages have. Each kind costs a pass over the text."""
    for space in _SPACES:
        text = text.replace(space, " ")
    return text


def folded_lines(text: str) -> list[str]:
    """Return the runs of a text that BREAK separates, with their white space folded, without empty ones."""
    text = spaced(text)
    if _GAP not in text:  # to search each run would cost as much as all the rest
        return [line for run in text.split(BREAK) if (line := run.strip())]
    # splitting into words is slow, so it is done only where needed
    return [line for run in text.split(BREAK) if (line := " ".join(run.split()) if _GAP in run else run.strip())]


class Blocks:
    """The blocks of a document in reading order: all lines, and each line's region when it is needed."""

    def __init__(
        self, lines: list[str], spans: list[_Span] | None = None, linked: AbstractSet[int] = frozenset(),
        heading_nodes: Sequence[LexborNode] = (),
    ) -> None:  # fmt: skip
        self.lines = lines
        self._heading_nodes = heading_nodes
        self._spans = [_Span(None, None)] * len(lines) if spans is None else spans
        self._linked = linked

    def __repr__(self) -> str:
        return f"<Blocks lines={len(self.lines)} linked={len(self._linked)}>"

    @cached_property
    def headings(self) -> set[str]:
        """Return the texts of the headings."""
        texts = BREAK.join([node.text() for node in self._heading_nodes])
        for mark in () if texts.isascii() else _ALL_MARKS:
            texts = texts.replace(mark, "")  # ten times faster than one pass with a lookup for every character
        return {*folded_lines(texts)}

    def release_tree(self) -> None:
        """Read what is still to be read from the parsed document, so that it can be freed."""
        _ = self.headings
        self._heading_nodes = ()

    @cached_property
    def has_main(self) -> bool:
        """Return whether the document marks its main content."""
        return any(span.region is Region.MAIN for span in self._spans)

    @cached_property
    def is_list_of_links(self) -> bool:
        """Return whether most of what stands outside menus and the like is links, as in a list of people or entries."""
        content = [(at, len(self.lines[at])) for at, span in enumerate(self._spans) if span.region in _CONTENT]
        linked = [size for at, size in content if at in self._linked]
        return len(linked) >= _SEVERAL_LINKS and 2 * sum(linked) >= sum(size for _, size in content)

    def __getitem__(self, at: int) -> Block:
        return Block(self.lines[at], self._spans[at].region, at in self._linked)

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[Block]:
        return (self[at] for at in range(len(self.lines)))

    def led_by(self, lines: Sequence[str]) -> Blocks:
        """Return the blocks with lines of no region before them."""
        if not lines:
            return self
        first = Blocks(list(lines))
        linked = {len(lines) + at for at in self._linked}
        return Blocks(first.lines + self.lines, first._spans + self._spans, linked, self._heading_nodes)

    def without(self, unwanted: Callable[[str], bool]) -> Blocks:
        """Return the blocks without unwanted lines."""
        return self.made_of([(line, at) for at, line in enumerate(self.lines) if not unwanted(line)])

    def made_of(self, lines: Sequence[tuple[str, int]]) -> Blocks:
        """Return blocks of these lines, each at the place of the line with that number."""
        spans, linked = self._spans, self._linked
        still_linked = {number for number, (_, at) in enumerate(lines) if at in linked}
        return Blocks([text for text, _ in lines], [spans[at] for _, at in lines], still_linked, self._heading_nodes)

    def of_lines(self, lines: list[str]) -> Blocks:
        """Return some lines of the document, as the user selected them: they count in every region."""
        return Blocks(lines, heading_nodes=self._heading_nodes)


def read_marks(text: str, heading_nodes: Sequence[LexborNode] = (), *, noted: bool = False) -> Blocks:
    """Return the blocks of the text of a document with marks, and notes if `noted`; BREAK separates its runs."""
    text = spaced(text)
    gaps = _GAP in text
    lines: list[str] = []
    where: list[_Span] = []
    linked: set[int] = set()
    spans = [_Span(None, None)]
    span, in_link = spans[0], False
    # split by one mark after the other: a pattern for all marks would test every character
    for opened, chunk in enumerate(text.split(_OPEN)):
        if opened:
            span = _Span(span, _REGIONS[chunk[0]])
            spans.append(span)
            chunk = chunk[1:]
        for closed, part in enumerate(chunk.split(_CLOSE)):
            if closed:
                span = span.parent or span
            if not part:
                continue
            if in_link or _LINK in part or _LINK_END in part or (noted and NOTE in part):
                in_link, outside = _read_links(part, in_link, noted, gaps, lines, linked)
                span.letters += outside
            else:
                # most of most documents: many lines are processed at once
                runs = part.split(BREAK)
                lines += [
                    line for run in runs if (line := " ".join(run.split()) if gaps and _GAP in run else run.strip())
                ]
                span.letters += len(part) - len(runs) + 1
            where += [span] * (len(lines) - len(where))
    _decide_regions(spans)
    return Blocks(lines, where, linked, heading_nodes)


def _read_links(
    part: str, in_link: bool, noted: bool, gaps: bool, lines: list[str], linked: set[int]
) -> tuple[bool, int]:  # fmt: skip
    """Add the lines of a part of a text that has links or notes to `lines`, and the indexes of links to `linked`.

    Return whether it ends inside a link, and how many characters are outside links.
    """
    letters = 0
    for run in part.split(BREAK):
        notes = None
        ragged, has_link = gaps, False
        if noted and NOTE in run:
            notes = folded_lines(BREAK.join(_NOTES.findall(run)))
            run, ragged = _NOTES.sub("", run), True  # what stood around a mark may be a gap without it
        outside = len(run)
        if in_link or not run.isascii():
            if run[:1] == _LINK and run.find(_LINK_END) == outside - 1 and run.rfind(_LINK) == 0:
                run, outside, in_link, has_link = run[1:-1], 0, False, True  # one link, nothing else: the common case
            elif in_link or _LINK in run or _LINK_END in run:
                run, outside, in_link = _without_links(run, in_link)
                ragged = has_link = True
        line = " ".join(run.split()) if ragged and _GAP in run else run.strip()
        if line:
            if has_link and outside < _OUTSIDE * len(line):
                linked.add(len(lines))
            letters += outside
            lines.append(line)
        if notes:
            if in_link:
                linked.update(range(len(lines), len(lines) + len(notes)))
            lines += notes
    return in_link, letters


def _without_links(run: str, in_link: bool) -> tuple[str, int, bool]:
    """Return the run without marks of links, how many characters are outside links, and whether it ends in one."""
    parts = run.replace(_LINK_END, _LINK).split(_LINK)  # alternately outside and inside a link: links are not nested
    outside = sum([len(part.strip()) for part in parts[1 if in_link else 0 :: 2]])
    started, ended = run.rfind(_LINK), run.rfind(_LINK_END)
    return "".join(parts), outside, started > ended or (in_link and ended < 0)


def _decide_regions(spans: list[_Span]) -> None:
    """Decide which declared regions are accepted, by how much of the document each span holds."""
    for span in reversed(spans):
        if span.parent is not None:
            span.parent.letters += span.letters
    most = _TOO_MUCH * spans[0].letters
    for span in spans:
        span.decide_region(most)


class _Span:
    """The part of a document between two marks of a region."""

    __slots__ = ("declared", "letters", "parent", "region")

    def __init__(self, parent: _Span | None, declared: Region | None) -> None:
        self.parent = parent
        self.declared = declared
        self.letters = 0
        self.region = Region.BODY

    def decide_region(self, most: float) -> None:
        """Set the region: the declared one, unless it is that of the parent that counts."""
        around = Region.BODY if self.parent is None else self.parent.region
        declared = self.declared
        too_much = declared is not Region.MAIN and self.letters > most
        part_of_main = around is Region.MAIN and declared in _PARTS_OF_MAIN
        if declared is Region.BODY:
            # the main heading of a document is content, even inside its header
            self.region = declared if around is Region.HEADER else around
        elif declared is None or too_much or part_of_main or around not in (Region.BODY, Region.MAIN):
            self.region = around
        else:
            self.region = declared
