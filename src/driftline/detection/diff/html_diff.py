"""Render the difference of two versions as one HTML document to read in a browser, to send or to print.

The document is inert: every text is escaped, it has no script, no external link and nothing to load, and its own
Content-Security-Policy forbids everything but its style.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from driftline.detection.diff.align import AlignedLine, align
from driftline.detection.diff.lines import match
from driftline.detection.diff.markup import sentence
from driftline.detection.diff.text_diff import Move, WordPiece, in_line, moves_of
from driftline.detection.messages import words_changed
from driftline.plurals import count
from driftline.urls import without_password
from driftline.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from driftline.detection.diff.markup import MarkupChange
    from driftline.detection.diff.tables import ChangedCell
    from driftline.model.change import Change
    from driftline.model.outcome import Version

_CONTEXT = 3  # unchanged lines shown before and after a change
_FEW_CELLS, _SHORT_CELLS = 10, 1_000  # characters of all: longer cells are easier to read among the lines
_FOLDED = 2  # lines: fewer take no more room than the line that replaces them

# characters that would control how a text is shown, or are none, are replaced by their code points
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufff9-\ufffb" + "".join(
    f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
)
_CONTROL = re.compile(f"[{_CONTROLS}]")
# in what changed, also characters of no width: they may be all that changed
_UNSEEN = re.compile(f"[{_CONTROLS}\u00ad\u061c\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]")
_TAGS = {"added": "ins", "removed": "del"}

_STYLE = """
:root {
  color-scheme: light dark;
  --page: #fff; --ink: #1c2128; --quiet: #656d76; --rule: #d8dee4; --tint: #f6f8fa;
  --added: #116329; --added-tint: #dafbe1; --removed: #a40e26; --removed-tint: #ffebe9;
  --moved: #0550ae; --moved-tint: #ddf4ff;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --page: #0d1117; --ink: #e6edf3; --quiet: #8d96a0; --rule: #30363d; --tint: #161b22;
    --added: #7ee787; --added-tint: #12361f; --removed: #ffa198; --removed-tint: #4a1a1d;
    --moved: #a5d6ff; --moved-tint: #12325a;
  }
}
* { box-sizing: border-box; }
html { background: var(--page); color: var(--ink); -webkit-text-size-adjust: 100%; }
body { font: 1rem/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 56rem; padding: 1.5rem 1rem; }
h1, p, li, summary { overflow-wrap: anywhere; unicode-bidi: plaintext; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; }
header { border-bottom: 1px solid var(--rule); margin-bottom: 1.25rem; padding-bottom: 1rem; }
header p { margin: .25rem 0; }
header .reason { font-size: 1.0625rem; margin-top: .75rem; }
section { margin-bottom: 1rem; }
section p { margin: 0; }
ul { margin: .25rem 0; padding-inline-start: 1.25rem; }
li li { color: var(--quiet); font-size: .875rem; }
.cells > li { margin-bottom: .35rem; }
.quiet, footer { color: var(--quiet); font-size: .875rem; }
footer { border-top: 1px solid var(--rule); margin-top: 1.5rem; padding-top: .75rem; }
ins, del, .moved {
  border-radius: .2em; padding: .05em .15em; -webkit-box-decoration-break: clone; box-decoration-break: clone;
}
ins { background: var(--added-tint); color: var(--added); text-decoration: underline; text-underline-offset: .2em; }
del { background: var(--removed-tint); color: var(--removed); text-decoration: line-through; }
.moved { background: var(--moved-tint); color: var(--moved); }
.row { border-inline-start: .25rem solid transparent; display: flex; gap: .75rem; padding: .2rem 0 .2rem .25rem; }
.row > p { flex: 1; margin: 0; min-width: 0; }
.at {
  color: var(--quiet); flex: 0 0 3.25rem; font-size: .75rem; font-variant-numeric: tabular-nums; line-height: 1.55rem;
  -webkit-user-select: none; user-select: none; text-align: end; white-space: nowrap;
}
.same > p { color: var(--quiet); }
.row.added { border-color: var(--added); } .added > .at::before { content: "+ "; }
.row.removed { border-color: var(--removed); } .removed > .at::before { content: "− "; }
.row.edited { border-color: var(--quiet); } .edited > .at::before { content: "~ "; }
.row.came, .away { border-color: var(--moved); } .came > .at::before, .left > .at::before { content: "⇅ "; }
.note {
  border-inline-start: .25rem solid var(--moved); color: var(--moved); font-size: .875rem; margin: 0;
  padding: .2rem 0 0 4.25rem;
}
.note a, .away a { color: inherit; }
.pictures { align-items: start; display: flex; flex-wrap: wrap; gap: 1rem; margin-top: 1.5rem; }
figure { flex: 1 1 20rem; margin: 0; }
figcaption { color: var(--quiet); font-size: .875rem; }
img { border: 1px solid var(--rule); height: auto; max-width: 100%; }
summary { cursor: pointer; }
.fold > summary {
  background: var(--tint); border-radius: .3rem; color: var(--quiet); font-size: .875rem; list-style: none;
  margin: .5rem 0; padding: .25rem; text-align: center;
}
.fold > summary::-webkit-details-marker { display: none; }
.away { border-inline-start: .25rem solid var(--moved); margin: .2rem 0; padding-inline-start: .25rem; }
.away > summary { color: var(--moved); font-size: .875rem; padding-inline-start: 4rem; }
.away .row { border-color: transparent; padding-inline-start: 0; }
:target { outline: 2px solid var(--moved); outline-offset: 2px; }
@media (max-width: 40rem) {
  body { padding: 1rem .75rem; }
  .row { gap: .5rem; }
  .at { flex-basis: 2.5rem; font-size: .6875rem; }
  .note { padding-inline-start: 3.25rem; }
  .away > summary { padding-inline-start: 3rem; }
}
@media print {
  body { max-width: none; padding: 0; }
  ins, del, .moved { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .row { break-inside: avoid; }
}
"""
_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"


def render(
    old: Version, new: Version, kinds: Sequence[MarkupChange], change: Change | None = None,
    cells: Sequence[ChangedCell] = (), pictures: Mapping[int, bytes] | None = None,
) -> str:  # fmt: skip
    """Return an HTML document that shows what differs.

    `change` is the recorded change that led to the newer version. `pictures` are the screenshots (PNG) of the versions
    that have one, by version number.
    """
    policy = f"{_POLICY}; img-src data:" if pictures else _POLICY
    before, after = (version.words for version in (old, new))
    title = _shown(new.title or old.title or without_password(new.url))
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        '<head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{title}: versions {old.number} and {new.number}</title>",
        f"<style>{_STYLE}</style></head>",
        "<body>",
        *_header(old, new, title, _reason(before, after, change)),
        *_kinds(kinds, same_text=before == after),
        *_cells(cells),
        '<main lang="">',
        *_body(before.split("\n"), after.split("\n")),
        "</main>",
        *_pictures(pictures or {}),
        f"<footer>Driftline {__version__}</footer>",
        "</body>",
        "</html>",
    ]
    return "".join(f"{part}\n" for part in parts)


def _reason(before: str, after: str, change: Change | None) -> str:
    if change is not None:
        judged = (
            f"{change.importance}, score {change.score:.2f}"
            if change.said is None
            else f"{change.importance}, as you said"
        )
        headline = "" if change.headline == change.reason else f"<strong>{_shown(change.headline)}</strong><br>"
        return f'{headline}{_shown(change.reason)} <span class="quiet">{judged}</span>'
    if before == after:
        return ""
    found = match(before, after)
    return _shown(words_changed(found.words_added, found.words_removed, found.places))


def _header(old: Version, new: Version, title: str, reason: str) -> Iterator[str]:
    yield f'<header><h1 dir="auto">{title}</h1>'
    yield f'<p class="quiet">{_shown(without_password(new.url))}</p>'
    yield f'<p class="quiet">Version {old.number}, {_time(old.at)} → version {new.number}, {_time(new.at)}</p>'
    if reason:
        yield f'<p class="reason">{reason}</p>'
    yield '<p class="quiet"><ins>added</ins> <del>removed</del> <span class="moved">moved</span></p></header>'


def _kinds(kinds: Sequence[MarkupChange], *, same_text: bool) -> Iterator[str]:
    """Yield what differs besides the text, so that the document is not empty where the text is the same."""
    if not kinds:
        if same_text:
            yield "<section><p>The two versions are equal.</p></section>"
        return
    summary = _shown(sentence(kinds, same_text=same_text))
    examples = [kind for kind in kinds if kind.examples]
    if not examples:
        yield f"<section><p>{summary}</p></section>"
        return
    yield f"<section><details{' open' if same_text else ''}><summary>{summary}</summary><ul>"
    for kind in examples:
        items = "".join(f'<li dir="auto">{_shown(example)}</li>' for example in kind.examples)
        yield f"<li>{_shown(kind.words)}<ul>{items}</ul></li>"
    yield "</ul></details></section>"


def _cells(cells: Sequence[ChangedCell]) -> Iterator[str]:
    """Yield the table cells that changed, by column and row."""
    if not cells:
        return
    heading = count(len(cells), "table cell")
    is_short = len(cells) <= _FEW_CELLS and sum(len(cell.old) + len(cell.new) for cell in cells) <= _SHORT_CELLS
    yield f'<section><details{" open" if is_short else ""}><summary>{heading} changed</summary><ul class="cells">'
    for cell in cells:
        pieces = "".join(map(_piece, in_line(cell.old, cell.new)))
        yield f'<li dir="auto"><b>{_shown(cell.place)}:</b> {pieces}</li>'
    yield "</ul></details></section>"


def _pictures(pictures: Mapping[int, bytes]) -> Iterator[str]:
    if pictures:
        yield '<section class="pictures">'
        for number, data in sorted(pictures.items()):
            name, source = f"Version {number}", f"data:image/png;base64,{b64encode(data).decode()}"
            yield f'<figure><figcaption>{name}</figcaption><img alt="{name}" src="{source}"></figure>'
        yield "</section>"


def _body(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    rows = align(old, new)
    runs = [(same, list(run)) for same, run in groupby(rows, key=lambda row: row.kind == "same")]
    for number, (same, run) in enumerate(runs):
        if same:
            yield from _stayed(run, new, first=number == 0, last=number == len(runs) - 1)
        else:
            yield from _place(run, old, new)


def _stayed(rows: Sequence[AlignedLine], new: Sequence[str], *, first: bool, last: bool) -> Iterator[str]:
    """Yield unchanged lines: those next to a change are shown, the others are folded."""
    head, tail = 0 if first else _CONTEXT, 0 if last else _CONTEXT
    folded = len(rows) - head - tail
    if folded < _FOLDED:
        head, folded = len(rows), 0
    lines = [_line("same", row.new, _shown(new[row.new])) for row in rows]
    yield from lines[:head]
    if folded:
        yield f'<details class="fold"><summary>… {folded:,} lines unchanged …</summary>'
        yield from lines[head : head + folded]
        yield "</details>"
        yield from lines[head + folded :]


def _place(rows: Sequence[AlignedLine], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for move, block in groupby(moves_of(rows), key=lambda pair: pair[1]):
        lines = [row for row, _ in block]
        if move is None:
            yield from (_changed_line(row, old, new) for row in lines)
        elif move.arrived:
            yield f'<p class="note" id="to-{move.to_line}">{_moved(lines, move)}</p>'
            yield from (_line(row.kind, row.new, _marked("moved", new[row.new])) for row in lines)
        else:
            yield f'<details class="away" id="from-{move.from_line}"><summary>{_moved(lines, move)}</summary>'
            yield from (_line(row.kind, row.old, _marked("moved", old[row.old])) for row in lines)
            yield "</details>"


def _moved(rows: Sequence[AlignedLine], move: Move) -> str:
    lines = count(len(rows), "line")
    if move.arrived:
        return f'{lines} moved here from <a href="#from-{move.from_line}">line {move.from_line:,}</a>'
    return f'{lines} moved to <a href="#to-{move.to_line}">line {move.to_line:,}</a>'


def _changed_line(row: AlignedLine, old: Sequence[str], new: Sequence[str]) -> str:
    if row.kind == "removed":
        return _line(row.kind, row.old, _marked("removed", old[row.old]))
    if row.kind == "added":
        return _line(row.kind, row.new, _marked("added", new[row.new]))
    return _line(row.kind, row.new, "".join(map(_piece, in_line(old[row.old], new[row.new]))))


def _piece(piece: WordPiece) -> str:
    return _shown(piece.text) if piece.kind == "same" else _marked(piece.kind, piece.text)


def _marked(kind: str, text: str) -> str:
    shown = escape(_UNSEEN.sub(_name, text))
    # a space at either end is not marked, unless it is all that changed
    inner = shown.strip(" ") or shown
    before, after = shown.split(inner, 1) if shown else ("", "")
    tag = _TAGS.get(kind)
    return before + (f"<{tag}>{inner}</{tag}>" if tag else f'<span class="moved">{inner}</span>') + after


def _line(kind: str, at: int, content: str) -> str:
    return f'<div class="row {kind}"><span class="at">{at + 1}</span><p dir="auto">{content}</p></div>'


def _shown(text: str) -> str:
    """Return the text escaped for an element or an attribute, without control characters."""
    return escape(_CONTROL.sub(_name, text))


def _name(found: re.Match[str]) -> str:
    return f"⟨U+{ord(found.group()):04X}⟩"


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M UTC")
