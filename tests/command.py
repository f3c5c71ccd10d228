"""The command `driftline` as a user runs it: another process, its own store, nobody's settings."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from support.forks import run_fork

if TYPE_CHECKING:
    from pathlib import Path

LOCAL = "127.0.0.0/8,::1"  # the networks that tests fetch from
HURRIED = {
    "DRIFTLINE_HOST_DELAY": "0",
    "DRIFTLINE_HOST_CONNECTIONS": "1000",
    "DRIFTLINE_ADDRESS_CONNECTIONS": "1000",
    "DRIFTLINE_ROBOTS": "ignore",
    "DRIFTLINE_CHECK_ADDED": "false",  # tests of `add` set it to true
}
_KEPT = ("PATH", "LANG", "LC_ALL", "COVERAGE_PROCESS_START")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str


def stopped(err: str) -> int:
    """The status of a `run` that was stopped and said this: 1 if that left pages behind whose turn it was."""
    return int("left for the next run" in err)


@dataclass(slots=True)
class Command:
    """Runs `driftline` in a folder of its own."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str, given: str | bytes = b"", **environment: str) -> Ended:
        """Run it to its end, with `given` on standard input."""
        data = given.encode() if isinstance(given, str) else given
        done = run_fork(arguments, self._environment(environment), self.folder, data)
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    def json(self, *arguments: str, status: int = 0) -> Any:
        """What it prints with --json, which must be one document and all there is on standard output."""
        ended = self(*arguments, "--json")
        assert ended.status == status, ended
        return json.loads(ended.out)

    def raw(self, *arguments: str) -> bytes:
        """The very bytes that it prints."""
        done = run_fork(arguments, self._environment({}), self.folder)
        done.check_returncode()
        return done.stdout

    def start(
        self, *arguments: str, out: int | IO[str] = subprocess.PIPE, err: int | IO[str] = subprocess.PIPE,
        **environment: str,
    ) -> subprocess.Popen[str]:  # fmt: skip
        """Start it and go on."""
        return subprocess.Popen(
            self._line(arguments), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            cwd=self.folder, env=self._environment(environment), text=True,
        )  # fmt: skip

    def on_terminal(self, *arguments: str, typed: str = "", **environment: str) -> tuple[int, str]:
        """Run it on a terminal of 100 columns; its exit status and all that the terminal received."""
        ours, theirs = pty.openpty()
        size = {"COLUMNS": "100", "LINES": "40", "TERM": "xterm-256color"}
        process = subprocess.Popen(
            self._line(arguments), stdin=theirs, stdout=theirs, stderr=theirs, cwd=self.folder,
            env=self._environment(size | environment),
        )  # fmt: skip
        os.close(theirs)
        if typed:
            os.write(ours, typed.encode())
        received = bytearray()
        while True:
            try:
                data = os.read(ours, 65_536)
            except OSError:  # how Linux says that the other side is closed
                break
            if not data:
                break
            received += data
        os.close(ours)
        return process.wait(), received.decode(errors="replace")

    def _line(self, arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "driftline", *arguments]

    def _environment(self, more: dict[str, str]) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        ours = {
            "HOME": str(self.folder),
            "DRIFTLINE_STORE": str(self.folder / "pages.db"),
            "DRIFTLINE_ALLOW_NETWORKS": LOCAL,
            **HURRIED,
            "PYTHONUTF8": "1",
        }
        return kept | ours | self.environment | more


def without_styles(shown: str) -> str:
    """Return what a terminal shows, without colours and other styles."""
    return re.sub(r"\x1b\[[0-9;]*m", "", shown)
