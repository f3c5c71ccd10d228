"""The user's own command as a reader of the event log: it gets each event as one line of JSON on standard input.

One thread runs it for one event after the other, so that a slow command delays no check. A command that fails, takes
too long or cannot be started is run again for that event, less and less often, for a day. Other events go on meanwhile,
except those of the same pages: what happens to a page is delivered in that order. What is not delivered when a run ends
is kept in the store for the next one.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import IO, TYPE_CHECKING, Any, Protocol

from driftline.errors import BadSetting, StoreError
from driftline.model.change import check_of
from driftline.model.event import EventKind
from driftline.plurals import count
from driftline.store.events import Retry, event_document
from driftline.urls import without_password

if TYPE_CHECKING:
    from collections.abc import Callable

    from driftline.model.event import Event

_LOG = logging.getLogger(__name__)

READER = "exec"  # the name of this reader of the event log
FIRST_RETRY = 10.0  # seconds after a failure; twice as long each time
LONGEST_RETRY = 3_600.0
GIVE_UP_AFTER = 86_400.0  # seconds since the first failure
TOO_OLD = 7 * 86_400.0  # seconds: an event that old is not delivered if it was never tried
_TIMEOUT = 60.0  # seconds that one run of the command may take
_ENDING = 1.0  # seconds that a command which took too long has to end by itself after SIGTERM
_STOPPING = 0.4  # the same when the run is stopped, which is to be over within five seconds
_PAUSE = 0.01  # seconds between looks at whether a command has ended after SIGTERM
_LOOK = 0.2  # seconds between looks at whether a stop was requested
_MOST_RETRIES = 1_000  # events to be tried again; more of them wait in the log
_MOST_DOUBLINGS = 20  # of the pause
_LONGEST_LINE = 200  # characters of it that are shown
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
# '&' and ';' in the middle of a word may be parts of an address
_SHELL_SYNTAX = re.compile(r"\d?>>?|<<?|\|\|?|`|\$(?:\w+|[({])|(?:^|(?<=\s))(?:&&?|;)|(?:&|;)(?=\s|$)")
_KEPT_OUTPUT = 4_096  # bytes of what a command printed last on standard error


class Queue(Protocol):
    """The events that the command is to get (see `store.events.EventReader`)."""

    def read(self) -> list[Event]:
        """Return the next events, the oldest first."""

    def advance(self, event: Event) -> None:
        """Store that all events up to this one are done."""

    def retries(self) -> list[Retry]:
        """Return the events that were not delivered yet, the oldest first."""

    def retry(self, retry: Retry) -> None:
        """Keep an event to be tried again later, and go on with the next."""

    def forget(self, retry: Retry) -> None:
        """Store that an event was delivered after all, or given up."""


class CommandEnd(StrEnum):
    """How a run of the user's command ended. `STOPPED` says nothing about the command: the run is being stopped."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How a run of the user's command ended and, if it failed, why, in a sentence."""

    end: CommandEnd
    error: str = ""


class UserCommand:
    """A command line that is run with a text on standard input.

    Raise BadSetting if there is no such command, or if it needs a shell: it would fail for every event, the first of
    which may be days away, or take '>' for an argument and succeed without doing anything.
    """

    def __init__(self, line: str, timeout: float = _TIMEOUT) -> None:
        try:
            self._words = shlex.split(line)
        except ValueError as error:
            raise BadSetting(f"The command '{line}' cannot be read: {error}.") from None
        if not self._words:
            raise BadSetting("The command to run on each event is empty.")
        if operator := _shell_syntax(line):
            raise BadSetting(
                f"The command is not run by a shell, so '{operator}' would be an argument of '{self._words[0]}': write "
                f"sh -c {shlex.quote(line)}, or quote what is meant literally."
            )
        if shutil.which(self._words[0]) is None:
            raise BadSetting(
                f"The command '{self._words[0]}' is not found, or is not executable: name one that is on the PATH, or "
                "by its path. Pipes and redirections need a shell: sh -c '…'."
            )
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def __repr__(self) -> str:
        return f"<UserCommand {self.name!r} running={self._process is not None} stopped={self._stopped}>"

    @property
    def name(self) -> str:
        """The program, without its arguments."""
        return self._words[0]

    def is_stopped(self) -> bool:
        """Return whether it was stopped, and is not run any more."""
        return self._stopped

    def run(self, given: bytes) -> CommandResult:
        """Run it to its end and return how it ended.

        Its input and output are files, not pipes, because a process that it leaves in the background may hold them open
        for any time. It has a session of its own, so that Ctrl-C on a terminal reaches the run and not the command.
        """
        try:
            with tempfile.TemporaryFile() as text, tempfile.TemporaryFile() as output:
                text.write(given)
                text.seek(0)
                return self._run_with(text, output)
        except OSError as error:  # the folder for temporary files is full or gone: it may be back at the next attempt
            return self._failed(
                f"'{self.name}' cannot be given an event, because no temporary file can be written "
                f"({error.strerror or error}): free space, or set TMPDIR to another folder."
            )

    def _run_with(self, text: IO[bytes], output: IO[bytes]) -> CommandResult:
        """Run it with these files as standard input and standard error."""
        if self.is_stopped():
            return _STOPPED
        try:
            process = subprocess.Popen(
                self._words, stdin=text, stdout=subprocess.DEVNULL, stderr=output, start_new_session=True
            )
        except OSError as error:
            return self._failed(f"'{self.name}' cannot be run: {error.strerror}.")
        # `stop` sets its flag before it looks for the process: either it finds this one, or the flag is seen here
        self._process = process
        if self.is_stopped():
            _end(process, _STOPPING)
        try:
            status = process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            _end(process, _ENDING)
            process.wait()
            return self._failed(f"'{self.name}' took longer than {self._timeout:g} s for an event and was ended.")
        finally:
            self._process = None
        if not status and not self.is_stopped():
            return _SUCCEEDED
        output.seek(max(0, output.seek(0, os.SEEK_END) - _KEPT_OUTPUT))
        lines = output.read().decode("utf-8", "replace").strip().splitlines()
        last = f": {lines[-1][:_LONGEST_LINE].rstrip('.')}" if lines else ""
        return self._failed(f"'{self.name}' {_ended_how(status)}{last}.")

    def _failed(self, error: str) -> CommandResult:
        """Return that it failed; a command that was stopped may have failed for that."""
        return _STOPPED if self.is_stopped() else CommandResult(end=CommandEnd.FAILED, error=error)

    def stop(self) -> None:
        """End it, with all that it started, and do not run it any more; also in a signal handler."""
        self._stopped = True
        process = self._process
        if process is not None:
            _end(process, _STOPPING)


_SUCCEEDED = CommandResult(end=CommandEnd.SUCCEEDED)
_STOPPED = CommandResult(end=CommandEnd.STOPPED)


class CommandRunner:
    """Runs a command for each event of a queue, in a thread of its own. `complain` gets a sentence when one fails."""

    def __init__(
        self, command: UserCommand, queue: Queue, complain: Callable[[str], None], *,
        clock: Callable[[], float] = time.time, first_retry: float = FIRST_RETRY,
    ) -> None:  # fmt: skip
        self._command = command
        self._queue = queue
        self._complain = complain
        self._clock = clock
        self._first_retry = first_retry
        self._changed = threading.Condition()
        self._awake = True
        self._ending = False
        self._retries: dict[int, Retry] = {}  # by event
        self._pages_held: Counter[int | str] = Counter()  # how many of the retries are about each page
        self._last_complaint = ""
        self._too_old = 0
        self._failed: set[int] = set()  # events whose last try, in this run, failed
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, name="command", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<CommandRunner {self._command!r} retries={len(self._retries)}>"

    def wake(self) -> None:
        """Look at the queue: there may be new events."""
        with self._changed:
            self._awake = True
            self._changed.notify()

    def close(self, time_left: Callable[[], float | None]) -> bool:
        """Deliver what is due and end; return whether everything was delivered.

        `time_left` says how many seconds that may still take; None is as long as it needs. Then the command is ended,
        and what it did not get is left to the next run.
        """
        with self._changed:
            self._ending = self._awake = True
            self._changed.notify()
        while self._thread.is_alive():
            left = time_left()
            if left == 0:
                self._command.stop()
                self._thread.join(_STOPPING)
                self._complain(
                    f"'{self._command.name}' did not get all events in time: the next run delivers the rest."
                )
                return False
            self._thread.join(_LOOK if left is None else min(_LOOK, left))
        if self._retries:
            number = len(self._retries)
            events = count(number, "event is", "events are")
            self._complain(f"{events} still to be delivered to '{self._command.name}': the next run tries again.")
        return not self._retries and self._error is None and not self._command.is_stopped()

    def stop(self) -> None:
        """End the command at once; also in a signal handler."""
        self._command.stop()

    def _work(self) -> None:
        try:
            for retry in self._queue.retries():
                # at once, because the command may have been mended since
                self._hold(replace(retry, next_at=self._clock()))
            while not self._command.is_stopped():
                with self._changed:
                    self._awake = False
                    ending = self._ending
                tried = self._retry_due(ending=ending)
                self._deliver_new()
                with self._changed:
                    if self._awake or tried:
                        continue
                    if self._ending:
                        return
                    due = min([one.next_at for one in self._heads()], default=None)
                    self._changed.wait(None if due is None else max(0.0, due - self._clock()))
        except StoreError as error:  # the run is stopping and the store is away: what is left is in it
            self._error = error
        except Exception as error:  # noqa: BLE001 nobody else can see it, and the run goes on
            _LOG.exception("delivering events failed")
            self._error = error
            self._complain(f"Delivering events to '{self._command.name}' failed: {error}. The next run tries again.")

    def _deliver_new(self) -> None:
        while not self._command.is_stopped() and len(self._retries) < _MOST_RETRIES and (found := self._queue.read()):
            for event in found:
                if self._command.is_stopped() or len(self._retries) >= _MOST_RETRIES:
                    return
                self._deliver(event)
        if self._too_old:
            skipped = count(self._too_old, "event is", "events are")
            self._complain(f"{skipped} older than a week and not delivered to '{self._command.name}'.")
            self._too_old = 0

    def _deliver(self, event: Event) -> None:
        now = self._clock()
        if event.at.timestamp() < now - TOO_OLD:
            self._too_old += 1
            self._queue.advance(event)
            return
        if not _pages(event).isdisjoint(self._pages_held):
            held_up = "It waits for an earlier event of the same page."
            self._keep(Retry(event=event, attempts=0, since=now, next_at=now, error=held_up))
            return
        result = self._run(event)
        if result.end is CommandEnd.SUCCEEDED:
            self._queue.advance(event)
        elif result.end is CommandEnd.FAILED:
            again_at = self._clock() + self._first_retry
            self._keep(Retry(event=event, attempts=1, since=now, next_at=again_at, error=result.error))

    def _retry_due(self, *, ending: bool) -> bool:
        """Try again what is due; return whether anything was tried, so that others may be due now.

        A run that is ending tries each event once: what fails again is for the next one.
        """
        now = self._clock()
        due = [one for one in self._heads() if one.next_at <= now and not (ending and one.event.id in self._failed)]
        for retry in due:
            if self._command.is_stopped():
                return False
            result = self._run(retry.event)
            if result.end is CommandEnd.STOPPED:
                return False
            if result.end is CommandEnd.FAILED:
                # an event that was held up by another one was not tried then: its day begins now
                since = retry.since if retry.attempts else now
                if now - since < GIVE_UP_AFTER:
                    self._keep(self._after_failure(retry, since, result.error))
                    continue
                self._complain(f"{result.error} It failed for a day: {_name_of(retry.event)} is given up.")
            self._queue.forget(retry)
            self._release(retry)
        return bool(due)

    def _after_failure(self, retry: Retry, since: float, error: str) -> Retry:
        """Return the retry after one more failure: each pause is twice as long as the one before, up to an hour."""
        pause = min(self._first_retry * 2 ** min(retry.attempts, _MOST_DOUBLINGS), LONGEST_RETRY)
        next_at = self._clock() + pause
        return replace(retry, attempts=retry.attempts + 1, since=since, next_at=next_at, error=error)

    def _heads(self) -> list[Retry]:
        """Return the retries that no earlier event of the same page holds up."""
        heads: list[Retry] = []
        seen: set[int | str] = set()
        for _, retry in sorted(self._retries.items()):
            pages = _pages(retry.event)
            if seen.isdisjoint(pages):
                heads.append(retry)
            seen |= pages
        return heads

    def _keep(self, retry: Retry) -> None:
        self._queue.retry(retry)
        self._hold(retry)

    def _hold(self, retry: Retry) -> None:
        if retry.event.id not in self._retries:
            self._pages_held.update(_pages(retry.event))
        self._retries[retry.event.id] = retry

    def _release(self, retry: Retry) -> None:
        del self._retries[retry.event.id]
        self._pages_held -= Counter(_pages(retry.event))

    def _run(self, event: Event) -> CommandResult:
        result = self._command.run(as_line(event))
        if result.end is CommandEnd.FAILED and result.error != self._last_complaint:
            self._complain(f"{result.error} It will be run again for {_name_of(event)}.")
        self._last_complaint = result.error
        about = {"event_id": event.id, "command": self._command.name}
        if result.end is CommandEnd.SUCCEEDED:
            _LOG.info("event delivered to the command", extra=about)
            self._failed.discard(event.id)
        else:
            why = result.error or "it was stopped"
            _LOG.info("event not delivered to the command: %s", why, extra=about)
            self._failed.add(event.id)
        return result


def as_line(event: Event) -> bytes:
    """Return the event as one line of JSON, without passwords of addresses."""
    return json.dumps(_shown(event_document(event))).encode() + b"\n"


def _ended_how(status: int) -> str:
    """Return how a command that failed ended, given its status, which is negative after a signal."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        name = f" ({signal.Signals(-status).name})"
    except ValueError:  # a real-time signal has no name
        name = ""
    return f"was killed by signal {-status}{name}"


