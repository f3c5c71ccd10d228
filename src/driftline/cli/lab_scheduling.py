"""`lab freshness` and `lab picking`: how well the scheduler spends a budget, and how fast it picks."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path  # noqa: TC003 typer reads the annotations when it runs
from typing import Annotated

import typer

from driftline.cli.lab_output import table, tell
from driftline.cli.options import JsonOption  # noqa: TC001 typer reads the annotations when it runs
from driftline.cli.output import print_json, say
from driftline.errors import BadSetting


def freshness(
    world: Annotated[
        str, typer.Option(metavar="KIND", help="poisson, bursty, seasonal, failing or squeezed.")
    ] = "poisson",
    pages: Annotated[int, typer.Option(help="How many pages there are.")] = 10_000,
    days: Annotated[float, typer.Option(help="How long it goes on.")] = 60.0,
    scored_from: Annotated[float, typer.Option(help="The day from which scores are kept.")] = 20.0,
    checks: Annotated[float | None, typer.Option(help="Checks for each page and day.  [0.2, in a replay 0.1]")] = None,
    static: Annotated[float, typer.Option(help="The share of pages that never change.")] = 0.1,
    seeds: Annotated[int, typer.Option(min=1, help="How many worlds, or draws of weights; the means are shown.")] = 3,
    replay: Annotated[Path | None, typer.Option(metavar="FILE", help="Real change times instead, as CSV.")] = None,
    policy: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this policy.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the means, as SVG or PNG.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare scheduling policies on the same budget of checks."""
    from driftline.cli.rank_command import check_plot
    from driftline.lab.bench.figures import draw_freshness
    from driftline.lab.bench.freshness_bench import POLICIES, FreshnessRow, means, race
    from driftline.lab.bench.traces import KINDS, TraceWorld, replayed, simulated

    kinds = [kind for kind in KINDS if kind == world]
    if not kinds:
        raise BadSetting(f"--world takes one of {', '.join(KINDS)}.")
    if plot is not None:
        check_plot(plot)
    rows: list[FreshnessRow] = []
    for seed in range(1, seeds + 1):
        if replay is not None:
            trace = replayed(replay, checks_per_page=0.1 if checks is None else checks, seed=seed)
        else:
            settings = TraceWorld(
                kind=kinds[0], pages=pages, days=days, scored_from=scored_from,
                checks_per_page=0.2 if checks is None else checks, static=static, seed=seed,
            )  # fmt: skip
            trace = simulated(settings)
        for row in race(trace, policy or tuple(POLICIES)):
            tell(f"seed {seed} of {seeds}: {row.policy}")
            rows.append(row)
    tell("")
    mean = means(rows)
    if plot is not None:
        draw_freshness(mean, plot)
    if as_json:
        print_json([asdict(row) for row in mean])
        return
    table(
        ("policy", "fw", "hw", "delay_w, h", "wasted", "starved"),
        [
            (row.policy, f"{row.fw:.4f}", *("–" if one is None else f"{one:{form}}" for one, form in
             ((row.hw, ".4f"), (row.delay_w, ".1f"), (row.wasted, ".2f"), (row.starved, ",.0f"))))
            for row in mean
        ],
    )  # fmt: skip
    say(f"Means over {seeds} seeds." if seeds > 1 else "One seed.")
    if plot is not None:
        say(f"Saved {plot}.")


def picking(
    pages: Annotated[list[int] | None, typer.Option(min=1, metavar="N", help="How many pages there are.")] = None,
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Measure PostgreSQL, in a temporary database on the server of this URL."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure time and memory of scheduling a large watch list."""
    from driftline.lab.bench.picking_bench import measure

    rows = [measure(count, store) for count in pages or (10_000, 100_000, 1_000_000)]
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    table(
        ("pages", "first link, s", "all links, s", "read, s", "pick of 500, ms", "learn, ms", "peak MB"),
        [
            (f"{row.pages:,}", f"{row.first_link_s:.2f}", f"{row.links_s:.2f}", f"{row.read_s:.2f}",
             f"{row.pick_ms:.1f}", f"{row.learn_ms:.1f}", f"{row.peak_mb:.0f}")
            for row in rows
        ],
    )  # fmt: skip
