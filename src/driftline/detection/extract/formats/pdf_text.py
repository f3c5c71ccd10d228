"""The text of a PDF. It needs the `pdf` extra."""

from __future__ import annotations

import io
import logging

from driftline.detection.extract.formats.base import FormattedText, folded
from driftline.errors import MissingExtra
from driftline.store.blobs import digest

_MOST_PAGES = 200


def render(body: bytes) -> FormattedText | None:
    """Return the lines of all pages, one page after the other; None if it is encrypted, broken or has no text.

    Raise MissingExtra if the `pdf` extra is not installed.
    """
    try:
        from pypdf import PdfReader
    except ImportError:
        raise MissingExtra("Reading the text of a PDF", "pdf") from None
    logging.getLogger("pypdf").disabled = True  # it logs every oddity of a file
    try:
        document = PdfReader(io.BytesIO(body))
        lines = [folded(line) for page in document.pages[:_MOST_PAGES] for line in page.extract_text().splitlines()]
        title = folded(str((document.metadata and document.metadata.title) or ""))
        more = len(document.pages) - _MOST_PAGES
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 a document that the parser fails on is compared by its bytes
        return None
    if not any(lines):
        return None
    if more > 0:
        lines.append(f"The {more} pages after these are compared by their bytes: digest {digest(body).hex()}.")
    return FormattedText(lines=lines, title=title)
