"""The second paper's Figs. 3, 4 and 5: a line for each column over the ranked pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline.errors import BadSetting, DriftlineError
from driftline.lab.figures import require_matplotlib, save
from driftline.scheduling.rank import By

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from driftline.model import Visited

_NAMED = 40  # pages: the names of more could not be read
_LONGEST = 28
_FAR_APART = 20
_TITLES = {
    By.FREQUENCY: "Visited pages, ranked by frequency",
    By.WEIGHTAGE: "Visited pages, ranked by weightage",
    By.INTELLIGENT: "Visited pages, filtered by TTL and ranked by frequency, weightage and TTL",
    By.VALUE: "Watched pages, ranked by what a check of them is worth",
}


def check_plot(path: Path) -> None:
    """DriftlineError if no such figure can be drawn: to be found out before anything else is done."""
    if path.suffix.lower() not in (".svg", ".png"):
        raise BadSetting(f"A figure is written as .svg or .png: got '{path}'.")
    if not path.parent.is_dir():
        raise DriftlineError(f"The figure {path} cannot be written: there is no folder {path.parent}.")
    require_matplotlib()


def draw_rank(rows: Sequence[Visited], by: By, path: Path) -> None:
    """Write the figure; the ending of its name says what it becomes."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    places = range(1, len(rows) + 1)
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    marker = "o" if len(rows) <= _NAMED else ""
    lines: dict[str, tuple[list[float], str]] = {
        "frequency (visits)": ([one.frequency for one in rows], "#1f5fa8"),
        "weightage (seconds)": ([one.weightage for one in rows], "#d9772b"),
        "TTL (times available)": ([one.ttl for one in rows], "#3a8f5c"),
    }
    for label, (values, colour) in lines.items():
        axes.plot(places, values, label=label, color=colour, marker=marker, markersize=4, linewidth=1.5)
    tops = [max(values, default=0) for values, _ in lines.values()]
    if max(tops) > _FAR_APART * max(min(tops), 1):
        axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(bottom=0)
    if len(rows) <= _NAMED:
        # an address may hold a '$', which would be read as a formula
        axes.set_xticks(list(places), _names(rows), rotation=60, ha="right", fontsize=8, parse_math=False)
    else:
        axes.set_xlabel("rank")
    axes.set_title(_TITLES[by], loc="left")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=True, framealpha=1, edgecolor="none")
    save(figure, path)


def _names(rows: Sequence[Visited]) -> list[str]:
    """The addresses, without the site where all are of one, and cut in their middle."""
    origins = {one.url[: one.url.index("/", 8)] for one in rows}
    shared = len(origins.pop()) if len(origins) == 1 else 0
    return [_cut(one.url[shared:] if shared else one.url.partition("://")[2]) for one in rows]


def _cut(name: str) -> str:
    half = _LONGEST // 2
    return name if len(name) <= _LONGEST else f"{name[: half - 1]}…{name[-half:]}"
