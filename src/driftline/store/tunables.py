"""How long the store waits, and how many rows it reads at once. Measured values; tests use shorter waits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Waits:
    """Seconds of waiting, for all stores of this process; a store reads `lock` when it is opened."""

    lock: float = 10.0  # for another writer: within the database, before StoreLocked
    locked: float = 0.1  # before another try, after StoreLocked
    outage: float = 0.5  # before another try at a server that does not answer
    right: float = 0.3  # between two tries to take a right again
    renewal: float = 3.0  # between two renewals of a lease


@dataclass(slots=True, kw_only=True)
class Batches:
    """Rows that are read by one statement, or between two looks at whether to go on."""

    pages: int = 4_000  # of the watch list: some hundredths of a second
    checks: int = 20_000  # to learn from: fewer would make more, smaller numpy calls, and learning slower
    links: int = 1_000


WAITS = Waits()
BATCHES = Batches()
