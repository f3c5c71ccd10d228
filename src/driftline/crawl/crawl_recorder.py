"""Records what a crawl found, and puts the addresses that it leads to into the frontier: the cycle of Figure 1.

A document has links; the page filter passes some of them; URL-seen passes those that are new; they wait in the store
and in the frontier. All of that is one transaction per batch, so that a crawl that is killed is continued where it was.
Pages that are to be watched are put on the watch list before: if the crawl is killed in between, it fetches them again,
and finds them there.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from driftline.crawl.frontier import UrlSeen
from driftline.crawl.survey_steps import Surveyed
from driftline.model.outcome import Link
from driftline.model.page import AddressKind, AddressState, PageNote, SkipReason
from driftline.store.crawls import KNOWN, FrontierEntry, Result
from driftline.store.locks import patiently

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.crawl.classify import Judge
    from driftline.crawl.crawl import Entry
    from driftline.crawl.frontier import Frontier
    from driftline.crawl.survey_steps import CrawlOutcome
    from driftline.store.crawls import Address, Begun, Met, Sites

_LOG = logging.getLogger(__name__)


class Recording:
    """The sink of a crawl: see `pipeline.recorder`. `record` is called by one thread, all else by any.

    `watch` puts pages on the watch list, and returns how many were not on it. At most `waiting` addresses may wait that
    no earlier round knew; others are left out, and counted. `recorded` gets every batch of outcomes once it is
    committed, with the number of addresses that still wait. `requests` and `bytes` count what was fetched.
    """

    def __init__(
        self, sites: Sites, begun: Begun, judge: Judge, entry: Entry, *, watch: Callable[[Sequence[Surveyed]], int],
        waiting: int, stopped: Callable[[], bool],
        recorded: Callable[[Sequence[CrawlOutcome], int], None] | None = None,
    ) -> None:  # fmt: skip
        self._sites = sites
        self._begun = begun
        self._judge = judge
        self._entry = entry
        self._watch = watch
        self._waiting = waiting
        self._stopped = stopped
        self._recorded = recorded
        self._frontier: Frontier | None = None
        self._flush: Callable[[], None] = lambda: None
        self._open: dict[int, Address] = {}
        self.watched = self.requests = self.bytes = 0
        for number, url, digest, mark in sites.marks(begun):
            judge.recall(number, url, digest, mark)
        self._seen = UrlSeen(
            lambda: patiently(lambda: sites.keys(begun), stopped),
            lambda keys: patiently(lambda: sites.seen(begun, keys), stopped),
        )

    def __repr__(self) -> str:
        return f"<Recording round={self._begun.number} open={len(self._open)} watched={self.watched}>"

    def start(self, frontier: Frontier, flush: Callable[[], None], seeds: Sequence[str]) -> None:
        """Fill the frontier with what waits in the store, and with the seeds; `flush` stores what is known of hosts."""
        self._frontier = frontier
        self._flush = flush
        places = self._sites.waiting(self._begun)
        # those that a sitemap gives another date come to the front, and must not take the room of new ones there
        self._waiting += sum(place.priority >= KNOWN for place in places)
        frontier.settle((), places)
        self._admit([], self._judge.of_seeds(seeds))

    def kind(self, number: int) -> AddressKind:
        """Return what an address that is under way is expected to be."""
        return self._open[number].kind

    def links(self, ids: Sequence[int]) -> list[Link]:
        """Return links to those of these addresses that still wait and are to be fetched."""
        found = self._sites.open_ones(ids)
        closed = [one for one in found.values() if one.kind is AddressKind.PAGE and self._judge.is_closed(one.url)]
        if closed:
            results = [Result(one.id, AddressState.SKIPPED, skip_reason=SkipReason.TRAP_ALIKE) for one in closed]
            skipped = {SkipReason.TRAP_ALIKE: [one.url for one in closed]}
            self._sites.record(self._begun, results, [], skipped)
            for one in closed:
                del found[one.id]
        self._open.update(found)
        wanted = [found[number] for number in ids if number in found]
        return [Link(one.id, one.url, 0, None, access=self._entry.of(one), follow=False) for one in wanted]

    def record(self, outcomes: Sequence[CrawlOutcome]) -> None:
        """Commit what was found at some addresses, and queue the addresses that it leads to."""
        self._flush()  # so that the robots.txt of every host that answered is in the store
        results: list[Result] = []
        met: list[Met] = []
        kept: list[Surveyed] = []
        recorded: list[CrawlOutcome] = []
        for outcome in outcomes:
            address = self._open.get(outcome.document.link.page_id)
            if address is None:
                continue
            result, more = self._judge.judged(address, outcome)
            results.append(result)
            met += more
            recorded.append(outcome)
            # a page that was known before, and is not watched, was taken off the list by the user
            known = address.good_round > 0 and not self._begun.adopts
            if isinstance(outcome, Surveyed) and result.good and result.note is not PageNote.SAME and not known:
                kept.append(outcome)
        if kept:
            self.watched += self._watch(kept)
        self._admit(results, met)
        self.requests += sum(outcome.document.status > 0 for outcome in recorded)
        self.bytes += sum(outcome.document.size for outcome in recorded)
        if self._recorded is not None:
            self._recorded(recorded, 0 if self._frontier is None else len(self._frontier))

    def settle(self, outcomes: Sequence[CrawlOutcome]) -> None:
        """Do nothing: what is recorded does not wait in the frontier any more."""

    def _admit(self, results: Sequence[Result], met: Sequence[Met]) -> None:
        frontier = self._frontier
        assert frontier is not None
        fresh = self._with_room(self._fresh(met), frontier)
        skipped = self._judge.take_skipped()
        dated = [one for one in met if one.lastmod] if self._begun.number > 1 else []
        waiting = self._sites.record(self._begun, results, fresh, skipped, dated)
        self._seen.add(one.key for one in fresh)
        done = [self._open.pop(one.id) for one in results]
        again = [
            FrontierEntry(address.priority, address.id, address.kind)
            for address, result in zip(done, results, strict=True)
            if result.url
        ]
        frontier.settle((one.id for one in results), [*waiting, *again])

    def _with_room(self, fresh: list[Met], frontier: Frontier) -> list[Met]:
        """Return those that may wait: all lists, and the most promising pages."""
        pages = [one for one in fresh if one.kind is AddressKind.PAGE]
        room = max(0, self._waiting - frontier.new)
        if len(pages) <= room:
            return fresh
        pages.sort(key=lambda one: one.priority)
        self._judge.leave_out(pages[room:])
        _LOG.info("addresses not followed because the queue is full: %d", len(pages) - room)
        return [one for one in fresh if one.kind is not AddressKind.PAGE] + pages[:room]

    def _fresh(self, met: Sequence[Met]) -> list[Met]:
        """Return the addresses that are new in this round, each as it was found first."""
        first: dict[bytes, Met] = {}
        for one in met:
            known = first.get(one.key)
            if known is None or one.priority < known.priority:
                first[one.key] = one
        return [first[key] for key in self._seen.new(first)]
