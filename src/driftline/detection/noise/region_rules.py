"""What comes and goes on a page as a whole and is none of its content: consent banners with their lists, calendars.

What stands next to a widget is no part of it, even if both came at once: a banner must not hide what a page has to say.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from driftline.detection.error_pages.patterns import ABOUT_CONSENT
from driftline.detection.noise.edits import BESIDE, WHERE, Edit, line_of
from driftline.detection.noise.rules import COPY, HEAD, SHORT, Wording, why_means_nothing
from driftline.detection.noise.volatile import COUNTER, names_contact, names_money, names_stock
from driftline.model import Region

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.detection.diff.lines import Line, Pair
    from driftline.detection.noise.edits import JudgedDocument
    from driftline.detection.noise.rules import Context
    from driftline.model import Block


_CONSENT = Wording({
    "cookie": r"\bcookies?\b.*\b(?:accept|consent|prefer|settings|agree|refus|manage)",
    "we value your privacy": r"we value your privacy",
    "continue without accepting": r"continue without accepting",
    "we and our": r"\bwe and our (?:\d[\d.,]* )?(?:selected )?(?:third )?part(?:ner|ies)",
    "store and/or access": r"store and/or access information on a device",
})  # fmt: skip
_CONSENT_BUTTON = re.compile(
    r"(?:accept|allow|reject|refuse|decline|deny)(?: all)?(?: cookies)?"
    r"|(?:customi[sz]e|manage|cookie)(?: your| my)? (?:preferences|settings|choices|options)"
    r"|(?:manage )?(?:privacy|cookies?|consent)(?: consent)? (?:management|preferences|settings|choices|manager)",
    re.IGNORECASE,
)
_COOKIES = re.compile(r"\b(?:cookies?|gdpr|your (?:consent|privacy))\b", re.IGNORECASE)
_BANNERS = (Region.CONSENT, Region.DIALOG)
_BANNER = WHERE[Region.CONSENT]
_TELLING = 0.05  # of the lines of a consent banner
_MOST = 0.5  # of the letters between the first and the last line of a consent banner
_CALENDAR = "a calendar"
_DAYS = {str(day) for day in range(1, 29)}


def widgets_of(pairs: Sequence[Pair], old: JudgedDocument, new: JudgedDocument) -> dict[Line, str]:
    """The lines that are part of a widget that came or went, and what it is."""
    there: dict[bytes, list[tuple[Line, JudgedDocument]]] = defaultdict(list)
    for one, other in pairs:
        if other is None and one is not None:
            there[one.place].append((one, old))
        elif one is None and other is not None:
            there[other.place].append((other, new))
    found: dict[Line, str] = {}
    # where both texts have something of their own
    gone, come = ({line.place for line in lines if line} for lines in zip(*pairs, strict=True)) if pairs else ((), ())
    rewritten = {*gone} & {*come}
    for place, among in there.items():
        asking = {line for line, _ in among if _asks_consent(line.folded[:HEAD])}
        if len(asking) >= max(1, _TELLING * len(among)):
            found |= dict.fromkeys(_banner(among, asking, place in rewritten), _BANNER)
        elif {line.folded for line, _ in among} >= _DAYS:
            found |= {line: _CALENDAR for line, _ in among if len(line.folded) < SHORT}
    return found


def _banner(among: Sequence[tuple[Line, JudgedDocument]], asking: set[Line], rewritten: bool) -> set[Line]:
    """Those lines that are part of the banner in which the `asking` ones ask for consent.

    A banner has a region of its own, unless it fills so much of the page that it counts for none. Then it is what
    speaks of cookies, and what stands in between, if that is about little else and the place was not `rewritten`.
    """
    banner = asking.union(line for line, read in among if line not in asking and _is_in_banner(line, read))
    if len(banner) < len(among) and not rewritten:
        first, last = min(line.at for line in banner), max(line.at for line in banner)
        between = [line for line, _ in among if first <= line.at <= last]
        about = sum(len(line.folded) for line in between if line in banner or ABOUT_CONSENT.search(line.folded[:HEAD]))
        if about >= _MOST * sum(len(line.folded) for line in between):
            banner.update(between)
    return banner


def _is_in_banner(line: Line, read: JudgedDocument) -> bool:
    if _COOKIES.search(line.folded[:HEAD]):
        return True
    block = placed(line, read)
    return block is not None and block.region in _BANNERS


def _asks_consent(text: str) -> bool:
    return _CONSENT_BUTTON.fullmatch(text) is not None or _CONSENT.stands_in(text)


LONG = 400  # letters: so much matters wherever it stands
LONG_REWRITTEN = 80  # letters of a line of which a part was rewritten: menus have none such
_FEW_WORDS, _MANY_WORDS = 4, 15  # of a link that says something; a line of more is a menu
_MENU = 3  # entries
_ADVERTISING = (Region.ASIDE, Region.ADVERTISEMENT)


def placed(line: Line | None, read: JudgedDocument) -> Block | None:
    """The block that a line is, unless the document reads otherwise by now."""
    if line is None:
        return None
    blocks = read.blocks()
    return blocks[line.at] if line.at < len(blocks) and blocks.lines[line.at] == line.text else None


def is_content(one: Line | None, other: Line | None, old: JudgedDocument, new: JudgedDocument) -> bool:
    """Whether a line that came or went is part of what the document marks as its main content, and no link."""
    block = placed(other, new) if other else placed(one, old)
    return block is not None and block.region is Region.MAIN and not block.linked


def why_there(one: Line | None, other: Line | None, read: JudgedDocument) -> str:
    """What explains the edit by where it stands; nothing if nothing does.

    Links are noise beside what a document marks as its main content. Where nothing is marked, one that says something
    may be part of it.
    """
    block = placed(other or one, read)
    if block is None:
        return ""
    if one and other and one.masked == other.masked and names_money(other.text):
        # prices beside the content, or in a menu, advertise something else; any other may be what the page is about
        advertised = block.region in _ADVERTISING or (block.region is Region.NAVIGATION and block.linked)
        aside = advertised and read.blocks().has_main
        return WHERE[block.region] if aside else ""
    in_footer = block.region is Region.FOOTER and not block.linked  # links in headers have other numbers by the hour
    if in_footer and one and other and one.masked == other.masked and names_contact(other.text):
        return ""
    if block.region is Region.FORM and any(names_stock(line.text) for line in (one, other) if line):
        return ""  # in a shop, what can be had stands in the form that puts it into the cart
    return _as_link(block, read) if _is_long(one, other) else _beside(block, read)


def _beside(block: Block, read: JudgedDocument) -> str:
    """What explains an edit of a block that says little; nothing if it may be part of the content."""
    return WHERE.get(block.region) or _as_link(block, read)


def _as_link(block: Block, read: JudgedDocument) -> str:
    if not block.linked or block.region is Region.MAIN:
        return ""
    says_something = _FEW_WORDS <= len(block.text.split()) <= _MANY_WORDS
    return "" if says_something and not read.blocks().has_main else "links"


def _is_long(one: Line | None, other: Line | None) -> bool:
    """Whether so much is said that it matters wherever it stands."""
    if one and other:
        return len(other.text) >= LONG_REWRITTEN
    return max(len(line.text) for line in (one, other) if line) >= LONG


def why_counted(one: Line | None, other: Line, new: JudgedDocument, context: Context) -> str:
    """Whether only a count changed. In what a document marks as its main content, a number is what it is about."""
    if one is None or context.small:
        return ""
    block = placed(other, new)
    if block is None or block.region is Region.MAIN:
        return ""
    return COUNTER if why_means_nothing(one, other, context) == COUNTER else ""


def with_labels(edits: Sequence[Edit]) -> list[Edit]:
    """The edits, those explained as headings in a menu that came or went with one."""
    there: dict[bytes, list[Edit]] = defaultdict(list)
    for edit in edits:
        there[line_of(edit).place].append(edit)
    menus = {place: menu for place, among in there.items() if (menu := _menu(among))}
    return [
        replace(edit, noise=menus[place])
        if not edit.noise and (place := line_of(edit).place) in menus and may_be_label(edit.old, edit.new)
        else edit
        for edit in edits
    ]


def _menu(among: Sequence[Edit]) -> str:
    """What explains the edits of one place if a menu came or went there; nothing if none did."""
    if len(among) < _MENU:
        return ""
    others = [edit.noise for edit in among if edit.noise or not may_be_label(edit.old, edit.new)]
    explained = len(others) >= _MENU and set(others) <= BESIDE | {COPY}
    return Counter(others).most_common(1)[0][0] if explained else ""


def may_be_label(one: Line | None, other: Line | None) -> bool:
    """Whether a line that came or went says so little that it may head a list."""
    if one and other:
        return False
    line = one or other
    return line is not None and len(line.text) < SHORT and len(line.text.split()) < _FEW_WORDS and line.masked != ""
