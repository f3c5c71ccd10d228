"""The page filter: which of the addresses that were found are fetched, and why the others are not."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import TYPE_CHECKING

from driftline.crawl.frontier import BloomFilter
from driftline.crawl.scope import is_file
from driftline.fetch.failures import NOTHING
from driftline.model.page import AddressKind, AddressSource, SkipReason
from driftline.store.crawls import Met
from driftline.urls import without_password
from driftline.urls.equivalence import key_of, without_session

if TYPE_CHECKING:
    from driftline.crawl.scope import Scope
    from driftline.crawl.traps import Traps
    from driftline.fetch.failures import Blocked

_LOG = logging.getLogger(__name__)


class PageFilter:
    """Filters the addresses of one crawl. `skipped` has those that were filtered out since the last `take_skipped`."""

    def __init__(self, scope: Scope, traps: Traps, depth: int | None, blocked: Blocked = NOTHING) -> None:
        self._scope = scope
        self._blocked = blocked
        self._traps = traps
        self._depth = depth
        self._counted = BloomFilter(1_000_000)  # each is counted once; a filter that errs in one of a hundred will do
        self.skipped: dict[SkipReason, list[str]] = defaultdict(list)

    def __repr__(self) -> str:
        return f"<PageFilter depth={self._depth} skipped={sum(map(len, self.skipped.values()))}>"

    def passed(
        self,
        url: str,
        *,
        source: AddressSource,
        via: int | None,
        depth: int,
        priority: float,
        hops: int = 0,
        lastmod: str = "",
    ) -> Met | None:
        """Return an address in canonical form, to be fetched; None if it is skipped, and counted as such."""
        url = without_session(url)
        reason = self._reason(url, source, depth)
        if reason is None:
            return Met(key_of(url), url, AddressKind.PAGE, source, via, depth, hops, priority, lastmod)
        self.skip(reason, url)
        return None

    def skip(self, reason: SkipReason, url: str) -> None:
        """Count an address that is not fetched, once for each reason."""
        if not self._counted.add(f"{reason} {url}".encode("utf-8", "replace")):
            self.skipped[reason].append(url)
            if _LOG.isEnabledFor(logging.DEBUG):
                _LOG.debug("address skipped: %s", without_password(url), extra={"reason": reason.value})

    def in_scope(self, url: str) -> bool:
        """Return whether an address belongs to the site, be it a page or not."""
        return self._scope.holds(url)

    def take_skipped(self) -> dict[SkipReason, list[str]]:
        """Return what was skipped since the last call, by reason."""
        skipped, self.skipped = self.skipped, defaultdict(list)
        return skipped

    def _reason(self, url: str, source: AddressSource, depth: int) -> SkipReason | None:
        if not self._scope.holds(url):
            return SkipReason.OUT_OF_SCOPE
        if is_file(url):
            return SkipReason.NOT_A_PAGE
        if self._blocked.why(url) is not None:
            return SkipReason.UNSAFE
        if self._depth is not None and depth > self._depth and source is not AddressSource.REDIRECT:
            return SkipReason.TOO_DEEP
        return self._traps.why(url)
