"""`lab storage`: how small real pages are kept, and how fast any version of them is read back.

A folder holds `chains.jsonl` with the files of `chains/`: many versions of each page in order of time. They go through
the steps of a check into a store of their own, and the whole file of that store is counted.

`Replay` does the same page by page, for measurements of what a check reports.
"""

from __future__ import annotations

import gc
import json
import statistics
import tempfile
import time
from dataclasses import dataclass, replace
from datetime import datetime
from email.utils import formatdate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from driftline.detection.compare import compare, recall
from driftline.detection.examine import examine
from driftline.detection.extract.document import Extraction
from driftline.detection.jobs import Finding, Job
from driftline.lab.bench.local_watch_lists import LabError
from driftline.model.change import ChangeKind, ChangeSummary, Importance
from driftline.model.outcome import Changed, Document, Failed, Proof, Unchanged, version_made_by
from driftline.pipeline.consumer import Steps
from driftline.store.blobs import digest, pack, pack_next, unpack
from driftline.store.compaction import compact
from driftline.store.engine import Store
from driftline.store.history import Repository
from driftline.store.ledger import Ledger
from driftline.store.pages import Catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from driftline.detection.compare import Examiner
    from driftline.detection.jobs import OldVersions
    from driftline.model.outcome import Link, Outcome

_MB = 1_000_000
_LIMIT = 100 * _MB
_READS = 3  # of each version, of which the fastest counts: what else the machine does is not ours
# such collections hold no headers, and a version is kept with those that came: these stand in for them
_HEADERS = (
    "HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Type: {type}; charset=utf-8\r\nServer: nginx\r\n"
    "Vary: Accept-Encoding\r\nCache-Control: private, max-age=0\r\n\r\n"
)
HTML = "text/html"


class PageReplay(NamedTuple):
    """A page at a time."""

    body: Path
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRow:
    """What a store takes for the versions that are kept in it, and how long it takes to read one with its text.

    `stored_mb` is the whole file, and `ratio` is of that; `contents_mb` is what the bodies and texts take of it.
    """

    kept: str
    state: str
    versions: int
    raw_mb: float
    contents_mb: float
    stored_mb: float
    ratio: float
    read_ms: float
    read_ms_99: float
    read_ms_longest: float


class EveryBody:
    """Keeps a version of every body that differs from the one before, whether the difference shows or not."""

    def examine(self, jobs: Sequence[Job], old: OldVersions | None = None) -> list[Finding]:
        """Return the findings of these jobs, in order."""
        return [_keep(job) for job in _complete(jobs, old)]


