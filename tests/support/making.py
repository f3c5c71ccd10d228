"""Links, documents and settings for tests, with what matters given and the rest filled in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from driftline.detection.examine import examine, examine_all
from driftline.detection.jobs import Finding, Job, OldVersions
from driftline.detection.worker_pool import WorkerPool
from driftline.errors import FailureKind
from driftline.model.change import ChangeKind, ChangeSummary, Importance
from driftline.model.outcome import (
    Blob,
    Changed,
    Document,
    Examined,
    Failed,
    Known,
    Link,
    New,
    NewVersion,
    Proof,
    Unchanged,
)
from driftline.model.page import Failure
from driftline.settings import Settings, load_settings
from driftline.store.blobs import fingerprint


class InThisProcess(WorkerPool):
    """Reads bodies in the process of the test, without workers: enough for bodies that do no harm."""

    def __init__(self) -> None:
        pass

    def examine(self, jobs: Sequence[Job], old: OldVersions | None = None) -> list[Finding]:
        return examine_all(jobs, old)


def settings(**given: Any) -> Settings:
    """Settings that a test waits for only briefly."""
    values: dict[str, Any] = {"store": "unused.db", "stop_grace": 0.5, "total_timeout": 20.0}
    return load_settings(**(values | given))


def known(version: int = 1, etag: str | None = None, last_modified: str | None = None, body: bytes = b"old") -> Known:
    """What a check of this body would have left behind."""
    return Known(version, etag, last_modified, fingerprint(body))


def link(url: str = "http://page.example/", page_id: int = 1, sequence: int = 1, known: Known | None = None) -> Link:
    """A page handed to a producer."""
    return Link(page_id, url, sequence, known)


def document(
    of: Link | None = None, body: bytes = b"<p>hello</p>", status: int = 200, content_type: str = "text/html",
    headers: str = "", failure: Failure | None = None, at: float = 1000.0,
) -> Document:  # fmt: skip
    """A page as just fetched."""
    of = of or link()
    block = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\n{headers}\r\n".encode("latin-1")
    return Document(of, status, block, body, len(body), of.url, 0, at, 0.01, failure)


def job(
    body: bytes, content_type: str = "text/html; charset=utf-8", codings: list[str] | None = None,
    limit: int = 20_000_000, after: Finding | None = None, blobs: tuple[Blob, ...] | None = None,
    filters: list[list[str]] | None = None,
) -> Job:  # fmt: skip
    """A body to examine, of a page that is new, or that had what `after` found."""
    if after is None:
        return Job(body, codings or [], content_type, limit, b"", b"", b"", b"", {}, filters=filters)
    kept = {blob.digest: blob for blob in (after.blobs if blobs is None else blobs)}
    return Job(
        body, codings or [], content_type, limit, after.body, after.letters, after.body, after.text, kept,
        filters=filters, reading=after.reading, old_size=after.size,
    )  # fmt: skip


def why_failed(finding: Finding) -> str:
    """The sentence of a failure; nothing where there is none."""
    return "" if finding.failure is None else finding.failure.sentence


def failure_kind(finding: Finding) -> FailureKind | None:
    """What sort of failure it is, if it is one."""
    return None if finding.failure is None else finding.failure.kind


def outcome_of(of: Document) -> New:
    """What a check of this document finds if the page is new."""
    finding = examine(job(of.body))
    version = NewVersion(
        number=1, body=finding.body, letters=finding.letters, text=finding.text, size=finding.size,
        title=finding.title, content_type=finding.content_type, charset=finding.charset,
        blobs=finding.blobs,
    )  # fmt: skip
    return New(of, Examined(wire=fingerprint(of.body), body=finding.body, reading=finding.reading), version)


EXAMINED = Examined(wire=b"", body=b"", reading="")


def new_version(*blobs: Blob, number: int = 1) -> NewVersion:
    """A version of which only the contents matter."""
    return NewVersion(
        number=number, body=b"", letters=b"", text=b"", size=0, title="", content_type="", charset="", blobs=blobs
    )


def change_of(matter: Importance = Importance.IMPORTANT, cause: bytes = b"") -> ChangeSummary:
    """A change of a few words."""
    return ChangeSummary(
        kind=ChangeKind.TEXT, importance=matter, score=0.5, reason="Words.", words_added=1, words_removed=0, cause=cause
    )


def new(of: Document | None = None, *blobs: Blob) -> New:
    """A page that was read for the first time."""
    return New(of or document(), EXAMINED, new_version(*blobs))


def unchanged(of: Document | None = None, proof: Proof = Proof.WIRE) -> Unchanged:
    """A page that is proved unchanged."""
    return Unchanged(of or document(), proof)


def changed(of: Document | None = None) -> Changed:
    """A page that says something else now."""
    return Changed(of or document(), EXAMINED, new_version(number=2), change_of())


NOT_THERE = Failure(kind=FailureKind.DNS, sentence="The name of the host could not be resolved.")


def failed(of: Document | None = None, failure: Failure = NOT_THERE) -> Failed:
    """A page that could not be fetched."""
    return Failed(of or document(failure=failure, status=0), failure)


class Here:
    """Reads bodies where the test is, which is enough when they mean no harm."""

    def examine(self, jobs: Sequence[Job], old: OldVersions | None = None) -> list[Finding]:
        return examine_all(jobs, old)
