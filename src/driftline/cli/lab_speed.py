"""`lab experiment`, `speed`, `tuning`, `scale`: the first paper's study, speed, tuning and large stores."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli.options import JsonOption  # noqa: TC001 typer reads the annotations when it runs
from driftline.cli.output import print_json, say
from driftline.cli.text_tables import print_plain_table, show_progress
from driftline.errors import BadSetting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.lab.bench.paper_bench import Findings, Measured, Study
    from driftline.lab.bench.scale_bench import ScaleRow as ScaleRow
    from driftline.lab.bench.speed_bench import SpeedRow as SpeedRow
    from driftline.lab.bench.tuning_bench import TuningRow as TuningRow


def speed(
    pages: Annotated[int, typer.Option(help="How many pages are fetched.")] = 6_540,
    size: Annotated[int, typer.Option(help="Mean size of a page in bytes.")] = 67_000,
    in_flight: Annotated[int, typer.Option(help="Transfers in flight.")] = 64,
    consumers: Annotated[int, typer.Option(help="Consumers, and worker processes of the floor.")] = 2,
    repeats: Annotated[int, typer.Option(help="How often each contender runs; the median counts.")] = 5,
    auto: Annotated[bool, typer.Option("--auto", help="Let Driftline find its own numbers.")] = False,
    only: Annotated[list[str] | None, typer.Option("--pass", metavar="PASS", help="Only this pass.")] = None,
    server: Annotated[
        str, typer.Option(metavar="auto|nginx|lab", help="What serves the pages; auto takes nginx if it is installed.")
    ] = "auto",
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Race on PostgreSQL too, in temporary databases on the server of this URL."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure pages per second, beside bare downloading."""
    from driftline.lab.bench import speed_bench as lab

    passes = tuple(kind for kind in lab.PASSES if not only or kind in only)
    if not passes or (only and set(only) - set(lab.PASSES)):
        raise BadSetting(f"--pass takes one of {', '.join(lab.PASSES)}.")
    if min(pages, size, in_flight, consumers, repeats) < 1:
        raise BadSetting("Every number must be at least 1.")
    if server not in ("auto", "nginx", "lab"):
        raise BadSetting("--server takes one of auto, nginx, lab.")
    course = lab.Course(
        pages=pages, size_mean=size, in_flight=in_flight, consumers=consumers, repeats=repeats, auto=auto,
        passes=passes, store=store, nginx=server == "nginx" or (server == "auto" and lab.nginx_installed() is not None),
    )  # fmt: skip
    rows = list(lab.race(course, show_progress))
    show_progress("")
    if as_json:
        print_json([row.as_json() for row in rows])
    else:
        _show_speed(rows, "nginx" if course.nginx else "the simulated web")


