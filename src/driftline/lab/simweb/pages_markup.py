"""The HTML of the simulated web, put together from parts that are written and compressed once.

A page is a list of pieces. Most of it (frame, sections, footer) comes from a pool shared by all pages of a
world, and carries its deflated form with it; only the few hundred bytes that name the page are made for each
page. A response is then a matter of joining bytes, which keeps the server faster than any client measured on
it.
"""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from itertools import accumulate

from isal import igzip_lib, isal_zlib

_FUNCTION_WORDS = """
the of and to in a is that for it as was with be by on not he his but at are this have from or had an they
which one were all we her she there their been if more when will would who so no what up out about into than
them can only other time new some could these two may then do first any my now such like our over me even
most
"""

_ROOTS = """
account acre anchor answer apple archive arrow artist aspect author autumn balance bamboo banner barrel
basin battery beacon benefit bicycle billet blanket blossom border bottle boulder branch bridge bronze
bucket budget builder bullet cabin cable camera candle canvas captain carbon cargo carpet castle cellar
center ceramic chamber channel chapter charter cherry circle citizen climate cloud cluster coast collar
colony column comfort compass concert contract copper corner cotton counter courier cradle credit crystal
current curtain custom dagger damage decade delta deposit desert detail device diamond dinner district
divide doctor domain dragon drawer driver duty editor effort element ember engine escape estate event
exhibit fabric factor family farmer fashion feather figure filter finger flavor flight forest fortune fossil
fountain frame freight friend frontier furnace future galaxy gallery garden garment gateway glacier goblet
grain granite gravel guide habit hammer handle harbor harvest hazard helmet history hollow honey horizon
hunter image impact index insect island ivory jacket journal journey kernel kettle kitchen ladder lantern
leather legend lemon letter level library limit linen liquid locker lumber magnet mantle marble margin
market master matter meadow measure member mentor message metal method mineral mirror module moment monitor
mountain museum music needle network notice novel number object ocean office orbit orchard order outlet
oyster packet paint palace panel paper parcel partner pasture patent pattern pebble pencil pepper permit
phrase picture pillar pilot planet plaster platform pocket poet policy portal powder prairie present prism
profit project pump quarry quarter question quiver rabbit radar rafter railway reason record reef region
relay remedy report reserve result ribbon ridge ritual river rocket saddle sailor sample sandal school
science screen season secret sector sensor shadow shelter shield signal silver sketch socket source spiral
spring stable station statue storage stream street studio summit supply surface symbol system table talent
target temple tender theory ticket timber token tower trail treaty tunnel turbine union valley value velvet
vessel village violin vision voyage wagon warden water weather whistle window winter wonder writer yellow
zenith
"""

_SUFFIXES = ("", "s", "ed", "ing", "er", "less", "like", "wise", "ward", "ful", "ish", "ism")

TIERS = (16_384, 8_192, 4_096, 2_048, 1_024, 512)
"""Sizes in bytes of the sections in a pool, largest first: a page is filled up with them."""

_SECTIONS_PER_TIER = (128, 64, 64, 64, 64, 64)
_FRAMES = 16
_GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_SLOTS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkupPiece:
    """A run of HTML and the same bytes as deflate blocks that end on a byte, so that pieces can be joined."""

    html: bytes
    deflated: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Packed:
    """A body without its tail, as it goes over the wire. What pages share is not copied."""

    parts: tuple[bytes, ...]
    length: int
    gzip: bool
    crc: int
    html_size: int


def compressed(html: bytes) -> MarkupPiece:
    """Return a well compressed piece, for what many pages share."""
    deflater = zlib.compressobj(6, zlib.DEFLATED, -15)
    return MarkupPiece(html=html, deflated=deflater.compress(html) + deflater.flush(zlib.Z_FULL_FLUSH))


def stored(html: bytes) -> MarkupPiece:
    """Return an uncompressed piece, for the few bytes that belong to one page only."""
    length = len(html)
    assert length <= 0xFFFF, "a stored deflate block holds at most 65,535 bytes"
    header = b"\x00" + length.to_bytes(2, "little") + (length ^ 0xFFFF).to_bytes(2, "little")
    return MarkupPiece(html=html, deflated=header + html)


