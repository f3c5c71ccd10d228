"""Finds, while running, how many transfers in flight and how many consumers are fastest.

In flight: start small and double while the network answers as fast as it did with few in flight, for then twice as
many in flight means twice the throughput (Little's law). When answers take over twice as long as they did at best, the
transfers wait for each other: shrink in proportion. Troubles (time-outs, refusals, broken connections) shrink it too. A
queue that fills means that the network is not what limits: then a fixed number is enough. After the first shrinking it
grows by a tenth at a time, and a step that made things slower is undone. If for some seconds nothing comes back at all,
it doubles: pages that hang must not hold up the others.

Consumers: one is enough while the queue is short. When it fills, there are too few: double them, look whether more
pages are consumed, and take the step back if not; the next try waits twice as long. They take pages in batches, and new
ones take a while to start: so both rates are measured over several batches, the second one only after the start. When
they wait for work most of the time, there are too many: one less.

While there are fewer links than there is room for, neither number is what limits, and both stay.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

_LOG = logging.getLogger(__name__)

START = 64
FEWEST = 8
ENOUGH = 128  # in flight, where the network is not what limits; 32 cost a tenth of the pages a second
_TOLERATED = 2.0  # times the best latency
_NEGLIGIBLE = 0.05  # seconds: answers that come within this are never slow
_TROUBLED = 0.05  # share of transfers
_BEHIND = 0.2  # share of the queue's room
_STARVED = 0.9  # share of the consumers' time
_EVIDENCE = 20  # transfers: fewer say nothing about latency
_FORGET = 1.01  # per look: the best latency of long ago may never come back
_STUCK = 5.0  # seconds in which all that is in flight hangs
_REST = 12  # looks before trying again what did not help
_LONGEST_REST = 8 * _REST
_STARTING = 4  # looks until new consumers, and their worker processes, have started
_MEASURED_PAGES = 384  # six batches
_MEASURED_SECONDS = (1.0, 3.0)  # least and most, whatever the pages


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The seconds since the last look, the totals since the start of the run, and the queue as it is now.

    `hungry` counts how often there were fewer links to fetch than there was room for.
    """

    seconds: float
    finished: int
    troubled: int
    latency: float
    taken: int
    depth: int
    room: int
    starved: float
    hungry: int


_NOTHING = Sample(seconds=0, finished=0, troubled=0, latency=0, taken=0, depth=0, room=1, starved=0, hungry=0)


