"""Examine the body of one page whose wire bytes differ from the last check. It runs in a worker process.

The cheapest proofs of no change come first: the same decoded body, then the same text. Only a page that fails both is
compared with the old version, and the new version compressed. So a job comes with the digests of the old version first,
and with its contents only once the page turned out to differ.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from selectolax.lexbor import SelectolaxError

from driftline.detection.diff.lines import key_of
from driftline.detection.diff.tables import ChangedCell, changed_cells
from driftline.detection.error_pages.broken_data import why_faulty
from driftline.detection.error_pages.detect import is_login_form, needs_script, why_broken
from driftline.detection.extract.annotations import is_note, without_notes
from driftline.detection.extract.charset import decode_text
from driftline.detection.extract.conditions import headline_of_met
from driftline.detection.extract.document import Extraction
from driftline.detection.extract.filters import (
    awaited_by,
    counts_also,
    how_read,
    is_quiet,
    may_be_quiet,
    sieve_of,
)
from driftline.detection.extract.line_filters import matches
from driftline.detection.extract.regions import Blocks
from driftline.detection.headline import headline_beside, headline_of
from driftline.detection.headline_words import cut, exchanged, reordered, restyled
from driftline.detection.jobs import Finding, Job
from driftline.detection.messages import (
    ACCEPTED,
    AWAITED,
    LOGIN_PAGE,
    NOT_AWAITED,
    OUT_OF_MEMORY,
    REFILTERED,
    REREAD,
    own_failure,
)
from driftline.detection.noise.edits import (
    MOST_OF_NOISE,
    SEEN,
    Experience,
    JudgedDocument,
    Judgement,
    ReadOnce,
    found_edits,
    line_of,
)
from driftline.detection.noise.judge import exchanged_lines, first_moved, in_other_sections, judge
from driftline.detection.noise.judge_annotations import judge_all
from driftline.detection.noise.learning import learn
from driftline.detection.threats import intruders, mixed_content, why_executable
from driftline.errors import BrokenVersion, FailureKind, NothingSelected, UnreadableBody
from driftline.http.codings import decode_body
from driftline.model.change import LEAST_SCORES, MINOR_KINDS, ChangeKind, ChangeSummary, Importance
from driftline.model.outcome import Incomparable, Lesson, Proof
from driftline.model.page import ACCEPT_EMPTY, ChangeSide, Failure, PageWarning, accepted
from driftline.noise_memory import Memory
from driftline.store.blobs import digest, pack, pack_next, unpack, unpack_both

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from driftline.detection.jobs import OldVersions

    #: the examination of a body; it yields the size of the body if it needs the old version, to be sent the job with it
    _Examination = Generator[int, Job, Finding]

_FEED = re.compile(rb"<(?:rss|feed|rdf:rdf)[\s>]", re.IGNORECASE)
_HEAD = 2_000  # bytes in which the root of a feed is found
_CELL = re.compile(rb"<t[dh]\b[^<]*(?:<(?!/?t[dhr])[^<]*)*\Z", re.IGNORECASE)
_NEAR = 300  # bytes before a text in which the tag of its cell is found
_TRIED = 5  # edits
_KEPT_BYTES = 8 * 1024 * 1024  # of bodies that wait for their old versions: far more than a batch of most pages


class Examinations:
    """Examines bodies one after the other, and keeps those that need their old version as far as they were read.

    If what is kept grows too large, the oldest are forgotten: a job that comes again without its body then needs to be
    sent with everything, and is examined from the beginning.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[_Examination, int]] = {}
        self._size = 0

    def __repr__(self) -> str:
        return f"<Examinations kept={len(self._kept)} size={self._size}>"

    def examine(self, job: Job) -> Finding:
        """Return what a body shows compared with the version in force; a failure if it cannot be read.

        The finding of a job without the contents of the old version may be that it needs them.
        """
        finding = guarded(lambda: _read_anew(job) if job.anew else self._advance(job))
        if finding.out_of_memory and self._kept:
            self._kept.clear()
            self._size = 0
            return self.examine(job)
        return finding

    def _advance(self, job: Job) -> Finding:
        """Examine a body until it needs its old version or the finding is made."""
        examination, size = self._kept.pop(job.number, (None, 0)) if job.blobs is not None else (None, 0)
        if examination is None and job.continued:
            return Finding(needs_old=True)
        self._size -= size
        try:
            if examination is None:
                examination = _examination(job)
                size = next(examination)
            else:
                size = examination.send(job)
        except StopIteration as ended:
            found: Finding = ended.value
            return found
        self._kept[job.number] = examination, size
        self._size += size
        while self._size > _KEPT_BYTES:
            self._size -= self._kept.pop(next(iter(self._kept)))[1]
        return Finding(needs_old=True)


