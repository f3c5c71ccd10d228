"""The headline of a change: one line that says what changed, understood without the diff.

It is made of the edits that matter, the most important first, and the others are counted. A number, a price or a few
words are shown as 'label: old → new', with the words in front of them, the table cell or the nearest heading as label.
Added lines that stand together are one entry, as a job with its place is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from driftline.detection.diff.lines import without_hints
from driftline.detection.extract.annotations import is_note
from driftline.detection.messages import excerpts
from driftline.detection.noise.edits import kind_of, line_of
from driftline.detection.noise.volatile import dates_in, masked, names_money, names_revision, names_stock
from driftline.model.change import ChangeKind, NoiseKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.detection.diff.lines import Line
    from driftline.detection.diff.tables import ChangedCell
    from driftline.detection.noise.edits import JudgedDocument, LineEdit

LONGEST = 120  # characters of a headline
_LONGEST_ENTRY, _LONGEST_SIDE, _LONGEST_LABEL = 90, 44, 40  # characters of its parts
_ROOM_FOR_REST = 16  # characters for '(and 1,234 more)'
_FEW_WORDS, _MANY_WORDS = 4, 6
_LONG_LINE = 60  # characters: in a longer line, the heading above says better where a few words changed
_MOST_LINES = 3  # of an entry
_MOST_EDITS = 12  # that are worded: the others are only counted
_FEW_EDITS = 10  # with more of them, a cell of a table is not what matters most
_AROUND = 3  # words
_NUMBER = re.compile(r"\d")
_UNNAMED = re.compile(r"(?:row|column) \d+")
_SECTION = re.compile(r"[(]?\d+(?:\.\d+)*[.)]?")
_UNIT = re.compile(
    r"(?:%|°[cf]?|[€$£¥]|eur|euros?|usd|gbp|chf|kr|sek|dollars?|days?|hours?|minutes?|weeks?|months?|years?|people|tage?n?"
    r"|jours|días|giorni|stunden|wochen|monate|mois|jahre|ans|km|kg|mb|gb|tb|ms|points?|seats?|items?|stars?)\b\W?",
    re.IGNORECASE,
)
_CURRENCY = re.compile(r"[€$£¥]|\b(?:eur|usd|gbp|chf|sek|kr)\b", re.IGNORECASE)
_NOT_THERE = re.compile(
    r"\b(?:out of stock|sold[ -]?out|unavailable|not available|fully booked|cancell?ed|no longer available|rupture"
    r"|épuisé\w*|indisponible|ausverkauft|nicht (?:verfügbar|lieferbar|auf lager)|vergriffen|agotad[oa]|esaurit[oa]"
    r"|esgotad[oa]|uitverkocht|niet (?:op voorraad|leverbaar)|slutsåld|udsolgt)\b",
    re.IGNORECASE,
)
_JSON_PATH = re.compile(r"(\$[^\s:]*(?:\[[^\]]*\][^\s:]*)*): (.*)", re.DOTALL)
_VERSION = re.compile(r"\bv?\d+(?:\.\d+)+\b")
_UNSEEN = dict.fromkeys((0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF))
_PUNCTUATION = " \t,;:–—-|·•"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """A part of a headline, and how important it is: 0 is the most important."""

    rank: int
    text: str


def headline_of(
    edits: Sequence[LineEdit], old: JudgedDocument, new: JudgedDocument, *, feed: bool = False,
    cells: Callable[[Sequence[str]], Sequence[ChangedCell]] = lambda _: (),
) -> str:  # fmt: skip
    """Return the headline of a change with these edits; empty if none of them matters.

    `cells` returns the table cells that changed, given texts of which one may be a cell.
    """
    real = [edit for edit in edits if edit.noise is None]
    if not real:
        return ""
    left = max(0, len(real) - _MOST_EDITS)
    real = _replacements(real[:_MOST_EDITS])
    writer = _Writer(old, new, feed, _cell_labels(real, cells))
    items = [writer.rewritten(edit.old, edit.new, edit) for edit in real if edit.old and edit.new]
    items += writer.added([*(edit.new for edit in real if edit.new and not edit.old), *_links_of_entries(real, edits)])
    items += writer.removed([edit.old for edit in real if edit.old and not edit.new])
    items.sort(key=lambda item: item.rank)
    distinct = list(dict.fromkeys(item.text for item in items))
    return _counted(distinct[0], len(distinct) - 1 + left)


def _replacements(real: Sequence[LineEdit]) -> list[LineEdit]:
    """Return the edits, a line that is the only one added and the only one removed in its place as rewritten."""
    there: dict[bytes, list[LineEdit]] = defaultdict(list)
    for edit in real:
        if (edit.old is None or edit.new is None) and (line := edit.old or edit.new) and line.place:
            there[line.place].append(edit)
    pairs = [two for two in there.values() if len(two) == 2 and (two[0].old is None) != (two[1].old is None)]
    joined = {id(edit) for two in pairs for edit in two}
    kept = [edit for edit in real if id(edit) not in joined]
    for one, other in pairs:
        kept.append(replace(one, old=one.old or other.old, new=one.new or other.new))
    return kept


def _links_of_entries(real: Sequence[LineEdit], edits: Sequence[LineEdit]) -> list[Line]:
    """Return added links that count for nothing by themselves, and begin entries of which other lines matter."""
    places = {edit.new.place for edit in real if edit.new and not edit.old}
    links = [edit.new for edit in edits if edit.noise is NoiseKind.LINKS and edit.new and not edit.old]
    return [line for line in links if line.place in places]


def reordered(line: str) -> str:
    """Return the headline of a page of which lines such as this one have another order."""
    return f"In another order: {cut(line, _LONGEST_ENTRY)}"


def exchanged(lines: Sequence[tuple[str, str, str]]) -> str:
    """Return the headline of lines that changed places, each with the line above it: 'Gold: Ann → Bob (and 1 more)'."""
    above, before, after = lines[0]
    label = f"{cut(above, _LONGEST_LABEL)}: " if above else ""
    return _counted(f"{label}{_sides(before, after)}", len(lines) - 1)


def restyled(edits: Sequence[LineEdit]) -> str:
    """Return the headline of lines with other quotes, dashes, gaps or hints; empty if they differ in more."""
    if not all(_looks_alike(edit) for edit in edits):
        return ""
    before, after = (line.text if line else "" for line in (edits[0].old, edits[0].new))
    if not before or not after:
        return _counted(f"{'New' if after else 'Removed'}: {cut(after or before, _LONGEST_ENTRY)}", len(edits) - 1)
    if _seen(before) == _seen(after):
        return _counted(f"Characters that cannot be seen: {cut(after, _LONGEST_SIDE)}", len(edits) - 1)
    sides = [cut(text, _LONGEST_SIDE) for text in excerpts(before, after, _LONGEST_SIDE)]
    return _counted(" → ".join(sides), len(edits) - 1)


def _looks_alike(edit: LineEdit) -> bool:
    if edit.old is None or edit.new is None:
        return without_hints(line_of(edit).folded) == ""
    one, other = (without_hints(line.folded).replace(" ", "") for line in (edit.old, edit.new))
    return one == other


def _seen(text: str) -> str:
    """Return the text without characters of no width, and with plain spaces."""
    return " ".join(text.translate(_UNSEEN).split())


def _cell_labels(
    real: Sequence[LineEdit], cells: Callable[[Sequence[str]], Sequence[ChangedCell]]
) -> dict[tuple[str, str], str]:  # fmt: skip
    short = [edit.new.text for edit in real if edit.old and edit.new and len(edit.new.text) <= _LONG_LINE]
    return {(cell.old, cell.new): _name_of(cell) for cell in cells(short)} if short and len(real) <= _FEW_EDITS else {}


def _name_of(cell: ChangedCell) -> str:
    row, column = cut(cell.row, 30), cut(cell.column, 30)
    return row if _UNNAMED.fullmatch(cell.column) else column if _UNNAMED.fullmatch(cell.row) else f"{row} / {column}"


class _Writer:
    """Words the parts of a headline."""

    def __init__(self, old: JudgedDocument, new: JudgedDocument, feed: bool, cells: dict[tuple[str, str], str]) -> None:
        self._old = old
        self._new = new
        self._feed = feed
        self._cells = cells
        self._title = new.title.casefold()

    def rewritten(self, one: Line, other: Line, edit: LineEdit) -> _Item:
        """Return the part for a line that became another."""
        kind = kind_of([edit])
        before, after = one.folded, other.folded
        if kind is ChangeKind.AVAILABILITY and (said := self._availability(before, after, other)):
            return _Item(rank=0, text=said)
        found = _JSON_PATH.fullmatch(before), _JSON_PATH.fullmatch(after)
        if found[0] and found[1] and found[0][1] == found[1][1]:
            return _Item(rank=2, text=f"{cut(found[0][1], 60)}: {_sides(found[0][2], found[1][2])}")
        label = self._cells.get((one.text, other.text))
        if label is not None:
            return _Item(rank=1 if kind is ChangeKind.PRICE else 2, text=f"{label}: {_sides(before, after)}")
        return self._replaced_words(before, after, other, kind)

    def _replaced_words(self, before: str, after: str, line: Line, kind: ChangeKind) -> _Item:
        prefix, gone, come, suffix = _difference(before, after)
        few = bool(max(len(gone), len(come)) <= _MANY_WORDS and gone and come)
        if not few and not prefix and not suffix:
            return _Item(rank=3, text=f"{'New entry' if self._feed else 'New'}: {cut(after, _LONGEST_ENTRY)}")
        numbers = bool(_NUMBER.search(" ".join((*gone, *come))))
        dated = few and numbers and (bool(dates_in(after)) or _is_numbering(prefix, gone, come, suffix))
        goes_on = bool(prefix) and bool(_NUMBER.search(prefix[-1]) or masked(f"1 {prefix[-1]}") == "")
        if not few or goes_on or not numbers:
            heading = self._label_of_heading(line)
            lead = f"{cut(heading, _LONGEST_LABEL)}: " if heading else ""
            rank = 8 if dated else 4 if few else 5
            return _Item(rank=rank, text=f"{lead}{_in_context(prefix, gone, come, suffix)}")
        if _CURRENCY.fullmatch(suffix[0].strip(".,;")) if suffix else False:
            gone, come, suffix = [*gone, suffix[0]], [*come, suffix[0]], suffix[1:]
        if prefix and _CURRENCY.fullmatch(prefix[-1]):
            gone, come, prefix = [prefix[-1], *gone], [prefix[-1], *come], prefix[:-1]
        unit = f" {suffix[0].rstrip('.,;')}" if suffix and _UNIT.fullmatch(suffix[0]) else ""
        sides = f"{cut(' '.join(gone).strip(_PUNCTUATION), _LONGEST_SIDE)} → "
        sides += f"{cut(' '.join(come).strip(_PUNCTUATION), _LONGEST_SIDE)}{unit}"
        money = kind is ChangeKind.PRICE or (names_money(" ".join(come)) and names_money(" ".join(gone)))
        version = bool(_VERSION.search(" ".join(gone)) and _VERSION.search(" ".join(come)))
        rank = 8 if dated else 1 if money else 2 if kind is ChangeKind.NUMBER or version else 4
        return _Item(rank=rank, text=self._labelled(prefix, sides, line, money=money, version=version))

    def _labelled(self, prefix: list[str], sides: str, line: Line, *, money: bool, version: bool) -> str:
        heading = self._label_of_heading(line)
        words = " ".join(prefix[-_MANY_WORDS:]).strip(_PUNCTUATION)
        own = words if len(prefix) <= _MANY_WORDS else ""
        if own and len(own.split()) == 1:
            return f"{own} {sides}"
        if own:
            return f"{cut(own, _LONGEST_LABEL)}: {sides}"
        above = self._line_above(line) if not prefix else ""
        if above or heading:
            return f"{cut(above or heading, _LONGEST_LABEL)}: {sides}"
        if words:
            return f"… {cut(' '.join(prefix[-_FEW_WORDS:]).strip(_PUNCTUATION), _LONGEST_LABEL)}: {sides}"
        return f"Price {sides}" if money else f"Version {sides}" if version else sides

    def _line_above(self, line: Line) -> str:
        """Return the line above one that has no label of its own, if it is short enough to be that."""
        lines = self._new.blocks().lines
        above = lines[line.at - 1] if 0 < line.at < len(lines) else ""
        folded = above.casefold().strip(_PUNCTUATION)
        is_label = 0 < len(folded.split()) <= _FEW_WORDS and not _NUMBER.search(folded) and folded not in self._title
        return above.strip(_PUNCTUATION) if is_label else ""

    def _label_of_heading(self, line: Line) -> str:
        """Return the heading above a line, unless the title of the page says the same."""
        heading = self._new.headings.above(line.at)
        folded = heading.casefold()
        return "" if not folded or folded in self._title or self._title in folded else heading

    def _availability(self, before: str, after: str, line: Line) -> str:
        gone, come = _NOT_THERE.search(before), _NOT_THERE.search(after)
        heading = self._label_of_heading(line)
        of = f": {cut(heading, _LONGEST_ENTRY - 20)}" if heading else ""
        if gone and not come and names_stock(after):
            return f"Back in stock{of}"
        if come and not gone:
            return f"{come[0][0].upper()}{come[0][1:].lower()}{of}"
        return ""

    def added(self, lines: Sequence[Line]) -> list[_Item]:
        """Return the parts for lines that were added."""
        verb = "New entry" if self._feed else "New"
        found: list[_Item] = []
        for entry in self._entries(lines, self._new):
            text = " ".join(line.folded for line in entry)
            if any(names_stock(line.folded) and len(line.folded) < _LONG_LINE for line in entry):
                gone = _NOT_THERE.search(text)
                heading = self._label_of_heading(entry[0])
                of = f": {cut(heading, _LONGEST_ENTRY - 20)}" if heading else ""
                said = f"{gone[0][0].upper()}{gone[0][1:].lower()}{of}" if gone else f"{verb}: {_entry(entry)}"
                found.append(_Item(rank=0, text=said))
                continue
            short = len(text.split()) < _FEW_WORDS - 1 and not self._feed
            heading = self._label_of_heading(entry[0]) if short else ""
            where = f" in {cut(heading, _LONGEST_LABEL)}" if heading else ""
            dated = names_revision(text) and bool(dates_in(text))
            rank = 8 if dated else 6 if short else 3
            found.append(_Item(rank=rank, text=f"{verb}{where}: {_entry(entry)}"))
        return found

    def removed(self, lines: Sequence[Line]) -> list[_Item]:
        """Return the parts for lines that were removed."""
        found: list[_Item] = []
        for entry in self._entries(lines, self._old):
            short = len(" ".join(line.folded for line in entry).split()) < _FEW_WORDS - 1
            found.append(_Item(rank=7 if short else 5, text=f"Removed: {_entry(entry)}"))
        return found

    def _entries(self, lines: Sequence[Line], read: JudgedDocument) -> list[list[Line]]:
        """Return the lines in entries: a heading or a link begins one, and a few short lines below belong to it."""
        blocks = read.blocks.known
        found: list[list[Line]] = []
        for line in sorted(lines, key=lambda line: line.at):
            known = blocks is not None and line.at < len(blocks)
            is_link = blocks is not None and known and blocks[line.at].linked
            begins = is_link or (read is self._new and read.headings.includes(line.at))
            last = found[-1] if found else None
            follows = last is not None and line.at == last[-1].at + 1
            short = len(line.folded.split()) <= _FEW_WORDS
            if last is None or not follows or begins or not (short or self._feed) or self._is_full(last):
                if follows and self._feed and last is not None and not self._is_full(last):
                    last.append(line)
                    continue
                found.append([line])
            else:
                last.append(line)
        return found

    def _is_full(self, entry: Sequence[Line]) -> bool:
        return len(entry) >= (_MOST_LINES if not self._feed else _MOST_LINES + 1)


def _entry(entry: Sequence[Line]) -> str:
    """Return an entry as it stands in a headline: its first line, and the next one if both are short."""
    lines = [line.folded.strip(_PUNCTUATION) for line in entry if not is_note(line.folded)] or [entry[0].folded]
    first = lines[0]
    if len(lines) > 1 and len(first) + len(lines[1]) + 2 <= _LONGEST_SIDE + 10 and "://" not in lines[1]:
        first = f"{first}, {lines[1]}"
    return cut(first, _LONGEST_ENTRY)


def _is_numbering(prefix: Sequence[str], gone: Sequence[str], come: Sequence[str], suffix: Sequence[str]) -> bool:
    """Return whether only the number of a section changed, as by sections that were added above it."""
    return (
        not prefix and bool(suffix) and all(len(words) == 1 and _SECTION.fullmatch(words[0]) for words in (gone, come))
    )


def _difference(before: str, after: str) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return the words that two lines begin with, those that only one of them has, and those that both end with."""
    one, other = before.split(), after.split()
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    return one[:start], one[start : len(one) - end], other[start : len(other) - end], one[len(one) - end :]


