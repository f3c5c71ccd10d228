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
from driftline.detection.judgement import Judgement, Read, judge
from driftline.errors import BrokenVersion
from driftline.model import Blob, FailureKind
from driftline.versions.codec import digest, pack, pack_next, unpack_both

PackedBlob: TypeAlias = tuple[bytes, bytes | None, int, int, bytes]


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


class Finding(NamedTuple):
    """What the examination found: a failure, or 'body' or 'text' as the proof of no change, or a version to keep."""

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
    if body_name == job.known_body:
        return Finding(proof="body", body=body_name)
    seen = Reading(body, job.content_type)
    letters = digest(seen.letters())
    if letters == job.known_letters:
        return Finding(proof="text", body=body_name)
    title = seen.title()
    text = seen.text().encode("utf-8", "replace")
    text_name = digest(text)
    if text_name == job.kept_text:
        return Finding(proof="text", body=body_name)
    change = None
    blobs: dict[bytes, Blob] = {}
    old_body = b""
    if job.kept_body:
        blobs = {packed[0]: Blob(*packed) for packed in job.blobs}
        old_body, old_words = unpack_both(job.kept_body, job.kept_text, blobs)
        old_text = old_words.decode()
        change = _change(
            Side(old_body, old_text, job.old_at), Side(body, text.decode(), job.at), title, job.content_type
        )
    body_blob = pack_next(body, body_name, blobs.get(job.kept_body), old_body, blobs)
    text_blob = pack(text, text_name, body_blob, body)
    return Finding(
        body=body_name, letters=letters, text=text_name, size=len(body), title=title, content_type=seen.content_type,
        charset=seen.charset, blobs=(_plain(body_blob), _plain(text_blob)), change=change,
    )  # fmt: skip


class Side(NamedTuple):
    """One of two documents that are compared: its body decoded, its text, and when it was fetched."""

    body: bytes
    text: str
    at: float


def weigh(old: Side, new: Side, title: str, content_type: str) -> Judgement:
    """Whether the change matters."""

    def read(side: Side) -> Read:
        return Read(
            text=side.text, title=title, at=side.at, find=lambda wanted: Reading(side.body, content_type).blocks(wanted)
        )

    return judge(read(old), read(new))


def _change(old: Side, new: Side, title: str, content_type: str) -> tuple[Any, ...]:
    summary = summarise(old.text, new.text)
    judgement = weigh(old, new, title, content_type)
    reason = judgement.reason or summary.reason
    return summary.kind, judgement.verdict.value, judgement.score, reason, summary.words_added, summary.words_removed


def _plain(blob: Blob) -> PackedBlob:
    return blob.digest, blob.base, blob.depth, blob.size, blob.data
