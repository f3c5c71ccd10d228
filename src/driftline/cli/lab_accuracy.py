"""How well changes are judged, kept and scheduled: `lab detection`, `reports`, `noise`, `storage`, and so on."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path  # noqa: TC003 typer reads the annotations when it runs
from typing import Annotated

import typer

from driftline.cli.options import JsonOption  # noqa: TC001 typer reads the annotations when it runs
from driftline.cli.output import print_json, say
from driftline.cli.text_tables import print_plain_table, show_progress
from driftline.errors import BadSetting
from driftline.plurals import count


def noise(
    pages: Annotated[int, typer.Option(min=1, metavar="N", help="How many pages there are.")] = 300,
    generations: Annotated[int, typer.Option(min=1, metavar="G", help="How often they are checked again.")] = 20,
    seed: Annotated[int, typer.Option(help="Another seed makes other pages and changes.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Count false and missed reports on a simulated, noisy web."""
    from driftline.lab.bench.detection_bench import edit_footers, watch

    rows = []
    for row in watch(pages, generations, seed):
        show_progress(f"generation {row.generation} of {generations}")
        rows.append(row)
    show_progress("one footer for all")
    footers = edit_footers(pages, seed)
    show_progress("")
    if as_json:
        print_json({"generations": [asdict(row) for row in rows], "footers": asdict(footers)})
        return
    names = ("generation", "real", "false", "missed", "noisy")
    print_plain_table(names, [tuple(f"{getattr(row, name):,}" for name in names) for row in rows])
    say(
        f"The same edit in the footers of {footers.pages:,} pages of a host: "
        f"{count(footers.events, 'event')} about {footers.pages_of_events:,} pages."
    )


def detection(
    folder: Annotated[
        Path, typer.Argument(help="A folder with pairs.jsonl, chains.jsonl or streams.jsonl, and their files.")
    ],
    errors: Annotated[int, typer.Option(min=0, help="List so many of the worst errors of each kind.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Judge labelled changes of real pages, beside naive detectors."""
    from driftline.lab.bench import detection_bench as lab

    found = list(lab.judge(lab.cases(folder), show_progress))
    show_progress("")
    rows = lab.rows(found)
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    names = ("", "detector or type", "precision", "recall", "F1", "false alarms", "of a page", "ms a case", "99 %")
    print_plain_table(
        names,
        [
            (row.cases, row.type or row.detector, *map(_share, (row.precision, row.recall, row.f1)),
             f"{row.false_alarm_rate:.4f}", f"{row.most_false_alarms:,}", *(f"{ms:.1f}" for ms in (row.ms, row.ms_99)))
            for row in rows
        ],
    )  # fmt: skip
    ours = [row for row in rows if row.levels and not row.type]
    _heading("Levels of cases labelled meaningful, and noise")
    levels = [level.value for level in lab.LEVELS]
    print_plain_table(
        ("", *levels, "error page", "no difference"),
        [
            (row.cases, *(f"{row.levels[level]['meaningful']:,}, {row.levels[level]['noise']:,}" for level in levels),
             f"{row.failed:,}", f"{row.same:,}")
            for row in ours
        ],
    )  # fmt: skip
    for row in ours:
        _heading(f"If all changes from a certain score on were reported: {row.cases}")
        best = [(f"best within {rate}", point) for rate, point in row.best.items() if point is not None]
        # of several thresholds that make no difference, the highest
        points = [("", point) for point in {(point.recall, point.precision): point for point in row.curve}.values()]
        print_plain_table(
            ("score", "precision", "recall", "false alarms", ""),
            [
                (f"{point.threshold:.3f}", _share(point.precision), _share(point.recall),
                 f"{point.false_alarm_rate:.4f}", name)
                for name, point in (*points, *best)
            ],
        )  # fmt: skip
    alarms, misses = lab.worst(found, errors)
    for title, some in (("False alarms, the surest first", alarms), ("Missed changes, the surest first", misses)):
        if some:
            _heading(title)
            print_plain_table(
                ("case", "score", "headline or reason"),
                [(one.case.name, f"{one.score:.2f}", one.headline or one.reason) for one in some],
            )


def reports(
    page: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this page.")] = None,
    interval: Annotated[list[str] | None, typer.Option(metavar="TIME", help="Only 1 h, 1 d or 14 d.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="List every edit with its headline.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what is reported of forty synthetic pages, with headlines."""
    from driftline.lab.bench import reports_bench as lab

    for one in interval or ():
        if one not in lab.INTERVALS:
            raise BadSetting(f"--interval takes one of {', '.join(lab.INTERVALS)}, not '{one}'.")
    rows = list(lab.check_all(lab.synthetic_pages(page or ()), show_progress, interval or lab.INTERVALS))
    show_progress("")
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    print_plain_table(
        ("page", "interval", "found", "false alarms"),
        [(row.page, row.interval, f"{row.found} of {lab.EDITS}", f"{row.false_alarms} of {lab.EDITS}") for row in rows],
    )
    for row in rows if verbose else ():
        _heading(f"{row.page}, every {row.interval}")
        for edit in row.edits:
            say(f"{'+' if edit.matters else '-'} {edit.edit[:100]}")
            say(f"    {'' if edit.reported else 'not reported: '}{edit.headline or edit.reason}")
    headlines = [edit.headline for row in rows for edit in row.edits if edit.reported]
    longest = max(map(len, headlines), default=0)
    say(f"{count(len(headlines), 'headline')}, {headlines.count('')} empty, the longest of {longest} characters.")


def _heading(text: str) -> None:
    say("")
    say((text, "bold"))


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.3f}"


def storage(
    folder: Annotated[Path, typer.Argument(help="A folder with chains.jsonl and its files.")],
    as_json: JsonOption = False,
) -> None:
    """Measure size and reading time of many stored versions."""
    from driftline.lab.bench import storage_bench as lab

    rows = list(lab.measure(folder, show_progress))
    show_progress("")
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    print_plain_table(
        ("kept", "", "versions", "raw MB", "contents MB", "file MB", "ratio", "ms a version", "99 %", "longest"),
        [
            (row.kept, row.state, f"{row.versions:,}", f"{row.raw_mb:.1f}", f"{row.contents_mb:.2f}",
             f"{row.stored_mb:.2f}", f"{row.ratio:.1f}",
             *(f"{ms:.1f}" for ms in (row.read_ms, row.read_ms_99, row.read_ms_longest)))
            for row in rows
        ],
    )  # fmt: skip


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
            show_progress(f"seed {seed} of {seeds}: {row.policy}")
            rows.append(row)
    show_progress("")
    mean = means(rows)
    if plot is not None:
        draw_freshness(mean, plot)
    if as_json:
        print_json([asdict(row) for row in mean])
        return
    print_plain_table(
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
    print_plain_table(
        ("pages", "first link, s", "all links, s", "read, s", "pick of 500, ms", "learn, ms", "peak MB"),
        [
            (f"{row.pages:,}", f"{row.first_link_s:.2f}", f"{row.links_s:.2f}", f"{row.read_s:.2f}",
             f"{row.pick_ms:.1f}", f"{row.learn_ms:.1f}", f"{row.peak_mb:.0f}")
            for row in rows
        ],
    )  # fmt: skip