def _sides(before: str, after: str) -> str:
    return f"{cut(before.strip(), _LONGEST_SIDE)} → {cut(after.strip(), _LONGEST_SIDE)}"


def _in_context(prefix: Sequence[str], gone: Sequence[str], come: Sequence[str], suffix: Sequence[str]) -> str:
    """Return the words that differ with some that stand around them: '… due within ten days → … due within a week'."""
    if max(map(len, (*gone, *come)), default=0) > _LONGEST_SIDE:
        # a script without spaces: what differs is somewhere within the word
        return " → ".join(excerpts(" ".join(gone), " ".join(come), _LONGEST_SIDE))
    lead, tail = prefix[-_AROUND:], suffix[:_AROUND]
    dots = "… " if len(prefix) > _AROUND else ""
    return " → ".join(f"{dots}{cut(' '.join([*lead, *words, *tail]), _LONGEST_SIDE)}" for words in (gone, come))


def _counted(first: str, more: int) -> str:
    if not more:
        return cut(first, LONGEST)
    return f"{cut(first, LONGEST - _ROOM_FOR_REST)} (and {more:,} more)"


def cut(text: str, most: int = LONGEST) -> str:
    """Return a text on one line, cut at a word to at most so many characters."""
    text = " ".join(text[: 4 * most].split())
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut[most // 2 :] else cut).rstrip(_PUNCTUATION) + "…"
