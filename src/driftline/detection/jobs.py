"""The messages between the main process and its worker processes: `Job` there, `Finding` back.

They travel as tuples of plain values, which is all that `marshal` can write. This module imports no parser, so that the
main process, which only sends and receives, does not load one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

LENGTH = 8  # bytes before each frame, which say how long it is

PackedBlob: TypeAlias = tuple[bytes, bytes | None, int, int, bytes]


class Job(NamedTuple):
    """A body to examine. The digests are those of the last check, and empty for a new page.

    `again` is the body of a second fetch right after the first, if there was one. With `anew`, nothing is compared: the
    stored body `kept_body` of a version is extracted as the filters and the extractor are now, and its text is
    `kept_text` so far. `question` is what a crawl wants to know besides (`crawl.survey`). `url` is the address that the
    body came from, and `disposition` its Content-Disposition.
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


class FoundEdit(NamedTuple):
    """One edit of a change. The last three are values of `Region`, `ChangeKind` and `NoiseKind`.

    `region` is empty where it is not known, `noise` where the edit matters.
    """

    before: str
    after: str
    region: str
    kind: str
    noise: str


class FoundChange(NamedTuple):
    """What differs from the version in force; `kind` and `verdict` are values of `ChangeKind` and `Matter`."""

    kind: str
    verdict: str
    score: float
    reason: str
    words_added: int
    words_removed: int
    cause: bytes
    edits: tuple[FoundEdit, ...]


class Finding(NamedTuple):
    """What the examination found: a failure, or 'body' or 'text' as the proof of no change, or a version to keep.

    `out_of_memory` says that what the worker keeps from page to page may have filled its memory. `reading` says how the
    page was extracted; a version with the proof 'reread' is the one in force, extracted in another way. `wants_script`
    says that the page shows nothing, or says that it needs JavaScript. `warnings` are kinds and sentences of what looks
    dangerous.
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
    change: FoundChange | None = None
    lesson: tuple[bytes, tuple[bytes, ...]] | None = None
    reading: str = ""
    wants_script: bool = False
    survey: bytes = b""
    warnings: tuple[tuple[str, str], ...] = ()
    out_of_memory: bool = False

    def to_plain(self) -> tuple[Any, ...]:
        """Return the finding as plain tuples, to be written by `marshal`."""
        plain = tuple(self)
        if self.change is None:
            return plain
        edits = tuple([tuple(edit) for edit in self.change.edits])
        return (*plain[:_CHANGE], (*self.change[:-1], edits), *plain[_CHANGE + 1 :])

    @classmethod
    def from_plain(cls, plain: Sequence[Any]) -> Finding:
        """Return the finding that `to_plain` was called on."""
        finding = cls(*plain)
        if finding.change is None:
            return finding
        change = FoundChange(*finding.change)
        return finding._replace(change=change._replace(edits=tuple([FoundEdit(*edit) for edit in change.edits])))


_CHANGE = Finding._fields.index("change")
