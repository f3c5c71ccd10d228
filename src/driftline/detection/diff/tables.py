"""Find the cells of HTML tables that changed, by row and column: 'price / Model B: 12 → 14'."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from driftline.detection.diff.markup import decoded, is_html, parse
from driftline.detection.messages import old_to_new

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from selectolax.lexbor import LexborHTMLParser, LexborNode

    from driftline.model.outcome import Version

_MOST_TABLES, _MOST_ROWS, _MOST_COLUMNS = 200, 5_000, 200  # beyond that, cells are not compared
_MOST_CELLS = 200_000  # of a document; a cell counts for every column and row that it spans
_MOST_LINES = 4  # of a cell
_LONGEST_NAME = 60  # characters
_RANK = re.compile(r"\d{1,3}\.?")


class ChangedCell(NamedTuple):
    """A cell that changed: the caption of its table, the names of its row and column, its old and new text."""

    table: str
    row: str
    column: str
    old: str
    new: str

    @property
    def place(self) -> str:
        """Return where it stands: 'price / Model B'."""
        return f"{_short(self.column)} / {_short(self.row)}"

    def __str__(self) -> str:
        return f"{self.place}: {old_to_new(self.old, self.new)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A table: the indexes of its columns by name, and the cells of its rows by name. Names are unique."""

    caption: str
    columns: dict[str, int]
    rows: dict[str, list[str]]


def cells_between(old: Version, new: Version) -> list[ChangedCell]:
    """Return the cells that changed between two versions, without those that the page's filters leave out."""
    if old.text == new.text or not (is_html(old) and is_html(new)):
        return []
    before, after = (_runs(version.words.split("\n")) for version in (old, new))
    return [
        cell
        for cell in changed_cells(decoded(old), decoded(new))
        if _letters(cell.old) in before and _letters(cell.new) in after
    ]


def changed_cells(old: str, new: str) -> list[ChangedCell]:
    """Return the cells that changed between two HTML documents, matched by table, row and column."""
    found: list[ChangedCell] = []
    for before, after in _same_tables(_tables(old), _tables(new)):
        for row, cells in after.rows.items():
            known = before.rows.get(row)
            for column, at in after.columns.items():
                was = before.columns.get(column)
                if known is None or was is None:
                    continue
                one, other = _at(known, was), _at(cells, at)
                if one != other:
                    found.append(ChangedCell(after.caption, row, column, one, other))
    return found


def heading(cells: list[ChangedCell], removed: Sequence[str], added: Sequence[str]) -> str:
    """Return the place of the cells that these lines are, for the heading of a hunk; empty if they are no cells.

    The cells are removed from the list: another hunk with the same lines is about other cells.
    """
    gone, come = Counter(removed), Counter(added)
    places: list[str] = []
    left: list[ChangedCell] = []
    for cell in cells:
        if (cell.old and not gone[cell.old]) or (cell.new and not come[cell.new]):
            left.append(cell)
            continue
        gone[cell.old] -= 1
        come[cell.new] -= 1
        places.append(cell.place)
    cells[:] = left
    return "" if not places else places[0] if len(places) == 1 else f"{places[0]} and {len(places) - 1:,} more"


def _runs(lines: Sequence[str]) -> set[str]:
    """Return the texts that a cell of a document can have: none, or a few whole lines of it, without white space."""
    texts = [_letters(line) for line in lines]
    return {"", *("".join(texts[at : at + many]) for at in range(len(texts)) for many in range(1, _MOST_LINES + 1))}


def _letters(text: str) -> str:
    return "".join(text.split())


def _same_tables(old: Sequence[_Table], new: Sequence[_Table]) -> Iterator[tuple[_Table, _Table]]:
    """Yield the tables of both, paired by caption and columns, and the others in order if there are as many."""
    waiting: dict[tuple[str, tuple[str, ...]], list[_Table]] = defaultdict(list)
    for table in reversed(old):
        waiting[table.caption, tuple(table.columns)].append(table)
    left: list[_Table] = []
    for table in new:
        same = waiting[table.caption, tuple(table.columns)]
        if same:
            yield same.pop(), table
        else:
            left.append(table)
    kept = {id(table) for same in waiting.values() for table in same}
    others = [table for table in old if id(table) in kept]
    if len(others) == len(left):
        yield from zip(others, left, strict=True)