def examine(job: Job) -> Finding:
    """Return what one body shows compared with the version in force; see `Examinations.examine`."""
    return Examinations().examine(job)


def examine_all(jobs: Sequence[Job], old: OldVersions | None = None) -> list[Finding]:
    """Return the findings of these jobs in order, made in this process: for bodies that do no harm."""
    examinations = Examinations()
    findings = [examinations.examine(job._replace(number=number)) for number, job in enumerate(jobs)]
    waiting = [number for number, finding in enumerate(findings) if finding.needs_old]
    if waiting and old is not None:
        for number, job in zip(waiting, old.complete(waiting), strict=True):
            findings[number] = examinations.examine(job._replace(number=number))
    return findings


def guarded(read: Callable[[], Finding]) -> Finding:
    """Return what `read` finds, or a failure if it raises."""
    try:
        return read()
    except UnreadableBody as error:
        return _failed(error.kind, str(error))
    except BrokenVersion as error:
        return _failed(FailureKind.INTERNAL, str(error))
    except (MemoryError, SelectolaxError):
        # the parser accepts any markup: if it fails, it could not allocate memory
        return _failed(FailureKind.HOSTILE, OUT_OF_MEMORY)._replace(out_of_memory=True)
    except Exception as error:  # noqa: BLE001 an error in one page must not fail others
        return _failed(FailureKind.INTERNAL, own_failure(error))


def _failed(kind: FailureKind, sentence: str) -> Finding:
    return Finding(failure=Failure(kind=kind, sentence=sentence))


def _examination(job: Job) -> _Examination:
    body = decode_body(job.wire, job.codings, job.limit)
    body_name = digest(body)
    reading = how_read(job.filters)
    as_before = reading == job.reading
    if as_before and body_name == job.known_body:
        return Finding(proof=Proof.BODY, body=body_name, reading=reading)
    program = why_executable(body, job.content_type, job.disposition)
    if program is not None:
        return _failed(FailureKind.UNSAFE, program)
    if job.kept_body and may_be_quiet(job.filters):
        seen = Extraction(
            body, job.content_type
        )  # all of it: what is watched may be missing from a page that is closed
        if is_quiet(job.filters, seen.text()):
            warnings = yield from _warnings(seen, body, job)
            return Finding(proof=Proof.QUIET, body=body_name, reading=reading, warnings=warnings)
    seen = Extraction(body, job.content_type, job.filters)
    letters = digest(seen.letters())
    if as_before and letters == job.known_letters:
        warnings = yield from _warnings(seen, body, job)
        return Finding(proof=Proof.TEXT, body=body_name, reading=reading, warnings=warnings)
    title = seen.title()
    blocks = seen.blocks() if job.kept_body else None
    text = (seen.text() if blocks is None else "\n".join(blocks.lines)).encode("utf-8", "replace")
    text_name = digest(text)
    if text_name == job.kept_text:
        warnings = yield from _warnings(seen, body, job)
        return Finding(proof=Proof.TEXT, body=body_name, reading=reading, warnings=warnings)
    if job.blobs is None:
        seen.release_tree()
        job = yield len(body)
        as_before = reading == job.reading  # another process may have extracted the stored text anew
        if text_name == job.kept_text:
            return Finding(proof=Proof.TEXT, body=body_name, reading=reading)
    words = text.decode()
    proof, change, lesson, wants_script = None, None, None, False
    blobs = job.blobs or {}
    old_body, old_text = b"", None
    if job.kept_body and as_before:
        old_body, old_words = unpack_both(job.kept_body, job.kept_text, blobs)
        old_text = old_words.decode()
    elif job.kept_body:
        old_body = unpack(job.kept_body, blobs)
        comparable = body_name != job.known_body and job.incomparable is None
        old_text = _reread(old_body, letters, words, job) if comparable else None
    faulty = None if old_text is None or seen.is_selected else why_faulty(body, old_body)
    may_be_empty = ACCEPT_EMPTY in accepted(job.filters)
    if faulty is not None and not job.accepted and not (may_be_empty and not body.strip()):
        return broken_page(faulty)
    if seen.is_whole_page and not job.accepted and job.incomparable is not Incomparable.GIVEN_UP:
        before = None if old_text is None else _whole(old_body, old_text, seen, job)
        shown = _whole(body, words, seen, job)
        wants_script = needs_script(title, shown, body)
        broken = why_broken(title, shown, body, before, old_body)
        if broken is None and job.moved and not job.kept_body and is_login_form(title, shown, body, job.url):
            broken = LOGIN_PAGE
        if broken and (shown or not may_be_empty):
            return broken_page(broken, wants_script=wants_script)
    if old_text is not None:
        sides = Side(old_body, old_text, job.old_at), Side(body, words, job.at, blocks)
        change, lesson, differs_at_every_fetch = _change(*sides, title, job)
        if differs_at_every_fetch:
            # the version in force stays: a change that only some servers have yet is found once all have it
            return Finding(proof=Proof.NOISE, body=body_name, lesson=lesson, reading=reading)
    elif job.kept_body:
        proof, change = Proof.REREAD, _only_reread(reading, job)
    body_blob = pack_next(body, body_name, blobs.get(job.kept_body), old_body, blobs)
    text_blob = pack(text, text_name, body_blob, body)
    warnings = yield from _warnings(seen, body, job, made=True)
    return Finding(
        proof=proof, body=body_name, letters=letters, text=text_name, size=len(body), title=title,
        content_type=seen.content_type, charset=seen.charset, blobs=(body_blob, text_blob),
        change=change, lesson=lesson, reading=reading, wants_script=wants_script,
        warnings=warnings,
    )  # fmt: skip


