"""Which pages moved is found without comparing each with each."""

from __future__ import annotations

import random
from typing import Any

from driftline.crawling.report import Moved, _moved

READS = {"mark": 0}


class Row:
    """A page of a round, that counts how often its fingerprint is looked at."""

    def __init__(self, url: str, mark: int) -> None:
        self.url, self.state, self.target, self.digest = url, "failed", None, url.encode()
        self._mark = mark

    @property
    def mark(self) -> int:
        READS["mark"] += 1
        return self._mark


def test_a_site_that_was_rebuilt_is_gone_through_once() -> None:
    """With thousands of pages that are gone and as many new ones, each of which says nearly what an old one said."""
    many = 2_000
    chosen = random.Random(7)
    marks = [chosen.getrandbits(63) for _ in range(many)]
    was: list[Any] = [Row(f"/old/{number}", mark) for number, mark in enumerate(marks)]
    new: list[Any] = [Row(f"/new/{number}", mark ^ 0b101) for number, mark in enumerate(marks)]
    READS["mark"] = 0
    assert _moved(was, new) == [Moved(url=f"/old/{number}", to=f"/new/{number}") for number in range(many)]
    assert READS["mark"] < 10 * many
