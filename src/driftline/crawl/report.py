"""What a crawl found, read from the store: the same for a crawl that was interrupted and continued."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from driftline.crawl.classify import GONE
from driftline.durations import utc
from driftline.model.event import Event, EventKind, EventSource, site_headline
from driftline.model.page import AddressKind, AddressSource, AddressState, PageNote, SkipReason
from driftline.urls import host_of, without_password

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from driftline.model.change import Change
    from driftline.store.crawls import Begun, FoundAddress, Sites


# as `crawl` prints them, also as keys with --json, and docs/crawling.md lists them
_WORDS = {
    SkipReason.OUT_OF_SCOPE: "out of scope",
    SkipReason.TOO_DEEP: "deeper than --depth",
    SkipReason.ROBOTS: "robots.txt",
    SkipReason.NO_FOLLOW: "nofollow",
    SkipReason.NO_INDEX: "noindex",
    SkipReason.NOT_A_PAGE: "not a page",
    SkipReason.UNSAFE: "blocked as unsafe",
    SkipReason.QUEUE_FULL: "more than may wait",
    SkipReason.TOO_MANY_SITEMAPS: "more sitemaps, or hosts with some, than are read",
    SkipReason.TRAP_LONG: "trap: too long",
    SkipReason.TRAP_DEEP: "trap: endless path",
    SkipReason.TRAP_REPEATING: "trap: repeating path",
    SkipReason.TRAP_CALENDAR: "trap: calendar",
    SkipReason.TRAP_PARAMETERS: "trap: combinations of parameters",
    SkipReason.TRAP_ALIKE: "trap: pages that say the same",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedURLs:
    """How many addresses were not followed for a reason, and the first few of them."""

    count: int
    examples: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicatePage:
    """A page that says the same as another one, or nearly."""

    url: str
    like: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedPage:
    """A page that stood at another address in an earlier round."""

    url: str
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlReport:
    """What a round of a crawl found.

    `found` are the addresses that were found, `pages` those of them that are pages; `fetched` were requested, of them
    `fetched_now` by this very crawl, which may continue another; `unmodified` were not, because the sitemap gives them
    the same date. `duplicates` say the same as others and `near` nearly; `soft` are error pages that come as
    good ones. `unread_lists` are sitemaps and feeds that could not be read, with the reason: what only they list was
    not found. From the second round on, `new`, `gone`, `moved` and `changed` tell what is different; in the first, all
    is new. Where a page moved to is not among the new ones. `gone_before` counts what earlier rounds reported
    as gone, and is still linked. `changes` are what a check found of changed pages that are watched. `left` addresses
    are left to the next crawl; `limit` is how many pages were to be fetched, if that is why. `quiet` names the hosts
    that asked for a pause, and until when. `watched` pages were added to the watch list.
    """

    seeds: list[str]
    number: int
    continued: bool
    found: int
    fetched: int
    fetched_now: int
    pages: int
    unmodified: int
    redirects: int
    sitemaps: int
    feeds: int
    left: int
    watched: int
    seconds: float
    requests: int
    bytes: int
    tag: str | None
    limit: int | None
    new: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    gone_before: int = 0
    moved: list[MovedPage] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    duplicates: list[DuplicatePage] = field(default_factory=list)
    near: list[DuplicatePage] = field(default_factory=list)
    soft: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    unread_lists: list[tuple[str, str]] = field(default_factory=list)
    best: list[tuple[str, float]] = field(default_factory=list)
    skipped: dict[SkipReason, SkippedURLs] = field(default_factory=dict)
    quiet: dict[str, datetime] = field(default_factory=dict)
    astray: str | None = None

    @property
    def pages_per_s(self) -> float:
        """The pages that this crawl fetched per second."""
        return self.fetched_now / max(self.seconds, 1e-9)


def skipped_in_words(report: CrawlReport) -> dict[str, SkippedURLs]:
    """Return what was skipped by the words for the reason, as it is printed."""
    return {_WORDS[reason]: urls for reason, urls in report.skipped.items()}


_BEST = 20


def read_report(sites: Sites, begun: Begun, seeds: list[str], *, asked_before: int, **others: Any) -> CrawlReport:
    """Return the report of a round, of which so many pages were requested before this crawl continued it."""
    number = begun.number
    fetched = sites.asked(begun)
    figures = sites.figures(begun)
    of_pages = {(state, note): many for (kind, state, note), many in figures.items() if kind is AddressKind.PAGE}

    def count(wanted: AddressState) -> int:
        return sum(many for (state, _), many in of_pages.items() if state is wanted)

    def lists(*kinds: AddressKind) -> int:
        return sum(many for (kind, state, _), many in figures.items() if kind in kinds and state is AddressState.LIST)

    left = sum(many for (_, state, _), many in figures.items() if state is AddressState.WAITING)
    pages = [*sites.rows(begun, [AddressState.PAGE])]
    unread = sites.rows(begun, [AddressState.FAILED], kinds=(AddressKind.SITEMAP, AddressKind.FEED))
    others_ = [*sites.rows(begun, [*_NO_PAGE, AddressState.REDIRECT])]
    names = sites.urls({row.twin for row in pages if row.twin is not None})
    new = [row for row in pages if row.first_round == number and row.note is not PageNote.SAME]
    bad = [row for row in others_ if row.state in _NO_PAGE]
    failed = [row for row in bad if not _gone_before(row, number)]
    was = [row for row in others_ if row.good_round and row.gone_round == number]
    moved = moved_pages(was, new, pages)
    elsewhere, arrived = {one.url for one in moved}, {one.to for one in moved}
    lost = {row.id for row in was}
    return CrawlReport(
        seeds=seeds, number=number, found=sum(of_pages.values()), fetched=fetched,
        fetched_now=fetched - asked_before, pages=count(AddressState.PAGE),
        unmodified=of_pages.get((AddressState.PAGE, PageNote.LASTMOD), 0), redirects=count(AddressState.REDIRECT),
        sitemaps=lists(AddressKind.SITEMAP), feeds=lists(AddressKind.FEED, AddressKind.PAGE), left=left,
        continued=begun.continued,
        new=[row.url for row in new if row.url not in arrived],
        gone=[row.url for row in was if row.state in _NO_PAGE and row.url not in elsewhere],
        gone_before=len(bad) - len(failed), moved=moved, changed=[row.url for row in pages if row.changed],
        duplicates=_twins(pages, PageNote.SAME, names), near=_twins(pages, PageNote.NEAR, names),
        soft=[row.url for row in failed if row.state is AddressState.ERROR_PAGE],
        failed=[(row.url, row.failure) for row in failed if row.state is AddressState.FAILED and row.id not in lost],
        unread_lists=[(row.url, row.failure) for row in unread],
        best=[(row.url, row.score) for row in sorted(pages, key=lambda row: -row.score)[:_BEST] if row.score],
        skipped={why: SkippedURLs(count=many, examples=some) for why, (many, some) in sites.skipped(begun).items()},
        astray=None if pages else next((row.target for row in others_ if _is_seed(row) and row.target), None),
        **others,
    )  # fmt: skip


_NO_PAGE = (AddressState.FAILED, AddressState.ERROR_PAGE)


def _is_seed(row: FoundAddress) -> bool:
    return row.source is AddressSource.SEED


def _twins(pages: Sequence[FoundAddress], note: PageNote, names: Mapping[int, str]) -> list[DuplicatePage]:
    return [
        DuplicatePage(url=row.url, like=names[row.twin]) for row in pages if row.note is note and row.twin is not None
    ]


def _gone_before(row: FoundAddress, number: int) -> bool:
    """Return whether an earlier round reported that a page is gone, or moved, and it still is."""
    return 0 < row.gone_round < number and (row.status in GONE or row.state is AddressState.ERROR_PAGE)


def moved_pages(
    was: Sequence[FoundAddress], new: Sequence[FoundAddress], pages: Sequence[FoundAddress]
) -> list[MovedPage]:
    """Return where pages went that are not where they were: where they redirect to, or a new page with the same text.

    The latter counts only if no other page of the site has or had that text: pages that are alike, as those of a long
    list, say nothing about which of them became which.
    """
    now, before = (Counter(row.digest for row in rows if row.digest) for rows in (pages, was))
    by_digest = {row.digest: row.url for row in new if row.digest and now[row.digest] == before[row.digest] == 1}
    found = [
        (row.url, row.target if row.state is AddressState.REDIRECT else by_digest.get(row.digest or b"")) for row in was
    ]
    return [MovedPage(url=url, to=to) for url, to in found if to]


def round_figures(report: CrawlReport) -> dict[str, Any]:
    """Return what the log says of a round that ended."""
    different = {"new": len(report.new), "gone": len(report.gone), "moved": len(report.moved)}
    return {"seed": without_password(report.seeds[0]), "round": report.number, "pages": report.pages, **different}


def news_of(report: CrawlReport, at: float, source: EventSource) -> list[Event]:
    """Return the events of a round: what is new, gone and moved, each if there is any.

    No check found them, so they have no ids of checks. The store adds those of their pages that are watched.
    """
    moved = [one.url for one in report.moved]
    found: list[tuple[EventKind, list[str], list[str], list[str]]] = [
        (EventKind.NEW, report.new, report.new, []),
        (EventKind.GONE, report.gone, report.gone, []),
        (EventKind.MOVED, moved, [f"{one.url} → {one.to}" for one in report.moved], [one.to for one in report.moved]),
    ]
    return [
        Event(
            event=what, at=utc(at), host=host_of(report.seeds[0]), urls=tuple(urls), kind=None, score=1.0,
            headline=site_headline(what, named), reason=site_headline(what, named), ids=(), to=tuple(to),
            source=source,
        )
        for what, urls, named, to in found
        if urls
    ]  # fmt: skip
