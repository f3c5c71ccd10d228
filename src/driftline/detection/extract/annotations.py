"""Annotate the text of a page with what else it has: the addresses of links, media, attributes, metadata, structure.

This is done only for pages with an `also` filter. A note is a line after the line it belongs to, such as
`[link] Price list → example.com/prices-2.pdf`. So it is stored, compared, shown, searched and ignored like text; only
what makes it noise differs (`noise.judge_annotations`). Addresses are written without what changes by itself: scheme,
tracking, session ids, signatures, cache-busters, and for media also the host and the requested size.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser

from driftline.detection.extract.formats.base import folded
from driftline.detection.extract.regions import NOTE, NOTE_END, without_marks
from driftline.model.page import Also

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from selectolax.lexbor import LexborNode

_LINKS = {"a": "link", "area": "link"}
_MEDIA = {
    "img": "image", "video": "video", "audio": "audio", "iframe": "frame", "embed": "embedded", "object": "embedded",
}  # fmt: skip
_SHOWN_AS_FILES = ("img", "video", "audio")
#: tags of media whose contents are shown only by browsers that do not support them
MEDIA_UNSEEN = ["audio", "iframe", "object", "video"]
_FOR_MACHINES = ["noscript", "script", "style", "template"]
_ATTRIBUTES = ("alt", "title", "placeholder", "value", "label")
_FIELDS = {"description": "the description", "robots": "the rule for robots"}
CANONICAL = "the canonical address"
_METADATA = ("the title", *_FIELDS.values(), CANONICAL, "the language")
_STRUCTURE = "the structure"
_KINDS: dict[str, Also] = (
    dict.fromkeys(_LINKS.values(), Also.LINKS)
    | dict.fromkeys(_MEDIA.values(), Also.MEDIA)
    | dict.fromkeys(_ATTRIBUTES, Also.ATTRIBUTES)
    | dict.fromkeys(_METADATA, Also.METADATA)
    | {_STRUCTURE: Also.STRUCTURE}
)
_ADDRESSED = (Also.LINKS, Also.MEDIA)
_ARROW = " → "
_NOTE = re.compile(rf"\[({'|'.join(_KINDS)})\] (.*)", re.DOTALL)
_SOURCES = ("data-src", "data-lazy-src", "data-original", "src", "data-srcset", "srcset", "poster", "data")
_LONGEST_LABEL, _LONGEST_VALUE = 80, 1_000  # characters
_MOST_INSIDE, _MOST_OF_ONE = 100, 10_000  # nodes, and characters of one of them

_NO_TARGET = re.compile(r"#|(?:javascript|data|blob|about):|.*/cdn-cgi/l/email-protection", re.IGNORECASE)
_ADVERTISED = re.compile(
    r"doubleclick\.|googlesyndication|googleadservices|adservice\.|amazon-adsystem|taboola|outbrain|criteo|adnxs|adform\."
    r"|2mdn\.|pubmatic|rubiconproject|//ads?\d*\.|/ads?/|adserver|bannerid=",
    re.IGNORECASE,
)
_STAND_IN = re.compile(
    r"(?:^|[/_.-])(?:placeholder|blank|spacer|pixel|loading|loader|lazy|transparent|1x1|empty|clear|gr[ae]y)(?:[/_.-]|$)",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"(?:https?:)?//", re.IGNORECASE)
_HOST = re.compile(r"(?:https?:)?//[^/?#]*", re.IGNORECASE)
_SESSION_IN_PATH = re.compile(r";(?:jsessionid|phpsessid|sid)=[^/?#;]*", re.IGNORECASE)
_SIZE_IN_NAME = re.compile(r"-\d{2,4}x\d{2,4}(?=\.\w+$)|@[23]x(?=\.\w+$)")
_VOLATILE = re.compile(
    r"(?:utm|mc|pk|mtm|hsa|_?ga|_hs|x-amz|x-goog|_nc)[_-].*|_gl|_ga|(?:fb|g|d)clid|msclkid|yclid|igshid|spm|scm|cmpid|ref"
    r"|referrer|ref_src|sid|session_?id|phpsessid|jsessionid|nonce|_wpnonce|_?csrf(?:_?token)?|authenticity_token"
    r"|_?token|__token__|expires?|signature|sig|key-pair-id|hmac|hdnts|_|ts|timestamp|cb|cachebuster|nocache|rnd"
    r"|rand(?:om)?|bust",
    re.IGNORECASE,
)
# names with other uses too: the value decides
_MAYBE_VOLATILE = re.compile(r"session|state|exp|policy|se|sp|st|sv|sr|oh|oe|time|cache|rev", re.IGNORECASE)
_VOLATILE_IN_FILES = re.compile(
    r"t|v|ver|version|w|h|width|height|q|quality|dpr|fit|auto|fm|format|crop|resize|size|itok|hash|mtime|updated",
    re.IGNORECASE,
)
_VOLATILE_IN_FRAMES = re.compile(r"w|h|width|height", re.IGNORECASE)
# Unix time in seconds or milliseconds, or an ISO date
_TIME = re.compile(r"1\d{9}(?:\d{3})?|\d{4}-?\d\d-?\d\d[T ]\d\d:?\d\d(?::?\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_MIXED = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{8}", re.ASCII)
_OPAQUE = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w+=-]{24,}", re.ASCII)
_NAMES_A_FILE = re.compile(r"id|fid|file|docs?|docid|v", re.IGNORECASE)
_BUILD_IN_PATH = re.compile(r"/v?\d+\.\d+\.\d+(?=/)")
# most frames are invisible: consent, captchas, sign-ins, statistics
_SHOWN_FRAME = re.compile(
    r"embed|player|video|youtu|vimeo|calendar|livestream|slides|docs\.|(?<![a-z])(?:maps?|forms?|charts?)(?![a-z])",
    re.IGNORECASE,
)
_SEEN_VALUES = {"", "text", "email", "search", "tel", "url", "number", "date"}
#: types of fields whose value is their visible label
BUTTONS = ("submit", "button")


class Note(NamedTuple):
    """One note: its noun, its label if it has an address, and that address or its text."""

    kind: Also
    noun: str
    label: str
    value: str

    @property
    def has_address(self) -> bool:
        """Return whether its value is an address."""
        return self.kind in _ADDRESSED


def note_of(line: str) -> Note | None:
    """Return the note that a line is, None if it is text."""
    found = _NOTE.fullmatch(line) if line.startswith("[") else None
    if found is None:
        return None
    noun, content = found.groups()
    kind = _KINDS[noun]
    if kind not in _ADDRESSED:
        return Note(kind, noun, "", content)
    label, arrow, address = f" {content}".rpartition(_ARROW)
    return Note(kind, noun, label.strip(), address) if arrow else None  # a headline may begin with '[video]' too


def is_note(line: str) -> bool:
    """Return whether a line is a note."""
    return note_of(line) is not None


def without_notes(text: str) -> str:
    """Return the text without its notes."""
    return "\n".join(line for line in text.split("\n") if not is_note(line))


def set_notes(tree: LexborHTMLParser, also: Collection[str]) -> None:
    """Insert notes of these kinds into the document, for `regions.read_marks` to find in its text."""
    notes: list[tuple[LexborNode, str]] = []
    if Also.LINKS in also:
        notes += [(node, line) for node in _in_body(tree, "a[href], area[href]") for line in _link(node)]
    if Also.MEDIA in also:
        notes += [(node, line) for node in _in_body(tree, ", ".join(_MEDIA)) for line in _medium(node)]
    if Also.ATTRIBUTES in also:
        notes += [(node, f"[{noun}] {text}") for node, noun, text in attributes_of(tree)]
    # after all notes are made: the text of a link must not contain the note of its image
    for node, line in reversed(notes):
        node.insert_after(f"{NOTE}{without_marks(line, noted=True)}{NOTE_END}")


def metadata_lines(markup: str) -> list[str]:
    """Return the notes of a document's metadata."""
    return [f"[{name}] {value}" for name, value in metadata_of(LexborHTMLParser(markup)).items() if value]


