"""The robots.txt rules of a run: a bounded cache in front of the store, which also collects what is to be written."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from driftline.errors import FailureKind, StoreLocked, StoreUnavailable
from driftline.fetch.robots import VALID, Rules, read_robots
from driftline.store.locks import patiently
from driftline.store.schedule_records import CLOCK_TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from driftline.model.outcome import Document
    from driftline.model.page import Failure, Robots

_MOST_PARSED = 1_000  # origins whose rules are kept in memory; others are read from the store again
_LOG = logging.getLogger(__name__)


class Records(Protocol):
    """Where robots.txt files and Retry-After times are stored from one run to the next."""

    def robots_of(self, origins: Sequence[str]) -> dict[str, Robots]:
        """Return the stored robots.txt of these origins; those never fetched are left out."""

    def pauses(self, now: float) -> dict[str, float]:
        """Return the hosts under Retry-After, and until when."""

    def last_end(self, now: float) -> float:
        """Return the latest time at which an earlier run may have sent a request; minus infinity if there was none."""

    def tagged(self, tags: Collection[str]) -> dict[str, list[str]]:
        """Return by host which of these tags its pages have."""

    def keep(self, robots: Mapping[str, Robots], pauses: Mapping[str, float], now: float) -> None:
        """Store the robots.txt of these origins, and until when these hosts are under Retry-After."""

    def forget(self, now: float) -> None:
        """Delete the robots.txt of origins that were not contacted for a long time."""


class RobotsCache:
    """The robots.txt rules by origin (scheme, host and port). Used by any thread.

    The lock guards memory only. `recall`, `record_answer`, `flush` and `end` use the store, and hold no lock meanwhile:
    a database that does not answer delays their caller and no other thread. `rules` and `is_unread` never wait.
    """

    def __init__(self, records: Records, user_agent: str, clock: Callable[[], float]) -> None:
        self._records = records
        self._user_agent = user_agent
        self._clock = clock
        self._lock = threading.Lock()
        self._parsed: OrderedDict[str, Rules] = OrderedDict()  # the least recently used first
        self._read: set[str] = set()  # origins with their rules in memory, or without a record in the store
        self._unwritten: dict[str, Robots] = {}
        self._unwritten_pauses: dict[str, float] = {}
        self._fetched_any = False

    def __repr__(self) -> str:
        return (
            f"<RobotsCache parsed={len(self._parsed)} unwritten={len(self._unwritten)} "
            f"unwritten_pauses={len(self._unwritten_pauses)}>"
        )

    def rules(self, origin: str) -> Rules | None:
        """Return the rules of an origin if they are in memory and still valid, else None. Never reads the store."""
        with self._lock:
            rules = self._parsed.get(origin)
            if rules is not None:
                self._parsed.move_to_end(origin)
        return None if rules is None else self._if_valid(rules)

    def is_unread(self, origin: str) -> bool:
        """Return whether the store may have rules of this origin that are not in memory, for `recall` to read."""
        with self._lock:
            return origin not in self._read

    def recall(self, origins: Collection[str]) -> dict[str, Rules | None]:
        """Read these origins from the store, all at once, and return the rules of each that are valid now.

        Rules that a response brought in the meantime are newer than the stored ones, and are returned instead.
        """
        with self._lock:
            found = {origin: self._unwritten[origin] for origin in origins if origin in self._unwritten}
        found |= self._stored([origin for origin in origins if origin not in found])
        parsed = {origin: Rules(robots, self._user_agent) for origin, robots in found.items()}
        with self._lock:
            rules = {origin: self._parsed.get(origin) or parsed.get(origin) for origin in origins}
            for origin, one in rules.items():
                self._keep(origin, one)
        return {origin: None if one is None else self._if_valid(one) for origin, one in rules.items()}

    def record_answer(self, origin: str, document: Document, text: str | Failure) -> Rules:
        """Return the rules that follow from a response for robots.txt, and cache them as those of the origin.

        `text` is what `robots_text` returns for the response.
        """
        robots = read_robots(document, text, self._before(origin))
        rules = Rules(robots, self._user_agent)
        with self._lock:
            self._unwritten[origin] = robots
            self._fetched_any = True
            self._keep(origin, rules)
        if _LOG.isEnabledFor(logging.DEBUG):
            what = "not available" if robots.failure is not None else "none" if robots.text is None else "read"
            _LOG.debug("robots.txt of %s: %s, status %d", origin, what, document.status)
        return rules

    def record_pause(self, host: str, until: float) -> None:
        """Remember that a host is not to be contacted before this time, to be written by the next `flush`."""
        with self._lock:
            self._unwritten_pauses[host] = until

    def flush(self) -> None:
        """Write what is new to the store; if that is locked or cannot be reached, leave it to a later call."""
        with suppress(StoreLocked, StoreUnavailable):
            self._write()

    def end(self, stopped: Callable[[], bool]) -> None:
        """Write the same at the end of a run, waiting for a store that cannot be written until the run is `stopped`.

        Outdated records are deleted if the run fetched any robots.txt.
        """
        with suppress(StoreLocked, StoreUnavailable):
            patiently(self._write, stopped)
            if self._fetched_any:
                self._records.forget(self._clock())

    def _write(self) -> None:
        with self._lock:
            robots, pauses = self._unwritten.copy(), self._unwritten_pauses.copy()
        if not robots and not pauses:
            return
        self._records.keep(robots, pauses, self._clock())
        with self._lock:
            left = {origin: one for origin, one in self._unwritten.items() if robots.get(origin) is not one}
            left_pauses = {host: until for host, until in self._unwritten_pauses.items() if pauses.get(host) != until}
            self._unwritten, self._unwritten_pauses = left, left_pauses

    def _before(self, origin: str) -> Robots | None:
        """Return what was known of this origin before an answer, read from the store if it is not in memory."""
        with self._lock:
            rules, unwritten = self._parsed.get(origin), self._unwritten.get(origin)
            read = origin in self._read
        if rules is not None:
            return rules.robots
        return unwritten if unwritten is not None or read else self._stored([origin]).get(origin)

    def _stored(self, origins: Sequence[str]) -> dict[str, Robots]:
        """Return the records of these origins. Those of unreachable ones are made invalid, to be requested again."""
        found = self._records.robots_of(origins) if origins else {}
        for origin, one in found.items():
            if one.failure is not None and one.failure.kind is not FailureKind.ROBOTS:
                found[origin] = replace(one, until=0.0)
        return found

    def _if_valid(self, rules: Rules) -> Rules | None:
        now = self._clock()
        # a longer validity than any response gets was stored before the clock was set back
        return rules if now < rules.robots.until <= now + VALID + CLOCK_TOLERANCE else None

    def _keep(self, origin: str, rules: Rules | None) -> None:
        """Cache the rules of an origin, or that the store has none. Called with the lock held."""
        self._read.add(origin)
        if rules is None:
            return
        self._parsed[origin] = rules
        self._parsed.move_to_end(origin)
        while len(self._parsed) > _MOST_PARSED:
            self._read.discard(self._parsed.popitem(last=False)[0])
