"""The main process's side of the worker processes and of the fork server that they come from.

A page that crashes its worker fails alone.
"""

from __future__ import annotations

import fcntl
import io
import logging
import marshal
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from driftline.capacity import Capacity
from driftline.detection.jobs import LENGTH, PID_LENGTH, Finding, Job
from driftline.detection.messages import NO_WORKERS, WORKER_CRASHED, took_too_long
from driftline.errors import FailureKind, RunStopped, WorkerDied
from driftline.model.page import Failure
from driftline.urls import without_password

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.capacity import ResourceUse
    from driftline.detection.jobs import OldVersions

# keep freed memory for the next page instead of returning it to the system and requesting it again
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(64 * 1024 * 1024), "MALLOC_TRIM_THRESHOLD_": str(128 * 1024 * 1024)}
# a process that forks must have no threads: those of numpy's linear algebra are not needed
_ENVIRONMENT = _MALLOC | {"OPENBLAS_NUM_THREADS": "1"}
PROGRAM = "driftline.detection.worker"  # the module that a worker process runs
_PIPE = 1024 * 1024
_READ = 1024 * 1024
_STARTING = 5.0  # seconds on top of the deadline, to start the worker and to send it the page
_LOADING = 30.0  # seconds for the fork server to load, on a machine that is busy
_LOOK = 0.2  # seconds between looks at whether the run was stopped meanwhile
_ENDING = 2.0  # seconds for a process to end by itself
_SENT_AT_ONCE = 8 * 1024 * 1024
_LOG = logging.getLogger(__name__)


class WorkerPool:
    """Worker processes for any number of threads: started when first needed, and never more than `most` of them.

    More of them than cores would only cost memory, so the threads of a pipeline share them. A busy page does not hold
    up the others as long as one worker is free.
    """

    def __init__(
        self, *, most: int, deadline: float, memory: int, program: str = PROGRAM,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._busy = Capacity("worker processes", most)
        self._lock = threading.Lock()
        self._ticks = ticks
        self._longest = deadline + _STARTING
        self._server = ForkServer(memory, program)
        self._idle = [Worker(self._server, deadline=deadline, ticks=ticks) for _ in range(most)]
        self._workers = tuple(self._idle)
        self._stopped = False

    def __repr__(self) -> str:
        # without the lock, for debugging
        return f"<WorkerPool workers={len(self._workers)} idle={len(self._idle)} stopped={self._stopped}>"

    def examine(self, jobs: Sequence[Job], old: OldVersions | None = None) -> list[Finding]:
        """Return the findings of these jobs, in order, from the next free worker. Raise RunStopped after `stop`.

        `old` is asked for the contents of the old versions that jobs lack and need. The worker waits for that: it keeps
        what it read of these pages.
        """
        permit = self._busy.acquire(1)
        assert permit is not None, "it is never closed: after a stop, too, each thread has to see RunStopped"
        with permit:
            with self._lock:
                worker = self._idle.pop()  # the one used last, which has started up already
                worker.at_page_since = self._ticks()
            try:
                findings = worker.examine(jobs, old) if not self._stopped else []
            finally:
                with self._lock:
                    self._idle.append(worker)
        if self._stopped:
            raise RunStopped("The run was stopped before the page was read.")
        return findings

    def statistics(self) -> ResourceUse:
        """Return how many workers are busy."""
        return self._busy.statistics()

    def within_deadline(self) -> bool:
        """Return whether a worker is busy with a page that has not used up its time."""
        with self._lock:
            busy = [worker for worker in self._workers if worker not in self._idle]
        return any(self._ticks() - worker.at_page_since <= self._longest for worker in busy)

    def stop(self) -> None:
        """End every process at once. The pages being read are given up."""
        stopped, self._stopped = self._stopped, True
        busy = len(self._workers) - len(self._idle)
        if busy and not stopped:
            _LOG.info("worker processes killed, with their pages unread: %d", busy)
        self._server.stop()
        for worker in self._workers:
            worker.kill()

    def close(self) -> None:
        """Let the processes end by themselves. Call it when no thread uses the pool any more."""
        for worker in self._workers:
            worker.end_input()  # of all, so that they end at the same time
        for worker in self._workers:
            worker.close()
        self._server.close()


class ForkServer:
    """The process from which workers are forked, started when the first one is. For any thread."""

    def __init__(self, memory: int, program: str = PROGRAM) -> None:
        self._memory = memory
        self._program = program
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._stopped = False

    def __repr__(self) -> str:
        pid = None if self._server is None else self._server.pid
        return f"<ForkServer pid={pid} program={self._program}>"

    def fork(self) -> WorkerProcess:
        """Start a worker. Raise WorkerDied if the run was stopped, and OSError if the worker cannot be started."""
        with self._lock:  # over the conversation with the server, for which the next thread has to wait anyway
            if self._stopped:
                raise WorkerDied(WORKER_CRASHED)
            try:
                return self._fork()
            except ConnectionError:
                _LOG.info("fork server ended: another is started", extra={"program": self._program})
                self._end()
            try:
                return self._fork()
            except ConnectionError:
                self._end()
                raise ConnectionResetError(NO_WORKERS) from None

    def stop(self) -> None:
        """Start no more workers, and wait no longer for a server that is loading. For any thread."""
        self._stopped = True

    def _fork(self) -> WorkerProcess:
        control = self._running()
        with ExitStack() as opened:
            given, jobs = _pipe(opened)
            findings, results = _pipe(opened)
            for pipe in (jobs, findings):
                with suppress(OSError):  # over the user's limit for pipes: the default size works too
                    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)
            socket.send_fds(control, [b"f"], [given, results])
            pid, handle = self._answer(control)
            _LOG.debug("worker process started", extra={"pid": pid, "program": self._program})
            return WorkerProcess(pid, handle, io.FileIO(os.dup(jobs), "wb"), io.FileIO(os.dup(findings), "rb"))

    def _answer(self, control: socket.socket) -> tuple[int, int]:
        """Return the id and the handle of the worker that the server was asked for.

        The server may be loading, on a machine that does much else; but a run that is stopped does not wait for it.
        """
        for _ in range(int(_LOADING / _LOOK)):
            try:
                answer, handles, _, _ = socket.recv_fds(control, PID_LENGTH, 1)
            except TimeoutError:
                if self._stopped:
                    self._end()
                    raise WorkerDied(WORKER_CRASHED) from None
                continue
            if len(answer) < PID_LENGTH or not handles:
                raise ConnectionResetError("The fork server ended.")
            os.set_inheritable(handles[0], False)
            return int.from_bytes(answer, "little"), handles[0]
        self._end()
        raise TimeoutError(NO_WORKERS)

    def _running(self) -> socket.socket:
        if self._control is None:
            self._control, theirs = socket.socketpair()
            self._control.settimeout(_LOOK)
            with theirs:
                self._server = subprocess.Popen(
                    [sys.executable, "-P", "-m", self._program, str(self._memory)],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=None if os.environ.get("DRIFTLINE_DEBUG") == "1" else subprocess.DEVNULL,
                    env=os.environ | _ENVIRONMENT,
                    process_group=0,  # Ctrl-C in the terminal is for the main process alone
                )
        return self._control

    def _end(self) -> None:
        server, self._server = self._server, None
        control, self._control = self._control, None
        if control is not None:
            control.close()
        if server is not None:
            server.kill()
            server.wait()

    def close(self) -> None:
        """Let the server end, which it does once all of its workers did, and start no other."""
        self._stopped = True
        with self._lock:
            if self._control is not None:
                self._control.close()
            if self._server is not None:
                with suppress(subprocess.TimeoutExpired):
                    self._server.wait(_ENDING)
            self._end()