def tuning(
    seconds: Annotated[float, typer.Option(help="How long each run is measured, after its start.")] = 5.0,
    only: Annotated[list[str] | None, typer.Option("--world", metavar="WORLD", help="Only this world.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare automatic tuning with a grid search.

    On simulated webs limited by latency, by bandwidth and, twice, by CPU.
    """
    from driftline.lab.bench import tuning_bench as lab

    known = [setting.name for setting in lab.settings()]
    if only and set(only) - set(known):
        raise BadSetting(f"--world takes one of {', '.join(known)}.")
    rows = []
    for setting in lab.settings():
        if not only or setting.name in only:
            found = list(lab.search(setting, seconds, show_progress))
            show_progress("")
            rows += found
            if not as_json:
                _show_tuning(found)  # at once: the next world takes minutes
    if as_json:
        print_json([asdict(row) for row in rows])


def scale(
    pages: Annotated[
        list[int] | None,
        typer.Option(min=100, metavar="N", help="How many pages a store has; may be given several times."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--command", metavar="NAME", help="Only commands whose name begins so.", show_default=False),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Make the stores here, and keep them.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure time and memory of every command on large stores.

    Stores of 1,000 to 1,000,000 pages, unless --pages says otherwise.
    """
    from driftline.lab.bench import scale_bench as lab

    rows = []
    for row in lab.measure(pages or lab.SIZES, only or (), folder):
        show_progress(f"{row.pages:,} pages: {row.command}")
        rows.append(row)
    show_progress("")
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    _show_scale(rows)


def _show_scale(rows: Sequence[ScaleRow]) -> None:
    sizes = list(dict.fromkeys(row.pages for row in rows))
    found = {(row.command, row.pages): row for row in rows}
    lines = []
    for command in dict.fromkeys(row.command for row in rows):
        cells = [command]
        for size in sizes:
            row = found[command, size]
            late = "too long" if row.seconds is None else f"{row.seconds:.2f}{'' if row.status == 0 else ' !'}"
            cells += [late, f"{row.cpu_s:.2f}", f"{row.peak_mb:.0f}"]
        lines.append(cells)
    print_plain_table(("", *(name for size in sizes for name in (f"{size:,}: s", "CPU s", "MB"))), lines)
    if failed := [row for row in rows if row.status and row.seconds is not None]:
        say(f"! ended with an error: {', '.join(f'{row.command} ({row.status})' for row in failed)}.")


def _show_speed(rows: Sequence[SpeedRow], server: str) -> None:
    say(f"Pages a second, medians; the server is {server}.")
    more = ("PostgreSQL", "/SQLite") if any(row.postgresql for row in rows) else ()
    columns = "download", "floor", "check", "/download", "/floor", "µs CPU", "of floor", "of download", "peak MB"
    print_plain_table(
        ("pass", *columns, *more),
        [
            (row.kind, f"{row.download:,.0f}", f"{row.floor:,.0f}", f"{row.check:,.0f}", f"{row.to_download:.2f}",
             f"{row.to_floor:.2f}", f"{row.cpu_us:,.0f}", f"{row.floor_cpu_us:,.0f}", f"{row.download_cpu_us:,.0f}",
             f"{row.peak_mb:.0f}", *(f"{one:{form}}" for one, form in ((row.postgresql, ",.0f"), (row.to_sqlite, ".2f"))
                                     if one is not None))
            for row in rows
        ],
    )  # fmt: skip


def _show_tuning(rows: Sequence[TuningRow]) -> None:
    from driftline.lab.bench.tuning_bench import reached

    for world in dict.fromkeys(row.world for row in rows):
        some = [row for row in rows if row.world == world]
        say((world, "bold"))
        print_plain_table(
            ("", "in flight", "consumers", "pages/s"),
            [(row.kind, row.slots, row.consumers, f"{row.pages_per_s:,.0f}") for row in some],
        )
        say(f"auto reaches {reached(some):.2f} of the best cell.")
        say("")


def experiment(
    quick: Annotated[bool, typer.Option("--quick", help="A small grid that takes under three minutes.")] = False,
    n: Annotated[str, typer.Option("--n", metavar="LIST", help="Values of N, such as 1-100 or 10,20,78.")] = "1-100",
    pages: Annotated[int, typer.Option(help="How many pages there are; a cell takes as many as it needs.")] = 6_540,
    iterations: Annotated[int, typer.Option(help="How often each cell is run.")] = 5,
    scale: Annotated[float, typer.Option(help="Latency as a share of the paper's 0.911 s a page.")] = 0.25,
    seconds: Annotated[float, typer.Option(help="How long one run of a cell should last.")] = 8.0,
    out: Annotated[Path, typer.Option(help="Folder for the results so far, and for the figures.")] = Path("experiment"),
    as_json: JsonOption = False,
) -> None:
    """Repeat the first paper's study and draw its figures.

    Configurations 1, 2 and 3, Tables I to III and Figs. 5 and 6. An interrupted study continues.
    """
    from driftline.lab.bench import paper_bench as lab
    from driftline.lab.bench.figures import draw, require_matplotlib
    from driftline.lab.bench.paper_bench import draw_up

    if min(pages, iterations) < 1 or scale <= 0 or seconds <= 0:
        raise BadSetting("--pages, --iterations, --scale and --seconds must be above zero.")
    study = lab.quick_study() if quick else lab.full_study(
        parse_numbers(n), pages=pages, scale=scale, iterations=iterations, seconds=seconds
    )  # fmt: skip
    require_matplotlib()
    kept = out / ("quick.jsonl" if quick else "cells.jsonl")
    measured = list(lab.conduct(study, kept, show_progress))
    show_progress("")
    figures = draw(study, measured, out)
    if as_json:
        print_json([one.row() for one in measured])
        return
    _show_cells(measured)
    _show_findings(study, draw_up(measured))
    say(f"Saved {', '.join(str(path) for path in figures)}.")


def parse_numbers(text: str) -> list[int]:
    """Return the numbers of a list such as '1-100' or '1-10,78', sorted and without duplicates."""
    found: set[int] = set()
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            found |= set(range(int(first), int(last) + 1)) if dash else {int(first)}
    except ValueError:
        raise BadSetting(f"'{text}' is not a list of numbers: write 1-100 or 10,20,78.") from None
    if not found or min(found) < 1 or max(found) > 512:
        raise BadSetting("N must be between 1 and 512.")
    return sorted(found)


def _show_cells(measured: Sequence[Measured]) -> None:
    from driftline.lab.bench.paper_bench import describe

    print_plain_table(
        ("cell", "pages", "effective ms", "sd"),
        [(describe(one.cell), f"{one.pages:,}", f"{one.effective_ms:.3f}", f"{one.sd:.3f}") for one in measured],
    )


def _show_findings(study: Study, findings: Findings) -> None:
    from driftline.lab.bench import paper_bench as paper
    from driftline.lab.bench.paper_bench import describe

    say("")
    say(("Table I: optimum effective time", "bold"), f" (latency {study.scale:g} of the paper's)")
    rows = [
        (describe(one.cell), f"{one.effective_ms:.2f} ms", f"{findings.reduction(one):.2f} %",
         f"{paper.PAPER_TABLE_1[number][0]} ms ({paper.PAPER_TABLE_1[number][1]})")
        for number, one in findings.optimum.items()
    ]  # fmt: skip
    if findings.headline is not None:
        rows.append(_reduced(findings.headline, findings, f"{paper.PAPER_REDUCTION} % less than configuration 1"))
    if findings.with_slots is not None:
        rows.append(_reduced(findings.with_slots, findings, "not in the paper"))
    print_plain_table(("", "here", "reduction", "the paper"), rows)
    say("")
    say(("Table II: M and K at the minimum for each N", "bold"))
    print_plain_table(("", "here", "the paper"), _beside(findings.m_and_k, paper.PAPER_TABLE_2))
    say("")
    say(
        ("Table III: configurations 2 and 3 at the minimum for each N", "bold"),
        " (equal: within one standard deviation)",
    )
    print_plain_table(("", "here", "the paper"), _beside(findings.two_and_three, paper.PAPER_TABLE_3))
    below, ties, pairs = findings.matched
    say(
        f"Of {pairs} pairs of cells with the same N and M = K, configuration 3 is at or below configuration 2 "
        f"in {below}, and above it by less than a standard deviation in {ties}."
    )
    say("")


def _reduced(one: Measured, findings: Findings, paper: str) -> tuple[str, str, str, str]:
    from driftline.lab.bench.paper_bench import describe

    return describe(one.cell), f"{one.effective_ms:.2f} ms", f"{findings.reduction(one):.2f} %", paper


def _beside(here: dict[str, float], paper: dict[str, int]) -> list[tuple[str, str, str]]:
    return [(name, f"{here.get(name, 0):.0f} %" if here else "–", f"{share} %") for name, share in paper.items()]
