"""`lab speed`, `lab tuning`, `lab scale`: speed, automatic tuning, and the cost of large stores."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path  # noqa: TC003 typer reads the annotations when it runs
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli.options import JsonOption  # noqa: TC001 typer reads the annotations when it runs
from driftline.cli.output import print_json, say
from driftline.cli.text_tables import print_plain_table, show_progress
from driftline.errors import BadSetting

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    from driftline.lab.simweb import nginx

    passes = tuple(kind for kind in lab.PASSES if not only or kind in only)
    if not passes or (only and set(only) - set(lab.PASSES)):
        raise BadSetting(f"--pass takes one of {', '.join(lab.PASSES)}.")
    if min(pages, size, in_flight, consumers, repeats) < 1:
        raise BadSetting("Every number must be at least 1.")
    if server not in ("auto", "nginx", "lab"):
        raise BadSetting("--server takes one of auto, nginx, lab.")
    course = lab.Course(
        pages=pages, size_mean=size, in_flight=in_flight, consumers=consumers, repeats=repeats, auto=auto,
        passes=passes, store=store, nginx=server == "nginx" or (server == "auto" and nginx.installed() is not None),
    )  # fmt: skip
    rows = list(lab.race(course, show_progress))
    show_progress("")
    if as_json:
        print_json([row.as_json() for row in rows])
    else:
        _show_speed(rows, "nginx" if course.nginx else "the simulated web")


def tuning(
    seconds: Annotated[float, typer.Option(help="How long each run is measured once it has settled.")] = 5.0,
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
