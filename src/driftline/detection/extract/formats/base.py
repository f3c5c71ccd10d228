"""What every format is turned into."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_LINES = 200_000  # a document with more is taken as it is
_MOST_LETTERS = 50_000_000
_UNFIT_FOR_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class FormattedText:
    """A document as lines that read well, and what it calls itself.

    `compared` holds the same lines in an order in which they may be compared, where the order of the document means
    nothing; it is None where that order counts.
    """

    lines: Sequence[str]
    compared: Sequence[str] | None = None
    title: str = ""


def folded(text: str) -> str:
    """The text on one line, no space twice."""
    return " ".join(text.split())


def fit_for_xml(text: str) -> bytes:
    """The text for lxml, which takes nothing that XML does not allow, as control characters."""
    return _UNFIT_FOR_XML.sub(" ", text).encode()


def bounded(lines: Iterable[str]) -> list[str] | None:
    """The lines; None if they are more than anybody reads, or longer: a path may repeat a long name on each of them."""
    kept: list[str] = []
    letters = 0
    for line in lines:
        kept.append(line)
        letters += len(line)
        if len(kept) > MOST_LINES or letters > _MOST_LETTERS:
            return None
    return kept
