"""`driftline lab`: a simulated web, and the programs that measure Driftline on it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.options import JsonOption  # noqa: TC001 typer reads the annotations when it runs
from driftline.cli.output import print_json, say
from driftline.errors import BadSetting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.lab.experiment import Measured, Study
    from driftline.lab.findings import Findings
    from driftline.lab.speed import Row as SpeedRow
    from driftline.lab.tuning import Row as TuningRow

lab_app = typer.Typer(help="Measure Driftline: its speed, its tuning, its judgement, and the paper's experiment.")


@lab_app.command()
def web(
    pages: Annotated[int, typer.Option(help="How many pages there are.")] = 1_000,
    hosts: Annotated[int, typer.Option(help="How many hosts they are on, each with an address of its own.")] = 100,
    port: Annotated[int, typer.Option(help="The port that every host listens on; 0 takes a free one.")] = 8080,
    size: Annotated[int, typer.Option(help="Mean size of a page in bytes.")] = 67_000,
    latency: Annotated[float, typer.Option(help="Mean seconds before an answer.")] = 0.0,
    bandwidth: Annotated[int, typer.Option(help="Bytes a second that all connections share; 0 is no limit.")] = 0,
    change_rate: Annotated[float, typer.Option(help="Share of pages that change in a generation.")] = 0.05,
    noise: Annotated[str, typer.Option(metavar="off|hidden|visible", help="What differs at every request.")] = "off",
    etag: Annotated[bool, typer.Option("--etag", help="Send ETags and answer 304.")] = False,
    error_rate: Annotated[float, typer.Option(help="Share of pages that fail.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Another seed makes another web.")] = 1,
    urls: Annotated[Path | None, typer.Option(help="Write the addresses of all pages to this file.")] = None,
    ceiling: Annotated[bool, typer.Option("--ceiling", help="Measure how fast it can answer, then end.")] = False,
) -> None:
    """Serve a simulated web on this machine until Ctrl-C; POST /lab/generation?n=N on any host makes pages change."""
    from driftline.cli.signals import first_signal
    from driftline.lab import client
    from driftline.lab.world import World
    from driftline.pipeline.stopping import Bell

    shape = "lognormal" if latency else "none"
    world = World.from_fields({
        "pages": pages, "hosts": hosts, "seed": seed, "size_mean": size, "latency": latency, "latency_shape": shape,
        "bandwidth": bandwidth, "change_rate": change_rate, "noise": noise, "etag": etag, "error_rate": error_rate,
    })  # fmt: skip
    with client.serve(world, port=port) as running:
        if ceiling:
            running.prepare()
            for in_flight in (64, 512, 2_048):
                if pages > in_flight:
                    speed = client.ceiling(running, in_flight=in_flight, pages=max(4 * in_flight, 20_000))
                    say(f"{speed:,.0f} pages a second with {in_flight:,} in flight")
            return
        if urls is not None:
            urls.write_text("".join(f"{url}\n" for url in running.urls()))
            say(f"The addresses of {pages:,} pages are in {urls}.")
        say(f"{pages:,} pages on {hosts:,} hosts, the first at {world.url(0, running.port)}; Ctrl-C ends it.")
        bell = Bell()
        ended = False

        def end() -> None:
            nonlocal ended
            ended = True
            bell.ring()

        with first_signal(end):
            while not ended:
                bell.wait(3_600)


@lab_app.command()
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
    """Repeat the paper's study: configurations 1, 2 and 3, Tables I to III and Figs. 5 and 6. It resumes if stopped."""
    from driftline.lab import experiment as lab
    from driftline.lab.figures import draw, require_matplotlib
    from driftline.lab.findings import draw_up

    if min(pages, iterations) < 1 or scale <= 0 or seconds <= 0:
        raise BadSetting("--pages, --iterations, --scale and --seconds must be above zero.")
    study = lab.quick_study() if quick else lab.full_study(
        parse_numbers(n), pages=pages, scale=scale, iterations=iterations, seconds=seconds
    )  # fmt: skip
    require_matplotlib()
    kept = out / ("quick.jsonl" if quick else "cells.jsonl")
    measured = list(lab.conduct(study, kept, _tell))
    _tell("")
    figures = draw(study, measured, out)
    if as_json:
        print_json([one.row() for one in measured])
        return
    _show_cells(measured)
    _show_findings(study, draw_up(measured))
    say(f"The figures are {', '.join(str(path) for path in figures)}.")


