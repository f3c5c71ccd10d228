"""The user's own command for each event, which it gets as JSON on its standard input.

One thread runs them one after the other, so that a slow command delays no check. Nothing is told before it is recorded;
what is still waiting when the run ends is run to the end, within a time.
"""

from __future__ import annotations

import json
import queue
import shlex
import subprocess
import threading
from typing import TYPE_CHECKING, Any

from driftline.errors import BadSetting

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS = 60.0  # that one command may take
_WAITING = 10_000  # events: past that, something is wrong with the command


class Hook:
    """Runs a command for each event it is given. `complain` is told a sentence when one fails."""

    def __init__(self, command: str, complain: Callable[[str], None]) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise BadSetting(f"The command '{command}' cannot be read: {error}.") from None
        if not self._words:
            raise BadSetting("The command to run on each event is empty.")
        self._complain = complain
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._run, name="hook", daemon=True)
        self._thread.start()

    def tell(self, event: dict[str, Any]) -> None:
        """Have the command run for this event; when far too many wait, it is said and the event is not told."""
        try:
            self._events.put_nowait(event)
        except queue.Full:
            self._complain(f"{_WAITING:,} events wait for '{self._words[0]}': one more is not told.")

    def close(self, seconds: float) -> None:
        """Let the commands that wait run, for so long at most."""
        self._events.put(None)
        self._thread.join(seconds)
        if self._thread.is_alive():
            self._complain(f"About {self._events.qsize():,} events were not told to '{self._words[0]}' in time.")

    def _run(self) -> None:
        while (event := self._events.get()) is not None:
            try:
                ran = subprocess.run(
                    self._words, input=json.dumps(event).encode(), timeout=_SECONDS, check=False,
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                self._complain(f"'{self._words[0]}' took longer than {_SECONDS:.0f} s for an event and was stopped.")
            except OSError as error:
                self._complain(f"'{self._words[0]}' cannot be run: {error.strerror}.")
            else:
                if ran.returncode:
                    said = ran.stderr.decode("utf-8", "replace").strip().splitlines()
                    last = f": {said[-1]}" if said else ""
                    self._complain(f"'{self._words[0]}' ended with status {ran.returncode}{last}")
