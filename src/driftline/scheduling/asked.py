"""Which hosts asked not to be asked for anything, and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from driftline.scheduling.index import Floats

    Hosts = NDArray[np.int32]
    Pages = NDArray[np.int64]


class Asked:
    """Hosts by their numbers, each with its pages that are to be left alone until a time: so long all of it is.

    A server that refuses a page and says when to ask again speaks for itself, and not for the page. No more pages are
    here than were in flight when it did so.
    """

    def __init__(self) -> None:
        self._pages: dict[int, dict[int, float]] = {}

    def note(self, hosts: Hosts, pages: Pages, until: Floats) -> None:
        """These pages of these hosts are to be left alone until then."""
        for host, page, then in zip(hosts.tolist(), pages.tolist(), until.tolist(), strict=True):
            self._pages.setdefault(host, {})[page] = then

    def take_back(self, hosts: Hosts, pages: Pages) -> None:
        """These pages were asked for since."""
        if not self._pages:
            return
        for host, page in zip(hosts.tolist(), pages.tolist(), strict=True):
            left = self._pages.get(host)
            if left is not None and left.pop(page, None) is not None and not left:
                del self._pages[host]

    def take_over(self, other: Asked, hosts: Hosts, pages: Pages) -> None:
        """Of these pages, what the other one has counts."""
        self.take_back(hosts, pages)
        for host, page in zip(hosts.tolist(), pages.tolist(), strict=True):
            then = other._pages.get(host, {}).get(page)
            if then is not None:
                self._pages.setdefault(host, {})[page] = then

    def until(self, hosts: int) -> Floats:
        """Until when each of so many hosts is to be left alone, minus infinity if it is not."""
        found = np.full(hosts, -np.inf)
        for host, pages in self._pages.items():
            found[host] = max(pages.values())
        return found

    def alone(self, now: float) -> list[int]:
        """The hosts that are to be left alone now."""
        return [host for host, pages in self._pages.items() if max(pages.values()) > now]
