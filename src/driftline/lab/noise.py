"""`lab noise`: the simulated web with its noise on, generation after generation, and whether anybody is told too much.

Every answer has fresh nonces, clocks and counters, and some pages really change. What a check tells is held against
what is true.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftline.lab.client import serve
from driftline.lab.world import World
from driftline.library import open as open_store

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A generation: how many pages really changed, how many were told falsely or missed, and how many were noisy."""

    generation: int
    real: int
    false: int
    missed: int
    noisy: int


def watch(pages: int, generations: int, seed: int = 1) -> Iterator[Row]:
    """Check all pages once in each generation."""
    world = World(pages=pages, hosts=max(1, pages // 20), seed=seed, size_mean=20_000, noise="visible")
    with (
        serve(world) as web,
        tempfile.TemporaryDirectory(prefix="driftline-noise-") as folder,
        open_store(f"{folder}/pages.db") as driftline,
    ):
        numbers = {url: number for number, url in enumerate(web.urls())}
        driftline.add(*numbers)
        driftline.check()
        for generation in range(1, generations + 1):
            web.generation(generation)
            report = driftline.check()
            told = {numbers[change.url] for change in report.changes}
            true = web.truth(generation)
            yield Row(
                generation=generation, real=len(true), false=len(told - true), missed=len(true - told),
                noisy=report.noisy,
            )  # fmt: skip
