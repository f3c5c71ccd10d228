"""What explains an edit by where it stands: beside the content, among links, in a menu that came or went."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from driftline.detection.edits import BESIDE, WHERE, Edit, line_of
from driftline.detection.explaining import COPY, SHORT, why_means_nothing
from driftline.detection.fleeting import COUNTER, names_contact, names_money, names_stock
from driftline.model import Region

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.detection.edits import Read
    from driftline.detection.explaining import Context
    from driftline.detection.matching import Line
    from driftline.model import Block

LONG = 400  # letters: so much matters wherever it stands
LONG_REWRITTEN = 80  # letters of a line of which a part was rewritten: menus have none such
_FEW_WORDS, _MANY_WORDS = 4, 15  # of a link that says something; a line of more is a menu
_MENU = 3  # entries
_ADVERTISING = (Region.ASIDE, Region.ADVERTISEMENT)


def placed(line: Line | None, read: Read) -> Block | None:
    """The block that a line is, unless the document reads otherwise by now."""
    if line is None:
        return None
    blocks = read.blocks()
    return blocks[line.at] if line.at < len(blocks) and blocks.lines[line.at] == line.text else None


def is_content(one: Line | None, other: Line | None, old: Read, new: Read) -> bool:
    """Whether a line that came or went is part of what the document marks as its main content, and no link."""
    block = placed(other, new) if other else placed(one, old)
    return block is not None and block.region is Region.MAIN and not block.linked


def why_there(one: Line | None, other: Line | None, read: Read) -> str:
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


def _beside(block: Block, read: Read) -> str:
    """What explains an edit of a block that says little; nothing if it may be part of the content."""
    return WHERE.get(block.region) or _as_link(block, read)


def _as_link(block: Block, read: Read) -> str:
    if not block.linked or block.region is Region.MAIN:
        return ""
    says_something = _FEW_WORDS <= len(block.text.split()) <= _MANY_WORDS
    return "" if says_something and not read.blocks().has_main else "links"


def _is_long(one: Line | None, other: Line | None) -> bool:
    """Whether so much is said that it matters wherever it stands."""
    if one and other:
        return len(other.text) >= LONG_REWRITTEN
    return max(len(line.text) for line in (one, other) if line) >= LONG


def why_counted(one: Line | None, other: Line, new: Read, context: Context) -> str:
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
