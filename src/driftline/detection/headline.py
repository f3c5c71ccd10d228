"""The headline of a change: one line that says what changed, understood without the diff.

It is made of the edits that matter, the most important first, and the others are counted. A number, a price or a few
words are shown as 'label: old → new', with the words in front of them, the table cell or the nearest heading as label.
Added lines that stand together are one entry, as a job with its place is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from driftline.detection.extract.annotations import is_note
from driftline.detection.headline_words import (
    ENDS_SENTENCE,
    LONGEST,
    LONGEST_ENTRY,
    LONGEST_SIDE,
    PUNCTUATION,
    ROOM_FOR_REST,
    ChangedNumber,
    Difference,
    are_stamps,
    arrow,
    changed_field,
    changed_value,
    counted,
    cut,
    difference,
    in_words,
    is_trivial,
    largest_difference,
    object_of,
    sides,
    value_of,
)
from driftline.detection.messages import place_beside_content
from driftline.detection.noise.edits import BESIDE_CONTENT, kind_of, line_of
from driftline.detection.noise.volatile import dates_in, masked, names_age, names_money, names_revision, names_stock
from driftline.model.change import ChangeKind, NoiseKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from driftline.detection.diff.lines import Line
    from driftline.detection.diff.tables import ChangedCell
    from driftline.detection.noise.edits import JudgedDocument, LineEdit

_LONGEST_LABEL = 40  # characters
_FEW_WORDS = 4
_LONGEST_NAME = 8  # words that name what is sold out
_AROUND_NAME = PUNCTUATION + "()[].!"
_LONGEST_PREFIX = 6  # words before a number that are shown
_LONG_LINE = 60  # characters: in a longer line, the heading above says better where a few words changed
_MOST_LINES = 3  # of an entry
_MOST_BESIDE = 5  # edits beside the content: more of them are another menu
_MOST_EDITS = 12  # that are worded: the others are only counted
_FEW_EDITS = 10  # with more of them, a cell of a table is not what matters most
_AROUND = 3  # words
_NUMBER = re.compile(r"\d")
_UNNAMED = re.compile(r"(?:row|column) \d+")
_NOT_THERE = re.compile(
    r"\b(?:out of stock|sold[ -]?out|unavailable|not available|fully booked|cancell?ed|no longer available"
    r"|rupture(?: de stock)?"
    r"|épuisé\w*|indisponible|ausverkauft|nicht (?:verfügbar|lieferbar|auf lager)|vergriffen|agotad[oa]|esaurit[oa]"
    r"|esgotad[oa]|uitverkocht|niet (?:op voorraad|leverbaar)|slutsåld|udsolgt)\b",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(r"\s*\[[^\]]{1,20}\]$")
_COUNT = re.compile(r"\d[\d.,]*( \w+)?")
_LETTERS = re.compile(r"[^\W\d_]{2,}")


class _Item(NamedTuple):
    """A part of a headline: how important it is (0 is the most important), what it is about, and its words.

    The words are only found for the most important one.
    """

    rank: int
    key: object
    words: Callable[[], str]


def headline_of(
    edits: Sequence[LineEdit], old: JudgedDocument, new: JudgedDocument, *, feed: bool = False,
    cells: Callable[[Sequence[str]], Sequence[ChangedCell]] = lambda _: (),
) -> str:  # fmt: skip
    """Return the headline of a change with these edits; empty if none of them matters.

    `cells` returns the table cells that changed, given texts of which one may be a cell.
    """
    real = [edit for edit in edits if edit.noise is None]
    if feed:
        real = _by_entries(real, old, new)
    if not real:
        return ""
    left = max(0, len(real) - _MOST_EDITS)
    real = _replacements(real[:_MOST_EDITS])
    writer = _Writer(old, new, feed, _cell_labels(real, cells))
    items = [writer.rewritten(edit.old, edit.new, edit) for edit in real if edit.old and edit.new]
    added, removed = _links_of_entries(real, edits)
    gone = [*(edit.old for edit in real if edit.old and not edit.new), *removed]
    come = [*(edit.new for edit in real if edit.new and not edit.old), *added]
    items += writer.added(come, {line.folded.casefold() for line in gone})
    items += writer.removed(gone)
    items.sort(key=lambda item: item.rank)
    return counted(items[0].words(), len({item.key for item in items}) - 1 + left)


def headline_beside(edits: Sequence[LineEdit]) -> str:
    """Return the headline of noise that is a few edits beside the content: they are news if many pages have them."""
    beside = [edit for edit in edits if edit.noise in BESIDE_CONTENT]
    if not 0 < len(beside) <= _MOST_BESIDE:
        return ""
    first = beside[0]
    assert first.noise is not None
    if first.old and first.new:
        words = in_words(difference(first.old.folded, first.new.folded), LONGEST_ENTRY)
    else:
        words = f"{'New' if first.new else 'Removed'}: {cut(line_of(first).folded, LONGEST_ENTRY)}"
    place = place_beside_content(first.noise)
    return counted(f"{place}: {words}" if place else words, len(beside) - 1)


def _by_entries(real: Sequence[LineEdit], old: JudgedDocument, new: JudgedDocument) -> list[LineEdit]:
    """Return the edits of a feed, where no line became that of another entry: one entry is new, the other dropped out.

    Entries that dropped out at either end because new ones came are not counted.
    """
    before, after = _entries_by_line(old.text.split("\n")), _entries_by_line(new.text.split("\n"))
    old_entries, new_entries = set(before.values()), set(after.values())
    found: list[LineEdit] = []
    for edit in real:
        was, now = before.get(edit.old.at) if edit.old else None, after.get(edit.new.at) if edit.new else None
        if edit.old and edit.new and was and now and was != now and (was not in new_entries or now not in old_entries):
            found += replace(edit, new=None), replace(edit, old=None)
        else:
            found.append(edit)
    come = [edit for edit in found if edit.old is None and after.get(line_of(edit).at) not in old_entries]
    in_order = list(dict.fromkeys(before.values()))
    stayed = [at for at, entry in enumerate(in_order) if entry in new_entries]
    between = {*in_order[stayed[0] : stayed[-1]]} if stayed else set()
    counting = new_entries | between
    gone = [edit for edit in found if edit.new is None and before.get(line_of(edit).at) not in counting]
    return [edit for edit in found if edit not in gone] if come else found


def _entries_by_line(lines: Sequence[str]) -> dict[int, str]:
    """Return, for each line of a feed, the link of its entry, which begins with the line above its link."""
    found: dict[int, str] = {}
    entry = ""
    for at, line in enumerate(lines):
        link = lines[at + 1] if at + 1 < len(lines) else ""
        if "://" in link and " " not in link and "://" not in line:
            entry = link
        if entry:
            found[at] = entry
    return found


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


def _links_of_entries(real: Sequence[LineEdit], edits: Sequence[LineEdit]) -> tuple[list[Line], list[Line]]:
    """Return links that count for nothing by themselves, and begin entries of which other lines matter.

    These are the added ones, and the removed ones.
    """
    new = {edit.new.place for edit in real if edit.new and not edit.old}
    old = {edit.old.place for edit in real if edit.old and not edit.new}
    links = [edit for edit in edits if edit.noise is NoiseKind.LINKS] if new or old else ()
    return (
        [edit.new for edit in links if edit.new and not edit.old and edit.new.place in new],
        [edit.old for edit in links if edit.old and not edit.new and edit.old.place in old],
    )


def _cell_labels(
    real: Sequence[LineEdit], cells: Callable[[Sequence[str]], Sequence[ChangedCell]]
) -> dict[tuple[str, str], str]:  # fmt: skip
    """Return the names of changed table cells by their old and new text; without the old text, all of their parts.

    The old text of a cell may still be elsewhere on the page, so that the new one seems to be added.
    """
    if len(real) > _FEW_EDITS:
        return {}
    short = [edit.new.text for edit in real if edit.old and edit.new and len(edit.new.text) <= _LONG_LINE]
    added = [edit.new.text for edit in real if edit.new and not edit.old and len(edit.new.text) <= _LONG_LINE]
    if len(added) <= _MOST_LINES:  # more of them are a new row
        short += added
    found: dict[tuple[str, str], str] = {}
    for cell in cells(short) if short else ():
        found[cell.old, cell.new] = _name_of(cell)
        if cell.old and cell.new:
            found.setdefault(("", cell.new), f"{_name_of(cell)}: {sides(cell.old, cell.new)}")
    return found


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
        rank = 0 if kind is ChangeKind.AVAILABILITY else 1 if kind is ChangeKind.PRICE else 2
        label = self._cells.get((one.text, other.text))
        text = f"{label}: {sides(before, after)}" if label is not None else changed_field(before, after)
        if text is None:
            text = changed_value(before, after)
            rank = 8 if text is not None and are_stamps(before, after) else rank
        if text is None and kind is ChangeKind.AVAILABILITY:
            text = self._cells.get(("", other.text)) or self._availability(before, after, other) or None
        if text is not None:
            return _Item(rank, text, partial(str, text))
        return self._replaced(difference(before, after), other, kind)

    def _replaced(self, found: Difference, line: Line, kind: ChangeKind) -> _Item:
        prefix, gone, come, suffix = found
        key = line.at, line.text
        if not found.is_few:
            rank = 3 if not prefix and not suffix else 4 if found.is_sentence else 5
            return _Item(rank, key, partial(self._many_words, found, line, kind))
        both = " ".join(gone), " ".join(come)
        numbers = [bool(_NUMBER.search(text)) for text in both]
        dated = any(numbers) and (found.is_numbering or found.is_dated)
        goes_on = bool(prefix) and bool(_NUMBER.search(prefix[-1]) or masked(f"1 {prefix[-1]}") == "")
        wordy = not all(numbers) and not any(map(names_money, both))
        wordy = wordy or (
            bool(prefix or suffix)
            and (not all(numbers) or max(len(_LETTERS.findall(masked(text))) for text in both) >= _AROUND)
        )
        if goes_on or wordy or not any(numbers):
            rank = 8 if dated else 7 if is_trivial(*both) else 4
            return _Item(rank, key, partial(self._in_context, found, line))
        number = ChangedNumber.of(found, kind, dated=dated)
        rank = 7 if names_age(line.folded) else number.rank
        return _Item(rank, key, partial(self._numbered, number, line))

    def _many_words(self, found: Difference, line: Line, kind: ChangeKind) -> str:
        """Return the part for many words that were replaced, added to a line or removed from it."""
        if not found.is_sentence:
            part = largest_difference(found)
            if part.is_few:
                return self._replaced(part, line, kind).words()
            found = part
        if not found.prefix and not found.suffix:
            return f"{'New entry' if self._feed else 'New'}: {cut(' '.join(found.come), LONGEST_ENTRY)}"
        if not found.is_sentence:
            return self._in_context(found, line)
        heading = self._label_of_heading(line)
        where = f" in {cut(heading, _LONGEST_LABEL)}" if heading else ""
        within = bool(found.prefix) and not found.prefix[-1].endswith(ENDS_SENTENCE)
        before = found.prefix[-_AROUND:] if within else []
        dots = "… " if len(before) < len(found.prefix) and within else ""
        words = cut(" ".join([*before, *(found.come or found.gone)]), LONGEST_ENTRY)
        return f"{'New' if found.come else 'Removed'}{where}: {dots}{words}"

    def _in_context(self, found: Difference, line: Line) -> str:
        """Return the words that differ with some that stand around them, after the heading or label above."""
        whole = not found.prefix and not found.suffix and max(len(found.gone), len(found.come)) <= _AROUND
        label = self._label_of(line) if whole else self._label_of_heading(line)
        lead = f"{cut(label, _LONGEST_LABEL)}: " if label else ""
        return f"{lead}{in_words(found, LONGEST - ROOM_FOR_REST - len(lead))}"

    def _numbered(self, number: ChangedNumber, line: Line) -> str:
        text = self._labelled(number.prefix, number.bare, number.tail, line)
        return number.named() if text is None else text

    def _labelled(self, prefix: list[str], bare: Sequence[str], tail: str, line: Line) -> str | None:
        """Return a number and what it became, with what it is the number of; None if nothing says that."""
        both = f"{arrow(*(cut(text, LONGEST_SIDE) for text in bare))}{tail}"
        words = " ".join(prefix).strip(PUNCTUATION)
        if words and len(prefix) <= _LONGEST_PREFIX and len(words) <= _LONGEST_LABEL:
            colon = ":" if len(prefix) > 1 and prefix[-1].endswith(":") else ""
            return f"{words}{colon} {both}"
        last = " ".join(prefix[-_AROUND:]).strip(PUNCTUATION)
        label = self._label_of_heading(line) if prefix else self._label_of(line)
        if label:
            last = "" if tail or not prefix else f"… {' '.join(prefix[-2:]).strip(PUNCTUATION)} "
            return f"{cut(label, _LONGEST_LABEL)}: {last}{both}"
        return f"… {cut(last, _LONGEST_LABEL)} {both}" if last else None

    def _label_of(self, line: Line) -> str:
        """Return what names a line that has few words of its own: the line above, the heading, or both."""
        heading = self._label_of_heading(line)
        lines = self._new.blocks().lines
        above = lines[line.at - 1] if 0 < line.at < len(lines) else ""
        folded = above.casefold().strip(PUNCTUATION)
        is_number = len(_LETTERS.findall(line.masked)) <= 1
        named = self._new.names_value(above) or (is_number and lines.count(above) == 1)
        is_label = 0 < len(folded.split()) <= _FEW_WORDS and not _NUMBER.search(folded) and folded not in self._title
        if not is_label or not named or above.endswith(ENDS_SENTENCE):
            return heading
        above = above.strip(PUNCTUATION)
        both = f"{heading}, {above}"
        return both if heading and heading != above and len(both) <= _LONGEST_LABEL else above

    def _label_of_heading(self, line: Line) -> str:
        """Return the heading above a line, unless it is one itself, or the title of the page says the same.

        In a feed, it is the title of the entry.
        """
        if self._feed:
            return self._title_of_entry(line)
        if self._new.headings.includes(line.at):
            return ""
        heading = _IN_BRACKETS.sub("", self._new.headings.above(line.at)).rstrip(PUNCTUATION)
        folded = heading.casefold()
        return "" if not folded or folded in self._title or self._title in folded else heading

    def _title_of_entry(self, line: Line) -> str:
        """Return the title of a feed's entry: the line above its link."""
        lines = self._new.blocks().lines
        near = range(line.at, max(0, line.at - _MOST_LINES), -1)
        return next((lines[at - 1] for at in near if at < len(lines) and "://" in lines[at]), "")

    def _availability(self, before: str, after: str, line: Line) -> str:
        gone, come = _NOT_THERE.search(before), _NOT_THERE.search(after)
        if gone and not come and names_stock(after):
            return self._stock("Back in stock", gone, line)
        if come and not gone:
            return self._stock(come[0], come, line)
        return ""

    def _stock(self, state: str, found: re.Match[str], line: Line) -> str:
        """Return that something is available or not: what stands beside the words found, or the heading above."""
        name = _named_beside(found) or self._label_of_heading(line)
        of = f": {cut(name, LONGEST_ENTRY - 20)}" if name else ""
        return f"{state[0].upper()}{state[1:].lower()}{of}"

    def added(self, lines: Sequence[Line], removed: AbstractSet[str]) -> list[_Item]:
        """Return the parts for lines that were added. The removed ones are given in lower case."""
        verb = "New entry" if self._feed else "New"
        found: list[_Item] = []
        for entry in self._entries(lines, self._new):
            text = " ".join(line.folded for line in entry)
            stock = any(names_stock(line.folded) and len(line.folded) < _LONG_LINE for line in entry)
            said = self._cells.get(("", entry[0].text))
            gone = _NOT_THERE.search(text) if stock and said is None else None
            if gone:
                said = self._stock(gone[0], gone, entry[0])
            if said is not None:
                found.append(_Item(0 if stock else 2, said, partial(str, said)))
                continue
            short = len(text.split()) < _FEW_WORDS - 1 and not self._feed
            dated = names_revision(text) and bool(dates_in(text))
            recased = all(line.folded.casefold() in removed for line in entry)
            rank = 8 if dated or recased else 0 if stock else 6 if short else 3 if self._is_telling(entry) else 4
            found.append(_Item(rank, text, partial(self._entry, verb, entry, self._new, short=short)))
        return found

    def removed(self, lines: Sequence[Line]) -> list[_Item]:
        """Return the parts for lines that were removed."""
        found: list[_Item] = []
        for entry in self._entries(lines, self._old):
            text = " ".join(line.folded for line in entry)
            short = len(text.split()) < _FEW_WORDS - 1
            rank = 5 if not short or self._begins(entry[0], self._old) else 7
            found.append(_Item(rank, f"Removed: {text}", partial(self._entry, "Removed", entry, self._old)))
        return found

    def _entry(self, verb: str, entry: Sequence[Line], read: JudgedDocument, *, short: bool = False) -> str:
        heading = self._label_of_heading(entry[0]) if short else ""
        where = f" in {cut(heading, _LONGEST_LABEL)}" if heading else ""
        return f"{verb}{where}: {_entry(entry, feed=self._feed, titled=self._begins(entry[0], read))}"

    def _is_telling(self, entry: Sequence[Line]) -> bool:
        """Return whether an entry has a title or a sentence, and is not only a few words, numbers and dates."""
        return self._feed or self._begins(entry[0], self._new) or any(
            len(line.masked.split()) >= _FEW_WORDS for line in entry
        )  # fmt: skip

    def _begins(self, line: Line, read: JudgedDocument) -> bool:
        """Return whether a line is a heading or a link, which begins an entry."""
        blocks = read.blocks.known
        is_link = blocks is not None and line.at < len(blocks) and blocks[line.at].linked
        # to find all headings of the old document takes long
        return is_link or (read.headings.includes(line.at) if read is self._new else read.has_heading(line.text))

    def _entries(self, lines: Sequence[Line], read: JudgedDocument) -> list[list[Line]]:
        """Return the lines in entries: a heading or a link begins one, and what stands below belongs to it.

        Below a heading, that is all up to the next one; below other lines, a few short lines and one sentence.
        """
        found: list[list[Line]] = []
        under_heading = False
        of_feed = _entries_by_line(read.text.split("\n")) if self._feed else {}
        for line in sorted(lines, key=lambda line: line.at):
            last = found[-1] if found and line.at == found[-1][-1].at + 1 else None
            begins = self._begins(line, read)
            if of_feed and found and line.at in of_feed:
                last = found[-1]
                joins = of_feed.get(last[-1].at) == of_feed[line.at]
            else:
                joins = last is not None and not begins and (under_heading or _continues(last, line))
            if last is not None and joins:
                last.append(line)
            else:
                found.append([line])
                under_heading = begins and read.has_heading(line.text)
        return found


