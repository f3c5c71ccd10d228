"""How often pages change: a Bayesian estimate that each check updates in constant time.

A page's change rate has a gamma distribution with shape `a` and rate parameter `b`, so its mean is a / b changes a day.
A check that finds no change multiplies it by the probability of no change, which gives a gamma distribution again. A
check that finds a change multiplies it by the probability of at least one, which does not: the result is replaced by
the gamma distribution of the same mean and variance. Times are in days, and all functions work on arrays of pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from driftline.schedule.page_table import Floats

    Floats32 = NDArray[np.float32]


SHAPE = 0.5  # of the prior of a page that was never checked: it may change hardly ever, or all the time
SLOWEST, FASTEST = 0.0005, 24 * 60.0  # changes a day
USUAL = 0.05  # changes a day of a page about which nothing is known: too low costs less than too high
_MEMORY = 180.0  # days after which an observation has a weight of 1 / e
_MOST_SURE = 200.0  # the largest shape: a page may change its habits


def prior(mean: Floats | float) -> tuple[Floats, Floats]:
    """Return the prior distribution for the pages of a group, such as a host, with this mean change rate."""
    mean = np.clip(np.asarray(mean, dtype=np.float64), SLOWEST, FASTEST)
    a = np.full_like(mean, SHAPE)
    return a, a / mean


def updated(
    a: Floats, b: Floats, days: Floats, changed: NDArray[np.bool_], expected: Floats | float
) -> tuple[Floats, Floats]:
    """Return the distributions after checks which came `days` after the last ones and found a change or not.

    Old observations fade into the prior whose mean rate is `expected`.
    """
    days = np.maximum(days, 1e-9)
    a0, b0 = prior(expected)
    kept = np.exp(-days / _MEMORY)
    a, b = kept * a + (1 - kept) * a0, kept * b + (1 - kept) * b0
    found_a, found_b = _after_a_change(a, b, days)
    a, b = np.where(changed, found_a, a), np.where(changed, found_b, b + days)
    mean = np.clip(a / b, SLOWEST, FASTEST)
    a = np.minimum(a, _MOST_SURE)
    return a, a / mean


def _after_a_change(a: Floats, b: Floats, days: Floats) -> tuple[Floats, Floats]:
    """Return the gamma distribution with the mean and variance of the rate after at least one change was seen."""
    log_q = -np.log1p(days / b)
    none = -np.expm1(a * log_q)
    mean = a / b * -np.expm1((a + 1) * log_q) / none
    square = a * (a + 1) / b**2 * -np.expm1((a + 2) * log_q) / none
    variance = np.maximum(square - mean**2, 1e-12 * mean**2)
    return mean**2 / variance, mean / variance


HARMONIC = 0.2  # share of the harmonic policy: at little cost in freshness, pages that change fast are not given up
_FEW = np.float32(2e-2)  # expected changes below which the exact formula loses its digits to cancellation
_SMALL = np.float32(5e-2)
_NEAR = np.float32(1e-2)  # how near to 1 the shape may be: at 1 the formula is 0 / 0


def check_value(weight: Floats32, a: Floats32, b: Floats32, days: Floats32, harmonic: float = HARMONIC) -> Floats32:
    """Return how much checking pages now, `days` after their last check, improves freshness; in single precision."""
    u = days / b
    above = a - 1
    above = np.where(np.abs(above) < _NEAR, _NEAR, above)
    log = _log1p(u)
    x = above * log
    none = np.exp(-x)
    # the expected days for which a page stays as it was, averaged over the distribution of its rate; of a small x, the
    # difference of `none` to 1 would be lost
    near = b * log * (1 - x * (np.float32(1 / 2) - x * np.float32(1 / 6)))
    fresh = np.where(np.abs(x) < _SMALL, near, b * (1 - none) / above)
    share = np.float32(harmonic)
    exact = (1 - share) * (fresh - days * none / (1 + u)) + share * (days - fresh)
    v = (a + 1) * u
    series = days * a * u * (np.float32(0.5) - v * np.float32((2 - harmonic) / 6))
    found: Floats32 = weight * np.where(v < _FEW, series, exact)
    return found


def _log1p(u: Floats32) -> Floats32:
    """Return log(1 + u); numpy's own is several times slower where it has no vector code for single precision."""
    series = u * (1 - u * (np.float32(1 / 2) - u * (np.float32(1 / 3) - u * np.float32(1 / 4))))
    found: Floats32 = np.where(u < _SMALL, series, np.log(1 + u))
    return found


def change_probability(a: Floats32, b: Floats32, days: Floats32) -> Floats32:
    """Return the probability that pages have changed in the `days` since their last check."""
    found: Floats32 = -np.expm1(a * -np.log1p(days / b))
    return found
