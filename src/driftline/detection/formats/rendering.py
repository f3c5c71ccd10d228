"""What every format is turned into."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_LINES = 200_000  # a document with more is taken as it is
_UNFIT_FOR_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
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
