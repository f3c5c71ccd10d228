"""The hosts of the watch list as numbers: whether each is believed, and how often it may be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from driftline.schedule.page_table import nth
from driftline.urls.parts import host_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from driftline.schedule.page_table import Floats

    HostNumbers = NDArray[np.int32]
    Pages = NDArray[np.int64]


_SAVED = 60.0  # seconds of a host's budget that can be saved up


class HostTable:
    """A number for each host, which it keeps while the program runs.

    Only a hash of its name is kept, in arrays: as many names as there may be pages would take more memory than all that
    is known of the pages. `distrusted` says by number whose word is not believed on how long its pages last.
    """

    def __init__(self) -> None:
        self._keys = np.zeros(0, np.int64)
        self._numbers = np.zeros(0, np.int32)
        self.distrusted = np.zeros(0, np.bool_)

    def __len__(self) -> int:
        return len(self._keys)

    def of(self, urls: Sequence[str]) -> NDArray[np.int32]:
        """The numbers of the hosts of these addresses."""
        # as `host_of` does it, but without a call for each of a million addresses that have no user's name in them
        return self.named([host if "@" not in (host := url.split("/", 3)[2]) else host_of(url) for url in urls])

    def named(self, names: Sequence[str]) -> NDArray[np.int32]:
        """The numbers of the hosts of these names; those that were never met get the next ones."""
        keys = np.fromiter(map(hash, names), np.int64, len(names))
        found = np.searchsorted(self._keys, keys)
        met = found < len(self)
        met[met] = self._keys[found[met]] == keys[met]
        if not met.all():
            new = np.unique(keys[~met])
            where = np.searchsorted(self._keys, new)
            numbers = np.arange(len(self), len(self) + len(new), dtype=np.int32)
            self._keys, self._numbers = np.insert(self._keys, where, new), np.insert(self._numbers, where, numbers)
            self.distrusted = np.pad(self.distrusted, (0, len(new)))
            found = np.searchsorted(self._keys, keys)
        return self._numbers[found]


class Rooms:
    """How many pages of each host may be checked now, by its number: it grows with time, up to what a minute brings."""

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._at = now
        self._saved = np.zeros(0)

    def grow(self, now: float, hosts: int) -> NDArray[np.int64]:
        """The room of so many hosts by now; one that was never asked has room for one page."""
        grown = np.minimum(self._saved + max(0.0, now - self._at) * self.rate, max(1.0, _SAVED * self.rate))
        self._saved = np.pad(grown, (0, max(0, hosts - len(grown))), constant_values=1.0)
        self._at = now
        return self._saved.astype(np.int64)

    def held_for(self, hosts: NDArray[np.int32]) -> Floats:
        """The seconds until there is room for a page of each of these hosts, one after the other where they repeat."""
        missing: Floats = np.maximum(0.0, nth(hosts) + 1 - self._saved[hosts])
        return missing / self.rate

    def spend(self, hosts: NDArray[np.int32], times: int = 1) -> None:
        """A page of each of these hosts is checked; or, if that is -1, is not checked after all."""
        np.subtract.at(self._saved, hosts, float(times))


class RetryAfterTable:
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

    def recall(self, hosts: HostNumbers, until: Sequence[float]) -> None:
        """These hosts are remembered to want to be left alone until then; no others are."""
        self._hosts = [*zip(hosts.tolist(), until, strict=True)]

    def note(self, hosts: HostNumbers, pages: Pages, until: Floats) -> None:
        """These hosts refused these pages, and want to be left alone until then."""
        for host, page, then in zip(hosts.tolist(), pages.tolist(), until.tolist(), strict=True):
            self._pages[page] = (host, then)

    def take_back(self, pages: Pages) -> None:
        """These pages were asked for since."""
        if not self._pages:
            return
        for page in pages.tolist():
            self._pages.pop(page, None)

    def take_over(self, other: RetryAfterTable, pages: Pages) -> None:
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
