"""Which pages to check next, and in which order.

A pick evaluates every page. With numpy that takes some milliseconds for 100,000 pages, needs no queue of due times, and
follows every change of budget, weights and rates immediately.

The budget is spent in this order: pages with an interval of their own, the earliest deadline first; then pages that
were never checked, because nothing is known about them; then the pages whose check has the highest value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.schedule.page_table import DAY, lead

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from driftline.model.page import Policy
    from driftline.schedule.page_table import PageTable, Places

_MORE = 4  # times as many candidates as needed are considered first, since host budgets may refuse some
_FEWEST = 256
_NEVER = -np.inf


def pick_pages(
    table: PageTable, now: float, count: int, *, policy: Policy = "value", default_every: float = np.inf,
    early: float = 0.0, cycle: float = DAY, room: NDArray[np.int64] | None = None, shared: bool = True,
    probes: int = 0, without: Places | None = None,
) -> Places:  # fmt: skip
    """Return the places of at most `count` pages to check now, the most urgent first, `without` these.

    `room` limits the pages of each host, by the number of the host. With the policy 'fixed', pages without an
    interval have the default one; 'intelligent' starts again with the first of its order after each `cycle`, and
    keeps `probes` of the count for pages that its filter drops, which otherwise get what the others leave. `early`
    is the share of an interval by which a page may be checked too early, for a program that is started at regular
    times and would otherwise miss a deadline by some seconds. Unless the count is `shared`, it only limits pages
    that have no deadline and are not new.
    """
    selection = _Selection(table.host, count if shared else len(table), room)
    excluded = table.not_before > now
    if without is not None:
        excluded[without] = True
    new = np.flatnonzero(np.isneginf(table.checked))
    timed = np.arange(len(table)) if policy == "fixed" else np.flatnonzero(np.isfinite(table.every))
    every = table.every[timed]
    every = np.where(np.isfinite(every), every, default_every)
    due = table.checked[timed] + every - lead(early, every)
    ready = (due <= now) & np.isfinite(due) & ~excluded[timed]
    selection.take(timed[ready][np.argsort(due[ready], kind="stable")])
    unchecked = new[~excluded[new]]
    selection.take(unchecked[np.argsort(-table.weight[unchecked], kind="stable")])
    if not shared:
        selection.left = count
    if selection.left and policy != "fixed":
        score = _scores(table, now, policy, cycle)
        for others in (excluded, new, timed):
            score[others] = _NEVER
        if policy == "intelligent":
            dropped = np.where(np.isinf(table.rank), score, _NEVER)
            score[np.isinf(table.rank)] = _NEVER
            reserved = min(probes, selection.left, int((dropped > _NEVER).sum()))
            selection.left -= reserved
            selection.take_best(score)
            selection.left += reserved
            score = dropped
        selection.take_best(score)
    return selection.places()


def _scores(table: PageTable, now: float, policy: Policy, cycle: float) -> NDArray[np.floating[Any]]:
    if policy == "value":
        return table.values(now)
    if policy == "uniform":
        return now - table.checked
    # the paper's order, each page once in a cycle; what its filter drops is probed now and then, the oldest first
    age = now - table.checked
    return np.where(age >= table.ranked_intervals(cycle), np.where(np.isinf(table.rank), age, -table.rank), _NEVER)


class _Selection:
    """The pages picked so far, within the count that is left and the room of each host."""

    def __init__(self, host: NDArray[np.int32], count: int, room: NDArray[np.int64] | None) -> None:
        self._host = host
        self._room = None if room is None else room.copy()
        self._taken: list[Places] = []
        self.left = count

    def take(self, ordered: Places) -> None:
        """Add as many of these pages as there is room for, in this order."""
        if self._room is not None and len(ordered):
            hosts = self._host[ordered]
            ordered = ordered[nth(hosts) < self._room[hosts]]
        ordered = ordered[: self.left]
        if self._room is not None and len(ordered):
            np.subtract.at(self._room, self._host[ordered], 1)
        self._taken.append(ordered)
        self.left -= len(ordered)

    def take_best(self, score: NDArray[np.floating[Any]]) -> None:
        """Add the pages of the highest scores, without those of minus infinity."""
        if self._room is not None and not self._room.all():
            score[self._room[self._host] <= 0] = _NEVER
        look = max(_FEWEST, _MORE * self.left)
        while self.left:
            best = _highest(score, look)
            self.take(best)
            if look >= len(score):
                return
            score[best] = _NEVER
            look *= _MORE

    def places(self) -> Places:
        return np.concatenate(self._taken)


def _highest(score: NDArray[np.floating[Any]], count: int) -> Places:
    """Return the places of the highest scores, the highest first, without those of minus infinity."""
    found = np.arange(len(score)) if count >= len(score) else np.argpartition(score, -count)[-count:]
    found = found[score[found] > _NEVER]
    return found[np.argsort(-score[found], kind="stable")]


def nth(hosts: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return for each element how many equal ones come before it."""
    order = np.argsort(hosts, kind="stable")
    ordered = hosts[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    nth = np.arange(len(hosts)) - np.repeat(first, np.diff(np.r_[first, len(hosts)]))
    found = np.empty_like(nth)
    found[order] = nth
    return found
