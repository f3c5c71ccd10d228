"""What a worker process is given and gives back: tuples of plain values, because they travel between processes as such.

They are on their own, for who only sends them has no use for the parsers that read pages.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

LENGTH = 8  # bytes before each frame, which say how long it is
#: after this, what a worker remembers from page to page may have filled its memory
OUT_OF_MEMORY = "Reading the page took more memory than is allowed."

PackedBlob: TypeAlias = tuple[bytes, bytes | None, int, int, bytes]


class Job(NamedTuple):
    """A body to examine. The digests are those that the last check left behind, and empty for a page that is new.

    `again` is what came when the page was fetched once more right after, if it was. With `anew`, there is nothing to
    compare: the body `kept_body` of a version is to be read in the way of today, and its text is `kept_text` so far.
    `question` is what a crawl asks besides: see `crawling.surveying`. `url` is the address that the body came from, and
    `disposition` what the server wants to be done with it.
    """

    wire: bytes
    codings: list[str]
    content_type: str
    limit: int
    known_body: bytes
    known_letters: bytes
    kept_body: bytes
    kept_text: bytes
    blobs: list[PackedBlob]
    old_at: float = 0.0
    at: float = 0.0
    memory: bytes = b""
    host_memory: bytes = b""
    check: int = 0
    again: bytes = b""
    again_codings: list[str] = []  # noqa: RUF012 a named tuple has no other default, and nobody appends to it
    filters: list[list[str]] | None = None
    reading: str | None = None
    anew: bool = False
    question: tuple[Any, ...] = ()
    url: str = ""
    disposition: str = ""


class Finding(NamedTuple):
    """What the examination found: a failure, or 'body' or 'text' as the proof of no change, or a version to keep.

    `reading` says how the page was read. A version with the proof 'reread' is the one in force, read in another way.
    `wants_script` says that the page shows nothing, or says that it needs JavaScript.
    `warnings` are kinds and sentences of what looks dangerous.
    """

    failure_kind: str = ""
    failure: str = ""
    proof: str = ""
    body: bytes = b""
    letters: bytes = b""
    text: bytes = b""
    size: int = 0
    title: str = ""
    content_type: str = ""
    charset: str = ""
    blobs: tuple[PackedBlob, ...] = ()
    change: tuple[Any, ...] | None = None
    lesson: tuple[bytes, tuple[bytes, ...]] | None = None
    reading: str = ""
    wants_script: bool = False
    survey: bytes = b""
    warnings: tuple[tuple[str, str], ...] = ()