def _named_beside(stock: re.Match[str]) -> str:
    """Return what a line names beside the words about stock that were found in it; empty if they are in a sentence."""
    before, after = stock.string[: stock.start()], stock.string[stock.end() :]
    bare_before, bare_after = before.strip(_AROUND_NAME), after.strip(_AROUND_NAME)
    if bool(bare_before) == bool(bare_after):
        return ""
    apart = before.rstrip() != bare_before if bare_before else after.lstrip() != bare_after
    name = bare_before or bare_after
    return name if apart and _LETTERS.search(name) and len(name.split()) <= _LONGEST_NAME else ""


def _continues(entry: Sequence[Line], line: Line) -> bool:
    """Return whether a line belongs to the entry above it, as a place to a job, or a sentence to its author."""
    first = entry[0].folded
    if first.startswith(("$", "/")):
        return object_of(first) != "" and object_of(first) == object_of(line.folded)
    if len(entry) >= _MOST_LINES:
        return False
    if all(len(one.folded.split()) <= _FEW_WORDS for one in entry):
        return True
    if not _LETTERS.search(line.masked):
        return True  # a date or a number below a sentence
    # a title that is long because of its numbers and dates
    is_sentence = len(line.masked.split()) > _FEW_WORDS
    return is_sentence and all(len(one.masked.split()) <= _FEW_WORDS for one in entry)


