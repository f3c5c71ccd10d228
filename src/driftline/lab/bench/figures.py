"""The figures of the laboratory: the first paper's Figs. 5 and 6, and how fresh each policy keeps pages."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from driftline.errors import DriftlineError, MissingExtra
from driftline.lab.bench.paper_bench import per_n

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from driftline.lab.bench.freshness_bench import FreshnessRow
    from driftline.lab.bench.paper_bench import Measured, Study

_BLUE, _ORANGE, _GREY = "#1f5fa8", "#d9772b", "#8a8f98"


def require_matplotlib() -> None:
    """Raise MissingExtra if figures cannot be drawn: before hours of measuring, not after."""
    if find_spec("matplotlib") is None:
        raise MissingExtra("Drawing figures", "lab")


def draw(study: Study, measured: Sequence[Measured], folder: Path) -> list[Path]:
    """Write Fig. 5 (configuration 2) and Fig. 6 (configuration 3) as SVG and PNG, and return the files."""
    import matplotlib as mpl

    mpl.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    return [
        path
        for number, configuration in ((5, 2), (6, 3))
        for path in _draw(study, measured, configuration, number, folder)
    ]


def _draw(study: Study, measured: Sequence[Measured], configuration: int, number: int, folder: Path) -> list[Path]:
    from matplotlib import pyplot as plt

    from driftline.lab.bench.paper_bench import PAPER_LATENCY, PAPER_SATURATED

    figure, axes = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
    first = per_n(measured, 1)
    for capped, colour, label in ((False, _BLUE, "unlimited bandwidth"), (True, _ORANGE, "bandwidth like the paper's")):
        points = per_n(measured, configuration, capped=capped)
        if not points:
            continue
        if not capped and first:
            axes.axhline(first[0].effective_ms, color=_GREY, linewidth=1, linestyle=":", label="configuration 1")
        xs = [point.cell.n for point in points]
        ys = [point.effective_ms for point in points]
        axes.errorbar(
            xs, ys, [point.sd for point in points], color=colour, marker="o", markersize=4, capsize=3, label=label
        )
    ns = range(1, 101)
    alone = first[0].effective_ms if first else PAPER_LATENCY * study.scale * 1000
    ideal = [alone / n for n in ns]
    axes.plot(ns, ideal, color=_GREY, linewidth=1, linestyle="--", label="ideal: configuration 1 divided by N")
    axes.axhline(
        PAPER_SATURATED * study.scale * 1000, color=_ORANGE, linewidth=1, linestyle=":",
        label=f"the paper's optimum, 59.19 ms × {study.scale:g}",
    )  # fmt: skip
    axes.set_yscale("log")
    axes.set_xlabel("N, producer threads")
    axes.set_ylabel("effective time, ms a page")
    axes.set_title(f"Fig. {number}: minimum effective time by N, configuration {configuration}", loc="left")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(frameon=True, framealpha=1, edgecolor="none")
    made = [folder / f"figure-{number}.svg", folder / f"figure-{number}.png"]
    for path in made:
        figure.savefig(path, dpi=144)
    plt.close(figure)
    return made


def draw_freshness(rows: Sequence[FreshnessRow], path: Path) -> None:
    """Draw the weighted freshness and the delay of each policy, as SVG or PNG by the name of the file."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    raced = [row for row in rows if row.delay_w is not None]
    best = [row for row in rows if row.delay_w is None]
    names = [row.policy for row in raced]
    figure, (fresh, late) = plt.subplots(1, 2, figsize=(9, 0.4 * len(raced) + 1.4), layout="constrained", sharey=True)
    colours = [_ORANGE if name == "value" else _BLUE for name in names]
    title = "weighted freshness" + "".join(f" (dashed: the optimum, {row.fw:.3f})" for row in best)
    bars = fresh.barh(names, [row.fw for row in raced], color=colours)
    fresh.bar_label(bars, [f"{row.fw:.3f}" for row in raced], padding=-38, color="white")
    fresh.set_title(title, loc="left", fontsize="medium")
    for row in best:
        fresh.axvline(row.fw, color=_GREY, linewidth=1, linestyle="--")
    bars = late.barh(names, [row.delay_w or 0.0 for row in raced], color=colours)
    late.bar_label(bars, [f"{row.delay_w:.0f} h" for row in raced], padding=3)
    late.set_title("weighted delay until a change is found", loc="left", fontsize="medium")
    late.margins(x=0.18)
    for axes in (fresh, late):
        axes.spines[["top", "right"]].set_visible(False)
    fresh.invert_yaxis()
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """Write a figure, in the format of the file's suffix, and close it."""
    from matplotlib import pyplot as plt

    try:
        figure.savefig(path, dpi=144)
    except OSError as error:
        raise DriftlineError(f"The figure {path} cannot be written: {error.strerror}.") from None
    finally:
        plt.close(figure)
