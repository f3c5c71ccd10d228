"""`lab crawl`: whether a crawl finds every page of a site, fetches none twice and ends, by the server's log."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from driftline.lab.bench import open_local
from driftline.lab.servers.crawl_site import LabSite, served

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.crawl.report import CrawlReport


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


def measure(pages: int, progress: Callable[[int, int], None] | None = None) -> Crawled:
    """Serve a site of this many pages, crawl it as the command does, and return what was found."""
    site = LabSite(pages)
    with (
        tempfile.TemporaryDirectory(prefix="driftline-crawl-") as folder,
        served(site) as running,
        open_local(str(Path(folder) / "site.db"), robots="obey", host_connections=64) as watch_list,
    ):
        report = watch_list.crawl(running.url, progress=progress)
    return judge(site, running.log, report)


def judge(site: LabSite, log: Sequence[str], report: CrawlReport) -> Crawled:
    """Return the results of a crawl by the server's log."""
    meant = Counter(identity for target in log if (identity := site.identity(target)) is not None)
    return Crawled(
        pages=len(site.truth), found=len(meant), missed=sorted(site.truth - meant.keys()),
        twice=sorted(page for page, many in meant.items() if many > 1),
        repeated=sum(many - 1 for many in Counter(log).values()),
        forbidden=sum(target.startswith("/forbidden/") for target in log), requests=len(log),
        others=len(log) - meant.total(), seconds=report.seconds, pages_per_s=report.pages_per_s, report=report,
    )  # fmt: skip
