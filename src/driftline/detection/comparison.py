"""The steps of a consumer: recall what is known of a page, then compare the document with it."""

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
    Matter,
    NewVersion,
    Old,
    Outcome,
    Pair,
    Proof,
    Verdict,
)
from driftline.versions.codec import fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOT_MODIFIED = 304


class Versions(Protocol):
    """Where old versions are read from."""

    def recall(self, page_ids: Sequence[int]) -> dict[int, Old]:
        """The old versions of these pages, by page."""


class Examiner(Protocol):
    """Who reads the bodies."""

    def examine(self, jobs: Sequence[Job]) -> list[Finding]:
        """The findings of these jobs, in order."""


def settle(documents: Sequence[Document]) -> tuple[list[Outcome], list[Document]]:
    """The outcomes of those that their links alone prove unchanged, and the documents left to recall and compare."""
    unchanged = Verdict.UNCHANGED
    outcomes: list[Outcome] = []
    left: list[Document] = []
    for document in documents:
        if document.failure is None and document.link.known is not None:
            wire, proof = _proof(document)
            if proof is not None:
                outcomes.append(Outcome(document, unchanged, proof, wire))
                continue
        left.append(document)
    for outcome in outcomes:
        outcome.document.body = b""
    return outcomes, left


def recall(documents: Sequence[Document], versions: Versions) -> list[Pair]:
    """Each document with the old version to compare it with, unless validators or wire bytes prove it the same."""
    pairs: list[Pair] = []
    open_pairs: list[Pair] = []
    for document in documents:
        if document.failure is not None:
            pairs.append(Pair(document, b""))
            continue
        pair = Pair(document, *_proof(document))
        pairs.append(pair)
        if pair.proof is None and document.link.known is not None:
            open_pairs.append(pair)
    if open_pairs:
        old = versions.recall([pair.document.link.page_id for pair in open_pairs])
        for pair in open_pairs:
            pair.old = old.get(pair.document.link.page_id)
    for pair in pairs:
        if pair.proof is not None:
            pair.document.body = b""  # only now that nothing can fail, for a step that fails is tried again
    return pairs


def compare(pairs: Sequence[Pair], examiner: Examiner, limit: int) -> list[Outcome]:
    """What each pair shows, in order; only those that recalling left open are read."""
    unread = [pair for pair in pairs if pair.proof is None and pair.document.failure is None]
    findings = iter(examiner.examine([_job(pair, limit) for pair in unread]) if unread else ())
    failed, unchanged = Verdict.FAILED, Verdict.UNCHANGED
    outcomes: list[Outcome] = []
    for pair in pairs:
        document = pair.document
        if document.failure is not None:
            outcomes.append(Outcome(document, failed, failure=document.failure))
        elif pair.proof is not None:
            outcomes.append(Outcome(document, unchanged, pair.proof, pair.wire))
        else:
            outcomes.append(_outcome(pair, next(findings)))
    for pair in unread:
        pair.document.body = b""
    return outcomes


def _proof(document: Document) -> tuple[bytes, Proof | None]:
    """The digest of the document's wire bytes, and what of its link proves it unchanged."""
    known = document.link.known
    if document.status == _NOT_MODIFIED and known is not None:
        return known.wire, Proof.VALIDATORS
    wire = fingerprint(document.body)
    return wire, Proof.WIRE if known is not None and wire == known.wire else None


def _job(pair: Pair, limit: int) -> Job:
    document, old = pair.document, pair.old
    block = last_response(document.headers)
    codings, content_type = content_encodings(block), header(block, b"content-type") or ""
    if old is None:
        return Job(
            document.body, codings, content_type, limit, b"", b"", b"", b"", [], 0.0, document.fetched_at,
            document.link.filters,
        )  # fmt: skip
    packed = [(blob.digest, blob.base, blob.depth, blob.size, blob.data) for blob in old.blobs.values()]
    return Job(
        document.body, codings, content_type, limit, old.body, old.letters, old.kept_body, old.kept_text, packed,
        old.at, document.fetched_at, document.link.filters, old.reading,
    )  # fmt: skip


def _outcome(pair: Pair, finding: Finding) -> Outcome:
    document = pair.document
    if finding.failure_kind:
        failure = Failure(kind=FailureKind(finding.failure_kind), sentence=finding.failure)
        return Outcome(document, Verdict.FAILED, failure=failure)
    reading = finding.reading
    if finding.proof and not finding.text:
        return Outcome(document, Verdict.UNCHANGED, Proof(finding.proof), pair.wire, finding.body, reading=reading)
    known = document.link.known
    version = NewVersion(
        number=known.version + 1 if known else 1, body=finding.body, letters=finding.letters, text=finding.text,
        size=finding.size, title=finding.title, content_type=finding.content_type, charset=finding.charset,
        blobs=tuple(Blob(*packed) for packed in finding.blobs),
    )  # fmt: skip
    summary = _summary(finding.change)
    if summary is not None and summary.verdict is Matter.NOISE:
        proof = Proof(finding.proof) if finding.proof else Proof.NOISE
        return Outcome(document, Verdict.UNCHANGED, proof, pair.wire, finding.body, version, summary, reading=reading)
    verdict = Verdict.CHANGED if known else Verdict.NEW
    return Outcome(document, verdict, None, pair.wire, finding.body, version, summary, reading=reading)


def _summary(change: tuple[Any, ...] | None) -> ChangeSummary | None:
    if change is None:
        return None
    kind, verdict, score, reason, added, removed = change
    return ChangeSummary(
        kind=kind, verdict=Matter(verdict), score=score, reason=reason, words_added=added, words_removed=removed
    )
