"""The parent's side of a worker process: jobs in, findings out, and a page that kills its worker costs only itself."""

from __future__ import annotations

import fcntl
import marshal
import os
import select
import subprocess
import sys
from typing import TYPE_CHECKING

from driftline.detection.examination import Finding, Job
from driftline.detection.worker import LENGTH
from driftline.errors import WorkerDied
from driftline.model import FailureKind

if TYPE_CHECKING:
    from collections.abc import Sequence

# keep what was freed for the next page instead of giving it back to the system and asking for it again
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(64 * 1024 * 1024), "MALLOC_TRIM_THRESHOLD_": str(128 * 1024 * 1024)}
_PIPE = 1024 * 1024
_READ = 1024 * 1024


class Worker:
    """One worker process, started when first needed. Used by one thread; `kill` by any."""

    def __init__(self, *, deadline: float, memory: int) -> None:
        self._deadline = deadline
        self._memory = memory
        self._process: subprocess.Popen[bytes] | None = None
        self._received = bytearray()
        self._poll = select.poll()

    def examine(self, jobs: Sequence[Job]) -> list[Finding]:
        """The findings of these jobs, in order. A job that crashes the worker or passes its deadline is a failure."""
        findings: list[Finding] = []
        while len(findings) < len(jobs):
            left = jobs[len(findings) :]
            try:
                self._send(left)
                findings += (self._receive() for _ in left)
            except WorkerDied as error:
                self.kill()
                findings.append(Finding(failure_kind=FailureKind.HOSTILE.value, failure=str(error)))
        return findings

    def kill(self) -> None:
        """End the process at once; the next jobs get a new one."""
        process, self._process = self._process, None
        self._received.clear()
        if process is None:
            return
        process.kill()
        process.wait()
        _close(process)

    def close(self) -> None:
        """Let the process end by itself, which it does when it has nothing more to read."""
        process, self._process = self._process, None
        if process is None:
            return
        _close(process)
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "driftline.detection.worker", str(self._memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env=os.environ | _MALLOC,
                process_group=0,  # a Ctrl-C in the terminal is for the run alone
            )
            assert process.stdin is not None
            assert process.stdout is not None
            for pipe in (process.stdin, process.stdout):
                try:
                    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)
                except OSError:
                    break  # over the user's limit for pipes: the usual size works too
            self._poll = select.poll()
            self._poll.register(process.stdout, select.POLLIN)
            self._process = process
        return self._process

    def _send(self, jobs: Sequence[Job]) -> None:
        stdin = self._running().stdin
        assert stdin is not None
        data = marshal.dumps([tuple(job) for job in jobs])
        view = memoryview(len(data).to_bytes(LENGTH, "little") + data)
        try:
            while view:
                view = view[stdin.write(view) :]
        except (BrokenPipeError, ValueError):
            raise WorkerDied("Reading the page crashed its worker process.") from None

    def _receive(self) -> Finding:
        length = int.from_bytes(self._take(LENGTH), "little")
        return Finding(*marshal.loads(self._take(length)))  # noqa: S302 plain data from our own child

    def _take(self, count: int) -> bytes:
        process = self._running()
        assert process.stdout is not None
        received = self._received
        while len(received) < count:
            if not self._poll.poll(self._deadline * 1000):
                raise WorkerDied(f"Reading the page took longer than {self._deadline:g} seconds.")
            data = process.stdout.read(_READ)
            if not data:
                raise WorkerDied("Reading the page crashed its worker process.")
            received += data
        taken = bytes(received[:count])
        del received[:count]
        return taken


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
