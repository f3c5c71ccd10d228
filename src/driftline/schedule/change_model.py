"""How often pages change, learned from each check in the same short time whatever came before.

What is known of a page's rate is a gamma distribution with shape `a` and scale `b`, its mean a / b in changes a day. A
check that finds nothing multiplies it by the chance of nothing, which leaves a gamma distribution. A check that finds a
change multiplies it by the chance of at least one, which does not: the gamma distribution of the same mean and variance
takes its place. All times are in days, and everything works on whole arrays of pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

    from numpy.typing import NDArray

    Floats32 = NDArray[np.float32]


SHAPE = 0.5  # of what is believed of a page that was never checked: it may change hardly ever, or all the time
SLOWEST, FASTEST = 0.0005, 24 * 60.0  # changes a day
USUAL = 0.05  # changes a day, of a page that nothing at all is known of: to err low costs less than to err high
_MEMORY = 180.0  # days after which what was seen counts for little more than a third
_MOST_SURE = 200.0


def prior(mean: Floats | float) -> tuple[Floats, Floats]:
    """What is believed of pages of which others like them change this often."""
    mean = np.clip(np.asarray(mean, dtype=np.float64), SLOWEST, FASTEST)
    a = np.full_like(mean, SHAPE)
    return a, a / mean


def learned(
    a: Floats, b: Floats, days: Floats, changed: NDArray[np.bool_], expected: Floats | float
) -> tuple[Floats, Floats]:
    """What is known after checks that came so many days after the last ones, and found a change or not.

    What was learned long ago fades into what is `expected` of such a page, a mean rate.
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
    """The gamma distribution with the mean and variance that the rate has after at least one change was seen."""
    log_q = -np.log1p(days / b)
    none = -np.expm1(a * log_q)
    mean = a / b * -np.expm1((a + 1) * log_q) / none
    square = a * (a + 1) / b**2 * -np.expm1((a + 2) * log_q) / none
    variance = np.maximum(square - mean**2, 1e-12 * mean**2)
    return mean**2 / variance, mean / variance


HARMONIC = 0.2  # share of the harmonic part: at little cost in freshness, fast pages are not given up
_FEW = np.float32(2e-2)  # expected changes below which a difference of nearly equal numbers would be lost
_SMALL = np.float32(5e-2)
_NEAR = np.float32(1e-2)  # how near to 1 the shape may be: there the formula divides nothing by nothing


def value(weight: Floats32, a: Floats32, b: Floats32, days: Floats32, harmonic: float = HARMONIC) -> Floats32:
    """What it is worth to check pages now that were last checked so many days ago, in single precision."""
    u = days / b
    above = a - 1
    above = np.where(np.abs(above) < _NEAR, _NEAR, above)
    none = np.exp(-above * _log1p(u))
    # the mean over the rate of the days for which a page stays as it was
    fresh = b * (1 - none) / above
    share = np.float32(harmonic)
    exact = (1 - share) * (fresh - days * none / (1 + u)) + share * (days - fresh)
    v = (a + 1) * u
    series = days * a * u * (np.float32(0.5) - v * np.float32((2 - harmonic) / 6))
    found: Floats32 = weight * np.where(v < _FEW, series, exact)
    return found


def _log1p(u: Floats32) -> Floats32:
    """The logarithm of 1 + u: numpy's own is several times slower where it has no vectors of single precision."""
    series = u * (1 - u * (np.float32(1 / 2) - u * (np.float32(1 / 3) - u * np.float32(1 / 4))))
    found: Floats32 = np.where(u < _SMALL, series, np.log(1 + u))
    return found


def believed(a: Floats32, b: Floats32, days: Floats32) -> Floats32:
    """How likely it is that pages have changed since they were last checked so many days ago."""
    found: Floats32 = -np.expm1(a * -np.log1p(days / b))
    return found
