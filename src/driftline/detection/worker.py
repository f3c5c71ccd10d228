"""The processes that read pages: `python -m driftline.detection.worker MEMORY`.

This program is a fork server: loading it takes a fifth of a second, and forking a worker from it a few milliseconds.
Its standard input is a socket, from which it gets a pair of pipes for each worker to start. It answers with a handle of
the process, by which the main process can wait for it and kill it, and ends when the socket is closed.

A worker reads jobs from its input and writes findings to its output, one frame each: eight bytes of length, then the
value as `marshal` writes it, which is plain data only. It ends when its input does, so it never outlives the run.
"""

from __future__ import annotations

import gc
import marshal
import os
import resource
import signal
import socket
import sys
import traceback
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, NoReturn

from driftline.detection.jobs import LENGTH, PID_LENGTH, Job
from driftline.runtime import collect_garbage_rarely

if TYPE_CHECKING:
    from collections.abc import Callable

    from driftline.detection.jobs import Finding


def write_frame(stream: IO[bytes], value: Any) -> None:
    """Send a value made of plain data."""
    data = marshal.dumps(value)
    stream.write(len(data).to_bytes(LENGTH, "little") + data)


def read_frame(stream: IO[bytes]) -> Any:
    """Return the next value; None at the end of the stream."""
    head = stream.read(LENGTH)
    if len(head) < LENGTH:
        return None
    return marshal.loads(stream.read(int.from_bytes(head, "little")))  # noqa: S302 from our own child or parent


def run(memory: int, examine: Callable[[Job], Finding]) -> NoReturn:
    """Fork workers that examine jobs within `memory` bytes of address space, until the socket is closed, and exit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the main process, which decides what is given up
    collect_garbage_rarely()
    gc.collect()
    gc.freeze()  # or the collections of a worker would copy the memory that it shares with the others
    with socket.socket(fileno=os.dup(sys.stdin.fileno())) as control, suppress(BrokenPipeError, ConnectionResetError):
        while pipes := socket.recv_fds(control, 1, 2)[1]:
            _bury(os.WNOHANG)
            given, results = pipes
            process = os.fork()
            if process == 0:
                _work(memory, examine, given, results, control)
            os.close(given)
            os.close(results)
            handle = os.pidfd_open(process)
            socket.send_fds(control, [process.to_bytes(PID_LENGTH, "little")], [handle])
            os.close(handle)
    _bury(0)  # whose input ended too, if the main process did
    os._exit(0)  # without the clean-up of the interpreter, for which the main process would have to wait


def _bury(flags: int) -> None:
    """Wait for workers that ended; for all of them unless `flags` say not to wait."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, flags)[0]:
            pass


def _work(memory: int, examine: Callable[[Job], Finding], given: int, results: int, control: socket.socket) -> NoReturn:
    """Run as a worker process: examine the jobs that are given until there are no more, and exit."""
    from driftline.detection.extract.line_filters import watch_expressions

    try:
        control.close()
        os.close(sys.stdin.fileno())
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        watch_expressions()
        with suppress(BrokenPipeError), open(given, "rb") as source, open(results, "wb") as sink:
            while (jobs := read_frame(source)) is not None:
                for job in jobs:
                    write_frame(sink, examine(Job.from_plain(job)).to_plain())
                    sink.flush()
        os._exit(0)
    except BaseException:  # noqa: BLE001 it is printed for debugging
        traceback.print_exc()
    finally:
        os._exit(1)  # whatever happens, a worker must not go on as a second fork server


def main() -> NoReturn:
    """Run as the fork server of a check, and exit."""
    collect_garbage_rarely()  # before the imports, of which it takes a tenth of the time
    from driftline.detection.examine import Examinations

    run(int(sys.argv[1]), Examinations().examine)


if __name__ == "__main__":
    main()