def structure_line(markup: str) -> str:
    """Return the note that counts the visible tags of a document, except those of links and media."""
    tree = LexborHTMLParser(markup)
    tree.strip_tags(_FOR_MACHINES)
    others = _LINKS.keys() | _MEDIA.keys()
    counts = Counter(tag for node in _in_body(tree, "*") if (tag := node.tag or "") not in others)
    return f"[{_STRUCTURE}] {', '.join(f'{tag} {many}' for tag, many in sorted(counts.items()))[:_LONGEST_VALUE]}"


def metadata_of(tree: LexborHTMLParser) -> dict[str, str]:
    """Return the title, description and the like of a document, by their names in a sentence."""
    found: dict[str, str] = {}
    heading = tree.css_first("head title")
    if heading is not None:
        found["the title"] = folded(heading.text())
    for node in tree.css("meta[name][content]"):
        name = _FIELDS.get((node.attributes.get("name") or "").strip().lower())
        if name is not None:
            found.setdefault(name, folded(node.attributes.get("content") or ""))
    for node in tree.css("link[rel][href]"):
        if (node.attributes.get("rel") or "").strip().lower() == "canonical":
            found.setdefault(CANONICAL, folded(node.attributes.get("href") or ""))
    language = None if tree.root is None else tree.root.attributes.get("lang")
    if language:
        found["the language"] = folded(language)
    return found


def attributes_of(tree: LexborHTMLParser) -> list[tuple[LexborNode, str, str]]:
    """Return the visible attributes of a document: element, attribute, value."""
    found: list[tuple[LexborNode, str, str]] = []
    for node in _in_body(tree, "[alt], [title], [placeholder], input[value], [aria-label]"):
        found += [(node, noun, text) for noun, text in seen_attributes(node)]
    return found


