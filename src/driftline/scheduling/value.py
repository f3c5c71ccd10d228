"""What a check of each page is worth now.

Olston and Pandey (2008): if D(t) is how far a page is expected to have drifted t after its last check, it should be
checked when t·D(t) less the integral of D reaches a price that is the same for all pages. If drift is 'not the same any
more', that keeps most pages fresh but gives up on those that change too fast; if it is the harmonic number of the
changes missed, nobody is given up. The value is a mixture of both. The rate is not known but believed, as a gamma
distribution (see `rates`), so D is the mean over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

HARMONIC = 0.2  # share of the harmonic part: at little cost in freshness, fast pages are not given up
_FEW = np.float32(2e-2)  # expected changes below which a difference of nearly equal numbers would be lost
_SMALL = np.float32(5e-2)
_NEAR = np.float32(1e-2)  # how near to 1 the shape may be: there the formula divides nothing by nothing


def value(weight: Floats, a: Floats, b: Floats, days: Floats, harmonic: float = HARMONIC) -> Floats:
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
    found: Floats = weight * np.where(v < _FEW, series, exact)
    return found


def _log1p(u: Floats) -> Floats:
    """The logarithm of 1 + u: numpy's own is several times slower where it has no vectors of single precision."""
    series = u * (1 - u * (np.float32(1 / 2) - u * (np.float32(1 / 3) - u * np.float32(1 / 4))))
    found: Floats = np.where(u < _SMALL, series, np.log(1 + u))
    return found


def believed(a: Floats, b: Floats, days: Floats) -> Floats:
    """How likely it is that pages have changed since they were last checked so many days ago."""
    found: Floats = -np.expm1(a * -np.log1p(days / b))
    return found
