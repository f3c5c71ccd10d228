"""`lab noise`: the simulated web with its noise on, generation after generation, and whether anybody is told too much.

Every answer has fresh nonces, clocks and counters, and some pages really change. What a check tells is held against
what is true. And a sentence that all pages of a host get in their footer is one event, not one of each page.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftline.lab.bench.local_watch_list import open_local
from driftline.lab.simweb.simweb_client import serve
from driftline.lab.simweb.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from driftline.api import Driftline
    from driftline.lab.simweb.simweb_client import RunningWeb


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseRow:
    """A generation: how many pages really changed, how many were told falsely or missed, and how many were noisy."""

    generation: int
    real: int
    false: int
    missed: int
    noisy: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteWide:
    """What is told when all pages of a host get the same sentence in their footer."""

    pages: int
    events: int
    pages_of_events: int


def edit_footers(pages: int, seed: int = 1) -> SiteWide:
    """Watch one host for three checks, then edit the footer of all its pages and check once more."""
    world = World(pages=pages, seed=seed, size_mean=20_000, change_rate=0.0, noise="visible")
    with _watched(world) as (web, driftline, _):
        for generation in range(3):
            web.generation(generation)
            driftline.check()
        web.alter(notice="We have moved to a new address.")
        events = driftline.check().events
    return SiteWide(pages=pages, events=len(events), pages_of_events=sum(len(event.urls) for event in events))


def watch(pages: int, generations: int, seed: int = 1) -> Iterator[NoiseRow]:
    """Check all pages once in each generation."""
    world = World(pages=pages, hosts=max(1, pages // 20), seed=seed, size_mean=20_000, noise="visible")
    with _watched(world) as (web, driftline, numbers):
        driftline.check()
        for generation in range(1, generations + 1):
            web.generation(generation)
            report = driftline.check()
            told = {numbers[change.url] for change in report.changes}
            true = web.truth(generation)
            yield NoiseRow(
                generation=generation, real=len(true), false=len(told - true), missed=len(true - told),
                noisy=report.noisy,
            )  # fmt: skip


@contextmanager
def _watched(world: World) -> Iterator[tuple[RunningWeb, Driftline, dict[str, int]]]:
    """The world as a web, a store that watches all of it, and which page is at which address."""
    with (
        serve(world) as web,
        tempfile.TemporaryDirectory(prefix="driftline-noise-") as folder,
        open_local(f"{folder}/pages.db") as driftline,
    ):
        numbers = {url: number for number, url in enumerate(web.urls())}
        driftline.add(*numbers)
        yield web, driftline, numbers