def pack(pieces: list[MarkupPiece], *, gzip: bool) -> Packed:
    """Return the pieces ready to be sent, as the start of a gzip member or uncompressed."""
    html = [piece.html for piece in pieces]
    parts = (_GZIP_HEADER, *[piece.deflated for piece in pieces]) if gzip else tuple(html)
    crc = size = 0
    for part in html:
        crc = isal_zlib.crc32(part, crc)
        size += len(part)
    return Packed(parts=parts, length=sum(map(len, parts)), gzip=gzip, crc=crc, html_size=size)


def ending(packed: Packed, tail: bytes) -> bytes:
    """Return the bytes that complete the packed parts to one body. Their cost depends on the tail alone."""
    if not packed.gzip:
        return tail
    crc = isal_zlib.crc32(tail, packed.crc)
    size = packed.html_size + len(tail)
    last = igzip_lib.compress(tail, 1, igzip_lib.COMP_DEFLATE)
    return last + crc.to_bytes(4, "little") + size.to_bytes(4, "little")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """All that the pages of one world share. Equal seeds give equal pools."""

    words: tuple[str, ...]
    sentences: tuple[str, ...]
    paragraphs: tuple[str, ...]
    frames: tuple[MarkupPiece, ...]
    footers: tuple[MarkupPiece, ...]
    sections: tuple[tuple[MarkupPiece, ...], ...]


class _Writer:
    """Writes text and markup from one stream of random numbers."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        roots = [root + suffix for root in _ROOTS.split() for suffix in _SUFFIXES]
        self._random.shuffle(roots)
        self.words = (*_FUNCTION_WORDS.split(), *roots)
        # Frequencies as in natural text (Zipf), flattened a little so that pages compress as real ones do.
        self._weights = list(accumulate(1.0 / (rank + 12) ** 0.9 for rank in range(len(self.words))))

    def some(self, least: int, most: int) -> list[str]:
        return self._random.choices(self.words, cum_weights=self._weights, k=self._random.randint(least, most))

    def title(self) -> str:
        return " ".join(self.some(3, 7)).capitalize()

    def sentence(self) -> str:
        words = self.some(7, 22)
        if len(words) > 12:
            words[5] += ","
        if self._random.random() < 0.15:
            words[3] = str(self._random.randint(2, 9999))
        return " ".join(words).capitalize() + "."

    def paragraph(self) -> str:
        return " ".join([self.sentence() for _ in range(self._random.randint(2, 6))])

    def token(self) -> str:
        return f"{self._random.getrandbits(40):010x}"

    def path(self) -> str:
        return "/" + "-".join(self.some(2, 4))

    def link(self) -> str:
        return f'<a href="{self.path()}" class="link link--inline">{" ".join(self.some(1, 4))}</a>'

    def card(self) -> str:
        path = " ".join([f"{self._random.randint(0, 240) / 10}" for _ in range(10)])
        image, number = f"/media/{self.token()}", self._random.randint(1, 6)
        return (
            f'<div class="card card--{number}" data-id="{self.token()}" data-track="view">'
            f'<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="M{path}z"/></svg>\n'
            f'<picture><source srcset="{image}-640.webp 640w, {image}-1280.webp 1280w" type="image/webp">'
            f'<img src="{image}.jpg" alt="{self.title()}" width="640" height="360"></picture>\n'
            f'<h3 class="card__title"><a href="{self.path()}">{self.title()}</a></h3>'
            f'<p class="card__text">{self.sentence()}</p></div>\n'
        )

    def block(self) -> str:
        kind = self._random.random()
        if kind < 0.4:
            return f'<p class="text">{self.paragraph()} {self.link()} {self.sentence()}</p>\n'
        if kind < 0.8:
            return self.card()
        if kind < 0.92:
            items = [f'<li class="points__item">{self.sentence()}</li>\n' for _ in range(self._random.randint(3, 6))]
            return f'<ul class="points">\n{"".join(items)}</ul>\n'
        return f"<h3>{self.title()}</h3>\n<blockquote><p>{self.sentence()}</p></blockquote>\n"

    def rows(self) -> str:
        """Return many short blocks: a table with a few words in each cell."""
        cells = "".join([f"<td>{' '.join(self.some(1, 3))}</td>" for _ in range(4)])
        return f"<table><tr>{cells}</tr></table>\n<ul><li>{self.link()}</li><li>{self.title()}</li></ul>\n"

    def section(self, size: int, *, short: bool) -> MarkupPiece:
        opened = f'<section class="block" id="s-{self.token()}">\n<h2>{self.title()}</h2>\n'
        parts, length = [opened], len(opened) + 11
        while length < size:
            # A whole block would overshoot a small section by half of its size.
            whole = self.rows if short else self.block
            part = whole() if size - length > 700 else f"<p>{self.sentence()}</p>\n"
            parts.append(part)
            length += len(part)
        return compressed("".join([*parts, "</section>\n"]).encode())

    def frame(self) -> MarkupPiece:
        rules = "".join(
            f".{word}{{margin:{self._random.randint(0, 40)}px;color:#{self.token()[:6]}}}" for word in self.some(12, 16)
        )
        links = "".join(f"<li>{self.link()}</li>" for _ in range(8))
        return compressed(
            f"""<meta name="description" content="{self.sentence()}">
