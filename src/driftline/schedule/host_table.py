"""The hosts of the watch list as numbers: which are trusted, their budgets, and their Retry-After times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from driftline.schedule.picking import nth
from driftline.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from driftline.schedule.page_stats import Pages
    from driftline.schedule.page_table import Floats

    HostNumbers = NDArray[np.int32]


_SAVED = 60.0  # seconds of a host's budget that can be saved up


class HostTable:
    """A number for each host, which stays the same while the process runs.

    Only a hash of each name is kept, in arrays: a name for every page could take more memory than all other data about
    the pages. `distrusted` is True, by number, for hosts that changed a page earlier than their headers promised.
    """

    def __init__(self) -> None:
        self._keys = np.zeros(0, np.int64)
        self._numbers = np.zeros(0, np.int32)
        self.distrusted = np.zeros(0, np.bool_)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return f"<HostTable hosts={len(self)} distrusted={int(self.distrusted.sum())}>"

    def of(self, urls: Sequence[str]) -> NDArray[np.int32]:
        """Return the numbers of the hosts of these addresses."""
        # like `host_of`, but without a function call for each of a million addresses without a user name
        return self.named([host if "@" not in (host := url.split("/", 3)[2]) else host_of(url) for url in urls])

    def named(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Return the numbers of the hosts of these names; new hosts get the next numbers."""
        keys = np.fromiter(map(hash, names), np.int64, len(names))
        found = np.searchsorted(self._keys, keys)
        known = found < len(self)
        known[known] = self._keys[found[known]] == keys[known]
        if not known.all():
            new = np.unique(keys[~known])
            where = np.searchsorted(self._keys, new)
            numbers = np.arange(len(self), len(self) + len(new), dtype=np.int32)
            self._keys, self._numbers = np.insert(self._keys, where, new), np.insert(self._numbers, where, numbers)
            self.distrusted = np.pad(self.distrusted, (0, len(new)))
            found = np.searchsorted(self._keys, keys)
        return self._numbers[found]


class HostBudgets:
    """How many pages of each host, by its number, may be checked now; grows with time, up to a minute's worth."""

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._at = now
        self._saved = np.zeros(0)

    def __repr__(self) -> str:
        return f"<HostBudgets rate={self.rate:g}/s hosts={len(self._saved)}>"

    def refill(self, now: float, hosts: int) -> NDArray[np.int64]:
        """Return how many pages of each of `hosts` hosts may be checked now; 1 for a host not checked yet."""
        grown = np.minimum(self._saved + max(0.0, now - self._at) * self.rate, max(1.0, _SAVED * self.rate))
        self._saved = np.pad(grown, (0, max(0, hosts - len(grown))), constant_values=1.0)
        self._at = now
        return self._saved.astype(np.int64)

    def seconds_until(self, hosts: NDArray[np.int32]) -> Floats:
        """Return the seconds until a page of each of these hosts may be checked, in this order where they repeat."""
        missing: Floats = np.maximum(0.0, nth(hosts) + 1 - self._saved[hosts])
        return missing / self.rate

    def spend(self, hosts: NDArray[np.int32], times: int = 1) -> None:
        """Charge a check of a page to each of these hosts; `times` -1 gives it back."""
        np.subtract.at(self._saved, hosts, float(times))


class RetryAfterTable:
    """Hosts under Retry-After, and until when.

    A Retry-After header is about the whole host: none of its pages is checked until the last of the times it gave. An
    entry belongs to the page that received it, and ends with the next check of that page or when its time is over.
    Entries without a page are those stored by other runs.
    """

    def __init__(self) -> None:
        self._pages: dict[int, tuple[int, float]] = {}
        self._hosts: list[tuple[int, float]] = []

    def __len__(self) -> int:
        return len(self._pages) + len(self._hosts)

    def __repr__(self) -> str:
        return f"<RetryAfterTable pages={len(self._pages)} hosts={len(self._hosts)}>"

    def set_hosts(self, hosts: HostNumbers, until: Sequence[float]) -> None:
        """Replace the entries without a page."""
        self._hosts = [*zip(hosts.tolist(), until, strict=True)]

    def add(self, hosts: HostNumbers, pages: Pages, until: Floats) -> None:
        """Add an entry for each of these pages: no request to its host before `until`."""
        for host, page, then in zip(hosts.tolist(), pages.tolist(), until.tolist(), strict=True):
            self._pages[page] = (host, then)

    def discard(self, pages: Pages) -> None:
        """Remove the entries of these pages, which were checked again."""
        if not self._pages:
            return
        for page in pages.tolist():
            self._pages.pop(page, None)

    def merge(self, other: RetryAfterTable, pages: Pages) -> None:
        """Replace the entries of these pages by those of another table."""
        self.discard(pages)
        self._pages |= {page: other._pages[page] for page in pages.tolist() if page in other._pages}

    def until(self, hosts: int, now: float) -> Floats:
        """Return for each of `hosts` hosts until when it is held back, minus infinity if it is not."""
        self._pages = {page: entry for page, entry in self._pages.items() if entry[1] > now}
        self._hosts = [entry for entry in self._hosts if entry[1] > now]
        found = np.full(hosts, -np.inf)
        for host, then in (*self._pages.values(), *self._hosts):
            found[host] = max(found[host], then)
        return found
