"""Runs of the command that do not load it each time: forks of a process that has it loaded.

Each run is a process of its own, with its own arguments, environment and streams, and ends as any other does. Only the
start of Python and the imports, half a second, are done once for all of them. `python -m support.forks SOCKET` is the
process that forks; it ends when nobody has the other end of its socket any more.

The environment of a run is its own from the moment of the fork. What Python and the libraries read of it before, at
their start or import, is that of the process that forks: PYTHON*, the locale, COVERAGE_PROCESS_START. A test of those
starts the command itself, with `Command.start`.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

_LONGEST_REQUEST = 200_000
_STREAMS = 3
#: what commands import when they need it; nothing that starts threads, which a fork would not have
_LOADED = (
    "driftline.cli.main",
    "driftline.api",
    "driftline.store.migrations",
    "psycopg",
    "rich.console",
    "rich.table",
    "typer._adapters",
)


def run_fork(
    arguments: Sequence[str], environment: Mapping[str, str], folder: Path, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run `driftline` with these arguments, in this environment and folder, to its end."""
    request = json.dumps([list(arguments), dict(environment), str(folder)]).encode()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        stdin.write(given)
        stdin.seek(0)
        with theirs:
            descriptors = [one.fileno() for one in (stdin, out, err, theirs)]
            socket.send_fds(_forker(), [request], descriptors)
        process = int(ours.recv(16))
        try:
            status = int(ours.recv(16))
        except BaseException:  # the test ran out of time
            os.kill(process, signal.SIGKILL)
            raise
        for stream in (out, err):
            stream.seek(0)
        return subprocess.CompletedProcess(list(arguments), status, out.read(), err.read())


@cache
def _forker() -> socket.socket:
    """The way to the process that forks, started by the first run that needs it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "support.forks", str(theirs.fileno())],
            cwd=Path(__file__).parents[1],
            env={"PYTHONUTF8": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _serve(requests: socket.socket) -> None:
    """Fork for each request, and return in the fork, as the process that was asked for."""
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, _LONGEST_REQUEST, _STREAMS + 1)
        if not request:
            sys.exit()
        keeper = os.fork()
        if keeper == 0:
            break
        for descriptor in descriptors:
            os.close(descriptor)
        with suppress(ChildProcessError):  # none is left
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    requests.close()
    *streams, answer = descriptors
    _keep(socket.socket(fileno=answer))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    arguments, environment, folder = json.loads(request)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    sys.argv[1:] = arguments


def _keep(answer: socket.socket) -> None:
    """Fork again, return in the fork, and tell its number and how it ended."""
    process = os.fork()
    if process == 0:
        answer.close()
        return
    answer.send(b"%d" % process)
    _, status = os.waitpid(process, 0)
    answer.send(b"%d" % os.waitstatus_to_exitcode(status))
    os._exit(0)


if __name__ == "__main__":
    for name in _LOADED:
        import_module(name)
    _serve(socket.socket(fileno=int(sys.argv[1])))
    import_module("driftline.cli.main").main()
