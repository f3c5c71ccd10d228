"""`rank`: visited pages in order, as a table, CSV or figure (the second paper's Tables 2 to 4 and Figs. 3 to 5)."""

from __future__ import annotations

import csv
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path  # noqa: TC003 typer reads the annotations when it runs
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.api import workspace_of
from driftline.cli.options import JsonOption, StoreOption, command_settings, opened
from driftline.cli.output import NOTHING_YET, clean, print_json_list, say
from driftline.cli.text_tables import Column, Styled, print_table
from driftline.cli.visit_command import seconds_of
from driftline.errors import BadSetting, DriftlineError, UsageError
from driftline.plurals import count
from driftline.visits.rank import RankOrder, keeps, order_named
from driftline.visits.rank import rank as ranked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from driftline.model.visit import Visited


_NAMED = 40  # pages: more labels than that could not be read
_LONGEST = 28
_FAR_APART = 20
_TITLES = {
    RankOrder.FREQUENCY: "Visited pages, ranked by frequency",
    RankOrder.WEIGHTAGE: "Visited pages, ranked by weightage",
    RankOrder.INTELLIGENT: "Visited pages, filtered by TTL and ranked by frequency, weightage and TTL",
    RankOrder.VALUE: "Watched pages, ranked by how useful a check is now",
}


def check_plot(path: Path) -> None:
    """Raise DriftlineError if this figure cannot be written; call it before any work is done."""
    from driftline.lab.bench.figures import require_matplotlib

    if path.suffix.lower() not in (".svg", ".png"):
        raise BadSetting(f"The figure '{path}' must end in .svg or .png.")
    if not path.parent.is_dir():
        raise DriftlineError(f"The figure {path} cannot be written: there is no folder {path.parent}.")
    require_matplotlib()


