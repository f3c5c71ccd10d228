"""The process that reads pages: `python -m driftline.detection.worker MEMORY`.

It reads jobs from standard input and writes findings to standard output, one frame each: eight bytes of length, then
the value as `marshal` writes it, which is plain data only. It ends when its input does, so it never outlives the run.
"""

from __future__ import annotations

import marshal
import os
import resource
import signal
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, NoReturn

from driftline.detection.jobs import LENGTH, Job
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


def serve(memory: int, examine: Callable[[Job], Finding]) -> None:
    """Examine jobs until there are no more, within `memory` bytes of address space."""
    from driftline.detection.extract.filters import watch_expressions

    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the main process, which decides what is given up
    watch_expressions()
    collect_garbage_rarely()
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while (jobs := read_frame(source)) is not None:
        for job in jobs:
            write_frame(sink, examine(Job.from_plain(job)).to_plain())
            sink.flush()


def run(memory: int, examine: Callable[[Job], Finding]) -> NoReturn:
    """Run as a worker process, and exit."""
    with suppress(BrokenPipeError):  # the main process is gone: nothing reads what is left in the buffers
        serve(memory, examine)
    os._exit(0)  # without the clean-up of the interpreter, for which the main process would have to wait


def main() -> NoReturn:
    """Run as the worker process of a check, and exit."""
    collect_garbage_rarely()  # before the imports, of which it takes a tenth of the time
    from driftline.detection.examine import Examinations

    run(int(sys.argv[1]), Examinations().examine)


if __name__ == "__main__":
    main()
