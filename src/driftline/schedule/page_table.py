"""All pages as arrays, and which of them to check next.

A pick looks at every page. With numpy that takes some milliseconds for 100,000 of them, needs no price and no queue of
due times, and follows at once whatever changes: the budget, the weights, the rates. Times are seconds since 1970.

Three lanes share the budget. Pages with an interval of their own come first, the earliest deadline before the others;
then pages that were never checked, for nothing is known of them; what is left goes to the pages whose check is worth
the most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from driftline.schedule import change_model
from driftline.schedule.change_model import value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from driftline.model import Policy

    Places = NDArray[np.int64]
    Floats = NDArray[np.float64]

DAY = 86_400.0
PROBE = 7 * DAY  # seconds between two tries of a page that the filter drops, or that is gone
_MORE = 4  # times as many candidates as are wanted are looked at first, for caps may refuse some
_FEWEST = 256
_BLOCK = 32_768  # pages whose values are worked out at a time, so that the numbers stay in the processor's cache
_SHRINK = 3.0  # pages: what is known of fewer says little about a host
_NEVER = -np.inf
_LONG = 3_650.0  # days: a page that was never checked has waited for as long as this
_FIRST_WAIT, _LONGEST_WAIT = 15 * 60.0, DAY  # seconds
_PATIENT, _INTERVALS = 3_600.0, 8  # a page with an interval waits for so many seconds at most, or so many intervals
_LONGEST_LEAD = 300.0  # seconds
MOST_FAILURES = 1_000


class Index:
    """What the scheduler knows of each page: one array for each fact, one place in all of them for each page.

    `checked` is when the last good check was, minus infinity if there was none; before `not_before` a page is left
    alone; for `lifetime` seconds after a check its server said that it will not change; `every` is the interval that
    its user asked for, infinite if none; `rank` is its place in the paper's order, infinite if the filter drops it;
    `failures` counts the checks that failed since the last good one; `learned` says whether `a` and `b` come from
    checks of the page itself, and `gone` whether it is not expected to come back.
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
        self._likes = _Likes()

    def __len__(self) -> int:
        return len(self.page)

    def cut(self, size: int) -> None:
        """Keep the first so many pages."""
        for name, facts in vars(self).items():
            if isinstance(facts, np.ndarray):
                setattr(self, name, facts[:size])

    def grow(self, more: int) -> None:
        """Make room for so many pages more."""
        for name, facts in vars(Index(more)).items():
            if isinstance(facts, np.ndarray):
                setattr(self, name, np.concatenate([getattr(self, name), facts]))

    def remember(self, places: Places, a: Floats, b: Floats, checked: Floats, learned: NDArray[np.bool_]) -> None:
        """Take over what is stored of these pages, up to the last good check.

        Only what was `learned` from checks of a page itself says anything about its host.
        """
        told = places[learned]
        before = np.log(self.a[told] / self.b[told])
        self._likes.learn(self.host[told], before, np.log(a[learned] / b[learned]), ~self.learned[told])
        self.a[places], self.b[places], self.checked[places] = a, b, checked
        self.learned[told] = True

    def expect(self) -> None:
        """Expect of the pages that were never checked what the others of their host do."""
        new = np.flatnonzero(np.isneginf(self.checked))
        self.a[new], self.b[new] = change_model.prior(self._likes.rates(self.host[new]))

    def learn(self, places: Places, now: Floats | float, changed: NDArray[np.bool_]) -> None:
        """Good checks of these pages, each of them here once, found a change or not."""
        now = np.broadcast_to(np.asarray(now, np.float64), places.shape)
        before = self.checked[places]
        again = np.isfinite(before)
        first, known = places[~again], places[again]
        self.a[first], self.b[first] = change_model.prior(self._likes.rates(self.host[first]))
        if len(known):
            a, b, host = self.a[known].astype(np.float64), self.b[known].astype(np.float64), self.host[known]
            days = (now[again] - before[again]) / DAY
            fresh_a, fresh_b = change_model.learned(a, b, days, changed[again], self._likes.rates(host))
            self.a[known], self.b[known] = fresh_a, fresh_b
            self._likes.learn(host, np.log(a / b), np.log(fresh_a / fresh_b), ~self.learned[known])
            self.learned[known] = True
        self.checked[places] = now
        self.not_before[places] = _NEVER
        self.failures[places] = 0

    def fail(
        self, places: Places, failures: NDArray[Any], last: Floats | float, *, every: float = np.inf, early: float = 0.0
    ) -> None:  # fmt: skip
        """So many checks of these pages have failed in a row, the last of them then.

        That says nothing about change: they are tried again later and later. `every` is the interval of those which
        have none of their own, and `early` as in `pick`.
        """
        self.failures[places] = np.minimum(failures, MOST_FAILURES)
        own = self.every[places]
        wait = _back_off(self.failures[places], np.where(np.isinf(own), every, own))
        self.not_before[places] = last + wait - lead(early, wait)

    def values(self, now: float, places: Places | None = None) -> NDArray[np.float32]:
        """What a check of each page is worth now, whether or not it may be checked."""
        count = len(self) if places is None else len(places)
        found = np.empty(count, np.float32)
        for start in range(0, count, _BLOCK):
            block: Any = slice(start, start + _BLOCK) if places is None else places[start : start + _BLOCK]
            days = np.clip((now - self.checked[block] - self.lifetime[block]) / DAY, 0.0, _LONG).astype(np.float32)
            found[start : start + _BLOCK] = value(self.weight[block], self.a[block], self.b[block], days)
        return found

    def pick(
        self, now: float, count: int, *, policy: Policy = "value", default_every: float = np.inf,
        early: float = 0.0, cycle: float = DAY, room: NDArray[np.int64] | None = None, shared: bool = True,
        probes: int = 0, without: Places | None = None,
    ) -> Places:  # fmt: skip
        """At most so many pages to check now, the most urgent first, `without` those that are being checked.

        Of the pages of a host at most `room` are picked, by the number of the host. Where the policy is 'fixed', pages
        without an interval of their own have the default one; 'intelligent' begins anew with the first of its order
        after each `cycle`, and keeps so many `probes` of the count for pages that its filter drops, which otherwise get
        what the order leaves. A deadline counts as reached by this share of the interval `early`, for who comes at
        regular times and finds the check of the last time some seconds short of it. Unless the count is `shared`,
        deadlines and new pages come on top of it.
        """
        taken = _Taken(self.host, count if shared else len(self), room)
        shut = self.not_before > now
        if without is not None:
            shut[without] = True
        new = np.flatnonzero(np.isneginf(self.checked))
        timed = np.arange(len(self)) if policy == "fixed" else np.flatnonzero(np.isfinite(self.every))
        every = self.every[timed]
        every = np.where(np.isfinite(every), every, default_every)
        due = self.checked[timed] + every - lead(early, every)
        ready = (due <= now) & np.isfinite(due) & ~shut[timed]
        taken.take(timed[ready][np.argsort(due[ready], kind="stable")])
        fresh = new[~shut[new]]
        taken.take(fresh[np.argsort(-self.weight[fresh], kind="stable")])
        if not shared:
            taken.left = count
        if taken.left and policy != "fixed":
            score = self._scores(now, policy, cycle)
            for others in (shut, new, timed):
                score[others] = _NEVER
            if policy == "intelligent":
                dropped = np.where(np.isinf(self.rank), score, _NEVER)
                score[np.isinf(self.rank)] = _NEVER
                kept_back = min(probes, taken.left, int((dropped > _NEVER).sum()))
                taken.left -= kept_back
                taken.take_best(score)
                taken.left += kept_back
                score = dropped
            taken.take_best(score)
        return taken.places()

    def _scores(self, now: float, policy: Policy, cycle: float) -> NDArray[np.floating[Any]]:
        if policy == "value":
            return self.values(now)
        if policy == "uniform":
            return now - self.checked
        # the paper's order, each page once in a cycle; what its filter drops is probed now and then, the oldest first
        age = now - self.checked
        return np.where(age >= self.turns(cycle), np.where(np.isinf(self.rank), age, -self.rank), _NEVER)

    def turns(self, cycle: float) -> Floats:
        """The seconds from one check of each page to the next, by the paper's order."""
        return np.where(np.isinf(self.rank), PROBE, cycle)