def draw_rank(rows: Sequence[Visited], by: RankOrder, path: Path) -> None:
    """Write the figure, as SVG or PNG by the ending of its name."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    from driftline.lab.bench.figures import save

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
    """Return labels for the pages: their URLs, shortened, without the host if all share it."""
    origins = {one.url[: one.url.index("/", 8)] for one in rows}
    shared = len(origins.pop()) if len(origins) == 1 else 0
    return [_cut(one.url[shared:] if shared else one.url.partition("://")[2]) for one in rows]


def _cut(name: str) -> str:
    half = _LONGEST // 2
    return name if len(name) <= _LONGEST else f"{name[: half - 1]}…{name[-half:]}"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranking:
    """The ranked pages to show, how many pages were visited, and how many of these the TTL filter keeps."""

    rows: Iterable[Visited]
    visits: int
    kept: int
    threshold: float


def rank(
    by: Annotated[
        str,
        typer.Option(
            "--by", metavar="|".join(RankOrder),
            help="The paper's filter and order (intelligent), most visits (frequency), most seconds (weightage), or "
            "the watched pages that 'driftline run' checks first (value).",
        ),
    ] = RankOrder.INTELLIGENT,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Show at most N pages.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw a line chart: a .svg or .png file.", show_default=False),
    ] = None,
    example: Annotated[bool, typer.Option("--example", help="Rank the 23 example pages of the paper.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:  # fmt: skip
    """Show visited pages, the most used first.

    Frequency is the number of visits to a page, weightage the seconds spent on it, and TTL the number of visits that
    found the page available. The default order keeps only pages with TTL > frequency/2, those available at more than
    half of their visits, and sorts them by frequency, then weightage, then TTL.

    Count visits with 'driftline visit' and 'driftline visits import'.
    """
    if as_json and as_csv:
        raise UsageError("Give either --json or --csv, not both.")
    order = order_named(by)
    if plot is not None:
        check_plot(plot)
    with _ranked(store, order, limit, example=example) as found:
        _print(found, plot, order, example=example, as_json=as_json, as_csv=as_csv)


def _print(found: _Ranking, plot: Path | None, order: RankOrder, *, example: bool, as_json: bool, as_csv: bool) -> None:
    """Print the pages and remarks about them; all pages are kept in memory only for a figure."""
    valued, threshold = order is RankOrder.VALUE, found.threshold
    all_of_them = None if plot is None else list(found.rows)
    rows = iter(found.rows if all_of_them is None else all_of_them)
    first = list(islice(rows, 1))
    rows = chain(first, rows)
    if as_json:
        print_json_list(_as_json(number, one, threshold, valued=valued) for number, one in enumerate(rows, start=1))
    elif as_csv:
        _print_csv(rows, threshold, valued=valued)
    elif first:
        _print_table(rows, threshold, example=example, valued=valued)
    if valued and not first:
        say(_nothing_of_value(found.visits), to_stderr=True)
    elif not found.visits and not valued:
        say("No visits yet: count them with 'driftline visit URL' or 'driftline visits import FILE'.", to_stderr=True)
    if found.kept < found.visits and order is RankOrder.INTELLIGENT:
        dropped = count(found.visits - found.kept, "page")
        share = f"{threshold * 100:g} %"
        say(f"Not shown: {dropped} available at {share} of the visits or less (TTL filter).", to_stderr=True)
    if plot is not None and all_of_them is not None:
        draw_rank(all_of_them, order, plot)
        say(f"Saved {plot}.", to_stderr=True)


def _nothing_of_value(visits: int) -> str:
    """Return why there is nothing to rank by value, and what to do."""
    if not visits:
        return NOTHING_YET
    unwatched = count(visits, "visited page is", "visited pages are")
    return (
        f"--by value ranks watched pages, and {unwatched} not watched: add one with 'driftline add URL', or all pages "
        "of a history with 'driftline visits import FILE --add'."
    )


@contextmanager
def _ranked(store: str | None, order: RankOrder, limit: int | None, *, example: bool) -> Iterator[_Ranking]:
    """Rank the pages; they can be read inside the block."""
    if example:
        from driftline.visits.rank import EXAMPLE

        if order is RankOrder.VALUE:
            raise BadSetting("--by value ranks watched pages, and the paper's example has none: choose another order.")
        threshold = command_settings(store=store).rank_threshold
        rows, kept = ranked(EXAMPLE, order, threshold, limit), sum(keeps(one, threshold) for one in EXAMPLE)
        yield _Ranking(rows=rows, visits=len(EXAMPLE), kept=kept, threshold=threshold)
        return
    with opened(store, make=False) as watch_list:
        threshold = watch_list.settings.rank_threshold
        ordered = watch_list.visits.ranked(order, limit)
        visits = kept = unsafe = 0
        workspace = workspace_of(watch_list)
        for one in workspace.visits.each():
            if workspace.unsafe.why(one.url) is None:
                visits, kept = visits + 1, kept + keeps(one, threshold)
            else:
                unsafe += 1
        if unsafe:
            say(f"Not shown: {count(unsafe, 'page')} blocked as unsafe.", to_stderr=True)
        yield _Ranking(rows=ordered, visits=visits, kept=kept, threshold=threshold)


def _print_table(rows: Iterable[Visited], threshold: float, *, example: bool, valued: bool) -> None:
    # nothing of the example is watched
    rows = iter(rows)
    first = next(rows)
    best = first.value or 1.0
    columns = [*(_COLUMNS[:-1] if example else _COLUMNS), *([Column(name="of first", right=True)] if valued else [])]
    numbered = enumerate(chain([first], rows), start=1)
    cells = (_row(number, one, threshold, best if valued else None) for number, one in numbered)
    print_table(columns, (row[: len(columns)] for row in cells))


def _row(number: int, one: Visited, threshold: float, best: float | None) -> list[str | Styled]:
    kept = Styled("kept", "green") if keeps(one, threshold) else Styled("dropped", "red")
    figures = [f"{one.frequency:,}", seconds_of(one), f"{one.ttl:,}"]
    share = [] if best is None else [f"{one.value / best:.0%}"]
    return [str(number), str(one.sno or "–"), one.url, *figures, kept, "yes" if one.watched else "no", *share]


def _as_json(number: int, one: Visited, threshold: float, *, valued: bool) -> dict[str, Any]:
    return {
        "rank": number, "sno": one.sno or None, "url": one.url, "frequency": one.frequency, "weightage": one.weightage,
        "ttl": one.ttl, "kept": keeps(one, threshold), "watched": one.watched,
        **({"value": one.value} if valued else {}),
    }  # fmt: skip


def _print_csv(rows: Iterable[Visited], threshold: float, *, valued: bool) -> None:
    names = ["rank", "sno", "url", "frequency", "weightage", "ttl", "kept", "watched", *(["value"] if valued else [])]
    writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
    writer.writeheader()
    for number, one in enumerate(rows, start=1):
        row = _as_json(number, one, threshold, valued=valued)
        shown = {"url": clean(row["url"])} | {name: int(row[name]) for name in ("kept", "watched")}
        writer.writerow(row | shown)