def _pipe(opened: ExitStack) -> tuple[int, int]:
    """Return the two ends of a new pipe, which are closed with the stack."""
    ends = os.pipe()
    for end in ends:
        opened.callback(os.close, end)
    return ends


class WorkerProcess:
    """A worker that was forked: its pipes, and a handle by which it is killed and waited for.

    It is a child of the fork server. The handle stands for this process even if its id is used again.
    """

    def __init__(self, pid: int, handle: int, jobs: io.FileIO, findings: io.FileIO) -> None:
        self.pid = pid
        self.jobs = jobs
        self.findings = findings
        self._handle = handle
        self._lock = threading.Lock()
        self._ended = False

    def __repr__(self) -> str:
        return f"<WorkerProcess pid={self.pid} ended={self._ended}>"

    def has_ended(self, timeout: float = 0.0) -> bool:
        """Return whether it has ended, after waiting for that so many seconds at most."""
        if self._ended:
            return True
        waiting = select.poll()
        waiting.register(self._handle, select.POLLIN)
        return bool(waiting.poll(timeout * 1000))

    def kill(self) -> None:
        """End it at once. For any thread."""
        with self._lock, suppress(ProcessLookupError):
            if not self._ended:
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def close(self, patience: float) -> None:
        """End it, by the end of its input and, if that takes longer than so many seconds, at once."""
        self.jobs.close()
        if not self.has_ended(patience):
            self.kill()
            self.has_ended(_ENDING)
        self.findings.close()
        with self._lock:
            if not self._ended:
                self._ended = True
                os.close(self._handle)


