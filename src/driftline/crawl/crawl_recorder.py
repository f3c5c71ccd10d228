"""What came of addresses goes into the store, and what they lead to into the frontier: Figure 1's way around.

A document leads to links; the page filter lets some through; URL-seen leaves those that are new; they wait in the store
and in the frontier. All of that is one transaction per batch, so that a crawl that is killed goes on where it was.
Pages that are to be watched come to the watch list before it: killed in between, the crawl asks for them once more, and
finds them there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline.crawl.frontier import UrlSeen
from driftline.crawl.survey_steps import Surveyed
from driftline.model import Link
from driftline.store.crawls import KNOWN, FrontierEntry, Result
from driftline.store.locks import patiently

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.crawl.classify import Judge
    from driftline.crawl.crawl import Entry
    from driftline.crawl.frontier import Frontier
    from driftline.model import Outcome
    from driftline.store.crawls import Address, Begun, Met, Sites

_ALIKE = "trap: pages that say the same"


class Recording:
    """The ledger of a crawl: see `pipeline.recorder`. `record` is called by one thread, all else by any.

    `watch` puts pages on the watch list, and says how many were not there; `flush` writes what hosts said to the store.
    So many addresses may be `waiting` that no earlier round knew; others are left out, and counted.
    """

    def __init__(
        self, sites: Sites, begun: Begun, judge: Judge, entry: Entry, *, watch: Callable[[Sequence[Surveyed]], int],
        waiting: int, stopped: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._sites = sites
        self._begun = begun
        self._judge = judge
        self._entry = entry
        self._watch = watch
        self._waiting = waiting
        self._stopped = stopped
        self._frontier: Frontier | None = None
        self._flush: Callable[[], None] = lambda: None
        self._open: dict[int, Address] = {}
        self.watched = 0
        for number, url, digest, mark in sites.marks(begun):
            judge.recall(number, url, digest, mark)
        self._seen = UrlSeen(
            lambda: patiently(lambda: sites.keys(begun), stopped),
            lambda keys: patiently(lambda: sites.seen(begun, keys), stopped),
        )

    def start(self, frontier: Frontier, flush: Callable[[], None], seeds: Sequence[str]) -> None:
        """Fill the frontier: with what waits in the store, and with the seeds."""
        self._frontier = frontier
        self._flush = flush
        places = self._sites.waiting(self._begun)
        # those that a sitemap gives another date come to the front, and must not take the room of new ones there
        self._waiting += sum(place.priority >= KNOWN for place in places)
        frontier.settle((), places)
        self._admit([], self._judge.of_seeds(seeds))

    def kind(self, number: int) -> str:
        """What an address that is under way is expected to be."""
        return self._open[number].kind

    def links(self, ids: Sequence[int]) -> list[Link]:
        """Links to those of these addresses that still wait and are worth a request."""
        found = self._sites.open_ones(ids)
        closed = [one for one in found.values() if one.kind == "page" and self._judge.is_closed(one.url)]
        if closed:
            results = [Result(one.id, "skipped", _ALIKE) for one in closed]
            skipped = {_ALIKE: [one.url for one in closed]}
            self._sites.record(self._begun, results, [], skipped)
            for one in closed:
                del found[one.id]
        self._open.update(found)
        wanted = [found[number] for number in ids if number in found]
        return [Link(one.id, one.url, 0, None, access=self._entry.of(one), follow=False) for one in wanted]

    def record(self, run_id: int, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """Commit what came of some addresses, and let what they lead to wait."""
        del run_id
        self._flush()  # the robots.txt of whoever answered is in the store by now
        results: list[Result] = []
        met: list[Met] = []
        kept: list[Surveyed] = []
        recorded: list[Outcome] = []
        for outcome in outcomes:
            address = self._open.get(outcome.document.link.page_id)
            if address is None:
                continue
            result, more = self._judge.judged(address, outcome)
            results.append(result)
            met += more
            recorded.append(outcome)
            # a page that was known before, and is not watched, was taken off the list by somebody
            known = address.good_round > 0 and not self._begun.adopts
            if isinstance(outcome, Surveyed) and result.good and result.reason != "same" and not known:
                kept.append(outcome)
        if kept:
            self.watched += self._watch(kept)
        self._admit(results, met)
        return recorded

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
        """Those that may wait: all lists, and of the pages the most promising."""
        pages = [one for one in fresh if one.kind == "page"]
        room = max(0, self._waiting - frontier.new)
        if len(pages) <= room:
            return fresh
        pages.sort(key=lambda one: one.priority)
        self._judge.leave_out(pages[room:])
        return [one for one in fresh if one.kind != "page"] + pages[:room]

    def _fresh(self, met: Sequence[Met]) -> list[Met]:
        """Those that were not met in this round, each as what it was met as first."""
        first: dict[bytes, Met] = {}
        for one in met:
            known = first.get(one.key)
            if known is None or one.priority < known.priority:
                first[one.key] = one
        return [first[key] for key in self._seen.new(first)]
