from __future__ import annotations

import gzip
import io
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import pytest

from driftline.detection.examine import Examinations, examine
from driftline.detection.jobs import Finding, Job
from driftline.detection.worker import read_frame, write_frame
from driftline.detection.worker_pool import ForkServer, Worker, WorkerPool
from driftline.errors import FailureKind, RunStopped
from support.making import failure_kind, job, why_failed
from support.processes import kill

MEMORY = 1024 * 1024 * 1024
SLOW = job(b"<p>a</p>" * 1_000_000)
GOOD = [job(b"<p>page %d</p>" % number) for number in range(3)]


@contextmanager
def started(
    deadline: float = 20.0, memory: int = MEMORY, ticks: Callable[[], float] = time.monotonic
) -> Iterator[Worker]:
    """A worker with a fork server of its own."""
    server = ForkServer(memory)
    made = Worker(server, deadline=deadline, ticks=ticks)
    yield made
    made.close()
    server.close()


@pytest.fixture
def worker() -> Iterator[Worker]:
    with started() as made:
        yield made


def children(of: Collection[int] | None = None) -> set[int]:
    """The processes that this one, or these, started and have not buried yet, the dead among them."""
    parents = {os.getpid()} if of is None else of
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text()
            except OSError:
                continue  # it ended while we looked
            if int(status.rpartition(")")[2].split()[1]) in parents:
                found.add(int(entry.name))
    return found


def workers() -> set[int]:
    """The workers that fork servers of this process started, the dead among them."""
    return children(of=children())


def reads_the_good_pages(findings: list[Finding]) -> bool:
    return [found.failure for found in findings] == [None] * len(GOOD) and len({one.body for one in findings}) == len(
        GOOD
    )


def test_findings_come_in_the_order_of_their_jobs(worker: Worker) -> None:
    bodies = [b"<title>%d</title><p>%d</p>" % (number, number) for number in range(100)]
    assert [found.title for found in worker.examine([job(body) for body in bodies])] == [str(n) for n in range(100)]


def test_no_job_needs_no_process(worker: Worker) -> None:
    before = children()
    assert worker.examine([]) == []
    assert children() == before


def test_one_process_serves_many_calls(worker: Worker) -> None:
    before = workers()
    for _ in range(5):
        worker.examine(GOOD)
    assert len(workers() - before) == 1


def test_jobs_larger_than_a_pipe_go_through(worker: Worker) -> None:
    pages = [job(b"<p>%d %s</p>" % (number, os.urandom(3_000_000).hex().encode())) for number in range(3)]
    assert [found.size for found in worker.examine(pages)] == [len(page.wire) for page in pages]


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a very long attribute", b"<p title='" + b"a" * 200_000 + b"'>x"),
        ("zero bytes", b"<p>\0a\0</p>" * 1_000),
        ("unclosed tables", b"<table><tr><td>" * 3_000 + b"x"),
        ("tangled formatting", b"<b><i><u><font>" * 1_000 + b"<p>" * 1_000 + b"x"),
        ("nested hidden parts", b"<p>x</p>" + b"<div hidden><object><svg hidden><video><p hidden>" * 200 + b"x"),
        ("only angle brackets", b"<" * 500_000),
        ("unfinished comment", b"<p>x</p><!--" + b"-" * 500_000),
        ("many entities", b"&amp;&#x110000;&#0;&notanentity;" * 20_000),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_odd_markup_is_read_like_any_page(worker: Worker, name: str, body: bytes) -> None:
    found = worker.examine([job(body), *GOOD])
    assert found[0].failure is None
    assert reads_the_good_pages(found[1:])


def test_markup_nested_a_hundred_thousand_deep_costs_at_most_its_own_page() -> None:
    before = children()
    with started(deadline=1.0) as worker:
        found = worker.examine([GOOD[0], job(b"<span>" * 100_000 + b"x"), *GOOD])
    assert found[0].failure is None
    assert why_failed(found[1]) == "The page is nested more than 10,000 tags deep."
    assert reads_the_good_pages(found[2:])
    assert children() == before


def test_the_pages_after_one_that_took_all_memory_get_a_new_process() -> None:
    before = workers()
    with started(memory=200 * 1024 * 1024) as worker:
        worker.examine(GOOD)
        first = workers() - before
        found = worker.examine([job(b"<p>a</p>" * 2_000_000), *GOOD])
        assert why_failed(found[0]) == "Reading the page took more memory than is allowed."
        assert reads_the_good_pages(found[1:])
        assert not first & workers()


