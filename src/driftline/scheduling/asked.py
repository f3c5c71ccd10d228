"""Which hosts asked not to be asked for anything, and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from driftline.scheduling.index import Floats

    Hosts = NDArray[np.int32]
    Pages = NDArray[np.int64]


class Asked:
    """Pages that a host refused, each with the number of that host and until when it wants to be left alone.

    A server that refuses a page and says when to ask again speaks for itself, and not for the page: all of the host is
    left alone until the last of these times. A page is here until it is asked for again or its time is over. What is
    known of a host without any page, for instance because that was removed since, counts too.
    """

    def __init__(self) -> None:
        self._pages: dict[int, tuple[int, float]] = {}
        self._hosts: list[tuple[int, float]] = []

    def __len__(self) -> int:
        return len(self._pages) + len(self._hosts)

    def recall(self, hosts: Hosts, until: Sequence[float]) -> None:
        """These hosts are remembered to want to be left alone until then; no others are."""
        self._hosts = [*zip(hosts.tolist(), until, strict=True)]

    def note(self, hosts: Hosts, pages: Pages, until: Floats) -> None:
        """These hosts refused these pages, and want to be left alone until then."""
        for host, page, then in zip(hosts.tolist(), pages.tolist(), until.tolist(), strict=True):
            self._pages[page] = (host, then)

    def take_back(self, pages: Pages) -> None:
        """These pages were asked for since."""
        if not self._pages:
            return
        for page in pages.tolist():
            self._pages.pop(page, None)

    def take_over(self, other: Asked, pages: Pages) -> None:
        """Of these pages, what the other one has counts."""
        self.take_back(pages)
        self._pages |= {page: other._pages[page] for page in pages.tolist() if page in other._pages}

    def until(self, hosts: int, now: float) -> Floats:
        """Until when each of so many hosts is to be left alone, minus infinity if it is not; what is over is let go."""
        self._pages = {page: asked for page, asked in self._pages.items() if asked[1] > now}
        self._hosts = [asked for asked in self._hosts if asked[1] > now]
        found = np.full(hosts, -np.inf)
        for host, then in (*self._pages.values(), *self._hosts):
            found[host] = max(found[host], then)
        return found