class WhatShows:
    """Keeps versions as a check does: where what can be seen differs. `seconds` is how long the last jobs took."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def examine(self, jobs: Sequence[Job], old: OldVersions | None = None) -> list[Finding]:
        """Return the findings of these jobs, in order."""
        jobs = _complete(jobs, old)
        started = time.perf_counter()
        found = [examine(job) for job in jobs]
        self.seconds = time.perf_counter() - started
        return found


def _complete(jobs: Sequence[Job], old: OldVersions | None) -> Sequence[Job]:
    """Return the jobs with the contents of their old versions, whether they need them or not."""
    return jobs if old is None else old.complete(range(len(jobs)))


class Replay:
    """A watch list in a store of its own, whose pages are handed over with the times of their checks, not fetched.

    All else is as in `run`: error pages fail, a change is confirmed by a second fetch where there is one, and what is
    learned of a page and of its host is stored. `ms` is how long the body of the last check took to examine, 0 if its
    bytes were those of the check before.
    """

    def __init__(self, store: Store, urls: Iterable[str]) -> None:
        self._catalog, self._ledger = Catalog(store), Ledger(store)
        self._examiner = WhatShows()
        self._steps = Steps(Repository(store), self._examiner, _LIMIT, twice=True)
        self._catalog.add(urls)
        self._ids = {page.url: page.id for page in self._catalog.all()}
        self._run = self._ledger.begin_without_end()
        self.ms = 0.0

    def check(
        self, url: str, body: bytes, at: float, again: Callable[[], bytes] | None = None, content_type: str = HTML
    ) -> Outcome:
        """Check a page that has this body at this time, and return the recorded outcome.

        `again` returns what a second fetch right after it gets; without it, there is none.
        """
        self._examiner.seconds = 0.0
        [link] = self._ledger.links([self._ids[url]])
        proved, left = self._steps.prove_unchanged([_document(link, body, at, content_type)])
        [outcome] = proved or self._steps.compare(self._steps.recall(left))
        self.ms = self._examiner.seconds * 1000
        if isinstance(outcome, Changed) and again is not None:
            [outcome] = self._steps.confirm([(outcome, _document(link, again(), at, content_type))])
        elif isinstance(outcome, Changed):
            outcome = replace(outcome, pair=None)
        self._ledger.record(self._run, [outcome])
        return outcome


def change_of(outcome: Outcome) -> ChangeSummary | None:
    """Return the change that a check found, be it noise; None if it found nothing that shows, or failed."""
    if isinstance(outcome, Changed):
        return outcome.change
    return outcome.noise.change if isinstance(outcome, Unchanged) and outcome.noise is not None else None


def measure(folder: Path, progress: Callable[[str], None]) -> Iterator[StorageRow]:
    """Yield two rows with every body kept, before and after compacting, then two with what a check keeps."""
    pages = list(_chains(folder))
    if not pages:
        raise LabError(f"'{folder}' has no versions of pages: give a folder with chains.jsonl.")
    ways: tuple[tuple[str, Examiner], ...] = (("every body", EveryBody()), ("what shows", WhatShows()))
    for kept, examiner in ways:
        with tempfile.TemporaryDirectory(prefix="driftline-storage-") as place:
            path = Path(place) / "pages.db"
            versions = _fill(path, pages, examiner, progress)
            yield _row(kept, "at once", path, versions)
            store = Store.open(str(path))
            compact(store, lambda done, total: progress(f"{done:,} of {total:,} contents compacted"))
            store.close()
            yield _row(kept, "compacted", path, versions)


def _chains(folder: Path) -> Iterator[list[PageReplay]]:
    path = folder / "chains.jsonl"
    if not path.exists():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            versions = json.loads(line)["versions"]
            yield [
                PageReplay(folder / "chains" / version["file"], datetime.fromisoformat(version["time"]).timestamp())
                for version in versions
            ]
        except (ValueError, KeyError, TypeError):
            raise LabError(f"Line {number} of '{path}' is not a chain of versions.") from None


def _fill(
    path: Path, pages: Sequence[Sequence[PageReplay]], examiner: Examiner, progress: Callable[[str], None]
) -> dict[tuple[str, int], Path]:
    """Check every page once for each of its versions, and return the file of the body of each version."""
    store = Store.open(str(path))
    repository, ledger = Repository(store), Ledger(store)
    urls = Catalog(store).add(f"https://page-{number}.example/" for number in range(len(pages)))
    place = {url: number for number, url in enumerate(urls)}
    found: dict[tuple[str, int], Path] = {}
    for number in range(max(map(len, pages))):
        progress(f"version {number + 1} of {max(map(len, pages))}")
        run, _ = ledger.begin(None, fresh=True)
        seen = {
            link.page_id: (link, pages[place[link.url]][number])
            for link in ledger.remaining(run, None)
            if number < len(pages[place[link.url]])
        }
        documents = [_document(link, read_body(page.body), page.at) for link, page in seen.values()]
        outcomes = compare(recall(documents, repository), examiner, repository, _LIMIT)
        for outcome in ledger.record(run, outcomes).outcomes:
            if isinstance(outcome, Failed):
                raise LabError(f"'{seen[outcome.document.link.page_id][1].body}' failed: {outcome.failure.sentence}")
            version = version_made_by(outcome)
            if version is not None:
                link, page = seen[outcome.document.link.page_id]
                found[link.url, version.number] = page.body
        ledger.finish(run)
    store.close()
    return found


def _document(link: Link, body: bytes, at: float, content_type: str = HTML) -> Document:
    headers = _HEADERS.format(date=formatdate(at, usegmt=True), type=content_type).encode()
    return Document(link, 200, headers, body, len(body), link.url, 0, at, 0.1)


_UNSEEN = ChangeSummary(
    kind=ChangeKind.STRUCTURE, importance=Importance.NOISE, score=0.0, reason="Nothing that can be seen changed.",
    words_added=0, words_removed=0,
)  # fmt: skip


def _keep(job: Job) -> Finding:
    """Return what a worker finds, with a version also where only invisible parts differ."""
    found = examine(job)
    if found.proof is not Proof.TEXT:
        return found
    seen = Extraction(job.wire, job.content_type)
    text = seen.text().encode("utf-8", "replace")
    body_name, text_name = digest(job.wire), digest(text)
    blobs = job.blobs or {}
    body = pack_next(job.wire, body_name, blobs[job.kept_body], unpack(job.kept_body, blobs), blobs)
    made = [body] if text_name == job.kept_text else [body, pack(text, text_name, body, job.wire)]
    return Finding(
        body=body_name, letters=job.known_letters, text=text_name, size=len(job.wire), title=seen.title(),
        content_type=seen.content_type, charset=seen.charset,
        blobs=tuple(made), change=_UNSEEN,
        reading=found.reading,
    )  # fmt: skip


def _row(kept: str, state: str, path: Path, versions: dict[tuple[str, int], Path]) -> StorageRow:
    """Read every version back and measure. Raise LabError unless each equals its source to the byte."""
    stored = path.stat().st_size
    store = Store.open(str(path))
    catalog, repository = Catalog(store), Repository(store)
    pages = {page.url: page for page in catalog.all()}
    raw = 0
    times = []
    url, number = next(iter(versions))
    repository.version(pages[url], number)  # the first one is slower: statements are compiled
    gc.collect()
    gc.freeze()  # what filling the store left behind is not gone through again while a version is read
    for (url, number), file in versions.items():
        reads = []
        for _ in range(_READS):
            started = time.perf_counter()
            version = repository.version(pages[url], number)
            reads.append((time.perf_counter() - started) * 1000)
        times.append(min(reads))
        if version.body != read_body(file):
            raise LabError(f"Version {number} of {url} is not what is in '{file}'.")
        raw += len(version.body)
    _, _, contents = repository.sizes()
    store.close()
    return StorageRow(
        kept=kept, state=state, versions=len(versions), raw_mb=raw / _MB, contents_mb=contents / _MB,
        stored_mb=stored / _MB, ratio=raw / stored, read_ms=statistics.median(times),
        read_ms_99=sorted(times)[len(times) * 99 // 100], read_ms_longest=max(times),
    )  # fmt: skip


def read_body(path: Path) -> bytes:
    """Return the content of a file of a collection; raise LabError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise LabError(f"'{path}' cannot be read: {error.strerror}. Unpack the folder's archives first.") from None
