"""The markup of versions: what differs between two besides text (links, media, metadata, …), and canonical links."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from ada_url import join_url
from selectolax.lexbor import LexborHTMLParser

from driftline.detection.diff.align import gaps
from driftline.detection.extract.annotations import CANONICAL, attributes_of, beginning, metadata_of, source_of
from driftline.detection.extract.charset import decode_text
from driftline.detection.extract.formats.base import folded
from driftline.detection.messages import also_changed, listed, old_to_new, short
from driftline.plurals import count
from driftline.urls import without_password

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from selectolax.lexbor import LexborNode

    from driftline.model.outcome import Version

MarkupPart = Literal["address", "type", "metadata", "links", "media", "attributes", "structure", "unseen"]

_Item = TypeVar("_Item")

_UNSEEN = ["noscript", "script", "style", "template"]
_MEDIA = {
    "img": "image", "video": "video", "audio": "audio track", "iframe": "frame", "embed": "embedded object",
    "object": "embedded object",
}  # fmt: skip
_MEDIA_PARTS = {"picture", "source", "track", "param"}
_LINKS = {"a": "link", "area": "link"}
_ADDRESSES = ("href", "src", "data-src", "srcset", "data")
_LABELS = ("alt", "aria-label", "title")
_HTML = ("text/html", "application/xhtml+xml", "")
_CODE = "scripts, styles or invisible attributes"
_UNREAD = "words that are hidden or left out by filters"
_EXAMPLES = 5
_LONGEST_LABEL = 1_000  # characters that are compared
_MORE_TAGS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkupChange:
    """One kind of difference: how many there are, as a number and in words ('3 links'), and the first few."""

    name: MarkupPart
    count: int
    words: str
    examples: tuple[str, ...] = ()


class _Target(NamedTuple):
    """The address of a link or a medium, and its label."""

    noun: str
    label: str
    address: str


def kinds_between(old: Version, new: Version) -> list[MarkupChange]:
    """Return how two versions differ besides their text: at least in one kind if their text is the same."""
    found: list[MarkupChange] = []
    if old.final_url != new.final_url:
        example = old_to_new(without_password(old.final_url), without_password(new.final_url))
        found.append(MarkupChange(name="address", count=1, words="the address it was found at", examples=(example,)))
    if old.content_type != new.content_type:
        example = old_to_new(old.content_type, new.content_type)
        found.append(MarkupChange(name="type", count=1, words="the content type", examples=(example,)))
    markup = (decoded(old), decoded(new)) if is_html(old) and is_html(new) else None
    if markup is not None:
        found += kinds(*markup)
    if not found and old.text == new.text and old.body != new.body:
        unread = markup is not None and markup[0] != markup[1]
        found.append(MarkupChange(name="unseen", count=1, words=_UNREAD if unread else "the bytes it was sent as"))
    return found


def kinds(old: str, new: str) -> list[MarkupChange]:
    """Return how two HTML documents differ besides their text.

    The structure is compared only if the text is the same: new text has its own tags. Where nothing else differs, the
    difference is in invisible parts of the document.
    """
    if old == new:
        return []
    before, after = parse(old), parse(new)
    found = [
        *_metadata(before, after),
        *_targets("links", _found(before, _LINKS), _found(after, _LINKS)),
        *_targets("media", _found(before, _MEDIA), _found(after, _MEDIA)),
        *_attributes(before, after),
    ]
    if _letters(before) != _letters(after):
        return found
    found += _structure(before, after)
    return found or [MarkupChange(name="unseen", count=1, words=_CODE)]


def sentence(found: Sequence[MarkupChange], *, same_text: bool) -> str:
    """Return the sentence that names these kinds; empty if there are none."""
    if not found:
        return ""
    words = listed([kind.words for kind in found])
    return f"The text is the same; {words} changed." if same_text else also_changed(words)


def is_html(version: Version) -> bool:
    """Return whether a version is an HTML document."""
    return version.content_type in _HTML and version.charset != "binary"


def decoded(version: Version) -> str:
    """Return the markup of a version."""
    return decode_text(version.body, f"text/html; charset={version.charset}")[0]


def parse(markup: str) -> LexborHTMLParser:
    """Return the parsed document without scripts, styles, templates and noscript."""
    tree = LexborHTMLParser(markup)
    tree.strip_tags(_UNSEEN)
    return tree


def _letters(tree: LexborHTMLParser) -> str:
    return "" if tree.body is None else "".join(tree.body.text().split())


def _metadata(old: LexborHTMLParser, new: LexborHTMLParser) -> list[MarkupChange]:
    before, after = metadata_of(old), metadata_of(new)
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if not names:
        return []
    examples = tuple(f"{name}: {old_to_new(before.get(name, ''), after.get(name, ''))}" for name in names)
    return [MarkupChange(name="metadata", count=len(names), words=listed(names), examples=examples)]


def _attributes(old: LexborHTMLParser, new: LexborHTMLParser) -> list[MarkupChange]:
    """Return the visible attributes that differ, except the labels of media, which `_targets` compares."""
    before, after = ([(noun, text) for _, noun, text in attributes_of(tree) if noun != "alt"] for tree in (old, new))
    removed, added = _left_over(before, after), _left_over(after, before)
    if not removed and not added:
        return []
    changed = [
        (noun, [text for other, text in removed if other == noun], [text for other, text in added if other == noun])
        for noun in dict.fromkeys(noun for noun, _ in (*removed, *added))
    ]
    counts = [(noun, max(len(gone), len(come))) for noun, gone, come in changed]
    examples = [
        f"{noun}: {old_to_new(one, other)}"
        for noun, gone, come in changed
        for one, other in zip_longest(gone, come, fillvalue="")
    ]
    return [
        MarkupChange(
            name="attributes", count=sum(many for _, many in counts),
            words=listed([count(many, noun) for noun, many in counts]), examples=tuple(examples[:_EXAMPLES]),
        )
    ]  # fmt: skip


def _found(tree: LexborHTMLParser, nouns: dict[str, str]) -> list[_Target]:
    body = tree.body
    nodes = [] if body is None else body.css(", ".join(nouns))
    targets = [_Target(nouns[node.tag or ""], _label(node), _address(node)) for node in nodes]
    return [target for target in targets if target.address]


def _address(node: LexborNode) -> str:
    attributes = node.attributes
    own = next((value for name in _ADDRESSES if (value := attributes.get(name))), "")
    return folded(own or source_of(node))


def _label(node: LexborNode) -> str:
    attributes = node.attributes
    return beginning(node, _LONGEST_LABEL) or next(
        (label for name in _LABELS if (label := folded(attributes.get(name) or ""))), ""
    )


def _targets(name: MarkupPart, old: Sequence[_Target], new: Sequence[_Target]) -> list[MarkupChange]:
    """Return the links or media that differ, paired by their labels first, then by their addresses."""
    removed = _left_over(old, new)
    added = _left_over(new, old)
    changed = _paired(removed, added, by_label=True)
    renamed = _paired(removed, added, by_label=False)
    if name == "media":
        changed += renamed  # the label of a link is text, that of an image is not
    counts = Counter(target.noun for target in [one for one, _ in changed] + removed + added)
    if not counts:
        return []
    examples = [_described(one, other) for one, other in changed]
    examples += [f"removed: {_named(target)}" for target in removed] + [f"added: {_named(target)}" for target in added]
    return [
        MarkupChange(
            name=name, count=counts.total(), words=listed([count(many, noun) for noun, many in counts.items()]),
            examples=tuple(examples[:_EXAMPLES]),
        )
    ]  # fmt: skip


def _left_over(these: Iterable[_Item], others: Iterable[_Item]) -> list[_Item]:
    """Return those of these that the others do not have, or have less often, in order."""
    extra = Counter(these) - Counter(others)
    found: list[_Item] = []
    for target in these:
        if extra[target] > 0:
            extra[target] -= 1
            found.append(target)
    return found


def _paired(removed: list[_Target], added: list[_Target], *, by_label: bool) -> list[tuple[_Target, _Target]]:
    """Return those that became each other, and remove them from both lists."""

    def key(target: _Target) -> tuple[str, str]:
        return target.noun, target.label if by_label else target.address

    waiting: dict[tuple[str, str], list[_Target]] = defaultdict(list)
    for target in reversed(added):
        waiting[key(target)].append(target)
    pairs = [(target, waiting[key(target)].pop()) for target in removed if waiting[key(target)]]
    old, new = (Counter(side) for side in zip(*pairs, strict=True)) if pairs else (Counter(), Counter())
    removed[:] = (Counter(removed) - old).elements()
    added[:] = (Counter(added) - new).elements()
    return pairs


def _structure(old: LexborHTMLParser, new: LexborHTMLParser) -> list[MarkupChange]:
    before, after = _tags(old), _tags(new)
    places = gaps(before, after)
    if not places:
        return []
    total = sum(max(j - i, m - k) for i, j, k, m in places)
    examples = tuple(old_to_new(_row(before[i:j]), _row(after[k:m])) for i, j, k, m in places[:_EXAMPLES])
    return [MarkupChange(name="structure", count=total, words=count(total, "tag"), examples=examples)]


def _tags(tree: LexborHTMLParser) -> list[str]:
    """Return the tags of the body in order, except those of links and media."""
    nodes = [] if tree.body is None else tree.body.css("*")
    compared = _LINKS.keys() | _MEDIA.keys() | _MEDIA_PARTS
    return [tag for node in nodes if (tag := node.tag or "") not in compared]


def _row(tags: Sequence[str]) -> str:
    return " ".join([f"<{tag}>" for tag in tags[:_MORE_TAGS]] + (["…"] if len(tags) > _MORE_TAGS else []))


def _described(one: _Target, other: _Target) -> str:
    if one.label != other.label:
        return f"{short(one.address)}: {old_to_new(one.label, other.label)}"
    return f"{short(one.label)}: {old_to_new(one.address, other.address)}".removeprefix(": ")


def _named(target: _Target) -> str:
    return f"{short(target.label)}: {short(target.address)}".removeprefix(": ")


def declared_address(version: Version) -> str | None:
    """Return the absolute `rel=canonical` address of an HTML page; None if it has none, or none with http or https.

    A page may name any address there, so it must not be used to identify the page.
    """
    if not is_html(version):
        return None
    tree = LexborHTMLParser(decoded(version))
    target = metadata_of(tree).get(CANONICAL)
    if not target:
        return None
    base = tree.css_first("base[href]")
    try:
        start = version.final_url if base is None else join_url(version.final_url, base.attributes.get("href") or "")
        address = join_url(start, target)
    except ValueError:
        return None
    return address if address.startswith(("http://", "https://")) else None
