"""What the scheduler knows about all pages, as numpy arrays. Times are seconds since 1970."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.schedule import change_model
from driftline.schedule.change_model import check_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    #: positions of pages in the arrays
    Places = NDArray[np.int64]
    Floats = NDArray[np.float64]

DAY = 86_400.0
PROBE = 7 * DAY  # seconds between two checks of a page that the paper's filter drops, or that is gone
_BLOCK = 32_768  # pages whose values are computed at a time, so that the numbers stay in the processor's cache
_SHRINK = 3.0  # pages: the mean rate of a host with fewer is not reliable
_NEVER = -np.inf
_LONG = 3_650.0  # days since the last check, assumed for a page that was never checked
_FIRST_WAIT, _LONGEST_WAIT = 15 * 60.0, DAY  # seconds of back-off
_LONGEST_WITH_INTERVAL, _INTERVALS = 3_600.0, 8  # for pages with an interval: this many seconds or intervals at most
_LONGEST_LEAD = 300.0  # seconds
MOST_FAILURES = 1_000


class PageTable:
    """One array for each fact about pages; a page has the same place in all of them.

    `checked` is the time of the last successful check, minus infinity if there was none; a page is not checked before
    `not_before`; for `lifetime` seconds after a check its server promised not to change it; `every` is the interval set
    by the user, infinite if none; `rank` is its place in the second paper's order, infinite if the filter drops it;
    `failures` counts the failed checks since the last successful one; `learned` is whether the change rate (`a` and
    `b`, see `change_model`) comes from checks of the page itself; `gone` whether it is not expected to come back.
    """

    def __init__(self, size: int = 0) -> None:
        self.page = np.arange(size, dtype=np.int64)
        self.host = np.zeros(size, np.int32)
        self.weight = np.ones(size, np.float32)
        self.a = np.full(size, change_model.SHAPE, np.float32)
        self.b = np.full(size, change_model.SHAPE / change_model.USUAL, np.float32)
        self.checked = np.full(size, _NEVER)
        self.not_before = np.full(size, _NEVER)
        self.lifetime = np.zeros(size, np.float32)
        self.every = np.full(size, np.inf, np.float32)
        self.rank = np.full(size, np.inf, np.float32)
        self.failures = np.zeros(size, np.int16)
        self.learned = np.zeros(size, np.bool_)
        self.gone = np.zeros(size, np.bool_)
        self._host_rates = _HostRates()

    def __len__(self) -> int:
        return len(self.page)

    def __repr__(self) -> str:
        never = int(np.isneginf(self.checked).sum())
        return f"<PageTable pages={len(self)} unchecked={never} failing={int((self.failures > 0).sum())}>"

    def truncate(self, size: int) -> None:
        """Keep only the first `size` pages."""
        for name, column in vars(self).items():
            if isinstance(column, np.ndarray):
                setattr(self, name, column[:size])

    def extend(self, more: int) -> None:
        """Add places for this many more pages."""
        for name, column in vars(PageTable(more)).items():
            if isinstance(column, np.ndarray):
                setattr(self, name, np.concatenate([getattr(self, name), column]))

    def set_rates(self, places: Places, a: Floats, b: Floats, checked: Floats, learned: NDArray[np.bool_]) -> None:
        """Set the change rates of these pages, and the times of their last successful checks.

        Only rates `learned` from checks of a page itself count for the mean rate of its host.
        """
        own = places[learned]
        before = np.log(self.a[own] / self.b[own])
        self._host_rates.update(self.host[own], before, np.log(a[learned] / b[learned]), ~self.learned[own])
        self.a[places], self.b[places], self.checked[places] = a, b, checked
        self.learned[own] = True

    def apply_priors(self) -> None:
        """Give pages that were never checked the mean rate of their host."""
        new = np.flatnonzero(np.isneginf(self.checked))
        self.a[new], self.b[new] = change_model.prior(self._host_rates.means(self.host[new]))

    def record_checks(self, places: Places, now: Floats | float, changed: NDArray[np.bool_]) -> None:
        """Update these pages, each given once, after successful checks that found a change or not."""
        now = np.broadcast_to(np.asarray(now, np.float64), places.shape)
        before = self.checked[places]
        again = np.isfinite(before)
        first, known = places[~again], places[again]
        self.a[first], self.b[first] = change_model.prior(self._host_rates.means(self.host[first]))
        if len(known):
            a, b, host = self.a[known].astype(np.float64), self.b[known].astype(np.float64), self.host[known]
            days = (now[again] - before[again]) / DAY
            new_a, new_b = change_model.updated(a, b, days, changed[again], self._host_rates.means(host))
            self.a[known], self.b[known] = new_a, new_b
            self._host_rates.update(host, np.log(a / b), np.log(new_a / new_b), ~self.learned[known])
            self.learned[known] = True
        self.checked[places] = now
        self.not_before[places] = _NEVER
        self.failures[places] = 0

    def record_failures(
        self, places: Places, failures: NDArray[Any], last: Floats | float, *, every: float = np.inf, early: float = 0.0
    ) -> None:  # fmt: skip
        """Set the back-off of these pages, whose last checks failed this many times in a row, the last at `last`.

        A failure does not change the estimate of how often a page changes. `every` is the interval of pages without one
        of their own, and `early` is explained at `pick`.
        """
        self.failures[places] = np.minimum(failures, MOST_FAILURES)
        own = self.every[places]
        wait = _back_off(self.failures[places], np.where(np.isinf(own), every, own))
        self.not_before[places] = last + wait - lead(early, wait)

    def values(self, now: float, places: Places | None = None) -> NDArray[np.float32]:
        """Return the value of a check of each page now, whether or not it may be checked."""
        count = len(self) if places is None else len(places)
        found = np.empty(count, np.float32)
        for start in range(0, count, _BLOCK):
            block: Any = slice(start, start + _BLOCK) if places is None else places[start : start + _BLOCK]
            days = np.clip((now - self.checked[block] - self.lifetime[block]) / DAY, 0.0, _LONG).astype(np.float32)
            found[start : start + _BLOCK] = check_value(self.weight[block], self.a[block], self.b[block], days)
        return found

    def ranked_intervals(self, cycle: float) -> Floats:
        """Return the seconds from one check of each page to the next, with the policy 'intelligent'."""
        return np.where(np.isinf(self.rank), PROBE, cycle)


def lead(early: float, seconds: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Return by how many seconds waiting times may be cut short: a share `early` of them, some minutes at most."""
    found: NDArray[np.floating[Any]] = np.minimum(early * np.minimum(seconds, DAY), _LONGEST_LEAD)
    return found


