"""What benchmarks share: watch lists and commands whose pages this machine serves itself, and their error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driftline.api.watch_list import Driftline
from driftline.api.watch_list import open as open_store
from driftline.errors import DriftlineError
from driftline.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST_COMMAND = 180.0  # seconds

#: the servers are our own, and many pages of one address are what is measured: no delays, but everything is counted
_HERE = {
    "allow_networks": ("127.0.0.0/8", "::1/128"),
    "proxy": None,
    "host_delay": 0.0,
    "host_connections": 10_000,
    "address_connections": 10_000,
    "robots": "ignore",
}


class LabError(DriftlineError):
    """A measurement went wrong."""


def open_local(store: str, **options: Any) -> Driftline:
    """Open a watch list that may fetch from the loopback interface, without delays unless the options set them."""
    ours = {name: value for name, value in _HERE.items() if name not in options}
    return open_store(settings=load_settings(store=store, **options).model_copy(update=ours))


class CommandProcess:
    """A `driftline` command at work in a process of its own, with its output in files of a folder."""

    def __init__(
        self, words: Sequence[str], store: str, folder: Path, *, host_delay: float, host_connections: int
    ) -> None:
        self._out, self._err = folder / "out", folder / "err"
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(folder),
            "PYTHONUTF8": "1",
            "DRIFTLINE_STORE": store,
            "DRIFTLINE_ALLOW_NETWORKS": "127.0.0.0/8",
            "DRIFTLINE_HOST_DELAY": str(host_delay),
            "DRIFTLINE_HOST_CONNECTIONS": str(host_connections),
            "DRIFTLINE_ROBOTS": "ignore",
        }
        with self._out.open("wb") as out, self._err.open("wb") as err:
            line = [sys.executable, "-P", "-m", "driftline", *words]
            self._child = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, cwd=folder
            )

    def is_running_after(self, seconds: float) -> bool:
        """Wait for its end for up to so many seconds; return whether it is still running."""
        try:
            self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def resident_mb(self) -> float:
        """Return how much memory it takes now, in megabytes, without its worker processes."""
        status = Path(f"/proc/{self._child.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1_000

    def kill(self) -> None:
        """Kill it, and wait for its end."""
        self._child.kill()
        self._child.wait()

    def end(self, how: int | None = None) -> str:
        """Wait for its end, or end it by a signal, and return what it printed. Raise LabError if it failed."""
        if how is not None:
            self._child.send_signal(how)
        try:
            status = self._child.wait(LONGEST_COMMAND)
        except subprocess.TimeoutExpired:
            self.kill()
            raise LabError(f"A command did not end within {LONGEST_COMMAND:g} s: {self._output()}") from None
        if status and how is None:
            raise LabError(f"A command failed: {self._output()}")
        return self._out.read_text()

    def _output(self) -> str:
        return " | ".join(self._err.read_text().strip().splitlines()[-5:])
