"""What a crawl takes in is in proportion to what it is to fetch."""

from __future__ import annotations

import pytest

from driftline.crawl.crawl_options import Limits, limits_of


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (None, Limits(1_000_000, 1_000_000, 5_000)),
        (1, Limits(1, 10_000, 10)),
        (5_000, Limits(5_000, 50_000, 510)),
        (3_000_000, Limits(3_000_000, 1_000_000, 5_000)),
    ],
)
def test_limits(most: int | None, expected: Limits) -> None:
    assert limits_of(most) == expected