def _entry(entry: Sequence[Line], *, feed: bool = False, titled: bool = False) -> str:
    """Return an entry as it stands in a headline: its first line, and the next one that says more.

    An entry that has no title does not begin with a number.
    """
    texts = [value_of(line.folded).strip(PUNCTUATION) for line in entry if not is_note(line.folded)]
    lines = [text for text in texts if text] or [entry[0].folded]
    if not titled and not feed:
        while len(lines) > 1 and (_COUNT.fullmatch(lines[0]) or not masked(lines[0])):
            lines.pop(0)
    first, others = lines[0], [text for text in lines[1:] if "://" not in text and not names_age(text)]
    if first.startswith("$"):
        others = []  # the next values of JSON have paths of their own
    sentences = [text for text in others if len(text.split()) > _FEW_WORDS and len(masked(text).split()) > 2]
    if len(masked(first).split()) <= _FEW_WORDS and sentences:
        others = sentences
    elif feed:
        others = []
    if others:
        joint = " " if first.endswith(ENDS_SENTENCE) else ": " if others[0] in sentences else ", "
        if joint != ", " or len(first) + len(others[0]) + 2 <= LONGEST_SIDE + 10:
            first = f"{first}{joint}{others[0]}"
    return cut(first, LONGEST_ENTRY)
