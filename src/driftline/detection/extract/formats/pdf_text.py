"""PDF: the text of its pages, with the `pdf` extra."""

from __future__ import annotations

import io
import logging

from driftline.detection.extract.formats.base import FormattedText, folded
from driftline.errors import MissingExtra
from driftline.store.blobs import digest

_MOST_PAGES = 200


def render(body: bytes) -> FormattedText | None:
    """The lines of all pages, one page after the other; None if it is encrypted, broken or has no text.

    MissingExtra if nothing is installed that can read it.
    """
    try:
        from pypdf import PdfReader
    except ImportError:
        raise MissingExtra("Reading the text of a PDF", "pdf") from None
    logging.getLogger("pypdf").disabled = True  # it tells of every oddity, and nobody listens
    try:
        document = PdfReader(io.BytesIO(body))
        lines = [folded(line) for page in document.pages[:_MOST_PAGES] for line in page.extract_text().splitlines()]
        title = folded(str((document.metadata and document.metadata.title) or ""))
        more = len(document.pages) - _MOST_PAGES
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 whatever a broken document makes the parser raise, it is compared by its bytes
        return None
    if not any(lines):
        return None
    if more > 0:
        lines.append(f"The {more} pages after these are compared by their bytes: digest {digest(body).hex()}.")
    return FormattedText(lines=lines, title=title)
