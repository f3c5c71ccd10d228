"""What a document means for a crawl: what its address is, and which addresses it leads to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ada_url import join_url

from driftline.crawl.simhash import NEAR, Lookalikes, distance
from driftline.crawl.sitemaps import sitemaps_of
from driftline.crawl.survey_steps import Surveyed
from driftline.detection.messages import ERROR_PAGE
from driftline.errors import BadURL, FailureKind
from driftline.http.headers import header, last_response, redirect_targets
from driftline.model.page import AddressKind, AddressSource, AddressState, PageNote, SkipReason
from driftline.store.crawls import Met, Result
from driftline.urls import host_of
from driftline.urls.canonical import canonical
from driftline.urls.equivalence import as_user_of, key_of
from driftline.urls.tracking import Tracking

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from driftline.crawl.frontier import PageFilter
    from driftline.crawl.scope import Focus
    from driftline.crawl.sitemaps import Listed, Lists
    from driftline.crawl.survey import Survey
    from driftline.crawl.survey_steps import CrawlOutcome
    from driftline.crawl.traps import Traps
    from driftline.fetch.robots_cache import Records
    from driftline.store.crawls import Address

REDIRECTS = (301, 302, 303, 307, 308)
GONE = (404, 410)
_FIRST = -1.0  # the priority of what leads to many pages
_MOST_FEEDS = 20  # of a round: some sites have one for every page
_DEEPEST_INDEX = 3  # indexes of indexes
_MOST_RECENT = 200_000  # addresses, as they are written
_FILE_TYPES = ("image/", "video/", "audio/", "font/", "application/octet-stream", "application/zip", "text/css")
_SCRIPTS = ("application/javascript", "text/javascript")


class Judge:
    """Judges the documents of one crawl, in the order in which they came.

    `hops` redirects are followed in a row; at most `lists` sitemaps are read, of at most as many origins.
    """

    def __init__(
        self, *, pages: PageFilter, traps: Traps, focus: Focus | None, records: Records,
        tracking: tuple[str, ...], hops: int, probe: str, lists: int,
    ) -> None:  # fmt: skip
        self._pages = pages
        self._traps = traps
        self._focus = focus
        self._records = records
        self._tracking = Tracking(tracking)
        self._hops = hops
        self._probe = probe
        self._most_lists = lists
        self._alike = Lookalikes()
        self._recent: set[str] = set()
        self._origins: dict[str, bool] = {}  # by origin, whether its sitemaps were requested
        self._nowhere: dict[str, int] = {}  # the mark of what an origin answers for a page that does not exist
        self._feeds = self._sitemaps = 0

    def recall(self, number: int, url: str, digest: bytes, mark: int) -> None:
        """Take in a page that was judged before the crawl was interrupted."""
        same, near = self._alike.add(number, digest, mark)
        self._traps.learn(url, same=same is not None, near=near is not None)

    def is_closed(self, url: str) -> bool:
        """Return whether enough pages like this one had the same text."""
        return self._traps.closed(url)

    def take_skipped(self) -> dict[SkipReason, list[str]]:
        """Return what was not followed since the last call, by reason."""
        return self._pages.take_skipped()

    def leave_out(self, met: Iterable[Met]) -> None:
        """Count these addresses as skipped, because too many wait already."""
        for one in met:
            self._pages.skip(SkipReason.QUEUE_FULL, one.url)

    def of_seeds(self, seeds: Sequence[str]) -> list[Met]:
        """Return the seeds, and probes that show what their hosts answer for a page that does not exist."""
        met = [Met(key_of(url), url, AddressKind.PAGE, AddressSource.SEED, None, 0, 0, _FIRST, "") for url in seeds]
        return met + [one for url in seeds for one in self._probes(_origin(url))]

    def judged(self, address: Address, outcome: CrawlOutcome) -> tuple[Result, list[Met]]:
        """Return the result of an address, and the addresses that it leads to."""
        met = self._lists_of(address)
        status = outcome.document.status
        if status in REDIRECTS and outcome.failure is not None:
            return self._redirected(address, outcome, met), met
        survey = outcome.survey if isinstance(outcome, Surveyed) else None
        if address.kind is AddressKind.PROBE:
            if survey is not None and survey.mark:
                self._nowhere[_origin(address.url)] = survey.mark
            return _settled(address, outcome, AddressState.PROBE), met
        if survey is not None and survey.lists is not None:
            met += self._listed(address, survey.lists)
        if address.kind is not AddressKind.PAGE or (survey is not None and survey.lists is not None):
            return self._list(address, outcome, met), met
        if survey is not None and survey.extracted is not None and not self._is_error(address, survey):
            met += self._links(address, survey)
        return self._page(address, outcome, survey), met

    def _page(self, address: Address, outcome: CrawlOutcome, survey: Survey | None) -> Result:
        document = outcome.document
        failure = outcome.failure
        if failure is not None and failure.kind is FailureKind.ROBOTS and not document.status:
            return self._skipped(address, outcome, SkipReason.ROBOTS)
        if failure is not None or survey is None:
            sentence = "It could not be read." if failure is None else failure.sentence
            gone = document.status in GONE
            return _settled(address, outcome, AddressState.FAILED, sentence, gone=gone)
        kind = (header(last_response(document.headers), b"content-type") or "").lower()
        if kind.startswith((*_FILE_TYPES, *_SCRIPTS)):
            return self._skipped(address, outcome, SkipReason.NOT_A_PAGE)
        if self._is_error(address, survey):
            return _settled(address, outcome, AddressState.ERROR_PAGE, ERROR_PAGE, gone=True)
        if survey.extracted is not None and not survey.extracted.indexed:
            return self._skipped(address, outcome, SkipReason.NO_INDEX)
        same = near = None
        if survey.digest:
            same, near = self._alike.add(address.id, survey.digest, survey.mark)
            self._traps.learn(address.url, same=same is not None, near=near is not None)
        changed = bool(address.good_round and address.digest and address.digest != survey.digest)
        return Result(
            address.id, AddressState.PAGE, None, document.status,
            survey.extracted.canonical or None if survey.extracted else None, survey.title[:300], survey.digest or None,
            survey.mark, near if same is None else same, changed, survey.score, document.fetched_at, good=True,
            lasting=same is None or address.good_round > 0,
            note=PageNote.SAME if same is not None else PageNote.NEAR if near is not None else None,
        )  # fmt: skip

    def _list(self, address: Address, outcome: CrawlOutcome, met: list[Met]) -> Result:
        """Return the result of a robots.txt, sitemap or feed, or of what should be one."""
        if address.kind is AddressKind.ROBOTS and not any(one.kind is AddressKind.SITEMAP for one in met):
            met += self._guessed(_origin(address.url), address.id)
        read = isinstance(outcome, Surveyed) and outcome.survey is not None and outcome.survey.lists is not None
        sentence = None if read else outcome.failure.sentence if outcome.failure else "It is no sitemap and no feed."
        status = outcome.document.status
        there = address.source is not AddressSource.GUESS or (
            outcome.failure is not None and (status == 200 or status >= 500)
        )
        return _settled(address, outcome, _state_of_list(read=read, there=there), sentence)

    def _redirected(self, address: Address, outcome: CrawlOutcome, met: list[Met]) -> Result:
        """Return the result of a redirect: a link to its target, or another form of the same address."""
        document = outcome.document
        target = self._joined(address.url, (redirect_targets(document.headers) or [""])[-1])
        if not target:
            return _settled(address, outcome, AddressState.FAILED, "It redirects to nowhere.")
        if target == address.url or address.hops >= self._hops:
            return _settled(
                address, outcome, AddressState.FAILED, "It redirects in a circle, or too often.", target=target
            )
        if key_of(target) == key_of(address.url):
            return Result(address.id, AddressState.WAITING, url=target)
        if address.kind is AddressKind.PAGE:
            one = self._pages.passed(
                target, source=AddressSource.REDIRECT, via=address.id, depth=address.depth, priority=address.priority,
                hops=address.hops + 1,
            )  # fmt: skip
            met += [one] if one is not None else []
        elif address.kind is not AddressKind.PROBE:
            met.append(
                Met(key_of(target), target, address.kind, address.source, address.id, 0, address.hops + 1, _FIRST, "")
            )
        return _settled(address, outcome, AddressState.REDIRECT, target=target, gone=address.good_round > 0)

    def _links(self, address: Address, survey: Survey) -> list[Met]:
        extracted = survey.extracted
        assert extracted is not None
        met: list[Met | None] = []
        if extracted.held_back:
            self._pages.skipped[SkipReason.NO_FOLLOW] += [address.url] * extracted.held_back
        if extracted.canonical and not self._is_recent(extracted.canonical):
            met.append(
                self._followed(
                    extracted.canonical, AddressSource.CANONICAL, address.id, address.depth, address.priority
                )
            )
        depth = address.depth + 1
        for link in extracted.links:
            if not self._is_recent(link.url):
                priority = self._priority(link.url, link.anchor, survey.score, depth)
                met.append(self._followed(link.url, AddressSource.LINK, address.id, depth, priority))
        for url in extracted.feeds:
            if self._feeds < _MOST_FEEDS and not self._is_recent(url) and self._pages.in_scope(url):
                self._feeds += 1
                met.append(
                    Met(key_of(url), url, AddressKind.FEED, AddressSource.LINK, address.id, depth, 0, _FIRST, "")
                )
        found = [one for one in met if one is not None]
        for origin in dict.fromkeys(_origin(one.url) for one in found):
            found += self._probes(origin)
        return found

    def _listed(self, address: Address, lists: Lists) -> list[Met]:
        source = AddressSource.FEED if address.kind is AddressKind.FEED else AddressSource.SITEMAP
        met: list[Met] = []
        for entry in lists.pages:
            url = self._joined(address.url, entry.url)
            # what a sitemap says of a page counts, also if it was met before
            if url and (entry.lastmod or not self._is_recent(url)):
                priority = self._priority(url, "", 0.0, 1)
                one = self._followed(url, source, address.id, 1, priority, entry.lastmod)
                met += [one] if one is not None else []
        return met + self._sitemaps_at(lists.sitemaps, address.id, address.hops + 1, beside=address)

    def _sitemaps_at(
        self, entries: Iterable[Listed | str], via: int | None, hops: int, beside: Address | None = None,
        source: AddressSource = AddressSource.SITEMAP,
    ) -> list[Met]:  # fmt: skip
        """Return sitemaps to read: those of a robots.txt anywhere, those of an index only on its host or in scope."""
        met: list[Met] = []
        for entry in entries:
            url = self._joined("" if beside is None else beside.url, entry if isinstance(entry, str) else entry.url)
            near = (
                beside is None or beside.kind is AddressKind.ROBOTS or host_of(url or beside.url) == host_of(beside.url)
            )
            if not url or hops > _DEEPEST_INDEX or not (near or self._pages.in_scope(url)):
                continue
            if self._sitemaps >= self._most_lists:
                self._pages.skip(SkipReason.TOO_MANY_SITEMAPS, url)
            else:
                self._sitemaps += 1
                met.append(Met(key_of(url), url, AddressKind.SITEMAP, source, via, 0, hops, _FIRST, ""))
        return met

    def _lists_of(self, address: Address) -> list[Met]:
        """Return the sitemaps that the robots.txt of an origin names, when the origin is found for the first time."""
        origin = _origin(address.url)
        if (
            self._origins.get(origin)
            or address.kind not in (AddressKind.PAGE, AddressKind.PROBE)
            or not self._has_room_for(origin)
        ):
            return []
        self._origins[origin] = True
        robots = self._records.robots_of([origin]).get(origin)
        if robots is None:
            url = f"{origin}/robots.txt"
            return [Met(key_of(url), url, AddressKind.ROBOTS, AddressSource.ROBOTS, None, 0, 0, _FIRST, "")]
        named = sitemaps_of(robots.text or "")
        return self._sitemaps_at(named, None, 0) if named else self._guessed(origin, None)

    def _guessed(self, origin: str, via: int | None) -> list[Met]:
        """Return the sitemap that most sites have: nothing names it, so nothing is missing if it is not there."""
        return self._sitemaps_at([f"{origin}/sitemap.xml"], via, 0, source=AddressSource.GUESS)

    def _probes(self, origin: str) -> list[Met]:
        if origin in self._origins or not self._has_room_for(origin):
            return []
        self._origins[origin] = False
        url = f"{origin}/{self._probe}"
        return [Met(key_of(url), url, AddressKind.PROBE, AddressSource.PROBE, None, 0, 0, _FIRST, "")]

    def _has_room_for(self, origin: str) -> bool:
        """Return whether more than pages may be requested of an origin: a domain may have a host for every address."""
        if origin in self._origins or len(self._origins) < self._most_lists:
            return True
        self._pages.skip(SkipReason.TOO_MANY_SITEMAPS, origin)
        return False

    def _followed(
        self, url: str, source: AddressSource, via: int, depth: int, priority: float, lastmod: str = ""
    ) -> Met | None:
        return self._pages.passed(url, source=source, via=via, depth=depth, priority=priority, lastmod=lastmod)

    def _priority(self, url: str, anchor: str, score: float, depth: int) -> float:
        """Return the priority of a link, by depth or by the focus; what is lower comes first."""
        if self._focus is None:
            return float(depth)
        return 100.0 * (1.0 - self._focus.link(url, anchor, score)) + min(depth, 99) / 100

    def _is_recent(self, url: str) -> bool:
        """Return whether this very address was judged lately: most links of a page are on all others too."""
        if url in self._recent:
            return True
        if len(self._recent) >= _MOST_RECENT:
            self._recent.clear()
        self._recent.add(url)
        return False

    def _is_error(self, address: Address, survey: Survey) -> bool:
        """Return whether this is what the host answers for pages that do not exist; a seed is always a page."""
        if not address.depth:
            return False
        nowhere = self._nowhere.get(_origin(address.url))
        return survey.error or bool(nowhere and survey.mark and distance(nowhere, survey.mark) <= NEAR)

    def _skipped(self, address: Address, outcome: CrawlOutcome, reason: SkipReason) -> Result:
        self._pages.skipped[reason].append(address.url)
        return _settled(address, outcome, AddressState.SKIPPED, skip_reason=reason)

    def _joined(self, base: str, target: str) -> str:
        try:
            return as_user_of(base, canonical(join_url(base, target) if base else target, self._tracking))
        except (BadURL, ValueError):
            return ""


def _settled(
    address: Address, outcome: CrawlOutcome, state: AddressState, failure: str | None = None, *,
    target: str | None = None, gone: bool = False, skip_reason: SkipReason | None = None,
) -> Result:  # fmt: skip
    document = outcome.document
    return Result(
        address.id, state, failure, document.status, target, at=document.fetched_at,
        gone=gone and address.good_round > 0, skip_reason=skip_reason,
    )  # fmt: skip


def _state_of_list(*, read: bool, there: bool) -> AddressState:
    if read:
        return AddressState.LIST
    return AddressState.FAILED if there else AddressState.ABSENT


def _origin(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"