def test_a_bomb_costs_only_its_own_page(worker: Worker) -> None:
    bomb = job(gzip.compress(bytes(50_000_000)), codings=["gzip"], limit=20_000_000)
    found = worker.examine([bomb, *GOOD])
    assert failure_kind(found[0]) is FailureKind.TOO_LARGE
    assert reads_the_good_pages(found[1:])


def test_a_page_that_takes_too_much_memory_costs_only_itself() -> None:
    hungry = job(gzip.compress(b"<p>a" * 25_000_000, 1), codings=["gzip"], limit=200_000_000)
    with started(memory=256 * 1024 * 1024) as worker:
        found = worker.examine([hungry, *GOOD])
    assert failure_kind(found[0]) is FailureKind.HOSTILE
    assert reads_the_good_pages(found[1:])


def test_a_page_that_takes_too_long_fails_with_the_deadline_and_leaves_no_process() -> None:
    before = workers()
    server = ForkServer(MEMORY)
    found = Worker(server, deadline=0.001).examine([SLOW, SLOW])
    assert [failure_kind(one) for one in found] == [FailureKind.HOSTILE] * 2
    assert why_failed(found[0]) == "Reading the page took longer than 0.001 seconds."
    server.close()
    assert workers() == before


def test_a_worker_that_is_ended_because_of_its_page_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    page = SLOW._replace(url="http://me:sesame@page.example/slow")
    with caplog.at_level(logging.INFO, "driftline.detection"), started(deadline=0.001) as worker:
        worker.examine([page])
    (record,) = caplog.records
    assert record.getMessage() == (
        "worker process ended at http://me:***@page.example/slow: Reading the page took longer than 0.001 seconds."
    )
    assert vars(record)["pid"] > 0


def test_a_pool_and_its_workers_show_their_state() -> None:
    pool = WorkerPool(most=2, deadline=20.0, memory=MEMORY)
    assert repr(pool) == "<WorkerPool workers=2 idle=2 stopped=False>"
    pool.stop()
    assert repr(pool) == "<WorkerPool workers=2 idle=2 stopped=True>"
    server = ForkServer(MEMORY)
    assert repr(server) == "<ForkServer pid=None program=driftline.detection.worker>"
    assert repr(Worker(server, deadline=20.0)) == "<Worker pid=None deadline=20.0 killed=False>"


def test_a_worker_that_was_killed_reads_nothing_more_and_leaves_no_process() -> None:
    before = children()
    with started() as worker:
        worker.examine(GOOD)
        worker.kill()
        assert worker.examine(GOOD) == []
    assert children() == before


def test_a_pool_starts_no_more_processes_than_it_may_and_mixes_nothing_up() -> None:
    before, workers_before = children(), workers()
    pool = WorkerPool(most=2, deadline=20.0, memory=MEMORY)
    ready = threading.Barrier(6)

    def read(number: int) -> list[str]:
        ready.wait()
        jobs = [job(b"<title>%d of %d</title><p>x</p>" % (page, number)) for page in range(10)]
        return [found.title for found in pool.examine(jobs)]

    with ThreadPoolExecutor(6) as threads:
        titles = list(threads.map(read, range(6)))
    assert titles == [[f"{page} of {number}" for page in range(10)] for number in range(6)]
    assert len(workers() - workers_before) <= 2
    pool.close()
    assert children() == before


def test_a_pool_that_was_stopped_says_so_to_those_who_ask_and_leaves_no_process() -> None:
    before = children()
    pool = WorkerPool(most=2, deadline=20.0, memory=MEMORY)
    pool.examine(GOOD)
    pool.stop()
    with pytest.raises(RunStopped):
        pool.examine(GOOD)
    pool.close()
    assert children() == before


