"""The user's own command for each event, which it gets as JSON on its standard input.

One thread runs them one after the other, so that a slow command delays no check. Nothing is told before it is recorded;
what is still waiting when the run ends is run to the end; within a time, if somebody asked the run to stop.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any

from driftline.errors import BadSetting
from driftline.model import without_password

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS = 60.0  # that one command may take
_LOOK = 0.2  # seconds between looks at whether somebody is in a hurry
_SAID = 4_096  # bytes of what a command said last, of which a line is told
_WAITING = 10_000  # events: past that, something is wrong with the command


class Hook:
    """Runs a command for each event it is given. `complain` is told a sentence when one fails; `most` may wait, and
    each command may take so many `seconds`.

    BadSetting if there is no such command: it would fail at each event, the first of which may be days away.
    """

    def __init__(
        self, command: str, complain: Callable[[str], None], *, most: int = _WAITING, seconds: float = _SECONDS
    ) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise BadSetting(f"The command '{command}' cannot be read: {error}.") from None
        if not self._words:
            raise BadSetting("The command to run on each event is empty.")
        if shutil.which(self._words[0]) is None:
            raise BadSetting(
                f"The command '{self._words[0]}' is not found, or is no program: name one that is on the PATH, or by "
                "its path. What a shell has to read is written as sh -c '…'."
            )
        self._complain = complain
        self._seconds = seconds
        self._complete = True
        self._events: queue.Queue[tuple[dict[str, Any], Callable[[], None]] | None] = queue.Queue(most)
        self._thread = threading.Thread(target=self._run, name="hook", daemon=True)
        self._thread.start()

    def tell(self, event: dict[str, Any], done: Callable[[], None] = lambda: None) -> None:
        """Have the command run for this event, and `done` called once it ended, whatever its status.

        When far too many wait, it is said and the event is not told. Nor is one for which the command cannot be run, or
        takes too long.
        """
        try:
            self._events.put_nowait((event, done))
        except queue.Full:
            self._complete = False
            self._complain(
                f"{self._events.maxsize:,} events wait for '{self._words[0]}': one more is left to the next run."
            )

    def close(self, seconds: float, hurried: Callable[[], bool] = lambda: True) -> bool:
        """Let the commands that wait run, `seconds` at most from when somebody is in a hurry; whether all were told.

        Each has its own time, so that without any hurry it ends too.
        """
        end: float | None = None
        asked = False
        while self._thread.is_alive():
            if end is None and hurried():
                end = time.monotonic() + seconds
            left = _LOOK if end is None else min(_LOOK, end - time.monotonic())
            if left <= 0:
                waiting = f"About {self._events.qsize():,} events were not told to '{self._words[0]}' in time"
                self._complain(f"{waiting}: the next run tells them.")
                return False
            if asked:
                self._thread.join(left)
            else:
                with contextlib.suppress(queue.Full):  # there may be no room for the word to end yet
                    self._events.put(None, timeout=left)
                    asked = True
        return self._complete

    def _run(self) -> None:
        while (waiting := self._events.get()) is not None:
            event, done = waiting
            try:
                status, said = self._ran(json.dumps(_shown(event)).encode())
            except subprocess.TimeoutExpired:
                self._complete = False
                self._complain(f"'{self._words[0]}' took longer than {self._seconds:g} s for an event and was stopped.")
            except OSError as error:
                self._complete = False
                self._complain(f"'{self._words[0]}' cannot be run: {error.strerror}.")
            else:
                if status:
                    lines = said.decode("utf-8", "replace").strip().splitlines()
                    last = f": {lines[-1]}" if lines else ""
                    self._complain(f"'{self._words[0]}' ended with status {status}{last}")
                done()

    def _ran(self, event: bytes) -> tuple[int, bytes]:
        """Run the command for an event to its end; its status, and the last that it said on standard error.

        It reads and writes files, not pipes: what it leaves running behind it may hold them open for as long as it
        likes. It has a session of its own, so that Ctrl-C on a terminal is heard by the run and not by it.
        """
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
            given.write(event)
            given.seek(0)
            process = subprocess.Popen(
                self._words, stdin=given, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True
            )
            try:
                status = process.wait(self._seconds)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):  # it ended just now
                    os.killpg(process.pid, signal.SIGKILL)  # with all that it started, as a shell does
                process.wait()
                raise
            said.seek(max(0, said.seek(0, os.SEEK_END) - _SAID))
            return status, said.read()


def _shown(item: Any) -> Any:
    """An event as others may see it: without the passwords of addresses."""
    if isinstance(item, dict):
        return {name: _shown(value) for name, value in item.items()}
    if isinstance(item, list | tuple):
        return [_shown(value) for value in item]
    return without_password(item) if isinstance(item, str) else item
