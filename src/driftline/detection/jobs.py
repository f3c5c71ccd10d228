"""The messages between the main process and its worker processes: `Job` there, `Finding` back.

Both are typed on either side. In between they travel as tuples of plain values, which is all that `marshal` can write:
`to_plain` and `from_plain` are the only places that know these tuples. This module imports no parser, so that the main
process, which only sends and receives, does not load one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from driftline.errors import FailureKind
from driftline.model.change import ChangeKind, ChangeSummary, Edit, Importance, NoiseKind, Region
from driftline.model.outcome import Blob, IgnoredParts, Incomparable, Lesson, Proof
from driftline.model.page import AddressKind, Failure, PageWarning, WarningKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LENGTH = 8  # bytes before each frame, which say how long it is
PID_LENGTH = 4  # bytes of the id of a worker process, as the fork server sends it


class Question(NamedTuple):
    """What a crawl asks of a body besides what a check asks: where it was found, as what, and for whom.

    `kept` asks for all that a check finds too, so that the page can be watched from now on.
    """

    url: str
    kind: AddressKind
    robots: str
    obeys: bool
    tracking: tuple[str, ...]
    keywords: tuple[str, ...]
    kept: bool


class Job(NamedTuple):
    """A body to examine. The digests are those of the last check, and empty for a new page.

    `blobs` has, by digest, what the stored body `kept_body` and its text `kept_text` are built from. It is None where
    only the digests were sent: if these are not enough, the finding `needs_old`, and the job is sent again with blobs
    and memories. `old_size` is the size of the stored body. `again` is the body of a second fetch right after the
    first, if there was one. `reading` and `incomparable` are those of `Old`. With `anew`, nothing is compared: the
    stored body is extracted as the filters and the extractor are now. `question` is for a crawl (`crawl.survey`). `url`
    is the address that the body came from, and `disposition` its Content-Disposition. `number` is the same for a job
    that is sent again, and another one for each other job of a worker. A job that is `continued` comes without the body
    that was sent before: if the worker does not have it any more, the finding `needs_old` again, and the job is sent
    again with everything. `moved` is True if a redirect led to another
    page of the site or elsewhere, and `accepted` if the answer has an error status that the user accepts.
    """

    wire: bytes
    codings: list[str]
    content_type: str
    limit: int
    known_body: bytes
    known_letters: bytes
    kept_body: bytes
    kept_text: bytes
    blobs: Mapping[bytes, Blob] | None
    old_at: float = 0.0
    at: float = 0.0
    memory: bytes = b""
    host_memory: bytes = b""
    check: int = 0
    again: bytes = b""
    again_codings: list[str] = []  # noqa: RUF012 a named tuple has no other default, and nothing appends to it
    filters: list[list[str]] | None = None
    reading: str | None = None
    incomparable: Incomparable | None = None
    anew: bool = False
    question: Question | None = None
    url: str = ""
    disposition: str = ""
    old_size: int = 0
    number: int = 0
    continued: bool = False
    moved: bool = False
    accepted: bool = False

    def to_plain(self) -> tuple[Any, ...]:
        """Return the job as plain tuples, to be written by `marshal`."""
        plain = tuple(self)
        blobs = None if self.blobs is None else [_plain_blob(blob) for blob in self.blobs.values()]
        asked = self.question
        question = None if asked is None else (asked.url, asked.kind.value, *asked[2:])
        why = None if self.incomparable is None else self.incomparable.value
        between = plain[_BLOBS + 1 : _INCOMPARABLE], plain[_INCOMPARABLE + 1 : _QUESTION]
        return (*plain[:_BLOBS], blobs, *between[0], why, *between[1], question, *plain[_QUESTION + 1 :])

    @classmethod
    def from_plain(cls, plain: Sequence[Any]) -> Job:
        """Return the job that `to_plain` was called on."""
        fields = list(plain)
        if plain[_BLOBS] is not None:
            fields[_BLOBS] = {blob[0]: Blob(*blob) for blob in plain[_BLOBS]}
        if plain[_INCOMPARABLE] is not None:
            fields[_INCOMPARABLE] = Incomparable(plain[_INCOMPARABLE])
        if plain[_QUESTION] is not None:
            url, kind, *others = plain[_QUESTION]
            fields[_QUESTION] = Question(url, AddressKind(kind), *others)
        return cls(*fields)


_BLOBS = Job._fields.index("blobs")
_INCOMPARABLE = Job._fields.index("incomparable")
_QUESTION = Job._fields.index("question")


class Finding(NamedTuple):
    """What the examination found: a failure, or `BODY` or `TEXT` as the proof of no change, or a version to keep.

    `reading` says how the page was extracted; a version with the proof `REREAD` is the stored one, extracted in another
    way. `wants_script` says that the page shows nothing, or says that it needs JavaScript. `survey` is for a crawl, as
    `crawl.survey` packs it. `out_of_memory` says that what the worker keeps from page to page may have filled its
    memory. `needs_old` says that the body differs from the digests in its job, and nothing else: what it is depends on
    the contents of the old version.
    """

    failure: Failure | None = None
    proof: Proof | None = None
    body: bytes = b""
    letters: bytes = b""
    text: bytes = b""
    size: int = 0
    title: str = ""
    content_type: str = ""
    charset: str = ""
    blobs: tuple[Blob, ...] = ()
    change: ChangeSummary | None = None
    lesson: Lesson | None = None
    reading: str = ""
    wants_script: bool = False
    survey: bytes = b""
    warnings: tuple[PageWarning, ...] = ()
    out_of_memory: bool = False
    needs_old: bool = False

    def to_plain(self) -> tuple[Any, ...]:
        """Return the finding as plain tuples, to be written by `marshal`."""
        failure, proof, lesson = self.failure, self.proof, self.lesson
        return (
            None if failure is None else (failure.kind._value_, failure.sentence),
            None if proof is None else proof._value_,
            self.body, self.letters, self.text, self.size, self.title, self.content_type, self.charset,
            [_plain_blob(blob) for blob in self.blobs] if self.blobs else (),
            None if self.change is None else _plain_change(self.change),
            None if lesson is None else _plain_lesson(lesson),
            self.reading, self.wants_script, self.survey,
            [(one.kind.value, one.sentence) for one in self.warnings] if self.warnings else (),
            self.out_of_memory, self.needs_old,
        )  # fmt: skip

    @classmethod
    def from_plain(cls, plain: Sequence[Any]) -> Finding:
        """Return the finding that `to_plain` was called on."""
        (
            failure, proof, body, letters, text, size, title, content_type, charset, blobs, change, lesson, reading,
            wants_script, survey, warnings, out_of_memory, needs_old,
        ) = plain  # fmt: skip
        return cls(
            None if failure is None else Failure(kind=FailureKind(failure[0]), sentence=failure[1]),
            None if proof is None else Proof(proof),
            body, letters, text, size, title, content_type, charset,
            tuple([Blob(*blob) for blob in blobs]) if blobs else (),
            None if change is None else _change(change),
            None if lesson is None else _lesson(*lesson),
            reading, wants_script, survey,
            tuple([PageWarning(WarningKind(kind), sentence) for kind, sentence in warnings]) if warnings else (),
            out_of_memory, needs_old,
        )  # fmt: skip


class OldVersions(Protocol):
    """Reads the contents of old versions for the jobs that need them."""

    def complete(self, numbers: Sequence[int]) -> list[Job]:
        """Return the jobs of these numbers, counted from 0, with the contents of their old versions."""


def _plain_blob(blob: Blob) -> tuple[Any, ...]:
    return blob.digest, blob.base, blob.depth, blob.size, blob.data


def _plain_lesson(lesson: Lesson) -> tuple[Any, ...]:
    if (parts := lesson.ignored) is None:
        return lesson.memory, lesson.for_host, None
    ignored = (
        parts.label, parts.example, parts.others, parts.noise.value, parts.page_keys, parts.host_keys, parts.is_news,
    )  # fmt: skip
    return lesson.memory, lesson.for_host, ignored


def _lesson(memory: bytes, for_host: tuple[bytes, ...], ignored: Sequence[Any] | None) -> Lesson:
    if ignored is None:
        return Lesson(memory=memory, for_host=for_host)
    label, example, others, noise, page_keys, host_keys, is_news = ignored
    parts = IgnoredParts(
        label=label, example=example, others=others, noise=NoiseKind(noise), page_keys=page_keys, host_keys=host_keys,
        is_news=is_news,
    )  # fmt: skip
    return Lesson(memory=memory, for_host=for_host, ignored=parts)


def _plain_change(change: ChangeSummary) -> tuple[Any, ...]:
    edits = [
        (
            edit.before, edit.after, edit.region and edit.region.value, edit.kind.value,
            edit.noise and edit.noise.value, edit.heading,
        )
        for edit in change.edits
    ]  # fmt: skip
    return (
        change.kind.value, change.importance.value, change.score, change.reason, change.words_added,
        change.words_removed, change.cause, edits, change.headline,
    )  # fmt: skip


def _change(plain: Sequence[Any]) -> ChangeSummary:
    kind, importance, score, reason, added, removed, cause, edits, headline = plain
    return ChangeSummary(
        kind=ChangeKind(kind), importance=Importance(importance), score=score, reason=reason, words_added=added,
        words_removed=removed, cause=cause, edits=tuple([_edit(*edit) for edit in edits]), headline=headline,
    )  # fmt: skip


def _edit(before: str, after: str, region: str | None, kind: str, noise: str | None, heading: str) -> Edit:
    return Edit(
        before=before, after=after, region=None if region is None else Region(region), kind=ChangeKind(kind),
        noise=None if noise is None else NoiseKind(noise), heading=heading,
    )  # fmt: skip
