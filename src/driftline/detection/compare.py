"""The steps of a consumer: read what is known of a page from the store, then compare the document with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from driftline.detection.jobs import Finding, Job
from driftline.http.headers import content_encodings, header, last_response
from driftline.model.change import Importance
from driftline.model.outcome import (
    Changed,
    Document,
    Examined,
    Failed,
    New,
    NewVersion,
    NoiseVersion,
    Old,
    Pair,
    Proof,
    Unchanged,
)
from driftline.model.page import accepts_status
from driftline.store.blobs import fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from driftline.detection.jobs import OldVersions
    from driftline.model.outcome import Link, Outcome

_NOT_MODIFIED = 304
_ERRORS = 400  # the first status of an error


class Versions(Protocol):
    """Reads old versions from the store."""

    def recall(self, page_ids: Sequence[int]) -> dict[int, Old]:
        """Return the old versions of these pages by page id, their contents unread."""

    def recall_contents(self, old: Mapping[int, Old], hosts: Mapping[int, str]) -> dict[int, Old]:
        """Return these old versions with their contents, and what was learned of the pages and their hosts.

        All by page id. Pages that were removed meanwhile are left out.
        """


class Examiner(Protocol):
    """Reads and compares bodies, in this process or in others."""

    def examine(self, jobs: Sequence[Job], old: OldVersions | None = None) -> list[Finding]:
        """Return the findings of these jobs, in order. `old` is asked for the contents that jobs lack and need."""


def prove_unchanged(documents: Sequence[Document]) -> tuple[list[Unchanged], list[Document]]:
    """Return the outcomes of documents that their links prove unchanged, and the documents left to compare."""
    proved: list[Document] = []
    proofs: list[Proof] = []
    left: list[Document] = []
    for document in documents:
        if document.failure is None and document.link.known is not None:
            _, proof = _proof(document)
            if proof is not None:
                proved.append(document)
                proofs.append(proof)
                continue
        left.append(document)
    for document in proved:
        document.release_body()  # not earlier: a step that fails is repeated, and needs the body
    return list(map(Unchanged, proved, proofs)), left


def recall(documents: Sequence[Document], versions: Versions) -> list[Pair]:
    """Return each document with its old version, or with the proof that validators or wire bytes show no change."""
    proofs = [_proof(document) if document.failure is None else (b"", None) for document in documents]
    links = [
        document.link
        for document, (_, proof) in zip(documents, proofs, strict=True)
        if proof is None and document.failure is None and _may_be_recalled(document.link)
    ]
    recalled = versions.recall([link.page_id for link in links]) if links else {}
    pairs: list[Pair] = []
    for document, (wire, proof) in zip(documents, proofs, strict=True):
        link = document.link
        if proof is not None or document.failure is not None:
            pairs.append(Pair(document, wire, proof))
        else:
            pairs.append(Pair(document, wire, None, recalled.get(link.page_id)))
    for pair in pairs:
        if pair.proof is not None:
            pair.document.release_body()  # not earlier: a step that fails is repeated, and needs the body
    return pairs


def _may_be_recalled(link: Link) -> bool:
    """Return whether something is stored of a page: a version, or that the user accepts what failed until now."""
    return link.known is not None or link.failures > 0


class _OldContents:
    """Reads the contents of the old versions that pairs differ from, and keeps the pairs with what was read."""

    def __init__(self, pairs: list[Pair], versions: Versions, limit: int) -> None:
        self.pairs = pairs
        self._versions = versions
        self._limit = limit

    def complete(self, numbers: Sequence[int]) -> list[Job]:
        """Return the jobs of the pairs with these numbers, now with the contents of their old versions."""
        pairs = self.pairs
        of_numbers = [(number, pairs[number].document.link.page_id, pairs[number].old) for number in numbers]
        old = {page_id: one for _, page_id, one in of_numbers if one is not None and one.kept_body}
        hosts = {pair.document.link.page_id: pair.document.link.host for pair in pairs}
        recalled = self._versions.recall_contents(old, hosts)
        for number, page_id, one in of_numbers:
            if one is None or one.kept_body:
                pairs[number] = replace(pairs[number], old=recalled.get(page_id))
        return [job_of(pairs[number], self._limit) for number in numbers]


def compare(
    pairs: Sequence[Pair], examiner: Examiner, versions: Versions, limit: int, *, twice: bool = False
) -> list[Outcome]:
    """Return the outcome of each pair, in order. Only pairs that `recall` left open are examined.

    The contents of an old version are read only if the page differs from its digests. With `twice`, a change keeps its
    body and its pair, for `confirm`.
    """
    unread = _OldContents(
        [pair for pair in pairs if pair.proof is None and pair.document.failure is None], versions, limit
    )
    jobs = [job_of(pair, limit) for pair in unread.pairs]
    findings = iter(zip(examiner.examine(jobs, unread) if jobs else (), unread.pairs, strict=True))
    outcomes: list[Outcome] = []
    for pair in pairs:
        document = pair.document
        if document.failure is not None:
            document.release_body()
            outcomes.append(Failed(document, document.failure))
        elif pair.proof is not None:
            outcomes.append(Unchanged(document, pair.proof))  # `recall` released the body
        else:
            finding, examined = next(findings)
            outcomes.append(outcome_of(examined, finding, twice=twice))
    return outcomes


def confirm(found: Sequence[tuple[Changed, Document]], examiner: Examiner, limit: int) -> list[Outcome]:
    """Return the outcomes of changes, given a second fetch of their pages: what differs in it changes by itself.

    A second fetch that failed, has the same bytes or cannot be read leaves a change as it is.
    """
    confirmed: list[Changed] = []
    differing: list[tuple[Changed, Pair, Document]] = []
    for outcome, document in found:
        if outcome.pair is None or document.failure is not None or _has_bytes_of(outcome, document):
            confirmed.append(outcome)
        else:
            differing.append((outcome, outcome.pair, document))
    jobs = [_second_job(pair, document, limit) for _, pair, document in differing]
    findings = examiner.examine(jobs) if jobs else []
    outcomes = [_final(outcome) for outcome in confirmed]
    for (outcome, pair, _), finding in zip(differing, findings, strict=True):
        outcomes.append(_final(outcome) if finding.failure else outcome_of(pair, finding))
    return outcomes


def _final(change: Changed) -> Outcome:
    """Return a change that stays as it was found as the final outcome, without what a second fetch needed."""
    change.document.release_body()
    return replace(change, pair=None)


def _has_bytes_of(outcome: Changed, document: Document) -> bool:
    return fingerprint(document.body) == outcome.examined.wire


def _proof(document: Document) -> tuple[bytes, Proof | None]:
    """Return the digest of the wire bytes, and the proof that the page is unchanged, if there is one."""
    known = document.link.known
    if document.status == _NOT_MODIFIED and known is not None:
        return known.wire, Proof.VALIDATORS
    wire = fingerprint(document.body)
    return wire, Proof.WIRE if known is not None and wire == known.wire else None


def job_of(pair: Pair, limit: int) -> Job:
    """Return the job that a worker does for a pair; raise ValueError if its body was released already."""
    document, old = pair.document, pair.old
    if len(document.body) != document.size:  # an empty body would pass for a page that lost all of its text
        raise ValueError(f"The body of {document.link.url} was released before it was read.")
    block = last_response(document.headers)
    codings, content_type = content_encodings(block), header(block, b"content-type") or ""
    disposition = header(block, b"content-disposition") or ""
    if old is None:
        return Job(
            document.body, codings, content_type, limit, b"", b"", b"", b"", {}, 0.0, document.fetched_at,
            filters=document.link.filters, url=document.final_url, disposition=disposition, moved=_is_moved(document),
            accepted=_is_accepted(document),
        )  # fmt: skip
    job = Job(
        document.body, codings, content_type, limit, old.body, old.letters, old.kept_body, old.kept_text, None, old.at,
        document.fetched_at, check=document.link.sequence, filters=document.link.filters, reading=old.reading,
        incomparable=old.incomparable, url=document.final_url, disposition=disposition, old_size=old.size,
        moved=_is_moved(document), accepted=_is_accepted(document),
    )  # fmt: skip
    known = old.contents
    if known is None:
        return job
    return job._replace(blobs=known.blobs, memory=known.memory, host_memory=known.host_memory)


def _is_moved(document: Document) -> bool:
    """Return whether a redirect led to another page: not only to another spelling of host or path."""
    return document.redirects > 0 and _place(document.link.url) != _place(document.final_url)


def _place(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return (parts.hostname or "").removeprefix("www."), parts.path.rstrip("/")


def _is_accepted(document: Document) -> bool:
    """Return whether the answer has an error status that the user accepts."""
    return document.status >= _ERRORS and accepts_status(document.link.filters, document.status)


def _second_job(pair: Pair, document: Document, limit: int) -> Job:
    """Return the job of a change, with the same page fetched once more."""
    codings = content_encodings(last_response(document.headers))
    return job_of(pair, limit)._replace(again=document.body, again_codings=codings)


def outcome_of(pair: Pair, finding: Finding, *, twice: bool = False) -> Outcome:
    """Return the outcome of the check that a finding stands for, and release the body before.

    With `twice`, a change keeps its body and its pair.
    """
    document, change = pair.document, finding.change
    if finding.needs_old:
        raise ValueError(f"{document.link.url} was not compared with its old version.")
    if not twice or change is None or change.importance is Importance.NOISE:
        document.release_body()
    if finding.failure is not None:
        return Failed(document, finding.failure, finding.wants_script)
    examined = Examined(
        wire=pair.wire, body=finding.body, reading=finding.reading,
        recalled=(pair.old.kept_text or None) if pair.old else None,
        lesson=finding.lesson, warnings=finding.warnings, wants_script=finding.wants_script,
    )  # fmt: skip
    if finding.proof is not None and not finding.text:
        return Unchanged(document, finding.proof, examined)
    known = document.link.known
    version = NewVersion(
        number=known.version + 1 if known else 1, body=finding.body, letters=finding.letters, text=finding.text,
        size=finding.size, title=finding.title, content_type=finding.content_type, charset=finding.charset,
        blobs=finding.blobs,
    )  # fmt: skip
    if change is None:
        return New(document, examined, version)  # also if its versions were removed during the check
    if change.importance is Importance.NOISE:
        return Unchanged(document, finding.proof or Proof.NOISE, examined, NoiseVersion(version, change))
    return Changed(document, examined, version, change, pair if twice else None)