def _tables(markup: str) -> list[_Table]:
    tree: LexborHTMLParser = parse(markup)
    # a table that contains tables is there for the layout
    nodes = [node for node in tree.css("table")[:_MOST_TABLES] if len(node.css("table")) <= 1]
    found: list[_Table] = []
    left = _MOST_CELLS
    for node in nodes:
        grid, heads = _grid(node, left)
        left -= sum(map(len, grid))
        table = _table(node, grid, heads)
        found += [] if table is None else [table]
    return found


def _table(node: LexborNode, grid: list[list[str]], heads: list[list[bool]]) -> _Table | None:
    if len(grid) < 2 or max(map(len, grid)) < 2:
        return None
    first = _heads(node, grid, heads)
    names = grid[first - 1] if first else []
    columns = _unique(names[at] if at < len(names) else "" for at in range(max(map(len, grid))))
    labels = _unique((_label(cells, heads[at]) for at, cells in enumerate(grid) if at >= first), "row")
    caption = node.css_first("caption")
    return _Table(
        caption="" if caption is None else _text(caption),
        columns={name: at for at, name in enumerate(columns)},
        rows=dict(zip(labels, grid[first:], strict=True)),
    )


def _grid(node: LexborNode, most: int) -> tuple[list[list[str]], list[list[bool]]]:
    """Return the texts of the cells by row, repeated for each column and row they span, and which are headings.

    Rows after `most` cells are left out.
    """
    grid: list[list[str]] = []
    heads: list[list[bool]] = []
    spans: dict[int, tuple[int, str, bool]] = {}
    for row in node.css("tr")[:_MOST_ROWS]:
        texts: list[str] = []
        are_heads: list[bool] = []
        for cell in (child for child in row.iter() if child.tag in ("td", "th")):
            _fill(texts, are_heads, spans)
            text, is_head = _text(cell), cell.tag == "th"
            for _ in range(_span(cell, "colspan")):
                if len(texts) < _MOST_COLUMNS:
                    spans[len(texts)] = _span(cell, "rowspan") - 1, text, is_head
                    texts.append(text)
                    are_heads.append(is_head)
        _fill(texts, are_heads, spans)
        most -= len(texts)
        if most < 0:
            break
        grid.append(texts)
        heads.append(are_heads)
    return grid, heads


def _fill(texts: list[str], heads: list[bool], spans: dict[int, tuple[int, str, bool]]) -> None:
    """Add the cells of rows above that span this row."""
    while spans.get(len(texts), (0, "", False))[0] > 0:
        left, text, is_head = spans[len(texts)]
        spans[len(texts)] = left - 1, text, is_head
        texts.append(text)
        heads.append(is_head)


def _heads(node: LexborNode, grid: Sequence[Sequence[str]], heads: Sequence[Sequence[bool]]) -> int:
    """Return how many rows at the top are headings of columns."""
    marked = len(node.css("thead tr"))
    if 0 < marked < len(grid):
        return marked
    if heads[0] and sum(heads[0]) > 1:
        return 1
    # nothing is marked as a heading: the first row counts as one if it has no digits
    unmarked = not any(any(row) for row in heads)
    return int(unmarked and not any(character.isdigit() for text in grid[0] for character in text))


def _label(cells: Sequence[str], heads: Sequence[bool]) -> str:
    """Return the name of a row: its own heading, or its first cell, unless that is the row's rank in the table."""
    own = [text for text, is_head in zip(cells, heads, strict=True) if is_head and text]
    if own:
        return own[0]
    first = next(iter(cells), "")
    return cells[1] if len(cells) > 1 and _RANK.fullmatch(first) and any(map(str.isalpha, cells[1])) else first


def _unique(names: Iterator[str], noun: str = "column") -> list[str]:
    """Return the names made unique: a number for empty ones, and one added to repeated ones."""
    found: list[str] = []
    times: Counter[str] = Counter()
    for number, given in zip(count(1), names, strict=False):
        name = given or f"{noun} {number}"
        times[name] += 1
        found.append(name if times[name] == 1 else f"{name} ({times[name]})")
    return found


def _at(cells: Sequence[str], at: int) -> str:
    return cells[at] if at < len(cells) else ""


def _span(cell: LexborNode, name: str) -> int:
    value = cell.attributes.get(name) or "1"
    return max(1, min(int(value), _MOST_COLUMNS)) if value.isascii() and value.isdigit() else 1


def _text(node: LexborNode) -> str:
    # without it, the words of two blocks would run together
    separator = " " if node.css_first("p, div, br, li") else ""
    return " ".join(node.text(separator=separator).split())


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"
