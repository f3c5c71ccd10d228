"""What a study shows: the paper's Tables I, II and III, computed as the paper computed them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from driftline.lab.experiment import Measured

PAPER_TABLE_1 = {1: (911.05, "1 thread"), 2: (60.05, "N = 78, M = 6, K = 6"), 3: (59.19, "N = 78, M = 11")}
PAPER_TABLE_2 = {"M << K": 4, "M <= K+2": 5, "M = K": 73, "M >= K-2": 11, "K << M": 7}
PAPER_TABLE_3 = {"T2 < T3": 4, "T2 = T3": 0, "T2 > T3": 96}
PAPER_REDUCTION = 93.51


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The figures of the three tables, shares in percent. `headline` is the paper's own optimum, N = 78 and M = 11."""

    optimum: dict[int, Measured]
    headline: Measured | None
    with_slots: Measured | None
    m_and_k: dict[str, float]
    two_and_three: dict[str, float]
    matched: tuple[int, int, int]

    def reduction(self, measured: Measured) -> float:
        """By how many percent a cell cuts the effective time of configuration 1."""
        return 100 * (1 - measured.effective_ms / self.optimum[1].effective_ms)


def draw_up(measured: Sequence[Measured]) -> Findings:
    """The findings of a study that has at least its configuration 1."""
    plain = [one for one in measured if not one.cell.capped and one.cell.slots == 1]
    slotted = [one for one in measured if not one.cell.capped and one.cell.slots > 1]
    optimum = {number: _fastest(plain, number) for number in (1, 2, 3)}
    return Findings(
        optimum={number: one for number, one in optimum.items() if one is not None},
        headline=next((one for one in plain if (one.cell.configuration, one.cell.n, one.cell.m) == (3, 78, 11)), None),
        with_slots=min(slotted, key=lambda one: one.effective_ms, default=None),
        m_and_k=_shares(_relation(one) for one in per_n(measured, 2)),
        two_and_three=_shares(_order(two, three) for two, three in zip_by_n(measured)),
        matched=_matched(plain),
    )


def per_n(measured: Iterable[Measured], configuration: int, *, capped: bool = False) -> list[Measured]:
    """For each N the cell with the minimum effective time, in order of N: the points of Figs. 5 and 6."""
    best: dict[int, Measured] = {}
    for one in measured:
        cell = one.cell
        if cell.configuration != configuration or cell.capped != capped or cell.slots > 1:
            continue
        if cell.n not in best or one.effective_ms < best[cell.n].effective_ms:
            best[cell.n] = one
    return [best[n] for n in sorted(best)]


def zip_by_n(measured: Sequence[Measured]) -> list[tuple[Measured, Measured]]:
    """The minimum cells of configurations 2 and 3 for every N that both have."""
    twos = {one.cell.n: one for one in per_n(measured, 2)}
    return [(twos[three.cell.n], three) for three in per_n(measured, 3) if three.cell.n in twos]


def _fastest(measured: Iterable[Measured], configuration: int) -> Measured | None:
    some = [one for one in measured if one.cell.configuration == configuration]
    return min(some, key=lambda one: one.effective_ms, default=None)


def _relation(one: Measured) -> str:
    m, k = one.cell.m, one.cell.k
    if m == k:
        return "M = K"
    if m < k:
        return "M <= K+2" if k - m <= 2 else "M << K"
    return "M >= K-2" if m - k <= 2 else "K << M"


def _order(two: Measured, three: Measured) -> str:
    """Equal if they differ by less than their own spread."""
    if abs(two.effective_ms - three.effective_ms) <= max(two.sd, three.sd):
        return "T2 = T3"
    return "T2 < T3" if two.effective_ms < three.effective_ms else "T2 > T3"


def _matched(measured: Sequence[Measured]) -> tuple[int, int, int]:
    """Of the pairs of cells with the same N and M = K: those where configuration 3 is at or below 2, ties, and all."""
    twos = {
        (one.cell.n, one.cell.m): one for one in measured if one.cell.configuration == 2 and one.cell.m == one.cell.k
    }
    pairs = [
        (twos[one.cell.n, one.cell.m], one)
        for one in measured
        if one.cell.configuration == 3 and (one.cell.n, one.cell.m) in twos
    ]
    below = sum(three.effective_ms <= two.effective_ms for two, three in pairs)
    ties = sum(_order(two, three) == "T2 = T3" and three.effective_ms > two.effective_ms for two, three in pairs)
    return below, ties, len(pairs)


def _shares(names: Iterable[str]) -> dict[str, float]:
    listed = list(names)
    return {name: 100 * listed.count(name) / len(listed) for name in dict.fromkeys(listed)}
