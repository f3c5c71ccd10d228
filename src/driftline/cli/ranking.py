"""`rank`: the visited pages in the second paper's orders, as a table, for programs, or drawn."""

from __future__ import annotations

import csv
import sys
from pathlib import Path  # noqa: TC003 typer reads the annotations when it runs
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.options import JsonOption, StoreOption, command_settings, opened
from driftline.cli.output import NOTHING_YET, clean, count, print_json, say
from driftline.cli.tables import Cell, Column, print_table
from driftline.cli.visiting import seconds_of
from driftline.errors import BadSetting, UsageError
from driftline.scheduling.rank import By, keeps, order_named
from driftline.scheduling.rank import rank as ranked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.model import Visited

_COLUMNS = (
    Column(name="rank", right=True),
    Column(name="sno", right=True, optional=True, style="dim"),
    Column(name="url", least=30, keep=1, middle=True),
    Column(name="frequency", right=True),
    Column(name="weightage", right=True),
    Column(name="ttl", right=True),
    Column(name="filter"),
    Column(name="watched", optional=True),
)


def rank(
    by: Annotated[
        str,
        typer.Option(
            "--by", metavar="|".join(By), help="What comes first; intelligent also filters, value is of watched pages."
        ),
    ] = By.INTELLIGENT,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Only the first so many.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw them as a line chart: .svg or .png.", show_default=False),
    ] = None,
    example: Annotated[bool, typer.Option("--example", help="Rank the 23 pages of the paper instead.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
) -> None:
    """Rank visited pages by how often, how long and with what success they were visited."""
    if as_json and as_csv:
        raise UsageError("--json and --csv exclude each other.")
    order = order_named(by)
    if plot is not None:
        from driftline.cli.plots import check_plot

        check_plot(plot)
    everything, visits, threshold = _ranked(store, order, example=example)
    rows, valued = everything[:limit], order is By.VALUE
    if as_json:
        print_json([_as_json(number, one, threshold, valued=valued) for number, one in enumerate(rows, start=1)])
    elif as_csv:
        _print_csv(rows, threshold, valued=valued)
    elif rows:
        _print_table(rows, threshold, example=example, valued=valued)
    if valued and not everything:
        say(_nothing_of_value(visits), to_stderr=True)
    elif not visits and not valued:
        say("No visits are counted yet: see 'driftline visit' and 'driftline visits import'.", to_stderr=True)
    if len(everything) < visits and order is By.INTELLIGENT:
        dropped = count(visits - len(everything), "page")
        share = f"{threshold * 100:g} %"
        say(f"The filter drops {dropped}, available at no more than {share} of the visits.", to_stderr=True)
    if plot is not None:
        from driftline.cli.plots import draw_rank

        draw_rank(rows, order, plot)
        say(f"The figure is {plot}.", to_stderr=True)


def _nothing_of_value(visits: int) -> str:
    """Why there is nothing to rank by value, and what to do about it."""
    if not visits:
        return NOTHING_YET
    unwatched = f"{count(visits, 'visited page')} {'is' if visits == 1 else 'are'} not watched"
    return (
        f"Only a check of a watched page has a value, and {unwatched}: 'driftline add URL' watches one, 'driftline "
        "visits import FILE --add' all those of a file."
    )


def _ranked(store: str | None, order: By, *, example: bool) -> tuple[Sequence[Visited], int, float]:
    """The pages in order, how many were visited, and the threshold of the filter."""
    if example:
        from driftline.scheduling.example import EXAMPLE

        if order is By.VALUE:
            raise BadSetting("The paper's pages were never checked, so a check of them has no value.")
        threshold = command_settings(store=store).rank_threshold
        return ranked(EXAMPLE, order, threshold), len(EXAMPLE), threshold
    with opened(store, make=False) as watch_list:
        ordered, visited = watch_list.rank(order), watch_list.visited()
        safe = [one for one in visited if watch_list.unsafe.why(one.url) is None]
        if len(safe) < len(visited):
            say(f"{count(len(visited) - len(safe), 'page')} left out, blocked as unsafe.", to_stderr=True)
        return ordered, len(safe), watch_list.settings.rank_threshold


def _print_table(rows: Sequence[Visited], threshold: float, *, example: bool, valued: bool) -> None:
    # nothing of the example is watched
    columns = [*(_COLUMNS[:-1] if example else _COLUMNS), *([Column(name="value", right=True)] if valued else [])]
    cells = [_row(number, one, threshold, valued=valued) for number, one in enumerate(rows, start=1)]
    print_table(columns, [row[: len(columns)] for row in cells])


def _row(number: int, one: Visited, threshold: float, *, valued: bool) -> list[str | Cell]:
    kept = Cell("kept", "green") if keeps(one, threshold) else Cell("dropped", "red")
    figures = [f"{one.frequency:,}", seconds_of(one), f"{one.ttl:,}"]
    value = [f"{one.value:.3g}"] if valued else []
    return [str(number), str(one.sno or "–"), one.url, *figures, kept, "yes" if one.watched else "no", *value]


def _as_json(number: int, one: Visited, threshold: float, *, valued: bool) -> dict[str, Any]:
    return {
        "rank": number, "sno": one.sno or None, "url": one.url, "frequency": one.frequency, "weightage": one.weightage,
        "ttl": one.ttl, "kept": keeps(one, threshold), "watched": one.watched,
        **({"value": one.value} if valued else {}),
    }  # fmt: skip


def _print_csv(rows: Sequence[Visited], threshold: float, *, valued: bool) -> None:
    names = ["rank", "sno", "url", "frequency", "weightage", "ttl", "kept", "watched", *(["value"] if valued else [])]
    writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
    writer.writeheader()
    for number, one in enumerate(rows, start=1):
        row = _as_json(number, one, threshold, valued=valued)
        told = {"url": clean(row["url"])} | {name: int(row[name]) for name in ("kept", "watched")}
        writer.writerow(row | told)
