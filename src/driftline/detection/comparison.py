"""The two steps of a consumer: recall what is known of a page, then compare the document with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from driftline.detection.examination import Finding, Job
from driftline.headers import content_encodings, header, last_response
from driftline.model import (
    Blob,
    ChangeSummary,
    Document,
    Failure,
    FailureKind,
    NewVersion,
    Outcome,
    Pair,
    Proof,
    Verdict,
)
from driftline.versions.codec import digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NOT_MODIFIED = 304


class Versions(Protocol):
    """Where old versions are read from."""

    def blobs(self, digests: Sequence[bytes]) -> dict[bytes, Blob]:
        """These blobs and all that they are built on, by digest."""


class Examiner(Protocol):
    """Who reads the bodies."""

    def examine(self, jobs: Sequence[Job]) -> list[Finding]:
        """The findings of these jobs, in order."""


def recall(documents: Sequence[Document], versions: Versions) -> list[Pair]:
    """Each document with the old version to compare it with, unless validators or wire bytes prove it the same."""
    pairs: list[Pair] = []
    wanted: list[bytes] = []
    for document in documents:
        known = document.link.known
        if document.failure is not None:
            pairs.append(Pair(document, b""))
        elif document.status == _NOT_MODIFIED and known is not None:
            pairs.append(Pair(document, known.wire, Proof.VALIDATORS))
        else:
            wire = digest(document.body)
            if known is not None and wire == known.wire:
                pairs.append(Pair(document, wire, Proof.WIRE))
                continue
            pairs.append(Pair(document, wire))
            if known is not None:
                wanted.append(known.kept_body)
                wanted.append(known.kept_text)
    if wanted:
        blobs = versions.blobs(wanted)
        for pair in pairs:
            known = pair.document.link.known
            if known is not None and pair.proof is None and pair.document.failure is None:
                pair.blobs = _chain((known.kept_body, known.kept_text), blobs)
    return pairs


def compare(pairs: Sequence[Pair], examiner: Examiner, limit: int) -> list[Outcome]:
    """What each pair shows, in order; only those that recalling left open are read."""
    unread = [pair for pair in pairs if pair.proof is None and pair.document.failure is None]
    findings = iter(examiner.examine([_job(pair, limit) for pair in unread]) if unread else ())
    outcomes: list[Outcome] = []
    for pair in pairs:
        document = pair.document
        if document.failure is not None:
            outcomes.append(Outcome(document, Verdict.FAILED, failure=document.failure))
        elif pair.proof is not None:
            known = document.link.known
            assert known is not None
            outcomes.append(Outcome(document, Verdict.UNCHANGED, pair.proof, pair.wire, known.body))
        else:
            outcomes.append(_outcome(pair, next(findings)))
    return outcomes


def _job(pair: Pair, limit: int) -> Job:
    document = pair.document
    known = document.link.known
    block = last_response(document.headers)
    return Job(
        document.body,
        content_encodings(block),
        header(block, b"content-type") or "",
        limit,
        known.body if known else b"",
        known.letters if known else b"",
        known.kept_body if known else b"",
        known.kept_text if known else b"",
        [(blob.digest, blob.base, blob.depth, blob.size, blob.data) for blob in pair.blobs.values()],
    )


def _outcome(pair: Pair, finding: Finding) -> Outcome:
    document = pair.document
    if finding.failure_kind:
        failure = Failure(kind=FailureKind(finding.failure_kind), sentence=finding.failure)
        return Outcome(document, Verdict.FAILED, failure=failure)
    if finding.proof:
        return Outcome(document, Verdict.UNCHANGED, Proof(finding.proof), pair.wire, finding.body)
    known = document.link.known
    version = NewVersion(
        number=known.version + 1 if known else 1, body=finding.body, letters=finding.letters, text=finding.text,
        size=finding.size, title=finding.title, content_type=finding.content_type, charset=finding.charset,
        blobs=tuple(Blob(*packed) for packed in finding.blobs),
    )  # fmt: skip
    verdict = Verdict.CHANGED if known else Verdict.NEW
    return Outcome(document, verdict, None, pair.wire, finding.body, version, _summary(finding.change))


def _summary(change: tuple[Any, ...] | None) -> ChangeSummary | None:
    if change is None:
        return None
    kind, score, reason, added, removed = change
    return ChangeSummary(kind=kind, score=score, reason=reason, words_added=added, words_removed=removed)


def _chain(names: Sequence[bytes], blobs: Mapping[bytes, Blob]) -> dict[bytes, Blob]:
    found: dict[bytes, Blob] = {}
    for name in names:
        at: bytes | None = name
        while at is not None and at not in found and at in blobs:
            found[at] = blobs[at]
            at = found[at].base
    return found
