"""Getting a blocklist from the web, past the same guard as every page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline.detection.decoding import UnreadableBody, decode_body
from driftline.errors import DriftlineError
from driftline.fetching.transfers import Transfers, crawl_through
from driftline.headers import content_encodings, last_response
from driftline.model import Link
from driftline.pages.urls import written
from driftline.safety.blocklists import LARGEST

if TYPE_CHECKING:
    from driftline.settings import Settings


def download(settings: Settings, url: str) -> bytes:
    """What the address holds; DriftlineError says why it cannot be had."""
    transfers = Transfers(settings.model_copy(update={"max_body": LARGEST}))
    try:
        document = crawl_through(Link(0, written(url), 1, None), transfers)
    finally:
        transfers.close()
    if document.failure is not None:
        raise DriftlineError(f"The blocklist {url} cannot be fetched: {document.failure.sentence}")
    try:
        return decode_body(document.body, content_encodings(last_response(document.headers)), LARGEST)
    except UnreadableBody as error:
        raise DriftlineError(f"The blocklist {url} cannot be read: {error.failure.sentence}") from None