@lab_app.command()
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
    as_json: JsonOption = False,
) -> None:
    """Race Driftline against bare downloading and against the work that no detector can avoid."""
    from driftline.lab import nginx
    from driftline.lab import speed as lab

    passes = tuple(kind for kind in lab.PASSES if not only or kind in only)
    if not passes or (only and set(only) - set(lab.PASSES)):
        raise BadSetting(f"--pass takes one of {', '.join(lab.PASSES)}.")
    if min(pages, size, in_flight, consumers, repeats) < 1:
        raise BadSetting("Every number must be at least 1.")
    if server not in ("auto", "nginx", "lab"):
        raise BadSetting("--server takes one of auto, nginx, lab.")
    course = lab.Course(
        pages=pages, size_mean=size, in_flight=in_flight, consumers=consumers, repeats=repeats, auto=auto,
        passes=passes, nginx=server == "nginx" or (server == "auto" and nginx.installed() is not None),
    )  # fmt: skip
    rows = list(lab.race(course, _tell))
    _tell("")
    if as_json:
        print_json([row.as_json() for row in rows])
    else:
        _show_speed(rows, "nginx" if course.nginx else "the simulated web")


@lab_app.command()
def tuning(
    seconds: Annotated[float, typer.Option(help="How long each run is measured once it has settled.")] = 5.0,
    only: Annotated[list[str] | None, typer.Option("--world", metavar="WORLD", help="Only this world.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare what `auto` finds with a grid search, in a latency-bound, a bandwidth-bound and a CPU-bound world."""
    from driftline.lab import tuning as lab

    known = [setting.name for setting in lab.settings()]
    if only and set(only) - set(known):
        raise BadSetting(f"--world takes one of {', '.join(known)}.")
    rows = []
    for setting in lab.settings():
        if not only or setting.name in only:
            found = list(lab.search(setting, seconds, _tell))
            _tell("")
            rows += found
            if not as_json:
                _show_tuning(found)  # at once: the next world takes minutes
    if as_json:
        print_json([asdict(row) for row in rows])


@lab_app.command()
def noise(
    pages: Annotated[int, typer.Option(min=1, metavar="N", help="How many pages there are.")] = 300,
    generations: Annotated[int, typer.Option(min=1, metavar="G", help="How often they are checked again.")] = 20,
    seed: Annotated[int, typer.Option(help="Another seed makes other pages and changes.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Check a web that is all noise, and count what was told falsely and what was missed."""
    from driftline.lab.noise import edit_footers, watch

    rows = []
    for row in watch(pages, generations, seed):
        _tell(f"generation {row.generation} of {generations}")
        rows.append(row)
    _tell("one footer for all")
    footers = edit_footers(pages, seed)
    _tell("")
    if as_json:
        print_json({"generations": [asdict(row) for row in rows], "footers": asdict(footers)})
        return
    names = ("generation", "real", "false", "missed", "noisy")
    _table(names, [tuple(f"{getattr(row, name):,}" for name in names) for row in rows])
    say(
        f"The same edit in the footers of {footers.pages:,} pages of a host: "
        f"{footers.events:,} told, of {footers.pages_of_events:,} pages."
    )


@lab_app.command()
def detection(
    folder: Annotated[Path, typer.Argument(help="A folder with pairs.jsonl or chains.jsonl, and their files.")],
    errors: Annotated[int, typer.Option(min=0, help="How many of the worst errors are named, of each kind.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Judge labelled versions of real pages: how often Driftline is right, beside naive detectors."""
    from driftline.lab import detection as lab

    found = list(lab.examine(lab.cases(folder), _tell))
    _tell("")
    rows = lab.rows(found)
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    _table(
        ("", "detector", "precision", "recall", "F1", "false alarms", "ms a case", "99 %"),
        [
            (row.cases, row.detector, *(f"{share:.3f}" for share in (row.precision, row.recall, row.f1)),
             f"{row.false_alarm_rate:.4f}", *(f"{ms:.1f}" if ms else "–" for ms in (row.ms, row.ms_99)))
            for row in rows
        ],
    )  # fmt: skip
    alarms, misses = lab.worst(found, errors)
    for title, some in (("False alarms, the surest first", alarms), ("Missed changes, the surest first", misses)):
        if some:
            say("")
            say((title, "bold"))
            _table(("case", "score", "reason"), [(one.case.name, f"{one.score:.2f}", one.reason) for one in some])


@lab_app.command()
def storage(
    folder: Annotated[Path, typer.Argument(help="A folder with chains.jsonl and its files.")],
    as_json: JsonOption = False,
) -> None:
    """Keep many versions of real pages: how small they are, at once and compacted, and how fast one is read back."""
    from driftline.lab import storage as lab

    rows = list(lab.measure(folder, _tell))
    _tell("")
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    _table(
        ("kept", "", "versions", "raw MB", "contents MB", "file MB", "ratio", "ms a version", "99 %", "longest"),
        [
            (row.kept, row.state, f"{row.versions:,}", f"{row.raw_mb:.1f}", f"{row.contents_mb:.2f}",
             f"{row.stored_mb:.2f}", f"{row.ratio:.1f}",
             *(f"{ms:.1f}" for ms in (row.read_ms, row.read_ms_99, row.read_ms_longest)))
            for row in rows
        ],
    )  # fmt: skip


@lab_app.command()
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
    """Keep a simulated world, or the real one of a file, up to date by every policy on the same budget."""
    from driftline.cli.plots import check_plot
    from driftline.lab.figures import draw_freshness
    from driftline.lab.freshness import Row, means, race
    from driftline.lab.rivals import POLICIES
    from driftline.lab.traces import KINDS, World, replayed, simulated

    kinds = [kind for kind in KINDS if kind == world]
    if not kinds:
        raise BadSetting(f"--world takes one of {', '.join(KINDS)}.")
    if plot is not None:
        check_plot(plot)
    rows: list[Row] = []
    for seed in range(1, seeds + 1):
        if replay is not None:
            trace = replayed(replay, checks_per_page=0.1 if checks is None else checks, seed=seed)
        else:
            settings = World(
                kind=kinds[0], pages=pages, days=days, scored_from=scored_from,
                checks_per_page=0.2 if checks is None else checks, static=static, seed=seed,
            )  # fmt: skip
            trace = simulated(settings)
        for row in race(trace, policy or tuple(POLICIES)):
            _tell(f"seed {seed} of {seeds}: {row.policy}")
            rows.append(row)
    _tell("")
    mean = means(rows)
    if plot is not None:
        draw_freshness(mean, plot)
    if as_json:
        print_json([asdict(row) for row in mean])
        return
    _table(
        ("policy", "fw", "hw", "delay_w, h", "wasted", "starved"),
        [
            (row.policy, f"{row.fw:.4f}", *("–" if one is None else f"{one:{form}}" for one, form in
             ((row.hw, ".4f"), (row.delay_w, ".1f"), (row.wasted, ".2f"), (row.starved, ",.0f"))))
            for row in mean
        ],
    )  # fmt: skip
    say(f"Means over {seeds} seeds." if seeds > 1 else "One seed.")
    if plot is not None:
        say(f"The figure is {plot}.")


@lab_app.command()
def picking(
    pages: Annotated[list[int] | None, typer.Option(min=1, metavar="N", help="How many pages there are.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how long the scheduler takes to read the watch list, to pick and to learn, and what memory it needs."""
    from driftline.lab.picking import measure

    rows = [measure(count) for count in pages or (10_000, 100_000, 1_000_000)]
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    _table(
        ("pages", "read, s", "pick of 500, ms", "learn, ms", "peak MB"),
        [
            (f"{row.pages:,}", f"{row.read_s:.2f}", f"{row.pick_ms:.1f}", f"{row.learn_ms:.1f}", f"{row.peak_mb:.0f}")
            for row in rows
        ],
    )


@lab_app.command()
def hostile(
    only: Annotated[list[str] | None, typer.Option("--row", metavar="WORDS", help="Only rows so named.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check pages of servers that mean harm, and measure what each costs; status 1 if one breaks its bounds."""
    from driftline.lab.hostile import measure
    from driftline.lab.villains import VILLAINS

    chosen = [one for one in VILLAINS if not only or any(words in one.name for words in only)]
    if not chosen:
        raise BadSetting(f"No row is named so: there are {', '.join(one.name for one in VILLAINS)}.")
    rows = list(measure(chosen, _tell))
    _tell("")
    if as_json:
        print_json([{**asdict(row), "holds": row.holds} for row in rows])
    else:
        _table(
            ("row", "seconds", "at most", "peak MB", "at most", "outcome", "reason"),
            [
                (row.row, f"{row.seconds:.2f}", f"{row.most_seconds:.0f}", f"{row.peak_mb:.0f}", f"{row.most_mb:.0f}",
                 row.outcome, f"{row.reason}{'' if row.holds else '  <- not as it has to be'}")
                for row in rows
            ],
            left=("outcome", "reason"),
        )  # fmt: skip
        broken = sum(not row.holds for row in rows)
        say(f"{len(rows) - broken} of {len(rows)} rows are as they have to be.")
    if not all(row.holds for row in rows):
        raise typer.Exit(1)


@lab_app.command()
def polite(
    hosts: Annotated[int, typer.Option(min=1, help="How many hosts there are, each an address of its own.")] = 500,
    pages: Annotated[int, typer.Option(min=1, help="How many pages each has.")] = 20,
    delay: Annotated[float, typer.Option(min=0.0, help="Seconds from an answer to the next request at a host.")] = 3.0,
    latency: Annotated[float, typer.Option(min=0.0, help="Seconds before an answer.")] = 0.05,
    changes: Annotated[
        bool, typer.Option("--changes", help="Check again, after all pages have changed: each is then fetched twice.")
    ] = False,
    redirects: Annotated[
        bool, typer.Option("--redirects", help="Let the pages of all hosts lead to pages of the first one.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check a farm of hosts, and let their own logs tell whether that was polite, and how much time it wasted."""
    from driftline.lab.farm import Farm
    from driftline.lab.polite import measure

    found = measure(Farm(hosts=hosts, pages=pages, latency=latency, changes=changes, redirects=redirects), delay)
    if as_json:
        print_json(asdict(found))
        return
    wanted = 3 if changes else 1  # each page: when it is new, when it has changed, and to confirm that
    away = hosts - 1 if redirects else 0  # hosts with one page more, which leads to one that the first forbids
    asked = hosts * (pages * wanted + 1) + away * (pages * wanted + (2 if changes else 1))
    _table(
        ("", "found", "should be"),
        [
            ("hosts", f"{found.hosts:,}", ""),
            ("pages checked", f"{found.pages:,}", f"{hosts * (pages + 1) + away:,}"),
            ("pages that changed", f"{found.changed:,}", f"{hosts * pages * changes:,}"),
            ("pages that robots.txt forbids", f"{found.failed:,}", f"{hosts + away:,}"),
            ("requests, with one for each robots.txt", f"{found.requests:,}", f"{asked:,}"),
            ("requests for what robots.txt forbids", f"{found.forbidden:,}", "0"),
            ("most requests at a host at once", f"{found.at_once:,}", "1"),
            ("most connections of a host at once", f"{found.connections:,}", "1"),
            ("shortest time from an answer to the next request", f"{found.shortest:.3f} s", f"{delay:g} s or more"),
            ("from the first request to the last answer", f"{found.seconds:.1f} s", f"{found.allowed:.1f} s at best"),
            ("share of what the delays allow", f"{found.share:.1%}", "80 % or more"),
        ],
    )


@lab_app.command()
def crawl(
    pages: Annotated[int, typer.Option(min=100, metavar="N", help="How many pages the site has.")] = 5_000,
    as_json: JsonOption = False,
) -> None:
    """Crawl a site with traps, and let its own log tell whether every page was found, once, and nothing else."""
    from driftline.lab.bare import LabError
    from driftline.lab.crawling import measure

    found = measure(pages, lambda done, waiting: _tell(f"{done:,} done, {waiting:,} wait"))
    _tell("")
    if as_json:
        print_json(asdict(found))
        return
    report = found.report
    _table(
        ("", "found", "should be"),
        [
            ("pages of the site that were fetched", f"{found.found:,}", f"{found.pages:,}"),
            ("fetched twice, under whichever address", f"{len(found.twice):,}", "0"),
            ("addresses asked for twice", f"{found.repeated:,}", "0"),
            ("requests that robots.txt or a page asked not to make", f"{found.forbidden:,}", "0"),
            ("addresses left when it stopped", f"{report.left:,}", "0"),
            ("requests in all", f"{found.requests:,}", ""),
            ("requests for redirects, lists, error pages and traps", f"{found.others:,}", ""),
            ("same as another page, nearly the same", f"{len(report.duplicates):,}, {len(report.near):,}", ""),
            ("error pages that come as good ones", f"{len(report.soft):,}", "2"),
            *((f"addresses skipped, {why}", f"{one.count:,}", "") for why, one in report.skipped.items()),
            ("seconds", f"{found.seconds:.1f}", ""),
            ("pages a second", f"{found.pages_per_s:,.0f}", ""),
        ],
    )
    if found.missed or found.twice or found.repeated or found.forbidden or report.left:
        raise LabError("The crawl is not what it should be: see the table.")


def parse_numbers(text: str) -> list[int]:
    """The numbers of a list such as '1-100', '10,20,78' or '1-10,78', in order and each once."""
    found: set[int] = set()
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            found |= set(range(int(first), int(last) + 1)) if dash else {int(first)}
    except ValueError:
        raise BadSetting(f"'{text}' is not a list of numbers: write 1-100 or 10,20,78.") from None
    if not found or min(found) < 1 or max(found) > 512:
        raise BadSetting("N goes from 1 to 512.")
    return sorted(found)


def _tell(what: str) -> None:
    """What is being measured now, on one line of standard error that is written over, if that is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{what}")
        sys.stderr.flush()


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]], left: Sequence[str] = ()) -> None:
    """A plain table: the first column and those named to the left, the others to the right."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for number, row in enumerate(cells):
        line = "  ".join(
            cell.ljust(width) if column == 0 or head[column] in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        say((line.rstrip(), "bold" if number == 0 else ""))


def _show_cells(measured: Sequence[Measured]) -> None:
    from driftline.lab.experiment import describe

    _table(
        ("cell", "pages", "effective ms", "sd"),
        [(describe(one.cell), f"{one.pages:,}", f"{one.effective_ms:.3f}", f"{one.sd:.3f}") for one in measured],
    )


def _show_findings(study: Study, findings: Findings) -> None:
    from driftline.lab import findings as paper
    from driftline.lab.experiment import describe

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
    _table(("", "here", "reduction", "the paper"), rows)
    say("")
    say(("Table II: M and K at the minimum for each N", "bold"))
    _table(("", "here", "the paper"), _beside(findings.m_and_k, paper.PAPER_TABLE_2))
    say("")
    say(
        ("Table III: configurations 2 and 3 at the minimum for each N", "bold"),
        " (equal: within one standard deviation)",
    )
    _table(("", "here", "the paper"), _beside(findings.two_and_three, paper.PAPER_TABLE_3))
    below, ties, pairs = findings.matched
    say(
        f"Of {pairs} pairs of cells with the same N and M = K, configuration 3 is at or below configuration 2 "
        f"in {below}, and above it by less than a standard deviation in {ties}."
    )
    say("")


def _reduced(one: Measured, findings: Findings, paper: str) -> tuple[str, str, str, str]:
    from driftline.lab.experiment import describe

    return describe(one.cell), f"{one.effective_ms:.2f} ms", f"{findings.reduction(one):.2f} %", paper


def _beside(here: dict[str, float], paper: dict[str, int]) -> list[tuple[str, str, str]]:
    return [(name, f"{here.get(name, 0):.0f} %" if here else "–", f"{share} %") for name, share in paper.items()]


def _show_speed(rows: Sequence[SpeedRow], server: str) -> None:
    say(f"Pages a second, medians; the server is {server}.")
    _table(
        ("pass", "download", "floor", "check", "/download", "/floor", "µs CPU", "of floor", "of download", "peak MB"),
        [
            (row.kind, f"{row.download:,.0f}", f"{row.floor:,.0f}", f"{row.check:,.0f}", f"{row.to_download:.2f}",
             f"{row.to_floor:.2f}", f"{row.cpu_us:,.0f}", f"{row.floor_cpu_us:,.0f}", f"{row.download_cpu_us:,.0f}",
             f"{row.peak_mb:.0f}")
            for row in rows
        ],
    )  # fmt: skip


def _show_tuning(rows: Sequence[TuningRow]) -> None:
    from driftline.lab.tuning import reached

    for world in dict.fromkeys(row.world for row in rows):
        some = [row for row in rows if row.world == world]
        say((world, "bold"))
        _table(
            ("", "in flight", "consumers", "pages/s"),
            [(row.kind, row.slots, row.consumers, f"{row.pages_per_s:,.0f}") for row in some],
        )
        say(f"auto reaches {reached(some):.2f} of the best cell.")
        say("")