def broken_page(why: str, *, wants_script: bool = False) -> Finding:
    """Return the failure of a response that is not the page."""
    return _failed(FailureKind.BROKEN, why)._replace(wants_script=wants_script)


def _warnings(
    seen: Extraction, body: bytes, job: Job, *, made: bool = False
) -> Generator[int, Job, tuple[PageWarning, ...]]:  # fmt: skip
    """Return warnings about a page; mixed content only if a version of it is `made`. It is a part of an examination.

    Hidden frames and obfuscated scripts count if they were added: what a new page has is what its user chose to watch.
    """
    if not seen.is_page:
        return ()
    mixed = mixed_content(body, job.url) if made else None
    found = [] if mixed is None else [mixed]
    suspects = intruders(body, job.url, job.old_size) if job.kept_body else []
    if suspects and job.blobs is None:
        seen.release_tree()
        job = yield len(body)
    if suspects and job.kept_body:
        old_body = unpack(job.kept_body, job.blobs or {})
        found += [one for one in suspects if one.mark not in old_body]
    return tuple(PageWarning(one.kind, one.sentence) for one in found)


def _whole(body: bytes, text: str, seen: Extraction, job: Job) -> str:
    """Return the text of the page without its filters: block pages and errors are recognised by all of it."""
    if seen.is_narrowed:
        return Extraction(body, job.content_type).text()
    return without_notes(text) if counts_also(job.filters) else text


def _read_anew(job: Job) -> Finding:
    """Return the text of a stored version as it is extracted now, with a blob unless it is the same as before."""
    blobs = job.blobs or {}
    body = unpack(job.kept_body, blobs)
    seen = Extraction(body, job.content_type, job.filters)
    letters, title = digest(seen.letters()), seen.title()
    text = seen.text().encode("utf-8", "replace")
    name = digest(text)
    made = () if name == job.kept_text else (pack(text, name, blobs[job.kept_body], body),)
    return Finding(
        body=job.kept_body, letters=letters, text=name, size=len(body), title=title, content_type=seen.content_type,
        charset=seen.charset, blobs=made, reading=how_read(job.filters),
    )  # fmt: skip