class Tuner:
    """Decides, from one look to the next, how many transfers and consumers there should be.

    A number that is given is kept; one that is None is found, up to the most that is allowed.
    """

    def __init__(
        self, *, in_flight: int | None, consumers: int | None, most_in_flight: int, most_consumers: int
    ) -> None:
        self.in_flight = in_flight or min(START, most_in_flight)
        self.consumers = consumers or 1
        self._most_in_flight = self.in_flight if in_flight else most_in_flight
        self._fewest_in_flight = self.in_flight if in_flight else min(FEWEST, most_in_flight)
        self._most_consumers = self.consumers if consumers else most_consumers
        self._fewest_consumers = self.consumers if consumers else 1
        self._last = _NOTHING
        self._waited = 0.0
        self._best_latency: float | None = None
        self._doubling = True
        self._before_step: tuple[int, float] | None = None
        self._rest_in_flight = self._rest_consumers = 0
        self._clock = 0.0
        self._measured_from = (0.0, 0)  # the time and the pages taken by then, since consumers are as many as they are
        self._crew_step: tuple[int, float] | None = None
        self._crew_rest = _REST

    def __repr__(self) -> str:
        best = "unknown" if self._best_latency is None else f"{self._best_latency:.3f}s"
        return (
            f"<Tuner in_flight={self.in_flight}/{self._most_in_flight}"
            f" consumers={self.consumers}/{self._most_consumers} best_latency={best}>"
        )

    def observe(self, sample: Sample) -> None:
        """Take one look, and set `in_flight` and `consumers` to what they should be until the next."""
        before = (self.in_flight, self.consumers)
        self._decide(sample)
        if before != (self.in_flight, self.consumers):
            numbers = {"in_flight": self.in_flight, "consumers": self.consumers}
            _LOG.debug("tuned from %d in flight, %d consumers", *before, extra=numbers)

    def _decide(self, sample: Sample) -> None:
        self._clock += sample.seconds
        if sample.hungry > self._last.hungry:
            self._begin_anew(sample)
            return
        self._waited += sample.seconds
        finished = sample.finished - self._last.finished
        taken = sample.taken - self._last.taken
        if finished < _EVIDENCE and taken < _EVIDENCE:
            if self._waited >= _STUCK and not finished:
                self._make_room(sample)
            return  # too little to judge by: let it add up
        rate = taken / self._waited
        latency = (sample.latency - self._last.latency) / max(finished, 1)
        troubled = (sample.troubled - self._last.troubled) / max(finished, 1)
        starved = (sample.starved - self._last.starved) / (self._waited * self.consumers)
        behind = sample.depth > _BEHIND * sample.room
        self._tune_consumers(sample.taken, starved, behind=behind)
        if finished >= _EVIDENCE and self._waited >= latency / 2:
            self._tune_in_flight(rate, latency, troubled, behind=behind)
        elif finished >= _EVIDENCE:
            return  # what was started since the last step has not come back yet: let it add up
        self._last = sample
        self._waited = 0.0

    def _begin_anew(self, sample: Sample) -> None:
        """Forget the measurements so far: with too little to do, they say nothing about the numbers."""
        self._last = sample
        self._waited = 0.0
        self._before_step = self._crew_step = None
        self._measured_from = (self._clock, sample.taken)

    def _make_room(self, sample: Sample) -> None:
        """Let others pass by the transfers in flight, of which none comes to its end."""
        if sample.depth <= _BEHIND * sample.room:
            self.in_flight = min(self._most_in_flight, 2 * self.in_flight)
        self._begin_anew(sample)

    def _tune_in_flight(self, rate: float, latency: float, troubled: float, *, behind: bool) -> None:
        self._rest_in_flight = max(0, self._rest_in_flight - 1)
        best = latency if self._best_latency is None else min(self._best_latency * _FORGET, latency)
        self._best_latency = best
        if troubled > _TROUBLED:
            self._shrink(0.5)
            self._rest_in_flight = _REST
        elif behind:
            self._approach_enough()
        elif latency > max(_TOLERATED * best, _NEGLIGIBLE):
            self._shrink(max(0.5, _TOLERATED * best / latency))
        elif self._before_step is not None and rate < 0.95 * self._before_step[1]:
            self.in_flight = self._before_step[0]
            self._before_step = None
            self._doubling = False
            self._rest_in_flight = _REST
        elif not self._rest_in_flight:
            self._before_step = (self.in_flight, rate)
            step = self.in_flight if self._doubling else max(4, self.in_flight // 10)
            self.in_flight = min(self._most_in_flight, self.in_flight + step)

    def _approach_enough(self) -> None:
        """Bring what is in flight to ENOUGH: down in steps, or up at once unless hosts were in trouble lately."""
        if self.in_flight > ENOUGH:
            self._shrink(0.9, ENOUGH)
        elif not self._rest_in_flight:
            self._doubling = False
            self._before_step = None
            self.in_flight = min(self._most_in_flight, ENOUGH)

    def _shrink(self, factor: float, fewest: int = FEWEST) -> None:
        self._doubling = False
        self._before_step = None
        if self.in_flight > fewest:
            self.in_flight = max(self._fewest_in_flight, fewest, int(self.in_flight * factor))

    def _tune_consumers(self, taken: int, starved: float, *, behind: bool) -> None:
        self._rest_consumers = max(0, self._rest_consumers - 1)
        starting = self._crew_step is not None and self._rest_consumers
        if starting or not self._measured_from[1]:
            self._measured_from = (self._clock, taken)  # what consumers manage shows only once they have started
            return
        rate = self._consumed(taken)
        if rate is not None and self._crew_step is not None:
            before, rate_before = self._crew_step
            self._crew_step = None
            if rate < 1.05 * rate_before:
                self._set_consumers(before, taken, self._crew_rest)
                self._crew_rest = min(2 * self._crew_rest, _LONGEST_REST)
                return
            self._crew_rest = _REST
        if self._rest_consumers or self._crew_step is not None:
            return
        if behind and rate is not None and self.consumers < self._most_consumers:
            self._crew_step = (self.consumers, rate)
            self._set_consumers(min(self._most_consumers, 2 * self.consumers), taken, _STARTING)
        elif starved > _STARVED and self.consumers > self._fewest_consumers:
            self._set_consumers(self.consumers - 1, taken, _REST)
        elif rate is not None:
            self._measured_from = (self._clock, taken)

    def _set_consumers(self, count: int, taken: int, rest: int) -> None:
        self.consumers = count
        self._rest_consumers = rest
        self._measured_from = (self._clock, taken)

    def _consumed(self, taken: int) -> float | None:
        """Return the pages per second with the current number of consumers; None if that is too short to tell."""
        began, taken_before = self._measured_from
        seconds, pages = self._clock - began, taken - taken_before
        least, most = _MEASURED_SECONDS
        return pages / seconds if seconds >= (least if pages >= _MEASURED_PAGES else most) else None
