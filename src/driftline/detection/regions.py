"""Where in a document its text stands: marks are set in the tree, and read back from the text that comes out of it.

A region is told by tags and roles where the author used them, and by the names of classes otherwise. A name may
mislead, as 'cookie' does on a page that is about cookies: so a region that would hold a good part of all that the
document says is none. Marks let the parser's own loops do the work: a walk over all nodes in Python costs thrice as
much.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser

from driftline.model import Block, Region

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from selectolax.lexbor import LexborNode

BREAK = "\x00"  # between two runs of text; no text of a document can hold it: the parser replaces it
_OPEN, _CLOSE, _LINK, _LINK_END = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3"  # code points that no text may hold
MARKS = _OPEN + _CLOSE + _LINK + _LINK_END
NOTE, NOTE_END = "\ufdd4", "\ufdd5"  # around what a document says besides its text (see `notes`)
_NOTES = re.compile(f"{NOTE}([^{NOTE}{NOTE_END}]*){NOTE_END}")

# the common ones only: each costs a pass over the document, and a rare one left out breaks a line, no more
INLINE = [
    "a", "abbr", "b", "code", "em", "font", "i", "label", "mark", "small", "span", "strong", "sub", "sup", "time", "u",
]  # fmt: skip
_INLINE = set(INLINE)
_BY_TAG: dict[str, Region] = {
    "nav": Region.NAVIGATION, "menu": Region.NAVIGATION, "footer": Region.FOOTER, "header": Region.HEADER,
    "aside": Region.ASIDE, "dialog": Region.DIALOG, "form": Region.FORM, "select": Region.FORM, "main": Region.MAIN,
    "article": Region.MAIN,
}  # fmt: skip
_BY_CLASS = {"p", "table"}
_BY_ID_TOO = {"div", "section", "ul"}
_CLAIMANTS = {*_BY_TAG, *_BY_CLASS, *_BY_ID_TOO}
# asking an element for the number of its tag costs a third of asking for the name
_KNOWN_TAGS = {
    node.tag_id: node.tag
    for node in LexborHTMLParser("".join(f"<{tag}></{tag}>" for tag in (*INLINE, *_CLAIMANTS))).css("body *")
}
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
    |(?P<DIALOG>modal|popup|overlay|lightbox|toast|snackbar|tooltip|drawer|offcanvas
        |(?<![a-z])(?:live)?chat(?:bot|box)?(?![a-z])|help-button)
    |(?P<ASIDE>sidebar|side-bar|related|recommend|(?<![a-z])recent|popular|trending|(?<![a-z])share|social|newsletter
        |subscri|promo|advert|(?<![a-z])ads?(?![a-z])|sponsor|ticker|carousel|announce|survey|helpful)""",
    re.VERBOSE,
)
# an article has a head, a foot and asides of its own, which belong to what it says; what churns there is learned
_PARTS_OF_MAIN = {Region.HEADER, Region.FOOTER, Region.ASIDE}
_SIGNS = {region: chr(0xFDD8 + number) for number, region in enumerate(Region)}  # no letter: they may stand in a text
_REGIONS = {sign: region for region, sign in _SIGNS.items()}
_SPACES = "\t\xa0\r\f"
_HUMP = re.compile(r"([a-z])([A-Z])")
_TOO_MUCH = 0.3  # of the letters outside links: what holds more of them is what the page is about
_OUTSIDE = 0.2  # of the letters of a block: what holds fewer of them outside of links is a link


def without_marks(markup: str, *, noted: bool = False) -> str:
    """The markup, without marks that a hostile author put there; also without those of notes if `noted`."""
    marks = MARKS + NOTE + NOTE_END if noted else MARKS
    return markup.translate(dict.fromkeys(map(ord, marks))) if any(mark in markup for mark in marks) else markup


def set_marks(tree: LexborHTMLParser) -> list[LexborNode]:
    """Mark the regions and the links of the document, for `read_marks` to find in its text.

    The elements that set nothing off are given back: to look for them once more costs as much as all the rest.
    """
    inline: list[LexborNode] = []
    for node in tree.css("*"):
        tag = _KNOWN_TAGS.get(node.tag_id)
        if tag is None:
            continue
        if tag in _CLAIMANTS:
            _mark(node, tag)
            continue
        inline.append(node)
        if tag == "a":
            node.insert_before(_LINK)
            node.insert_after(_LINK_END)
    for node in tree.css("[role]"):
        tag = node.tag or ""
        if tag not in _INLINE and tag not in _CLAIMANTS:
            _mark(node, tag)
    return inline


def _mark(node: LexborNode, tag: str) -> None:
    region = _claimed(tag, node.attributes)
    if region is not None:
        node.insert_before(_OPEN + _SIGNS[region])
        node.insert_after(_CLOSE)


def folded(run: str) -> str:
    """The run with its white space folded. Splitting into words is the dear part, so it is done only where it must."""
    if "\n" in run or "  " in run or "\t" in run or "\xa0" in run or "\r" in run or "\f" in run:
        return " ".join(run.split())
    return run.strip()


def folded_lines(runs: Iterable[str]) -> list[str]:
    """The runs with their white space folded, without those that say nothing."""
    return [line for run in runs if (line := folded(run))]


