"""Extracting versions again, in idle time, when the extractor or the filters of a page have changed since."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftline.detection.jobs import Job
from driftline.errors import FailureKind, RunStopped
from driftline.http.headers import header, last_response
from driftline.store.rereads import Fresh

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.detection.jobs import Finding
    from driftline.detection.worker_pool import WorkerPool
    from driftline.pipeline.stop import Stop
    from driftline.store.rereads import Behind, Readings, Stale

_LOOK = 1.0  # seconds after which a request to stop is seen even if its ring was lost


@dataclass(frozen=True, slots=True, kw_only=True)
class RereadVersions:
    """The result of extracting versions again.

    So many `versions` were read; the text of so many `changed`; so many are `unread`, since they cannot be read, and
    stay as they were. More were `skipped`, because the machine may be to blame: another process tries them again. It is
    `finished` unless it was stopped with some left.
    """

    versions: int
    changed: int
    unread: int
    skipped: int
    finished: bool


def reread(
    readings: Readings, workers: WorkerPool, stop: Stop, enough: Callable[[], bool],
    progress: Callable[[int, int], None] | None = None,
) -> RereadVersions:  # fmt: skip
    """Extract every version again that was extracted in another way than its page is today, a few at a time.

    It ends after the next few once `enough` returns True, and at once when it is stopped; what is done stays done.
    `progress` is called with the number of pages that are done, and that of all.
    """
    count = changed = unread = skipped = 0
    pages = readings.behind()
    for done, page in enumerate(pages):
        if progress is not None:
            progress(done, len(pages))
        while not (stopped := enough() or stop.requested) and (some := readings.some(page)):
            try:
                findings = _examined(workers, [_job(page, stale) for stale in some], stop)
            except RunStopped:
                continue
            found = list(zip(some, findings, strict=True))
            # it took too long or too much memory, or was killed: at another time it may be read
            late = {stale.number for stale, finding in found if _is_late(finding)}
            read = [(stale, _fresh(finding)) for stale, finding in found if stale.number not in late]
            readings.skip(page, late)
            skipped += len(late)
            changed += readings.keep(page, read)
            unread += sum(fresh is None for _, fresh in read)
            count += len(read)
        if stopped:
            return RereadVersions(versions=count, changed=changed, unread=unread, skipped=skipped, finished=False)
        readings.finish(page)
    if progress is not None and pages:
        progress(len(pages), len(pages))
    return RereadVersions(versions=count, changed=changed, unread=unread, skipped=skipped, finished=True)


def _examined(workers: WorkerPool, jobs: Sequence[Job], stop: Stop) -> list[Finding]:
    """Return the findings of these jobs; raise RunStopped as soon as it is stopped, however long a page would take."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        findings = thread.submit(workers.examine, jobs)
        findings.add_done_callback(lambda _: stop.bell.ring())
        try:
            while not findings.done() and not stop.requested:
                stop.bell.wait(_LOOK)
        finally:
            if not findings.done():  # also when it is interrupted: the thread must come to its end first
                workers.stop()
        return findings.result()


def _job(page: Behind, stale: Stale) -> Job:
    content_type = header(last_response(stale.headers), b"content-type") or ""
    return Job(
        b"", [], content_type, 0, b"", b"", stale.body, stale.text, stale.blobs, filters=page.filters, anew=True
    )  # fmt: skip


def _is_late(finding: Finding) -> bool:
    return finding.failure is not None and finding.failure.kind is FailureKind.HOSTILE


def _fresh(finding: Finding) -> Fresh | None:
    if finding.failure is not None:
        return None
    return Fresh(
        text=finding.text, blobs=finding.blobs, letters=finding.letters,
        title=finding.title, content_type=finding.content_type, charset=finding.charset,
    )  # fmt: skip