def _reread(old_body: bytes, letters: bytes, words: str, job: Job) -> str | None:
    """Return the text of the version in force as it is extracted now; None if it is the same, or cannot be compared.

    Its filters were edited since, or the extractor is a newer one: neither is a change of the page. But where the old
    version has nothing of what is selected now, lines that it did not have anywhere are new.
    """
    try:
        seen = Extraction(old_body, job.content_type, job.filters)
        return None if digest(seen.letters()) == letters else seen.text()
    except NothingSelected:
        if not _is_refiltered(how_read(job.filters), job):
            return None
        before = {*Extraction(old_body, job.content_type).text().split("\n")}
        lines = words.split("\n")
        known = [line for line in lines if line in before]
        return None if len(known) == len(lines) else "\n".join(known)
    except UnreadableBody:
        return None


def _is_refiltered(reading: str, job: Job) -> bool:
    """Return whether the version in force was extracted by this extractor, and other filters."""
    return job.reading is not None and reading.partition(":")[0] == job.reading.partition(":")[0]


def _only_reread(reading: str, job: Job) -> ChangeSummary:
    """Return the change of a page that only its filters, the extractor or the user's word changed."""
    accepted = job.incomparable is Incomparable.GIVEN_UP
    reason = ACCEPTED if accepted else REFILTERED if _is_refiltered(reading, job) else REREAD
    return ChangeSummary(
        kind=ChangeKind.READING, importance=Importance.NOISE, score=0.0, reason=reason, words_added=0, words_removed=0
    )


def _table_of(text: str, body: bytes) -> int:
    """Return the number of the table in which a cell begins with this text; 0 if there is none."""
    at = body.find(f">{text}<".encode())
    if at < 0 or _CELL.search(body, max(0, at - _NEAR), at + 1) is None:
        return 0
    return body.count(b"<table", 0, at)


def _table(body: bytes, number: int) -> bytes:
    """Return the markup of a table; empty if there are fewer."""
    start = -1
    for _ in range(number):
        start = body.find(b"<table", start + 1)
        if start < 0:
            return b""
    end = body.find(b"</table", start)
    return body[start:end] if end >= 0 else body[start:]


class Side(NamedTuple):
    """One of two documents to compare: its decoded body, its text, when it was fetched, and its blocks if known."""

    body: bytes
    text: str
    at: float
    blocks: Blocks | None = None


def weigh(
    old: Side, new: Side, title: str, content_type: str, experience: Experience | None = None,
    filters: list[list[str]] | None = None,
) -> Judgement:  # fmt: skip
    """Return whether the difference between two documents matters, and why."""

    def read(side: Side) -> JudgedDocument:
        def parsed() -> Blocks:
            try:
                return Extraction(side.body, content_type, filters).blocks()
            except UnreadableBody:
                return Blocks(side.text.split("\n"))  # it has nothing of what is selected now

        return JudgedDocument(
            text=side.text, title=title, at=side.at, blocks=ReadOnce(parsed, side.blocks), body=side.body
        )

    sides = read(old), read(new)
    judgement = judge_all(*sides, experience or Experience()) if counts_also(filters) else judge(*sides, experience)
    noise = judgement.importance is Importance.NOISE
    headline = headline_beside(judgement.edits) if noise else _headline(judgement, old, new, sides, content_type)
    return replace(judgement, headline=headline)


def _headline(
    judgement: Judgement, old: Side, new: Side, sides: tuple[JudgedDocument, JudgedDocument], content_type: str
) -> str:  # fmt: skip
    """Return the headline of a change that is no noise."""
    edits = judgement.edits
    real = [edit for edit in edits if edit.noise is None]
    if judgement.by_order:
        values: list[tuple[str, str, str]] = []
        if judgement.importance is Importance.IMPORTANT:
            sections = in_other_sections(old.text, sides[1])
            values = exchanged_lines(old.text, new.text) or [one for one in sections if all(one)]
        return exchanged(values) if values else reordered(first_moved(old.text, new.text))
    if not real:
        edits = real = [replace(edit, noise=None) for edit in edits if edit.noise in MINOR_KINDS]
        if said := restyled(real):
            return said
    if all(is_note(line_of(edit).text) for edit in real):
        return cut(judgement.reason.removesuffix("."))

    def cells(texts: Sequence[str]) -> list[ChangedCell]:
        # only the tables of these texts: to parse two documents takes as long as all the rest
        numbers = {number for text in texts[:_TRIED] if (number := _table_of(text, new.body))} if not feed else ()
        tables = [[_table(side.body, number) for side in (old, new)] for number in sorted(numbers)]
        read = [[decode_text(table, content_type)[0] for table in pair] for pair in tables if all(pair)]
        return [cell for before, after in read for cell in changed_cells(before, after)]

    feed = _FEED.search(new.body, 0, _HEAD) is not None
    return headline_of(edits, *sides, feed=feed, cells=cells)


