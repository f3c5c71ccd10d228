"""Finding how many transfers in flight and how many consumers suit the world, while running."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What happened since the last look (`seconds`), and the totals since the start of the run."""

    seconds: float
    finished: int
    troubled: int
    latency: float
    taken: int
    depth: int
    room: int
    starved: float


class Tuner:
    def __init__(
        self, *, in_flight: int | None, consumers: int | None, most_in_flight: int, most_consumers: int
    ) -> None:
        self.in_flight = in_flight or 64
        self.consumers = consumers or most_consumers

    def observe(self, sample: Sample) -> None:
        pass