def _back_off(failures: NDArray[np.int16], every: NDArray[np.floating[Any]]) -> Floats:
    """Return the seconds to wait after this many failures in a row, doubled by each.

    `every` is the interval that the user set, infinite if none. A page with an interval should be seen to recover soon:
    it is checked again within its interval at first, and never waits as long as others.
    """
    longest = np.clip(_INTERVALS * every.astype(np.float64), _LONGEST_WITH_INTERVAL, _LONGEST_WAIT)
    doubled: Floats = np.minimum(_FIRST_WAIT, every) * 2.0 ** (failures.astype(np.float64) - 1)
    return np.minimum(doubled, longest)


class _HostRates:
    """The mean change rate of each host's pages, near that of all pages for hosts with few.

    It is a mean of logarithms, so that a few pages which change all the time do not count for the others.
    """

    def __init__(self) -> None:
        self._sum = np.zeros(1)
        self._count = np.zeros(1)

    def means(self, hosts: NDArray[np.int32]) -> Floats:
        """Return the mean rate for pages of these hosts."""
        self._extend(hosts)
        total = self._count.sum()
        usual = (self._sum.sum() + _SHRINK * np.log(change_model.USUAL)) / (total + _SHRINK)
        found: Floats = np.exp((self._sum[hosts] + _SHRINK * usual) / (self._count[hosts] + _SHRINK))
        return found

    def update(self, hosts: NDArray[np.int32], before: Floats, after: Floats, first: NDArray[np.bool_]) -> None:
        """Replace the logarithms of rates of pages on these hosts; the `first` ones are counted for the first time."""
        self._extend(hosts)
        np.add.at(self._sum, hosts, after - np.where(first, 0.0, before))
        np.add.at(self._count, hosts, first)

    def _extend(self, hosts: NDArray[np.int32]) -> None:
        size = int(hosts.max(initial=0)) + 1
        if size > len(self._sum):
            self._sum, self._count = (np.pad(known, (0, size - len(known))) for known in (self._sum, self._count))
