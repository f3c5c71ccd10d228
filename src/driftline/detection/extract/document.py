"""Extract the visible text of a document, one block a line, and its letters: the text without any white space.

Letters are compared first: two documents with equal letters have the same text, however their white space, entities
and tags are written, and letters cost far less than well-formed lines, which only a new version needs. The work is done
by the parser's own loops: to visit the nodes in Python would cost more than everything else in a check.

Markup that is nested too deep for any parser is refused: at each tag a parser goes through all open tags, so that deep
nesting takes quadratic time. A quick count of the tags refuses it in milliseconds. End tags without start tags can
mislead the count; then the deadline of the worker applies.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser

from driftline.detection.extract.annotations import BUTTONS, MEDIA_UNSEEN, metadata_lines, set_notes, structure_line
from driftline.detection.extract.charset import decode_text, is_utf_8
from driftline.detection.extract.filters import nothing_left, parts_without_elements, sieve_of
from driftline.detection.extract.formats import sniff
from driftline.detection.extract.formats.base import FormattedText, folded
from driftline.detection.extract.offers import offer_lines
from driftline.detection.extract.regions import (
    BREAK,
    INLINE,
    Blocks,
    folded_lines,
    has_marks,
    read_marks,
    set_marks,
    without_marks,
)
from driftline.detection.extract.selectors import main_content, refine
from driftline.detection.extract.visibility import (
    drop_hidden,
    has_comments_in_text,
    mark_opened,
    remove_comments,
    shows_templates,
    with_templates_shown,
)
from driftline.errors import FailureKind, UnreadableBody
from driftline.model.page import Also, FilterKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from selectolax.lexbor import LexborNode

_UNSEEN = [
    "audio", "canvas", "iframe", "noscript", "object", "script", "style", "svg", "template", "video", "wbr",
]  # fmt: skip
_INLINE = ", ".join(INLINE)
_SIDE_BY_SIDE = "a + a"
_WHITE_SPACE = b"\t\n\r\f\v\x00"  # without the space: 'log in' is not 'login'
_NO_BREAK_SPACE = "\u00a0"
_DEEPEST = 10_000  # levels: browsers stop at some hundred, and parsing so many takes a quarter of a second
_SHORTEST = len(b"<b>")
_STRIDE = 61  # bytes: a prime, so that no repeated tag has the same period
_BLOCKS = 64
# tags that need no end tag
_UNNESTED = (
    "p|li|td|th|tr|dt|dd|option|optgroup|thead|tbody|tfoot|colgroup|rp|rt"
    "|area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr"
)
_TAG = re.compile(rf"<(/?)(?!(?:{_UNNESTED})[\s/>])[a-z](?:[^<>]*[^<>/])?(/?)>".encode(), re.IGNORECASE)


class Extraction:
    """A decoded body, extracted through the filters of its page, each part when it is first needed."""

    def __init__(self, body: bytes, content_type: str, filters: Sequence[Sequence[str]] | None = None) -> None:
        self.content_type = content_type.partition(";")[0].strip().lower()
        kind = sniff.real_type(body, self.content_type)
        self._sieve = sieve = sieve_of(filters)
        self._tree: LexborHTMLParser | None = None
        self.is_page = False  # whether it is HTML
        self._formatted = FormattedText(lines=())
        self._blocks: Blocks | None = None
        self._metadata: list[str] = []
        self._main: Sequence[str] = ()  # lines of the main content, if that is selected beside other parts
        steps, also = ((), frozenset[str]()) if sieve is None else (sieve.steps, sieve.also)
        unread = sniff.render_binary(body, kind, steps)
        if unread is not None:
            self._formatted, self.charset = unread, "binary"
            return
        if sieve is not None and sieve.reads:
            if sieve.names_elements:
                raise parts_without_elements(sieve)
            shown = Extraction(body, content_type)  # error pages and warnings are about the page, however it is read
            self.charset, self.is_page = shown.charset, shown.is_page
            text = decode_text(body, content_type)[0]
            lines = text.splitlines() if sieve.reads_source else offer_lines(text if self.is_page else "")
            self._formatted = FormattedText(lines=lines, title=shown.title())
            return
        templates = shows_templates(body)
        plain = not (steps or also or templates)
        if plain and sniff.is_html("", kind) and is_utf_8(body, content_type) and not has_marks(body):
            refuse_deep(body)
            self._tree, self.charset, self.is_page = _parse(body), "utf-8", True
            return
        text, self.charset = decode_text(body, content_type)
        if sniff.is_html(text, kind):
            refuse_deep(text)
            markup = with_templates_shown(text) if templates else text
            markup = refine(mark_opened(markup), steps) if steps else markup
            self._tree, self.is_page = _parse(without_marks(markup, noted=bool(also)), also), True
            if sieve is not None and sieve.main and sieve.names_parts:
                drops = [one for one in filters or () if one[0] == FilterKind.DROP]
                self._main = Extraction(body, content_type, [*drops, (FilterKind.SELECT, "main")]).blocks().lines
            if Also.METADATA in also:
                self._metadata = metadata_lines(text)
            if Also.STRUCTURE in also:
                self._metadata.append(structure_line(markup))
        else:
            self._formatted = sniff.render(text, kind, steps)

    def __repr__(self) -> str:
        return f"<Extraction {self.content_type} charset={self.charset} page={self.is_page}>"

    @property
    def is_whole_page(self) -> bool:
        """Return whether it is HTML, and no `select` filter names parts of it."""
        return self.is_page and not (self._sieve and self._sieve.names_parts)

    @property
    def is_narrowed(self) -> bool:
        """Return whether filters leave out any of its text."""
        return self._sieve is not None and self._sieve.narrows

    @property
    def is_selected(self) -> bool:
        """Return whether a filter selects parts of it."""
        return self._sieve is not None and self._sieve.selects

    def letters(self) -> bytes:
        """Return the visible text without white space, except for spaces within a piece of text without tags.

        Space around tags comes and goes with the markup. Two documents with other letters may have the same text.
        """
        if self._sieve is None and self.body is not None:
            return letters_of(self.body.text(separator="\n", strip=True, skip_empty=True))
        compared = self._formatted.compared
        return letters_of("\n".join(self.blocks().lines if compared is None else self._kept(compared)))

    def title(self) -> str:
        """Return the title of the document; empty if it has none."""
        heading = None if self._tree is None else self._tree.css_first("title")
        return self._formatted.title if heading is None else " ".join(heading.text().split())

    def blocks(self) -> Blocks:
        """Return the lines of `text` with their regions. Call it instead of `text`: it costs more."""
        if self._blocks is None:
            self._blocks = self._read_blocks()
        return self._blocks

    def _read_blocks(self) -> Blocks:
        tree, sieve = self._tree, self._sieve
        if tree is None:
            return Blocks(self._kept(self._formatted.lines))
        inline, headings = set_marks(tree)
        blocks = read_marks(_runs(tree, inline), headings, noted=sieve is not None and bool(sieve.also))
        if sieve is None:
            return blocks
        if sieve.selects:
            alone = sieve.main and not sieve.names_parts
            shown = {*self._main}
            lines = main_content(blocks) if alone else [line for line in blocks.lines if line not in shown]
            blocks = blocks.of_lines([*self._main, *lines])
        blocks = blocks.led_by(self._metadata)
        if not sieve.line_steps:
            return blocks
        kept = blocks.made_of(sieve.filtered(blocks.lines))
        if len(blocks) and not len(kept) and not sieve.may_leave_nothing:
            raise nothing_left()
        return kept

    def release_tree(self) -> None:
        """Free the parsed document. What was read before can be read again, and nothing else."""
        if self._blocks is not None:
            self._blocks.release_tree()
        self._tree = None

    @property
    def body(self) -> LexborNode | None:
        """Return the body element without invisible parts; None if it is not HTML. `text` and `blocks` modify it."""
        return None if self._tree is None else self._tree.body

    def text(self) -> str:
        """Return the visible text, one block a line. Call it last: it modifies the parsed document."""
        if self._tree is None or self._sieve is not None:
            return "\n".join(self.blocks().lines)
        return "\n".join(folded_lines(_runs(self._tree, self._tree.css(_INLINE))))

    def _kept(self, lines: Iterable[str]) -> list[str]:
        whole = [text for line in lines if (text := folded(line))]
        if self._sieve is None:
            return whole
        kept = [line for line, _ in self._sieve.filtered(whole)]
        if whole and not kept and not self._sieve.may_leave_nothing:
            raise nothing_left()
        return kept


def letters_of(text: str) -> bytes:
    """Return the text without its white space other than spaces."""
    # replacing it by a space costs half of removing it from the bytes
    return text.replace(_NO_BREAK_SPACE, " ").encode("utf-8", "replace").translate(None, _WHITE_SPACE)


def _runs(tree: LexborHTMLParser, inline: Iterable[LexborNode]) -> str:
    """Return the runs of text between block-level tags, separated by BREAK."""
    for node in tree.css(_SIDE_BY_SIDE):
        # browsers show a gap between two links that have no space between them in the markup
        node.insert_before(" ")
    for node in inline:
        node.unwrap()
    tree.merge_text_nodes()
    body = tree.body
    return "" if body is None else body.text(separator=BREAK, strip=True, skip_empty=True)


def _parse(markup: str | bytes, also: frozenset[str] = frozenset()) -> LexborHTMLParser:
    """Return the parsed document without invisible parts, with notes for the `also` filters."""
    tree = LexborHTMLParser(markup)
    if has_comments_in_text(markup if isinstance(markup, bytes) else markup.encode("utf-8", "replace")):
        remove_comments(tree)
    tree.strip_tags([tag for tag in _UNSEEN if tag not in MEDIA_UNSEEN] if also else _UNSEEN)
    drop_hidden(tree)
    for field in tree.css("input"):
        attributes = field.attributes
        if (attributes.get("type") or "").lower() in BUTTONS:
            field.insert_after(f" {attributes.get('value') or ''} ")
    if also:
        set_notes(tree, also)
        tree.strip_tags(MEDIA_UNSEEN)
    return tree


def refuse_deep(markup: str | bytes) -> None:
    """Raise UnreadableBody if the tags of the markup are nested far deeper than in any real page.

    The cheapest test comes first, and is enough for nearly all pages.
    """
    if len(markup) < _SHORTEST * _DEEPEST:
        return
    body = markup if isinstance(markup, bytes) else markup.encode("utf-8", "replace")
    if body[::_STRIDE].count(b"<") * _STRIDE >= _DEEPEST and _may_be_deep(body) and _is_deep(body):
        raise UnreadableBody(FailureKind.HOSTILE, f"The page is nested more than {_DEEPEST:,} tags deep.")


def _may_be_deep(body: bytes) -> bool:
    """Return whether too many more tags start than end at some point, counting those that need no end tag."""
    size = len(body) // _BLOCKS + 1
    depth = 0
    for start in range(0, len(body), size):
        depth = max(0, depth + body.count(b"<", start, start + size) - 2 * body.count(b"</", start, start + size))
        if depth > _DEEPEST:
            return True
    return False


def _is_deep(body: bytes) -> bool:
    """Return whether too many tags are open at once."""
    depth = 0
    for tag in _TAG.finditer(body):
        end, whole = tag.groups()
        if end:
            depth = max(0, depth - 1)
        elif not whole:
            depth += 1
            if depth > _DEEPEST:
                return True
    return False
