"""The steps of a consumer: read what is known of a page from the store, then compare the document with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from driftline.detection.jobs import Finding, Job
from driftline.errors import FailureKind
from driftline.http.headers import content_encodings, header, last_response
from driftline.model import (
    Blob,
    ChangeKind,
    ChangeSummary,
    Document,
    Edit,
    Failure,
    Lesson,
    Matter,
    NewVersion,
    NoiseKind,
    Old,
    Outcome,
    Pair,
    Proof,
    Region,
    Verdict,
    Warned,
    WarningKind,
)
from driftline.store.blobs import fingerprint

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from driftline.detection.jobs import FoundChange, FoundEdit

_NOT_MODIFIED = 304


class Versions(Protocol):
    """Reads old versions from the store."""

    def recall(self, page_ids: Sequence[int]) -> dict[int, Old]:
        """Return the old versions of these pages, by page id."""

    def host_memories(self, hosts: Collection[str]) -> dict[str, bytes]:
        """Return the noise memories of those of these hosts that have one."""


class Examiner(Protocol):
    """Reads and compares bodies, in this process or in others."""

    def examine(self, jobs: Sequence[Job]) -> list[Finding]:
        """Return the findings of these jobs, in order."""


def settle(documents: Sequence[Document]) -> tuple[list[Outcome], list[Document]]:
    """Return the outcomes of documents that their links prove unchanged, and the documents left to compare."""
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
    """Return each document with its old version, or with the proof that validators or wire bytes show no change."""
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
        links = [pair.document.link for pair in open_pairs]
        old = versions.recall([link.page_id for link in links])
        learned = versions.host_memories({link.host for link in links})
        for pair, link in zip(open_pairs, links, strict=True):
            pair.old = old.get(link.page_id)
            pair.host_memory = learned.get(link.host, b"")
    for pair in pairs:
        if pair.proof is not None:
            pair.document.body = b""  # not earlier: a step that fails is repeated, and needs the body
    return pairs


def compare(pairs: Sequence[Pair], examiner: Examiner, limit: int, *, twice: bool = False) -> list[Outcome]:
    """Return the outcome of each pair, in order. Only pairs that `recall` left open are examined.

    With `twice`, a change keeps its body and its pair, for `confirm`.
    """
    unread = [pair for pair in pairs if pair.proof is None and pair.document.failure is None]
    findings = iter(examiner.examine([job_of(pair, limit) for pair in unread]) if unread else ())
    failed, unchanged, changed = Verdict.FAILED, Verdict.UNCHANGED, Verdict.CHANGED
    outcomes: list[Outcome] = []
    for pair in pairs:
        document = pair.document
        if document.failure is not None:
            outcomes.append(Outcome(document, failed, failure=document.failure))
        elif pair.proof is not None:
            outcomes.append(Outcome(document, unchanged, pair.proof, pair.wire))
        else:
            outcomes.append(outcome_of(pair, next(findings)))
    for outcome in outcomes:
        if twice and outcome.verdict is changed:
            continue
        outcome.document.body = b""
        outcome.pair = None
    return outcomes


def confirm(found: Sequence[tuple[Outcome, Document]], examiner: Examiner, limit: int) -> list[Outcome]:
    """Return the outcomes of changes, given a second fetch of their pages: what differs in it changes by itself.

    A second fetch that failed, has the same bytes or cannot be read leaves a change as it is.
    """
    outcomes: list[Outcome] = []
    differing: list[tuple[Outcome, Pair, Document]] = []
    for outcome, document in found:
        if outcome.pair is None or document.failure is not None or fingerprint(document.body) == outcome.wire:
            outcomes.append(outcome)
        else:
            differing.append((outcome, outcome.pair, document))
    jobs = [_second_job(pair, document, limit) for _, pair, document in differing]
    findings = examiner.examine(jobs) if jobs else []
    for (outcome, pair, _), finding in zip(differing, findings, strict=True):
        outcomes.append(outcome if finding.failure_kind else outcome_of(pair, finding))
    for outcome in outcomes:
        outcome.document.body = b""
        outcome.pair = None
    return outcomes


def _proof(document: Document) -> tuple[bytes, Proof | None]:
    """Return the digest of the wire bytes, and the proof that the page is unchanged, if there is one."""
    known = document.link.known
    if document.status == _NOT_MODIFIED and known is not None:
        return known.wire, Proof.VALIDATORS
    wire = fingerprint(document.body)
    return wire, Proof.WIRE if known is not None and wire == known.wire else None


def job_of(pair: Pair, limit: int) -> Job:
    """Return the job that a worker does for a pair."""
    document, old = pair.document, pair.old
    block = last_response(document.headers)
    codings, content_type = content_encodings(block), header(block, b"content-type") or ""
    disposition = header(block, b"content-disposition") or ""
    if old is None:
        return Job(
            document.body, codings, content_type, limit, b"", b"", b"", b"", [], 0.0, document.fetched_at,
            filters=document.link.filters, url=document.final_url, disposition=disposition,
        )  # fmt: skip
    packed = [(blob.digest, blob.base, blob.depth, blob.size, blob.data) for blob in old.blobs.values()]
    return Job(
        document.body, codings, content_type, limit, old.body, old.letters, old.kept_body, old.kept_text, packed,
        old.at, document.fetched_at, old.memory, pair.host_memory, document.link.sequence,
        filters=document.link.filters, reading=old.reading, url=document.final_url, disposition=disposition,
    )  # fmt: skip


def _second_job(pair: Pair, document: Document, limit: int) -> Job:
    """Return the job of a change, with the same page fetched once more."""
    codings = content_encodings(last_response(document.headers))
    return job_of(pair, limit)._replace(again=document.body, again_codings=codings)


def outcome_of(pair: Pair, finding: Finding) -> Outcome:
    """Return the outcome of the check that a finding stands for."""
    document = pair.document
    if finding.failure_kind:
        failure = Failure(kind=FailureKind(finding.failure_kind), sentence=finding.failure)
        return Outcome(document, Verdict.FAILED, failure=failure, wants_script=finding.wants_script)
    lesson = None if finding.lesson is None else Lesson(memory=finding.lesson[0], for_host=finding.lesson[1])
    reading = finding.reading
    warnings = tuple(Warned(WarningKind(kind), sentence) for kind, sentence in finding.warnings)
    if finding.proof and not finding.text:
        proof = Proof(finding.proof)
        return Outcome(
            document, Verdict.UNCHANGED, proof, pair.wire, finding.body, lesson=lesson, reading=reading,
            warnings=warnings,
        )  # fmt: skip
    known = document.link.known
    version = NewVersion(
        number=known.version + 1 if known else 1, body=finding.body, letters=finding.letters, text=finding.text,
        size=finding.size, title=finding.title, content_type=finding.content_type, charset=finding.charset,
        blobs=tuple(Blob(*packed) for packed in finding.blobs),
    )  # fmt: skip
    summary = _summary(finding.change)
    outcome = Outcome(
        document, Verdict.CHANGED if known else Verdict.NEW, None, pair.wire, finding.body, version, summary
    )
    outcome.lesson, outcome.reading, outcome.pair, outcome.warnings = lesson, reading, pair, warnings
    outcome.wants_script = finding.wants_script
    if summary is not None and summary.verdict is Matter.NOISE:
        outcome.verdict, outcome.proof = Verdict.UNCHANGED, Proof(finding.proof or Proof.NOISE)
    return outcome


def _summary(change: FoundChange | None) -> ChangeSummary | None:
    if change is None:
        return None
    return ChangeSummary(
        kind=ChangeKind(change.kind), verdict=Matter(change.verdict), score=change.score, reason=change.reason,
        words_added=change.words_added, words_removed=change.words_removed, cause=change.cause,
        edits=tuple([_edit(found) for found in change.edits]),
    )  # fmt: skip


def _edit(found: FoundEdit) -> Edit:
    return Edit(
        before=found.before, after=found.after, region=Region(found.region) if found.region else None,
        kind=ChangeKind(found.kind), noise=NoiseKind(found.noise) if found.noise else None,
    )  # fmt: skip