def lead(early: float, seconds: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """By how much waiting so long may be cut short: that share of it, some minutes at most."""
    found: NDArray[np.floating[Any]] = np.minimum(early * np.minimum(seconds, DAY), _LONGEST_LEAD)
    return found


def _back_off(failures: NDArray[np.int16], every: NDArray[np.floating[Any]]) -> Floats:
    """The seconds for which a page is left alone after so many failures in a row, twice as long after each.

    Who asked for an interval, infinite if nobody did, wants to know of a recovery soon: such a page is tried again
    within its interval at first, and never waits for as long as others do. As long as it has failed, it may wait.
    """
    longest = np.clip(_INTERVALS * every.astype(np.float64), _PATIENT, _LONGEST_WAIT)
    doubled: Floats = np.minimum(_FIRST_WAIT, every) * 2.0 ** (failures.astype(np.float64) - 1)
    return np.minimum(doubled, longest)


class _Likes:
    """How often pages change that are like others: those of the same host, or all pages where little is known of it.

    The mean is one of logarithms: a few pages that change all the time say nothing about the others.
    """

    def __init__(self) -> None:
        self._sum = np.zeros(1)
        self._count = np.zeros(1)

    def rates(self, hosts: NDArray[np.int32]) -> Floats:
        """What to expect of pages on these hosts."""
        self._grow(hosts)
        total = self._count.sum()
        usual = (self._sum.sum() + _SHRINK * np.log(change_model.USUAL)) / (total + _SHRINK)
        found: Floats = np.exp((self._sum[hosts] + _SHRINK * usual) / (self._count[hosts] + _SHRINK))
        return found

    def learn(self, hosts: NDArray[np.int32], before: Floats, after: Floats, first: NDArray[np.bool_]) -> None:
        """The logarithms of rates of pages on these hosts were those and are these; some count for the first time."""
        self._grow(hosts)
        np.add.at(self._sum, hosts, after - np.where(first, 0.0, before))
        np.add.at(self._count, hosts, first)

    def _grow(self, hosts: NDArray[np.int32]) -> None:
        size = int(hosts.max(initial=0)) + 1
        if size > len(self._sum):
            self._sum, self._count = (np.pad(known, (0, size - len(known))) for known in (self._sum, self._count))


class _Taken:
    """The pages of a pick, lane after lane, within what is left of the count and of each host's room."""

    def __init__(self, host: NDArray[np.int32], count: int, room: NDArray[np.int64] | None) -> None:
        self._host = host
        self._room = None if room is None else room.copy()
        self._lanes: list[Places] = []
        self.left = count

    def take(self, ordered: Places) -> None:
        """Take from these pages, the first before the others."""
        if self._room is not None and len(ordered):
            hosts = self._host[ordered]
            ordered = ordered[nth(hosts) < self._room[hosts]]
        ordered = ordered[: self.left]
        if self._room is not None and len(ordered):
            np.subtract.at(self._room, self._host[ordered], 1)
        self._lanes.append(ordered)
        self.left -= len(ordered)

    def take_best(self, score: NDArray[np.floating[Any]]) -> None:
        """Take the pages of the highest score, of those that have one above minus infinity."""
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
        return np.concatenate(self._lanes)


def _highest(score: NDArray[np.floating[Any]], count: int) -> Places:
    """The places of the highest scores, the highest first, without those that are minus infinity."""
    found = np.arange(len(score)) if count >= len(score) else np.argpartition(score, -count)[-count:]
    found = found[score[found] > _NEVER]
    return found[np.argsort(-score[found], kind="stable")]


def nth(hosts: NDArray[np.int32]) -> NDArray[np.int64]:
    """How many of the same host come before each."""
    order = np.argsort(hosts, kind="stable")
    ordered = hosts[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    nth = np.arange(len(hosts)) - np.repeat(first, np.diff(np.r_[first, len(hosts)]))
    found = np.empty_like(nth)
    found[order] = nth
    return found
