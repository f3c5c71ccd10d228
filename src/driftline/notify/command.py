"""The user's own command for each event, which it gets as JSON on its standard input.

One thread runs them one after the other, so that a slow command delays no check. Nothing is told before it is recorded;
what is still waiting when the run ends is run to the end; within a time, if somebody asked the run to stop. A command
that is not done by then is ended, with all that it started: the next run tells its event again, and two would be at it.
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
from typing import TYPE_CHECKING, Any, NamedTuple

from driftline.errors import BadSetting
from driftline.urls.parts import without_password

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS = 60.0  # that one command may take
_ENDING = 1.0  # seconds that a command has to end by itself when it is told to
_TURN = 0.5  # seconds that a command which is just being started is waited for, to be ended
_PAUSE = 0.01  # seconds between looks at whether a command has ended that was told to
_LOOK = 0.2  # seconds between looks at whether somebody is in a hurry
_SAID = 4_096  # bytes of what a command said last, of which a line is told
_WAITING = 10_000  # events: past that, something is wrong with the command


class _Waiting(NamedTuple):
    """An event, what to call when it was told, and the pages that it is about."""

    event: dict[str, Any]
    done: Callable[[], None]
    pages: frozenset[str]


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
        self._events: queue.Queue[_Waiting | None] = queue.Queue(most)
        self._given = self._told = 0  # events, by now
        self._untold: list[_Waiting] = []  # events for which the command did not get to its end
        self._left: set[str] = set()  # pages of which there is something for the next run
        self._refused = ""  # why the command could not be run, when that was last said
        self._starting = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._cut_off = False
        self._thread = threading.Thread(target=self._run, name="hook", daemon=True)
        self._thread.start()

    def tell(self, event: dict[str, Any], done: Callable[[], None] = lambda: None) -> None:
        """Have the command run for this event, and `done` called once it ended, whatever its status.

        An event for which the command cannot be run, or takes too long, is told again before the next one of its pages:
        what happens to a page is told in that order, or left to the next run. When far too many wait, it is said and
        the event is left, too.
        """
        self._given += 1
        waiting = _Waiting(event, done, frozenset(name.partition("-")[0] for name in event.get("ids", ())))
        try:
            self._events.put_nowait(waiting)
        except queue.Full:
            self._left |= waiting.pages
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
                self.cut_off()
                untold = self._given - self._told
                number = f"{untold:,} event{' was' if untold == 1 else 's were'}"
                self._complain(f"{number} not told to '{self._words[0]}' in time: the next run does it.")
                return False
            if asked:
                self._thread.join(left)
            else:
                with contextlib.suppress(queue.Full):  # there may be no room for the word to end yet
                    self._events.put(None, timeout=left)
                    asked = True
        return self._told == self._given

    def cut_off(self) -> None:
        """End the command that is being run, with all that it started, and run none any more; also in a signal handler.

        Its event was not told then, whatever it made of it.
        """
        self._cut_off = True
        started = self._starting.acquire(timeout=_TURN)  # not for ever: this may have interrupted who holds it
        process = self._process
        if started:
            self._starting.release()
        if process is not None:
            _end(process)

    def _run(self) -> None:
        while (waiting := self._events.get()) is not None and not self._cut_off:
            line = self._before(waiting)
            if any(page in self._left for one in line for page in one.pages):
                self._left |= waiting.pages
                continue
            for one in line:
                if not self._tell_now(one):
                    break
                self._told += 1
                if one is not waiting:
                    self._untold.remove(one)
            else:
                continue
            if len(self._untold) < self._events.maxsize:
                self._untold.append(waiting)
            else:
                self._left |= waiting.pages

    def _before(self, waiting: _Waiting) -> list[_Waiting]:
        """This event after those that have to be told before it: of its pages, and of the pages of those."""
        line, pages = [waiting], {*waiting.pages}
        for one in reversed(self._untold):
            if not pages.isdisjoint(one.pages):
                line.append(one)
                pages |= one.pages
        return line[::-1]

    def _tell_now(self, waiting: _Waiting) -> bool:
        """Run the command for an event; whether it ran to its end."""
        again = "What it did not get is told again, by the next run at the latest."
        try:
            status, said = self._ran(json.dumps(_shown(waiting.event)).encode())
        except subprocess.TimeoutExpired:
            self._complain(
                f"'{self._words[0]}' took longer than {self._seconds:g} s for an event and was stopped. {again}"
            )
            return False
        except OSError as error:
            refused = f"'{self._words[0]}' cannot be run: {error.strerror}. {again}"
            if refused != self._refused:
                self._refused = refused
                self._complain(refused)
            return False
        if self._cut_off:
            return False
        self._refused = ""
        if status:
            lines = said.decode("utf-8", "replace").strip().splitlines()
            last = f": {lines[-1]}" if lines else ""
            self._complain(f"'{self._words[0]}' ended with status {status}{last}")
        waiting.done()
        return True

    def _ran(self, event: bytes) -> tuple[int, bytes]:
        """Run the command for an event to its end; its status, and the last that it said on standard error.

        It reads and writes files, not pipes: what it leaves running behind it may hold them open for as long as it
        likes. It has a session of its own, so that Ctrl-C on a terminal is heard by the run and not by it.
        """
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
            given.write(event)
            given.seek(0)
            with self._starting:
                if self._cut_off:
                    return 0, b""
                process = self._process = subprocess.Popen(
                    self._words, stdin=given, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True
                )
            try:
                status = process.wait(self._seconds)
            except subprocess.TimeoutExpired:
                _end(process)
                process.wait()
                raise
            finally:
                self._process = None
            said.seek(max(0, said.seek(0, os.SEEK_END) - _SAID))
            return status, said.read()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command with all that it started, as a shell does: they are asked to, and killed if they do not."""
    end = time.monotonic() + _ENDING
    with contextlib.suppress(ProcessLookupError):  # none of them is left
        os.killpg(process.pid, signal.SIGTERM)
        while time.monotonic() < end:
            process.poll()  # one that has ended and was not asked for its status counts as being there
            os.killpg(process.pid, 0)
            time.sleep(_PAUSE)
        os.killpg(process.pid, signal.SIGKILL)


def _shown(item: Any) -> Any:
    """An event as others may see it: without the passwords of addresses."""
    if isinstance(item, dict):
        return {name: _shown(value) for name, value in item.items()}
    if isinstance(item, list | tuple):
        return [_shown(value) for value in item]
    return without_password(item) if isinstance(item, str) else item