def seen_attributes(node: LexborNode) -> list[tuple[str, str]]:
    """Return the visible attributes of one element: attribute, value."""
    return [(noun, text) for noun, value in _seen(node) if (text := folded(value)[:_LONGEST_VALUE])]


def _seen(node: LexborNode) -> Iterator[tuple[str, str]]:
    attributes, tag = node.attributes, node.tag
    if tag in ("img", "area", "input"):
        yield "alt", attributes.get("alt") or ""
    title = folded(attributes.get("title") or "")
    if title and tag not in MEDIA_UNSEEN and title != beginning(node, len(title)):
        yield "title", title
    if tag in ("input", "textarea"):
        yield "placeholder", attributes.get("placeholder") or ""
    if tag == "input" and (attributes.get("type") or "").lower() in _SEEN_VALUES:
        yield "value", attributes.get("value") or ""
    elif (label := attributes.get("aria-label")) and not beginning(node, 0):
        yield "label", label  # it replaces the text that the element does not have


def beginning(node: LexborNode, letters: int) -> str:
    """Return the text of an element, its white space folded, but not much more than `letters` characters."""
    found: list[str] = []
    for inner in _inside(node):
        words = inner.text_content
        if words is not None:
            words = words[:_MOST_OF_ONE]
            found.append(words)
            letters -= len("".join(words.split()))
            if letters < 0:
                break
    return folded("".join(found))


def source_of(node: LexborNode) -> str:
    """Return the address of a medium that has it in a `source` element."""
    sources = (child.attributes.get("src") for child in node.iter() if child.tag == "source")
    return next(filter(None, sources), "")


def _inside(node: LexborNode) -> Iterable[LexborNode]:
    """Return the first nodes in an element: reading all of thousands of nested ones would take quadratic time."""
    return islice(node.traverse(include_text=True), _MOST_INSIDE)


def _link(node: LexborNode) -> Iterator[str]:
    address = (node.attributes.get("href") or "").strip()
    if not address or _NO_TARGET.match(address) or _ADVERTISED.search(address):
        return
    yield _addressed("link", _label(node), _SCHEME.sub("", _kept(address, _VOLATILE), count=1))


def _medium(node: LexborNode) -> Iterator[str]:
    attributes = node.attributes
    if attributes.get("width") in ("0", "1") or attributes.get("height") in ("0", "1"):
        return  # a pixel that counts visits
    named = [(attributes.get(name) or "").strip() for name in _SOURCES]
    named.append(source_of(node).strip())
    for address in named:
        first = address.split()[0].rstrip(",") if address else ""
        if first and not _NO_TARGET.match(first) and not _STAND_IN.search(first):
            if not _ADVERTISED.search(first) and (node.tag != "iframe" or _SHOWN_FRAME.search(first)):
                of_media = _VOLATILE_IN_FILES if node.tag in _SHOWN_AS_FILES else _VOLATILE_IN_FRAMES
                path = _HOST.sub("", _kept(first, _VOLATILE, of_media), count=1)
                path = _SIZE_IN_NAME.sub("", _BUILD_IN_PATH.sub("", path))
                yield _addressed(_MEDIA[node.tag or ""], _label(node), path)
            return


def _addressed(noun: str, label: str, address: str) -> str:
    return f"[{noun}]{f' {label}' if label else ''}{_ARROW}{folded(address)[:_LONGEST_VALUE] or '/'}"


def _label(node: LexborNode) -> str:
    attributes = node.attributes
    named = (folded(attributes.get(name) or "") for name in ("alt", "aria-label", "title"))
    label = beginning(node, _LONGEST_LABEL) or next(filter(None, named), "")
    if not label and node.tag == "a":
        images = (inner.attributes.get("alt") for inner in _inside(node) if inner.tag == "img")
        label = folded(next((alt for alt in images if alt is not None), ""))
    return label[:_LONGEST_LABEL].strip()


def _kept(address: str, *volatile: re.Pattern[str]) -> str:
    """Return the address without its fragment and without parameters that change by themselves."""
    path, _, query = _SESSION_IN_PATH.sub("", address.partition("#")[0]).partition("?")
    parts = [part for part in query.replace("&amp;", "&").split("&") if part and not _is_volatile(part, volatile)]
    return f"{path}?{'&'.join(parts)}" if parts else path


def _is_volatile(parameter: str, patterns: Iterable[re.Pattern[str]]) -> bool:
    name, _, value = (unquote(part) for part in parameter.partition("="))
    if any(pattern.fullmatch(name) for pattern in patterns) or _TIME.fullmatch(value):
        return True
    if _MAYBE_VOLATILE.fullmatch(name) and _MIXED.search(value):
        return True
    return bool(_OPAQUE.fullmatch(value)) and not _NAMES_A_FILE.fullmatch(name)


def _in_body(tree: LexborHTMLParser, selector: str) -> Iterable[LexborNode]:
    return () if tree.body is None else tree.body.css(selector)
