"""`lab polite`: whether a check is polite, by the servers' logs, and how much of the permitted speed it uses."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from driftline.lab.bench import open_local
from driftline.lab.servers.host_farm import Farm, served

if TYPE_CHECKING:
    from driftline.lab.servers.host_farm import Log, Request
    from driftline.pipeline.check_run import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Politeness:
    """The politeness of a check by the log of the servers.

    `shortest` is the shortest time from an answer to the next request at the same host, `at_once` the most requests
    that any host had at once and `connections` the most connections. `allowed` is how many seconds the delays of the
    host with the most requests take, `share` how much of the time from the first request to the last answer that is.
    `forbidden` counts the requests for what robots.txt forbids.
    """

    hosts: int
    pages: int
    changed: int
    failed: int
    requests: int
    delay: float
    shortest: float
    at_once: int
    connections: int
    forbidden: int
    seconds: float
    allowed: float
    share: float


def measure(farm: Farm, delay: float) -> Politeness:
    """Check all pages of a farm, twice if they change, with the default politeness but this delay."""
    with tempfile.TemporaryDirectory(prefix="driftline-polite-") as folder:
        path = str(Path(folder) / "farm.db")
        with (
            served(farm) as running,
            open_local(path, host_delay=delay, host_connections=1, robots="obey") as watch_list,
        ):
            watch_list.add(*running.urls())
            report = watch_list.check()
            if farm.changes:
                report = watch_list.check()
    return judge(running.log, farm, delay, report)


def judge(log: Log, farm: Farm, delay: float, report: Report) -> Politeness:
    """Return how polite the client was by the servers' log."""
    by_host: dict[int, list[Request]] = defaultdict(list)
    for request in sorted(log.requests, key=lambda one: one.began):
        by_host[request.host].append(request)
    gaps = [after.began - before.ended for some in by_host.values() for before, after in pairwise(some)]
    seconds = max(one.ended for one in log.requests) - min(one.began for one in log.requests)
    allowed = delay * (max(map(len, by_host.values())) - 1)
    return Politeness(
        hosts=farm.hosts, pages=report.pages, changed=report.changed, failed=report.failed, requests=len(log.requests),
        delay=delay,
        shortest=min(gaps), at_once=max(map(most_at_once, by_host.values())), connections=max(log.connections),
        forbidden=sum(one.path.startswith("/private/") for one in log.requests),
        seconds=seconds, allowed=allowed, share=allowed / seconds,
    )  # fmt: skip


def most_at_once(requests: list[Request]) -> int:
    """Return the largest number of these requests that were in flight at the same time."""
    moments = sorted([(one.began, 1) for one in requests] + [(one.ended, -1) for one in requests])
    most = now = 0
    for _, step in moments:
        now += step
        most = max(most, now)
    return most