class Blocks:
    """The blocks of a document in reading order: their lines at once, and where one stands when it is asked for."""

    def __init__(
        self, lines: list[str], spans: list[_Span] | None = None, linked: list[bool] | None = None
    ) -> None:  # fmt: skip
        self.lines = lines
        self._spans = [_Span(None, None)] * len(lines) if spans is None else spans
        self._linked = [False] * len(lines) if linked is None else linked

    @cached_property
    def has_main(self) -> bool:
        """Whether the document says which part of it is the main one."""
        return any(span.region is Region.MAIN for span in self._spans)

    def __getitem__(self, at: int) -> Block:
        return Block(self.lines[at], self._spans[at].region, self._linked[at])

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[Block]:
        return (self[at] for at in range(len(self.lines)))

    def led_by(self, lines: Sequence[str]) -> Blocks:
        """The blocks after some lines that stand nowhere in particular."""
        if not lines:
            return self
        first = Blocks(list(lines))
        return Blocks(first.lines + self.lines, first._spans + self._spans, first._linked + self._linked)

    def without(self, unwanted: Callable[[str], bool]) -> Blocks:
        """The blocks without those whose line is unwanted."""
        kept = [at for at, line in enumerate(self.lines) if not unwanted(line)]
        lines, spans, linked = self.lines, self._spans, self._linked
        return Blocks([lines[at] for at in kept], [spans[at] for at in kept], [linked[at] for at in kept])


def read_marks(text: str, *, noted: bool = False) -> Blocks:
    """The blocks of a text that came out of a document with marks, and notes if `noted`, runs parted by BREAK."""
    for space in _SPACES:
        # one kind to look for in each run; it is folded anyway
        text = text.replace(space, "\n")
    lines: list[str] = []
    where: list[_Span] = []
    linked: list[bool] = []
    spans = [_Span(None, None)]
    span, in_link = spans[0], False
    # splitting by one character at a time: a pattern for all marks would look at every letter
    for opened, chunk in enumerate(text.split(_OPEN)):
        if opened:
            claim = _REGIONS.get(chunk[:1])  # none in a mark that an author wrote as a character reference
            span = _Span(span, claim)
            spans.append(span)
            chunk = chunk[1:] if claim else chunk
        for closed, part in enumerate(chunk.split(_CLOSE)):
            if closed:
                span = span.parent or span
            if not part:
                continue
            if not in_link and _LINK not in part and not (noted and NOTE in part):
                # most of most documents: what can be done at once for many lines is not done one by one
                found = [
                    line
                    for run in filter(None, part.split(BREAK))
                    if (line := " ".join(run.split()) if "\n" in run or "  " in run else run.strip())
                ]
                lines += found
                span.letters += len(part)
                where += [span] * len(found)
                linked += [False] * len(found)
                continue
            for run in filter(None, part.split(BREAK)):
                # folded, for an author may have written such marks too
                notes = folded_lines(_NOTES.findall(run)) if noted else None
                if noted:
                    run = _NOTES.sub("", run)
                outside = 0 if in_link else len(run)
                if not run.isascii():
                    if run[0] == _LINK and run.find(_LINK_END) == len(run) - 1 and run.rfind(_LINK) == 0:
                        run, outside, in_link = run[1:-1], 0, False  # one link and nothing else, as most are
                    elif _LINK in run or _LINK_END in run:
                        run, outside, in_link = _without_links(run, in_link)
                line = " ".join(run.split()) if "\n" in run or "  " in run else run.strip()
                if line:
                    span.letters += outside
                    lines.append(line)
                    where.append(span)
                    linked.append(outside < _OUTSIDE * len(line))
                if notes:
                    lines += notes
                    where += [span] * len(notes)
                    linked += [in_link] * len(notes)
    _settle(spans)
    return Blocks(lines, where, linked)


def _without_links(run: str, in_link: bool) -> tuple[str, int, bool]:
    """The run without the marks of links, how many letters stand outside of them, and whether it ends in one."""
    outside = 0
    for started, part in enumerate(run.split(_LINK)):
        first, *others = part.split(_LINK_END)
        if not in_link and not started:
            outside += len(first.strip())
        in_link = (in_link or started > 0) and not others
        for other in others:
            outside += len(other.strip())
    return run.replace(_LINK, "").replace(_LINK_END, ""), outside, in_link


def _settle(spans: list[_Span]) -> None:
    """Decide which regions are what they claim to be, by how much of the document they hold."""
    for span in reversed(spans):
        if span.parent is not None:
            span.parent.letters += span.letters
    most = _TOO_MUCH * spans[0].letters
    for span in spans:
        span.settle(most)


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
        claim = self.claim
        too_much = claim is not Region.MAIN and self.letters > most
        part_of_main = around is Region.MAIN and claim in _PARTS_OF_MAIN
        if claim is None or too_much or part_of_main or around not in (Region.BODY, Region.MAIN):
            self.region = around
        else:
            self.region = claim


def _claimed(tag: str, attributes: Mapping[str, str | None]) -> Region | None:
    """Which region an element says it is."""
    role = attributes.get("role")
    region = (_BY_ROLE.get(role) if role else None) or _BY_TAG.get(tag)
    if region is not None:
        return region
    if not attributes or (tag in _BY_CLASS and "class" not in attributes and "role" not in attributes):
        return None
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
