"""What the robots.txt files of the hosts said, as far as it is known: read from the store, and kept there."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from driftline.errors import FailureKind, StoreLocked, StoreUnavailable, UnreadableBody
from driftline.fetch.robots import BELIEVED, Rules, read_robots
from driftline.http.codings import decode_body
from driftline.http.headers import content_encodings
from driftline.model import Failure
from driftline.store.locks import patiently
from driftline.store.schedule_records import CLOCK_TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from driftline.model import Document, Robots

_MOST_PARSED = 1_000  # hosts whose rules are kept ready; those of others are read again when they are wanted
_LARGEST = 4 * 1024 * 1024  # bytes of a robots.txt once it is decoded


class Records(Protocol):
    """Where what hosts said is kept from one run to the next."""

    def robots_of(self, origins: Sequence[str]) -> dict[str, Robots]:
        """What the robots.txt of these origins said when they were last asked; one that never was is left out."""

    def pauses(self, now: float) -> dict[str, float]:
        """The hosts that want to be left alone, and until when."""

    def last_end(self, now: float) -> float:
        """When the last run sent its last request, or may have; minus infinity if there was none by now."""

    def tagged(self, tags: Collection[str]) -> dict[str, list[str]]:
        """Which of these tags the pages of each host have."""

    def keep(self, told: Mapping[str, Robots], quiet: Mapping[str, float], now: float) -> None:
        """Remember what the robots.txt of these origins said, and until when these hosts are to be left alone."""

    def forget(self, now: float) -> None:
        """Forget the robots.txt of hosts that nobody asked for long."""


class RobotsBook:
    """Knows what may be fetched, by origin: scheme, host and port. Used by any thread."""

    def __init__(self, records: Records, user_agent: str, clock: Callable[[], float]) -> None:
        self._records = records
        self._user_agent = user_agent
        self._clock = clock
        self._lock = threading.Lock()
        self._parsed: OrderedDict[str, Rules] = OrderedDict()
        self._laid_aside: set[str] = set()
        self._told: dict[str, Robots] = {}
        self._quiet: dict[str, float] = {}
        self._learned = False

    def recall(self, origins: Sequence[str]) -> None:
        """Read what is known of these origins, all at once."""
        with self._lock:
            for origin, robots in self._read(origins).items():
                self._keep_ready(origin, robots)

    def rules(self, origin: str) -> Rules | None:
        """The rules of an origin that are to be believed now; None if it has to be asked."""
        with self._lock:
            rules = self._known(origin)
        now = self._clock()
        # what is to be believed for longer than anything is was said before a clock was set back
        return rules if rules is not None and now < rules.robots.until <= now + BELIEVED + CLOCK_TOLERANCE else None

    def heard(self, origin: str, document: Document) -> Rules:
        """Learn from the answer to a request for robots.txt."""
        body = b""
        if document.failure is not None and document.failure.kind is FailureKind.TOO_LARGE and document.body:
            document.failure = None  # as much of it as came is more than is read
        if document.failure is None:
            try:
                body = decode_body(document.body, content_encodings(document.headers), _LARGEST, cut=True)
            except UnreadableBody as error:
                document.failure = Failure(kind=error.kind, sentence=str(error))
        text = body.decode("utf-8", "replace").replace("\0", "")
        with self._lock:
            before = self._known(origin)
            robots = read_robots(document, text, None if before is None else before.robots)
            self._told[origin] = robots
            self._learned = True
            return self._keep_ready(origin, robots)

    def leave_alone(self, host: str, until: float) -> None:
        """Remember that a host asked for that."""
        with self._lock:
            self._quiet[host] = until

    def flush(self) -> None:
        """Write what was learned to the store; later, if that is locked or cannot be reached."""
        with suppress(StoreLocked, StoreUnavailable):
            self._write()

    def end(self, stopped: Callable[[], bool]) -> None:
        """Write it at the end of a run, waiting for a store that cannot be written until the run is `stopped`.

        What is of no use any more is forgotten if something new was learned.
        """
        with suppress(StoreLocked, StoreUnavailable):
            patiently(self._write, stopped)
            if self._learned:
                self._records.forget(self._clock())

    def _write(self) -> None:
        with self._lock:
            told, quiet = self._told.copy(), self._quiet.copy()
        if not told and not quiet:
            return
        self._records.keep(told, quiet, self._clock())
        with self._lock:
            self._told = {origin: one for origin, one in self._told.items() if told.get(origin) is not one}
            self._quiet = {host: until for host, until in self._quiet.items() if quiet.get(host) != until}

    def _known(self, origin: str) -> Rules | None:
        rules = self._parsed.get(origin)
        if rules is not None:
            self._parsed.move_to_end(origin)
            return rules
        robots = self._told.get(origin)
        if robots is None and origin in self._laid_aside:
            robots = self._read([origin]).get(origin)
        return None if robots is None else self._keep_ready(origin, robots)

    def _read(self, origins: Sequence[str]) -> dict[str, Robots]:
        """What is kept of these origins. One that could not be reached is tried again by the next run, however soon."""
        found = self._records.robots_of(origins)
        for origin, one in found.items():
            if one.failure is not None and one.failure.kind is not FailureKind.ROBOTS:
                found[origin] = replace(one, until=0.0)
        return found

    def _keep_ready(self, origin: str, robots: Robots) -> Rules:
        rules = self._parsed[origin] = Rules(robots, self._user_agent)
        self._parsed.move_to_end(origin)
        while len(self._parsed) > _MOST_PARSED:
            self._laid_aside.add(self._parsed.popitem(last=False)[0])
        return rules
