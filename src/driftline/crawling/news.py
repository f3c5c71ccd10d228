"""What a round of a site that is kept watched found, as the events that a run tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftline.model import host_of
from driftline.pipeline.events import Event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.crawling.report import CrawlReport
    from driftline.versions.crawled import Site

_NAMED = 3  # addresses told by name


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteEvent(Event):
    """Pages of a site that are new, gone or moved, all of a round in one; `to` has where each that moved is now."""

    to: tuple[str, ...] = ()


def news_of(site: Site, report: CrawlReport, at: float) -> list[SiteEvent]:
    """The events of a round: what is new, gone and moved, each if there is any."""
    moved = [one.url for one in report.moved]
    nowhere: list[str] = []
    found = [("new", report.new, report.new, nowhere), ("gone", report.gone, report.gone, nowhere)]
    found.append(("moved", moved, [f"{one.url} → {one.to}" for one in report.moved], [one.to for one in report.moved]))
    return [
        SiteEvent(
            event=what, at=at, host=host_of(site.seeds[0]), urls=tuple(urls), kind="site", score=1.0,
            reason=_reason(what, named), ids=(f"site{site.id}-{report.number}",), to=tuple(to),
        )
        for what, urls, named, to in found
        if urls
    ]  # fmt: skip


def _reason(what: str, named: Sequence[str]) -> str:
    """A sentence that names the first of them."""
    if len(named) == 1 and what != "moved":
        return "It is new on the site." if what == "new" else "It is not on the site any more."
    more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
    return f"{what.capitalize()}: {', '.join(named[:_NAMED])}{more}."