def test_a_busy_pool_is_within_its_deadline_until_a_page_takes_longer_than_that() -> None:
    before, now = workers(), 0.0
    pool = WorkerPool(most=1, deadline=20.0, memory=MEMORY, ticks=lambda: now)
    assert not pool.within_deadline(), "nothing is read"
    pool.examine(GOOD)
    (process,) = workers() - before
    os.kill(process, signal.SIGSTOP)
    now = 1_000.0
    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(pool.examine, GOOD)
        while not pool.within_deadline():
            pass
        now = 1_020.0
        assert pool.within_deadline()
        now = 1_030.0
        assert not pool.within_deadline()
        os.kill(process, signal.SIGCONT)
        assert reads_the_good_pages(found.result())
    assert not pool.within_deadline()
    pool.close()


@pytest.mark.parametrize("deadline", [20.0, 0.001])
def test_each_page_has_its_own_time_also_after_one_that_used_it_up(deadline: float) -> None:
    ticks = count()
    with started(deadline=deadline, ticks=lambda: float(next(ticks))) as worker:
        began = worker.at_page_since
        worker.examine(GOOD)
        assert worker.at_page_since == began + len(GOOD)


def test_a_process_that_died_between_two_calls_costs_at_most_one_page(worker: Worker) -> None:
    before = workers()
    worker.examine(GOOD)
    (process,) = workers() - before
    os.kill(process, 9)
    found = worker.examine([GOOD[0], *GOOD])
    assert reads_the_good_pages(found[1:])


def test_closing_ends_the_process_and_buries_it() -> None:
    before, workers_before = children(), workers()
    pool = WorkerPool(most=1, deadline=20.0, memory=MEMORY)
    pool.examine(GOOD)
    assert len(children()) == len(before) + 1
    assert len(workers()) == len(workers_before) + 1
    pool.close()
    pool.close()
    assert (children(), workers()) == (before, workers_before)


def test_a_fork_server_that_was_killed_is_started_again() -> None:
    before = children()
    server = ForkServer(MEMORY)
    with closing(server):
        worker = Worker(server, deadline=20.0)
        assert reads_the_good_pages(worker.examine(GOOD))
        (process,) = children() - before
        os.kill(process, signal.SIGKILL)
        assert reads_the_good_pages(worker.examine(GOOD)), "its workers go on"
        worker.close()
        assert reads_the_good_pages(worker.examine(GOOD)), "the next one comes from another server"
        worker.close()
    assert children() == before


def test_a_fork_server_that_cannot_start_is_no_fault_of_the_page() -> None:
    before = children()
    server = ForkServer(MEMORY, program="driftline.no_such_module")
    with pytest.raises(ConnectionError, match="could not be started"):
        Worker(server, deadline=20.0).examine(GOOD)
    server.close()
    assert children() == before


def test_a_pool_that_was_closed_starts_no_process() -> None:
    before = children()
    pool = WorkerPool(most=1, deadline=20.0, memory=MEMORY)
    pool.close()
    (found,) = pool.examine(GOOD[:1])
    assert failure_kind(found) is FailureKind.HOSTILE
    assert children() == before


def test_a_worker_ends_when_its_parent_does() -> None:
    """The output of the worker stays open in it alone, so its end is the end of the pipe."""
    program = (
        "import os, sys\nfrom driftline.detection.worker_pool import WorkerPool\nfrom support.making import job\n"
        "pool = WorkerPool(most=1, deadline=20, memory=1 << 30)\npool.examine([job(b'<p>x</p>')])\n"
        "sys.stdout.write('ready\\n')\nsys.stdout.flush()\nsys.stdin.read()\n"
    )
    reading, writing = os.pipe()
    tests = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=writing,
        env=os.environ | {"PYTHONPATH": tests},
    ) as parent:  # fmt: skip
        os.close(writing)
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        parent.kill()
        parent.wait()
    with os.fdopen(reading, "rb") as pipe:
        # the worker inherited this end as its error output: reading to the end waits until it is gone
        assert pipe.read() == b""


def test_a_frame_holds_plain_data_and_its_end_is_reported() -> None:
    stream = io.BytesIO()
    write_frame(stream, [(b"bytes", None, 1.5, "text")])
    stream.seek(0)
    assert read_frame(stream) == [(b"bytes", None, 1.5, "text")]
    assert read_frame(stream) is None


class Kept:
    """Old versions whose contents are read for jobs that need them."""

    def __init__(self, complete: list[Job]) -> None:
        self._complete = complete
        self.read: list[int] = []

    def complete(self, numbers: Sequence[int]) -> list[Job]:
        self.read += numbers
        return [self._complete[number] for number in numbers]


