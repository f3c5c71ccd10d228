"""`lab crawl` and `lab polite`, judged by what the servers logged.

Whether a crawl finds every page of a site, fetches none twice and ends; whether a check is polite, and how much of the
permitted speed it uses.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from driftline.lab.bench.local_watch_lists import open_local
from driftline.lab.servers import crawl_site, host_farm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.crawl.report import CrawlReport
    from driftline.lab.servers.host_farm import Farm, Log, Request
    from driftline.pipeline.check_run import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawled:
    """The results of a crawl by the server's log: how many `pages` of the site were requested, which more than once.

    `repeated` counts requests for an address that was requested before, page or not; `forbidden` those that robots.txt
    or a page forbids; `others` those for no page, mostly traps.
    """

    pages: int
    found: int
    missed: list[str]
    twice: list[str]
    repeated: int
    forbidden: int
    requests: int
    others: int
    seconds: float
    pages_per_s: float
    report: CrawlReport


def measure_crawl(pages: int, progress: Callable[[int, int], None] | None = None) -> Crawled:
    """Serve a site of this many pages, crawl it as the command does, and return what was found."""
    site = crawl_site.LabSite(pages)
    with (
        tempfile.TemporaryDirectory(prefix="driftline-crawl-") as folder,
        crawl_site.served(site) as running,
        open_local(str(Path(folder) / "site.db"), robots="obey", host_connections=64) as watch_list,
    ):
        report = watch_list.crawl(running.url, progress=progress)
    return judge_crawl(site, running.log, report)


def judge_crawl(site: crawl_site.LabSite, log: Sequence[str], report: CrawlReport) -> Crawled:
    """Return the results of a crawl by the server's log."""
    meant = Counter(identity for target in log if (identity := site.identity(target)) is not None)
    return Crawled(
        pages=len(site.truth), found=len(meant), missed=sorted(site.truth - meant.keys()),
        twice=sorted(page for page, many in meant.items() if many > 1),
        repeated=sum(many - 1 for many in Counter(log).values()),
        forbidden=sum(target.startswith("/forbidden/") for target in log), requests=len(log),
        others=len(log) - meant.total(), seconds=report.seconds, pages_per_s=report.pages_per_s, report=report,
    )  # fmt: skip


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


def measure_politeness(farm: Farm, delay: float) -> Politeness:
    """Check all pages of a farm, twice if they change, with the default politeness but this delay."""
    with tempfile.TemporaryDirectory(prefix="driftline-polite-") as folder:
        path = str(Path(folder) / "farm.db")
        with (
            host_farm.served(farm) as running,
            open_local(path, host_delay=delay, host_connections=1, robots="obey") as watch_list,
        ):
            watch_list.add(*running.urls())
            report = watch_list.check()
            if farm.changes:
                report = watch_list.check()
    return judge_politeness(running.log, farm, delay, report)


def judge_politeness(log: Log, farm: Farm, delay: float, report: Report) -> Politeness:
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