def _name_of(event: Event) -> str:
    """Return an event as `driftline run` prints it: by the id of its change, or by what happened to which page."""
    if event.event is EventKind.CHANGED and event.ids:
        return f"the change {event.ids[0]}" + (f" and {len(event.ids) - 1:,} more" if len(event.ids) > 1 else "")
    pages = event.urls[0] if len(event.urls) == 1 else f"{count(len(event.urls), 'page')} of {event.host}"
    return f"the event '{event.event} {without_password(pages)}'"


def _shell_syntax(line: str) -> str | None:
    """Return the first operator or expansion that only a shell understands, outside of quotes; None without any."""
    found = _SHELL_SYNTAX.search(_QUOTED.sub("_", line))
    return found[0].strip() if found else None


def _pages(event: Event) -> frozenset[int | str]:
    """Return what the event is about: the ids of watched pages, and the addresses of others, which a crawl found."""
    watched = {page.url: page.id for page in event.pages}
    crawled = () if event.ids else (*event.urls, *event.to)
    return frozenset((*(check_of(one)[0] for one in event.ids), *(watched.get(url, url) for url in crawled)))


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    """End a command with all that it started: SIGTERM first, SIGKILL after `grace` seconds."""
    end = time.monotonic() + grace
    with contextlib.suppress(ProcessLookupError):  # none of them is left
        os.killpg(process.pid, signal.SIGTERM)
        while time.monotonic() < end:
            process.poll()  # a process whose status was not read yet still exists
            os.killpg(process.pid, 0)
            time.sleep(_PAUSE)
        os.killpg(process.pid, signal.SIGKILL)


def _shown(item: Any) -> Any:
    """Return an event as others may see it: without the passwords of addresses."""
    if isinstance(item, dict):
        return {name: _shown(value) for name, value in item.items()}
    if isinstance(item, list | tuple):
        return [_shown(value) for value in item]
    return without_password(item) if isinstance(item, str) else item
