"""The common result of all formats, and helpers to make it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_LINES = 200_000  # a document with more is compared as plain text
MOST_CHARACTERS = 50_000_000
_UNFIT_FOR_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormattedText:
    """A document as lines of text, and its title.

    `compared` has the same lines in a canonical order, for a format in which order means nothing; otherwise None.
    """

    lines: Sequence[str]
    compared: Sequence[str] | None = None
    title: str = ""


def folded(text: str) -> str:
    """Return the text on one line, its white space folded."""
    return " ".join(text.split())


def fit_for_xml(text: str) -> bytes:
    """Return the text for lxml, which rejects characters that XML does not allow, such as controls."""
    return _UNFIT_FOR_XML.sub(" ", text).encode()


def bounded(lines: Iterable[str]) -> list[str] | None:
    """Return the lines; None if they are too many or too long: a path may repeat a long name on each of them."""
    kept: list[str] = []
    characters = 0
    for line in lines:
        kept.append(line)
        characters += len(line)
        if len(kept) > MOST_LINES or characters > MOST_CHARACTERS:
            return None
    return kept


def as_text(value: object) -> str:
    """Return what an XPath expression found, if that is no element: a number without '.0', and true or false."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)


#: what `owner_of` calls a text, as opposed to the name of an attribute
TEXT = ""


def owner_of(value: object) -> tuple[Any, str]:
    """Return the element that a value found by XPath is in, None if it is in none, and which attribute it is."""
    parent = getattr(value, "getparent", lambda: None)()
    if parent is not None and getattr(value, "is_tail", False):
        parent = parent.getparent()  # a text after an element belongs to the one around it
    return parent, getattr(value, "attrname", None) or TEXT