class Worker:
    """One worker process at a time, started when first needed. Used by one thread at a time; `kill` by any.

    `at_page_since` is when it started on the current page, in `ticks`.
    """

    def __init__(
        self, server: ForkServer, *, deadline: float, ticks: Callable[[], float] = time.monotonic
    ) -> None:  # fmt: skip
        self._ticks = ticks
        self.at_page_since = ticks()
        self._server = server
        self._killed = False
        self._deadline = deadline
        self._process: WorkerProcess | None = None
        self._jobs = 0  # that it was given so far
        self._received = bytearray()
        self._poll = select.poll()

    def __repr__(self) -> str:
        pid = None if self._process is None else self._process.pid
        return f"<Worker pid={pid} deadline={self._deadline} killed={self._killed}>"

    def examine(self, jobs: Sequence[Job], old: OldVersions | None = None) -> list[Finding]:
        """Return the findings of these jobs, in order; a failure for one that crashes the worker or takes too long.

        `old` is asked for the contents of the old versions that jobs lack and need.
        """
        first = self._jobs
        self._jobs += len(jobs)
        findings = self._examine([job._replace(number=first + number) for number, job in enumerate(jobs)])
        waiting = [number for number, finding in enumerate(findings) if finding.needs_old]
        if waiting and old is not None and not self._killed:
            complete = {
                number: job._replace(number=first + number)
                for number, job in zip(waiting, old.complete(waiting), strict=True)
            }
            self.at_page_since = self._ticks()
            continued = [job._replace(wire=b"", continued=True) for job in complete.values()]
            self._examine_again(findings, waiting, continued)
            forgotten = [number for number in waiting if findings[number].needs_old]
            self._examine_again(findings, forgotten, [complete[number] for number in forgotten])
        return findings

    def _examine_again(self, findings: list[Finding], numbers: Sequence[int], jobs: Sequence[Job]) -> None:
        """Replace the findings of these numbers by those of these jobs."""
        for number, finding in zip(numbers, self._examine(jobs), strict=False):  # fewer if the worker is killed
            findings[number] = finding

    def _examine(self, jobs: Sequence[Job]) -> list[Finding]:
        if self._process is not None and self._process.has_ended():
            _LOG.info("worker process ended by itself while idle: another is started", extra={"pid": self._process.pid})
            self._end()  # it was killed from outside, which is no page's fault
        findings: list[Finding] = []
        while len(findings) < len(jobs) and not self._killed:
            left = _first_batch(jobs[len(findings) :])
            try:
                self._send(left)
                for _ in left:
                    findings.append(self._receive())
                    self.at_page_since = self._ticks()
                    if findings[-1].out_of_memory:
                        self._log_end(jobs[len(findings) - 1], "out of memory")
                        self._end()  # the pages after it get a process whose memory is not full
                        break
            except WorkerDied as error:
                if not self._killed:
                    self._log_end(jobs[len(findings)], str(error))
                self._end()
                findings.append(Finding(failure=Failure(kind=FailureKind.HOSTILE, sentence=str(error))))
                self.at_page_since = self._ticks()
        return findings

    def kill(self) -> None:
        """End the process at once, and start no other. Its thread gets findings for some of its jobs only."""
        self._killed = True
        process = self._process
        if process is not None:
            process.kill()

    def _log_end(self, job: Job, why: str) -> None:
        """Log that the process is ended because of the page of this job."""
        pid = None if self._process is None else self._process.pid
        url = without_password(job.url)
        _LOG.info("worker process ended at %s: %s", url, why, extra={"url": url, "pid": pid})

    def _end(self) -> None:
        """End the process at once; the next jobs get a new one."""
        process, self._process = self._process, None
        self._received.clear()
        if process is not None:
            process.close(0.0)

    def end_input(self) -> None:
        """Let the process end by itself, which it does when it has nothing more to read. Then call `close`."""
        if self._process is not None:
            self._process.jobs.close()

    def close(self) -> None:
        """Wait for the process to end by itself."""
        process, self._process = self._process, None
        if process is not None:
            process.close(_ENDING)

    def _running(self) -> WorkerProcess:
        if self._process is None:
            process = self._server.fork()
            self._poll = select.poll()
            self._poll.register(process.findings, select.POLLIN)
            self._process = process
            if self._killed:
                process.kill()  # `kill` was called while it was starting
        return self._process

    def _send(self, jobs: Sequence[Job]) -> None:
        pipe = self._running().jobs
        data = marshal.dumps([job.to_plain() for job in jobs])
        left = memoryview(data)
        try:
            pipe.write(len(data).to_bytes(LENGTH, "little"))  # so few bytes are written whole
            while left:
                left = left[pipe.write(left) :]
        except (BrokenPipeError, ValueError):
            raise WorkerDied(WORKER_CRASHED) from None

    def _receive(self) -> Finding:
        length = int.from_bytes(self._take(LENGTH), "little")
        return Finding.from_plain(marshal.loads(self._take(length)))  # noqa: S302 plain data from our own child

    def _take(self, count: int) -> bytes:
        findings = self._running().findings
        received = self._received
        while len(received) < count:
            if not self._poll.poll(self._deadline * 1000):
                raise WorkerDied(took_too_long(self._deadline))
            data = findings.read(_READ)
            if not data:
                raise WorkerDied(WORKER_CRASHED)
            received += data
        taken = bytes(received[:count])
        del received[:count]
        return taken


def _first_batch(jobs: Sequence[Job]) -> Sequence[Job]:
    """Return the first of the jobs, as many as the worker can hold besides the memory that reading one takes."""
    total = 0
    for count, job in enumerate(jobs):
        blobs = () if job.blobs is None else job.blobs.values()
        total += len(job.wire) + len(job.again) + sum([len(blob.data) for blob in blobs])
        if total > _SENT_AT_ONCE and count:
            return jobs[:count]
    return jobs