<meta property="og:type" content="article">
<link rel="icon" href="/assets/{self.token()}.svg">
<link rel="stylesheet" href="/assets/{self.token()}.css">
<style>{rules}</style>
<script>window.site={{"build":"{self.token()}","flags":["{'","'.join(self.some(6, 9))}"]}};</script>
</head>
<body>
<header><a href="/" class="logo">{self.title()}</a>
<nav><ul>{links}</ul></nav></header>
<main><article>
""".encode()
        )

    def footer(self) -> MarkupPiece:
        links = "".join(f"<li>{self.link()}</li>" for _ in range(6))
        return compressed(
            f"""</article></main>
<aside><h2>{self.title()}</h2><ul>{links}</ul></aside>
<footer><p>{self.sentence()}</p>
""".encode()
        )


@lru_cache(maxsize=4)
def pool(seed: int, *, short: bool = False) -> Pool:
    """Return the pool of a seed, of `short` blocks or of all kinds. The first call takes some tenths of a second."""
    write = _Writer(seed)
    return Pool(
        words=write.words,
        sentences=tuple(write.sentence() for _ in range(509)),
        paragraphs=tuple(write.paragraph() for _ in range(509)),
        frames=tuple(write.frame() for _ in range(_FRAMES)),
        footers=tuple(write.footer() for _ in range(_FRAMES)),
        sections=tuple(
            tuple(write.section(size, short=short) for _ in range(count))
            for size, count in zip(TIERS, _SECTIONS_PER_TIER, strict=True)
        ),
    )


def document(pool: Pool, *, page: int, address: str, revision: int, size: int, pick: int) -> list[MarkupPiece]:
    """Return the pieces of a page up to where its tail begins, about `size` bytes in all.

    `pick` is a random number that belongs to the page and decides what it is made of. Each revision edits one
    of four places, in turn: a price in the table, words of the lead, a paragraph, or a list that gets a new
    first item. The last two stand anywhere in the page. Nothing outside of these places differs between
    revisions.
    """
    name = f"Page {page} of host {address}"
    frame = pick % _FRAMES
    top = stored(
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<!-- {name} -->\n'
        f"<title>{name}</title>\n".encode()
    )
    opening = stored(_opening(pool, name, page, revision, pick))
    live = stored(_live(pool, page, revision, pick))
    ends = [top, pool.frames[frame], opening, live, pool.footers[frame]]
    filling = _filling(pool, size - sum([len(piece.html) for piece in ends]) - TAIL_SIZE, pick)
    place = (pick >> 20) % (len(filling) + 1)
    return [*ends[:3], *filling[:place], live, *filling[place:], ends[4]]


def _filling(pool: Pool, size: int, pick: int) -> list[MarkupPiece]:
    """Return sections of about `size` bytes together."""
    found: list[MarkupPiece] = []
    # An odd step through a power of two visits every section once before it repeats one.
    at, step = pick >> 8, (pick >> 32) | 1
    for tier, sections in zip(TIERS, pool.sections, strict=True):
        count = len(sections)
        while size >= tier:
            at += step
            piece = sections[at % count]
            found.append(piece)
            size -= len(piece.html)
    return found


def _last_edit(page: int, revision: int, slot: int) -> int:
    """Return the latest revision up to `revision` that edited this slot of the page; 0 if none did."""
    return max(0, revision - (page + revision - slot) % _SLOTS)


def _opening(pool: Pool, name: str, page: int, revision: int, pick: int) -> bytes:
    edit = _last_edit(page, revision, 1)
    words, sentences = pool.words, pool.sentences
    lead = f"{sentences[pick % len(sentences)]} {words[(pick + edit) % len(words)].capitalize()} comes first."
    rows = []
    for row in range(5):
        cents = 500 + (pick >> row) % 9000 + (137 * _last_edit(page, revision, 0) if row == page % 5 else 0)
        label = words[(pick >> (3 * row)) % len(words)]
        rows.append(f"<tr><td>{label}</td><td>{1 + row}</td><td>${cents // 100}.{cents % 100:02d}</td></tr>\n")
    return (
        f'<h1>{name}</h1>\n<p class="lead">{lead}</p>\n<table class="prices">\n'
        f"<tr><th>Item</th><th>Pieces</th><th>Price</th></tr>\n{''.join(rows)}</table>\n"
    ).encode()


def _live(pool: Pool, page: int, revision: int, pick: int) -> bytes:
    sentences, paragraphs = pool.sentences, pool.paragraphs
    paragraph = paragraphs[(pick + _last_edit(page, revision, 2)) % len(paragraphs)]
    # Items move down by one with each edit of this slot; rounding up makes the first edit count as well.
    newest = pick + -(-_last_edit(page, revision, 3) // _SLOTS)
    items = "".join([f"<li>{sentences[(newest - age) % len(sentences)]}</li>\n" for age in range(4)])
    html = f'<section class="live">\n<p>{paragraph}</p>\n<ul class="latest">\n{items}</ul>\n</section>\n'
    return html.encode()


def tail(*, page: int, hidden: int, visible: int, clock: int, notice: str = "") -> bytes:
    """Return the end of the document, which holds everything that may differ between two responses.

    `hidden` feeds what no reader sees (nonce, form token, cache-buster, comment), `visible` and `clock` (a
    second of the day) what stands in the footer, and `notice` is a sentence there. Equal arguments give equal
    bytes, and the structure is always the same.
    """
    one, two = hidden & 0xFFFFFFFFFFFF, hidden >> 16
    hour, minute, second = clock // 3600 % 24, clock // 60 % 60, clock % 60
    noticed = f'<p class="notice">{escape(notice)}</p>\n' if notice else ""
    return (
        f'{noticed}<p class="clock">Server time {hour:02d}:{minute:02d}:{second:02d}</p>\n'
        f'<p class="views">{visible % 1_000_000} views</p>\n'
        f'<p class="age">Updated {1 + (visible >> 24) % 59} minutes ago</p>\n</footer>\n'
        f'<form action="/search" method="post"><input type="hidden" name="csrf" value="{two:012x}">'
        f'<input type="search" name="q"></form>\n'
        f'<link rel="stylesheet" href="/assets/late.css?v={one:012x}">\n'
        f'<script src="/assets/app.js?cb={one ^ 0x5A5A5A5A5A5A:012x}" nonce="{two ^ one:012x}"></script>\n'
        f'<script nonce="{two ^ one:012x}">window.request="{two:012x}-{page}";</script>\n'
        f"<!-- generated in {one % 900 + 20} ms by node {two % 64} -->\n</body>\n</html>\n"
    ).encode()


TAIL_SIZE = len(tail(page=0, hidden=0, visible=0, clock=0))
