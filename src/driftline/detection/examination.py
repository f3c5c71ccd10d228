"""Everything that is done to the bytes of one page that is not plainly unchanged. It runs in a worker process.

The rungs of the ladder that are left when the wire bytes differ: same decoded body, same text; and only then the
comparison with the old version and the packing of the new one. A job and a finding are tuples of plain values, because
they travel between processes as such.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from driftline.detection.decoding import UnreadableBody, decode_body
from driftline.detection.difference import summarise
from driftline.detection.extraction import Reading
from driftline.detection.filters import awaited_by, how_read
from driftline.detection.judgement import Judgement, Read, judge
from driftline.errors import BrokenVersion
from driftline.model import Blob, FailureKind, Matter, Proof
from driftline.versions.codec import DEEPEST_BODY, digest, pack, unpack

PackedBlob: TypeAlias = tuple[bytes, bytes | None, int, int, bytes]

_UNAWAITED, _AWAITED = 0.4, 0.5  # scores: the most of what does not matter, the least of what does


class Job(NamedTuple):
    """A body to examine. The digests are those that the last check left behind, and empty for a page that is new."""

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
    filters: list[list[str]] | None = None
    reading: str | None = None


class Finding(NamedTuple):
    """What the examination found: a failure, or 'body' or 'text' as the proof of no change, or a version to keep.

    `reading` says how the page was read. A version with the proof 'reread' is the one in force, read in another way.
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
    reading: str = ""


def examine(job: Job) -> Finding:
    """Read the body and compare it with the version in force; a page that cannot be read gives a failure."""
    try:
        return _examine(job)
    except UnreadableBody as error:
        return Finding(failure_kind=error.failure.kind.value, failure=error.failure.sentence)
    except BrokenVersion as error:
        return Finding(failure_kind=FailureKind.INTERNAL.value, failure=str(error))
    except MemoryError:
        sentence = "Reading the page took more memory than is allowed."
        return Finding(failure_kind=FailureKind.HOSTILE.value, failure=sentence)
    except Exception as error:  # noqa: BLE001 whatever a page makes a parser raise must fail that page only
        sentence = f"Driftline itself failed to read this page ({type(error).__name__}: {error})."
        return Finding(failure_kind=FailureKind.INTERNAL.value, failure=sentence)


def _examine(job: Job) -> Finding:
    body = decode_body(job.wire, job.codings, job.limit)
    body_name = digest(body)
    reading = how_read(job.filters)
    as_before = reading == job.reading
    if as_before and body_name == job.known_body:
        return Finding(proof="body", body=body_name, reading=reading)
    seen = Reading(body, job.content_type, job.filters)
    letters = digest(seen.letters())
    if as_before and letters == job.known_letters:
        return Finding(proof="text", body=body_name, reading=reading)
    title = seen.title()
    text = seen.text().encode("utf-8", "replace")
    text_name = digest(text)
    if text_name == job.kept_text:
        return Finding(proof="text", body=body_name, reading=reading)
    proof = ""
    change = None
    old_blob = None
    old_body = b""
    if job.kept_body:
        blobs = {packed[0]: Blob(*packed) for packed in job.blobs}
        old_body = unpack(job.kept_body, blobs)
        old_blob = blobs[job.kept_body]
        if as_before:
            old_text: str | None = unpack(job.kept_text, blobs).decode()
        else:
            old_text = None if body_name == job.known_body else _reread(old_body, letters, job)
        if old_text is None:
            proof, change = Proof.REREAD.value, _only_reread(reading, job.reading)
        else:
            sides = Side(old_body, old_text, job.old_at), Side(body, text.decode(), job.at)
            change = _change(*sides, title, job.content_type, job.filters)
    body_blob = pack(body, body_name, old_blob, old_body, deepest=DEEPEST_BODY)
    text_blob = pack(text, text_name, body_blob, body)
    return Finding(
        proof=proof, body=body_name, letters=letters, text=text_name, size=len(body), title=title,
        content_type=seen.content_type, charset=seen.charset, blobs=(_plain(body_blob), _plain(text_blob)),
        change=change, reading=reading,
    )  # fmt: skip


def _reread(old_body: bytes, letters: bytes, job: Job) -> str | None:
    """The text of the version in force as it is read now; None if it says the same as these letters, or says nothing.

    Its filters were edited since, or the extractor is a newer one: neither is a change of the page.
    """
    try:
        seen = Reading(old_body, job.content_type, job.filters)
        return None if digest(seen.letters()) == letters else seen.text()
    except UnreadableBody:
        return None  # it had nothing yet of what is selected now: there is nothing to compare with


def _only_reread(now: str, before: str | None) -> tuple[Any, ...]:
    refiltered = before is not None and now.partition(":")[0] == before.partition(":")[0]
    how = "through other filters" if refiltered else "in another way"
    return "reading", Matter.NOISE.value, 0.0, f"The page did not change: it is read {how} than before.", 0, 0


class Side(NamedTuple):
    """One of two documents that are compared: its body decoded, its text, and when it was fetched."""

    body: bytes
    text: str
    at: float


def weigh(old: Side, new: Side, title: str, content_type: str, filters: list[list[str]] | None = None) -> Judgement:
    """Whether the change matters."""

    def read(side: Side) -> Read:
        return Read(
            text=side.text, title=title, at=side.at,
            find=lambda wanted: Reading(side.body, content_type, filters).blocks(wanted),
        )  # fmt: skip

    return judge(read(old), read(new))


def _change(old: Side, new: Side, title: str, content_type: str, filters: list[list[str]] | None) -> tuple[Any, ...]:
    summary = summarise(old.text, new.text)
    judgement = weigh(old, new, title, content_type, filters)
    verdict, score, reason = judgement.verdict, judgement.score, judgement.reason or summary.reason
    awaited = awaited_by(filters, old.text, new.text)
    if awaited is Matter.NOISE:
        verdict, score, reason = awaited, min(score, _UNAWAITED), "Nothing that was added is what the page waits for."
    elif awaited is Matter.MEANINGFUL and verdict is Matter.NOISE:
        verdict, score, reason = awaited, max(score, _AWAITED), summary.reason
    return summary.kind, verdict.value, score, reason, summary.words_added, summary.words_removed


def _plain(blob: Blob) -> PackedBlob:
    return blob.digest, blob.base, blob.depth, blob.size, blob.data