def experience_of(
    filters: list[list[str]] | None, memory: bytes, host_memory: bytes, check: int, at: float, again: str | None = None
) -> Experience:
    """Return what is known of a page with these filters before the check of this number and time."""
    sieve = sieve_of(filters)
    return Experience(
        page=Memory(memory), host=Memory(host_memory), check=check, at=at, again=again,
        selected=sieve is not None and sieve.selects, only=None if sieve is None else sieve.only,
    )  # fmt: skip


def _again(job: Job, new: Side) -> str | None:
    """Return the text of the second fetch; None if there was none, or it is not the page."""
    if not job.again:
        return None
    try:
        body = decode_body(job.again, job.again_codings, job.limit)
        seen = Extraction(body, job.content_type, job.filters)
        title, text = seen.title(), seen.text()
    except UnreadableBody:
        return None
    if seen.is_whole_page:
        now, before = _whole(body, text, seen, job), _whole(new.body, new.text, seen, job)
        if why_broken(title, now, body, before, new.body):
            return None
    return text


def _awaited_headline(job: Job, judgement: Judgement, old: str, new: str) -> str:
    """Return the headline of a change that the user waits for; empty if it is the one that any change gets.

    Each of its edits alone may be noise, or less important than others.
    """
    sieve = sieve_of(job.filters)
    if sieve is None:
        return ""
    if met := headline_of_met(sieve.conditions, old, new):
        return "" if met.rpartition("→ ")[2] in judgement.headline else cut(met)
    if judgement.importance is Importance.IMPORTANT:
        return ""
    edits = judgement.edits
    for edit in edits:
        if edit.new and matches(sieve.triggers, edit.new.text):
            return cut(f"New: {edit.new.text}")
        if edit.old and matches(sieve.removed_triggers, edit.old.text):
            return cut(f"Removed: {edit.old.text}")
    return ""


def _change(old: Side, new: Side, title: str, job: Job) -> tuple[ChangeSummary, Lesson, bool]:
    """Return the change, what is learned from it, and whether a second fetch shows that it comes and goes by itself."""
    experience = experience_of(job.filters, job.memory, job.host_memory, job.check, job.at, _again(job, new))
    judgement = weigh(old, new, title, job.content_type, experience, job.filters)
    awaited = awaited_by(job.filters, old.text, new.text)
    # a page that waits for something is reported by that alone
    for_host = learn(experience.page, judgement, job.check, job.at, reports=awaited is None)
    importance, score, reason, headline = judgement.importance, judgement.score, judgement.reason, judgement.headline
    if experience.only is ChangeSide.UNSEEN and not judgement.differs_at_every_fetch:
        lines = {*old.text.split("\n"), *new.text.split("\n")}
        experience.page.see([key_of(SEEN, line) for line in lines], job.at)
    ignored = judgement.ignored if awaited is None and not judgement.differs_at_every_fetch else None
    lesson = Lesson(memory=experience.page.to_bytes(), for_host=tuple(for_host), ignored=ignored)
    if awaited is Importance.NOISE:
        importance, score, reason = awaited, min(score, MOST_OF_NOISE), NOT_AWAITED
    elif awaited is Importance.IMPORTANT and not judgement.differs_at_every_fetch:
        headline = _awaited_headline(job, judgement, old.text, new.text) or headline or AWAITED.removesuffix(".")
        if importance is not awaited:
            importance, score, reason = awaited, LEAST_SCORES[awaited], AWAITED
    # what the page does not wait for is not reported, even if many pages share it
    cause = b"" if awaited is Importance.NOISE else judgement.cause
    change = ChangeSummary(
        kind=judgement.kind, importance=importance, score=score, reason=reason, words_added=judgement.words_added,
        words_removed=judgement.words_removed, cause=cause, edits=found_edits(judgement.edits),
        headline="" if awaited is Importance.NOISE else headline,
    )  # fmt: skip
    return change, lesson, judgement.differs_at_every_fetch