def after(first: bytes, second: bytes) -> Job:
    """The second of two bodies of a page, with the contents of the first one."""
    return job(second, after=examine(job(first)))


def without_contents(job: Job) -> Job:
    return job._replace(blobs=None)


def same(found: Sequence[Finding], jobs: Sequence[Job]) -> bool:
    """Whether these are the findings of jobs that come with all they need."""
    return [_plain(one) for one in found] == [_plain(examine(job)) for job in jobs]


def _plain(finding: Finding) -> tuple[object, ...]:
    return finding._replace(lesson=None).to_plain()  # the keys of a memory are in no order


def test_only_pages_that_differ_ask_for_their_old_version(worker: Worker) -> None:
    pages = [
        after(b"<p>the same words</p>", b"<p>the <b>same</b> words</p>"),
        after(b"<p>the price is 5 euros</p>", b"<p>the price is 6 euros</p>"),
        job(b"<p>a new page</p>"),
        after(b"<p>an old story</p>", b"<p>a story that nobody knew</p>"),
    ]
    old = Kept(pages)
    light = [without_contents(page) if page.kept_body else page for page in pages]
    assert same(worker.examine(light, old), pages)
    assert old.read == [1, 3]


def test_a_worker_that_dies_before_the_old_version_comes_reads_the_page_again(worker: Worker) -> None:
    page = after(b"<p>the price is 5 euros</p>", b"<p>the price is 6 euros</p>")
    before = workers()

    class Killing(Kept):
        def complete(self, numbers: Sequence[int]) -> list[Job]:
            (process,) = workers() - before
            kill(process)
            return super().complete(numbers)

    assert same(worker.examine([without_contents(page)], Killing([page])), [page])


def test_an_old_version_that_was_removed_meanwhile_makes_the_page_new(worker: Worker) -> None:
    page = after(b"<p>the price is 5 euros</p>", b"<p>the price is 6 euros</p>")
    found = worker.examine([without_contents(page)], Kept([job(page.wire)]))
    assert same(found, [job(page.wire)])
    assert found[0].change is None


def large_pages() -> list[Job]:
    """Pages that differ, of which a worker keeps only two."""
    filler = b"<p>%s</p>" % os.urandom(1_500_000).hex().encode()
    return [after(b"<p>page %d</p>" % number, b"<p>story %d</p>" % number + filler) for number in range(4)]


def test_more_pages_than_are_kept_are_read_again_when_their_old_versions_come() -> None:
    pages = large_pages()
    examinations = Examinations()
    light = [examinations.examine(without_contents(page)._replace(number=n)) for n, page in enumerate(pages)]
    assert [found.needs_old for found in light] == [True] * 4
    assert "kept=2" in repr(examinations)
    found = [examinations.examine(page._replace(number=number)) for number, page in enumerate(pages)]
    assert same(found, pages)
    assert repr(examinations) == "<Examinations kept=0 size=0>"


def test_a_job_is_continued_without_its_body_only_by_who_kept_it() -> None:
    page = after(b"<p>the price is 5 euros</p>", b"<p>the price is 6 euros</p>")
    examinations = Examinations()
    continued = page._replace(wire=b"", continued=True)
    assert examinations.examine(continued).needs_old
    assert examinations.examine(without_contents(page)).needs_old
    assert same([examinations.examine(continued)], [page])


def test_bodies_that_a_worker_did_not_keep_are_sent_again(worker: Worker) -> None:
    pages = large_pages()
    assert same(worker.examine([without_contents(page) for page in pages], Kept(pages)), pages)


def test_a_suspicious_frame_asks_for_the_old_version_although_the_text_is_the_same(worker: Worker) -> None:
    frame = b'<iframe src="http://evil.example/x" width=0 height=0 style="display:none"></iframe>'
    text = b"<p>the same words as ever, on a page that is long enough to be one</p>"
    pages = [after(text, text + frame), after(text + frame, text + frame + b"<!-- a comment of some length -->" * 9)]
    pages = [page._replace(url="http://good.example/", old_size=len(text)) for page in pages]
    old = Kept(pages)
    found = worker.examine([without_contents(page) for page in pages], old)
    assert same(found, pages)
    assert [len(one.warnings) for one in found] == [1, 0], "the frame of the second page is an old one"
    assert old.read == [0, 1]
