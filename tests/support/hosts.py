"""What is remembered of hosts, for tests without a store."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from driftline.model.page import Robots


@dataclass
class Records:
    """Remembers as a store does, in dictionaries that a test reads and fills."""

    robots: dict[str, Robots] = field(default_factory=dict)
    quiet: dict[str, float] = field(default_factory=dict)
    looked_for: list[str] = field(default_factory=list)
    ended: float = -math.inf
    tags: dict[str, list[str]] = field(default_factory=dict)
    forgot_at: list[float] = field(default_factory=list)

    def robots_of(self, origins: Sequence[str]) -> dict[str, Robots]:
        self.looked_for += origins
        return {origin: self.robots[origin] for origin in origins if origin in self.robots}

    def pauses(self, now: float) -> dict[str, float]:
        return {host: until for host, until in self.quiet.items() if until > now}

    def last_end(self, now: float) -> float:
        return self.ended if self.ended <= now else -math.inf

    def tagged(self, tags: Collection[str]) -> dict[str, list[str]]:
        return {host: [tag for tag in some if tag in tags] for host, some in self.tags.items()}

    def keep(self, robots: Mapping[str, Robots], quiet: Mapping[str, float], now: float) -> None:
        self.robots |= robots
        self.quiet |= quiet

    def forget(self, now: float) -> None:
        self.forgot_at.append(now)
