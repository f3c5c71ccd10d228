"""Where links come from, and where pages go back to that cannot be fetched now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from driftline.fetch.origins import WaitingLink
from driftline.model.outcome import Link

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from driftline.fetch.host_queue import HostQueue
    from driftline.fetch.origins import LinkHost, LinkItem


class Source(Protocol):
    """Where links come from: a queue that is filled from the start, or a feed without an end. Used by any thread."""

    def take(self, most: int) -> list[Link]:
        """Return up to `most` links, each only once; fewer, or none, when there are no more for now."""

    def put_off(self, page_ids: Sequence[int], seconds: float) -> None:
        """Postpone these pages by so many seconds, or drop those that are not watched any more."""

    @property
    def exhausted(self) -> bool:
        """Return whether there will never be another link."""

    def close(self) -> None:
        """Hand out nothing more."""

    def listen(self, wake: Callable[[], None], give_back: Callable[[], list[int]]) -> None:
        """Call `wake` whenever there may be more to take, and `give_back` to take back pages that still wait."""


class PageReturns:
    """Gives pages back to their source, and reads the links again of which only the page id was kept.

    `paused_hosts` has the hosts of postponed pages, with the time until which each is not contacted. Used by any
    thread; calls the source and the store without a lock.
    """

    def __init__(
        self, source: Source, read_links: Callable[[Sequence[int]], list[Link]], hosts: HostQueue[LinkItem],
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self._source = source
        self._read_links = read_links
        self._hosts = hosts
        self._clock = clock
        self.paused_hosts: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"<PageReturns paused_hosts={len(self.paused_hosts)}>"

    def postpone(self, pages: Iterable[tuple[LinkHost, LinkItem]]) -> None:
        """Give these pages back to the source until the Retry-After of their hosts is over."""
        for host, page in pages:
            seconds = self._hosts.paused_for(host) or 0.0
            self.paused_hosts[host.name] = self._clock() + seconds
            self._source.put_off([page.page_id], seconds)

    def links_of(self, items: Sequence[LinkItem]) -> list[Link]:
        """Return these as links; a page that is not watched any more is given back to the source."""
        kept = [item.page_id for item in items if isinstance(item, WaitingLink)]
        if not kept:
            return [item for item in items if isinstance(item, Link)]
        read = {link.page_id: link for link in self._read_links(kept)}
        self._source.put_off([page_id for page_id in kept if page_id not in read], 0.0)
        found = [item if isinstance(item, Link) else read.get(item.page_id) for item in items]
        return [link for link in found if link is not None]
