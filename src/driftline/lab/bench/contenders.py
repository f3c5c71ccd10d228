"""The contenders of `lab speed`, each in a process of its own: `python -m driftline.lab.bench.contenders JSON`.

`download` is bare libcurl. `floor` is that plus only the library calls that the pass cannot avoid, in the same threads
and processes as the pipeline: one digest where nothing changed; decoding, parsing with text, and the digests where
bodies differ; packing (against the old body, if there is one) and inserting where there is something new. `check` is
Driftline itself.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from isal import isal_zlib
from selectolax.lexbor import LexborHTMLParser

from driftline.detection.worker import read_frame, write_frame
from driftline.lab.bench.local_watch_lists import LabError, open_local
from driftline.lab.simweb.simweb_client import BareClient, BareRequest
from driftline.model.outcome import Blob
from driftline.pipeline.plan import Plan
from driftline.runtime import SWITCH_INTERVAL
from driftline.store.blobs import digest, fingerprint, pack, unpack
from driftline.store.engine import Store
from driftline.store.history import Repository
from driftline.store.ledger import Ledger
from driftline.store.pages import Catalog
from driftline.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from driftline.model.outcome import Link

Pass = Literal["new", "same", "not-modified", "noisy", "changed"]
_BATCH = 32
_LOOK = 0.05  # seconds between two looks at the memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """One run of one contender over the pages of a store."""

    contender: Literal["download", "floor", "check"]
    kind: Pass
    store: str
    in_flight: int
    consumers: int
    expected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Time:
    """The cost of a heat: seconds, processor seconds of all its processes, and their peak memory together."""

    pages: int
    seconds: float
    cpu: float
    peak_mb: float


def enter(heat: Heat) -> Time:
    """Run a heat in a process of its own."""
    command = [sys.executable, "-P", "-m", "driftline.lab.bench.contenders", json.dumps(asdict(heat))]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        answer, peak = _watch(process)
    if process.returncode:
        raise LabError(f"The contender '{heat.contender}' failed in the pass '{heat.kind}'.")
    time = Time(**json.loads(answer))
    return replace(time, peak_mb=max(time.peak_mb, peak))


def run(heat: Heat) -> Time:
    """Run a heat in this process. The clock starts when the store is open and stops when all is recorded."""
    if heat.contender == "check":
        pages, seconds, cpu = _check(heat)
    else:
        store = Store.open(heat.store)
        links = list(Ledger(store).remaining(0, None))
        store.close()
        work = _Floor(heat) if heat.contender == "floor" else None
        client = BareClient(heat.in_flight)
        cpu_before = _cpu()
        sys.setswitchinterval(SWITCH_INTERVAL)  # as in a run of Driftline
        started = time.perf_counter()
        client.run(_requests(links, heat), None if work is None else work.got({link.url: link for link in links}))
        if work:
            work.finish()
        seconds = time.perf_counter() - started
        if work:
            work.clean_up()
        client.close()
        cpu = _cpu() - cpu_before
        pages = len(links)
    alone = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    return Time(pages=pages, seconds=seconds, cpu=cpu, peak_mb=alone)


def _check(heat: Heat) -> tuple[int, float, float]:
    with open_local(heat.store, robots="obey") as driftline:
        cpu_before = _cpu()
        slots, consumers = heat.in_flight or None, heat.consumers or None
        report = driftline.check(plan=Plan(producers=1, slots=slots, consumers=consumers), fresh=True)
        cpu = _cpu() - cpu_before
    found = {
        "new": report.new,
        "same": report.unchanged,
        "not-modified": report.unchanged,
        "noisy": report.unchanged,
        "changed": report.changed,
    }
    if report.failed or found[heat.kind] != heat.expected:
        raise SystemExit(f"The pass '{heat.kind}' went wrong: {report}")
    return report.pages, report.seconds, cpu


def _requests(links: list[Link], heat: Heat) -> Iterator[BareRequest]:
    conditional = heat.kind == "not-modified"
    return ((link.url, [f"If-None-Match: {link.known.etag}"] if conditional and link.known else []) for link in links)


class _Floor:
    """The unavoidable library calls, spread over threads and processes as the pipeline spreads them."""

    def __init__(self, heat: Heat) -> None:
        self._heat = heat
        self._links: dict[str, Link] = {}
        self._queue: queue.SimpleQueue[list[tuple[str, bytes]] | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[list[tuple[Any, ...]] | None] = queue.SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._old = _old_bodies(heat.store) if heat.kind == "changed" else {}
        self._reads = heat.kind in ("new", "noisy", "changed")
        self._room = threading.Semaphore(500)
        self._consumers = [threading.Thread(target=self._consume) for _ in range(heat.consumers)]
        self._recorder = threading.Thread(target=self._record)
        for thread in (*self._consumers, self._recorder):
            thread.start()

    def got(self, links: dict[str, Link]) -> Any:
        self._links = links

        def take(finished: list[tuple[str, bytes]]) -> None:
            for start in range(0, len(finished), _BATCH):
                some = finished[start : start + _BATCH]
                for _ in some:
                    self._room.acquire()
                self._queue.put(some)

        return take

    def finish(self) -> None:
        for _ in self._consumers:
            self._queue.put(None)
        for thread in self._consumers:
            thread.join()
        self._results.put(None)
        self._recorder.join()

    def _consume(self) -> None:
        worker = _start_worker(self._heat.kind) if self._reads else None
        while (batch := self._queue.get()) is not None:
            unlike: list[tuple[bytes, bytes]] = []
            for url, body in batch:
                if self._heat.kind == "not-modified":
                    continue
                link = self._links[url]
                if link.known is None or link.known.wire != fingerprint(body):
                    unlike.append((body, self._old.get(link.page_id, b"")))
            if worker and unlike:
                assert worker.stdin is not None
                assert worker.stdout is not None
                write_frame(worker.stdin, unlike)
                worker.stdin.flush()
                self._results.put(read_frame(worker.stdout))
            self._room.release(len(batch))
        if worker:
            assert worker.stdin is not None
            worker.stdin.close()
            worker.wait()

    def _record(self) -> None:
        path = f"{self._heat.store}.floor"
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint=4000")
        connection.execute("CREATE TABLE blobs (digest BLOB PRIMARY KEY, data BLOB)")
        done = False
        while not done:
            results = [self._results.get()]
            while not self._results.empty():
                results.append(self._results.get())
            done = results[-1] is None
            rows = [row for some in results if some for row in some]
            if rows:
                connection.execute("BEGIN")
                connection.executemany("INSERT INTO blobs VALUES (?, ?)", rows)
                connection.execute("COMMIT")
        self._connection = connection

    def clean_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._heat.store}.floor{suffix}").unlink(missing_ok=True)


def _old_bodies(path: str) -> dict[int, bytes]:
    """Return the current bodies, decoded, so that the floor need not look up what it compresses against."""
    store = Store.open(path)
    try:
        repository = Repository(store)
        hosts = {page.id: host_of(page.url) for page in Catalog(store).all()}
        recalled = repository.recall_contents(repository.recall([*hosts]), hosts)
        return {
            page_id: unpack(old.kept_body, old.contents.blobs)
            for page_id, old in recalled.items()
            if old.contents is not None
        }
    finally:
        store.close()


def _start_worker(kind: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "driftline.lab.bench.contenders", "worker", kind]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _work(kind: str) -> None:
    """Run the worker of the floor: decode, parse and extract text, hash, and compress what is new."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while (bodies := read_frame(source)) is not None:
        rows: list[tuple[bytes, bytes]] = []
        for wire, old in bodies:
            body = isal_zlib.decompress(wire, 31)
            text = (LexborHTMLParser(body).text(separator="\n", strip=True) or "").encode()
            names = digest(body), digest(text)
            if kind != "noisy":
                base = Blob(b"", None, 0, len(old), b"") if old else None
                packed = pack(body, names[0], base, old)
                rows.append((names[0], packed.data))
                rows.append((names[1], pack(text, names[1], packed, body).data))
        write_frame(sink, rows)
        sink.flush()


def _watch(process: subprocess.Popen[bytes]) -> tuple[bytes, float]:
    """Return the output of a process, and the peak resident memory in MB of it and its descendants together.

    What workers share with the fork server counts for each of them.

    It is measured from this process: a thread in the other one would take time from those that are measured.
    """
    page = os.sysconf("SC_PAGESIZE")
    peak = 0
    while True:
        try:
            return process.communicate(timeout=_LOOK)[0], peak / 1e6
        except subprocess.TimeoutExpired:
            total = 0
            for one in (process.pid, *_children_of(process.pid), *workers_of(process.pid)):
                try:
                    total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * page
                except OSError:
                    continue  # it ended just now
            peak = max(peak, total)


def workers_of(process: int) -> list[int]:
    """Return the worker processes of this process: its fork server started them."""
    return [worker for child in _children_of(process) for worker in _children_of(child)]


def _children_of(process: int) -> list[int]:
    found: list[int] = []
    try:
        for task in Path(f"/proc/{process}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    except OSError:
        return found  # a thread, or all of it, ended just now
    return found


def _cpu() -> float:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        _work(sys.argv[2])
    else:
        print(json.dumps(asdict(run(Heat(**json.loads(sys.argv[1]))))))
