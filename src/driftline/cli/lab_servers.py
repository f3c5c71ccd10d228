"""`lab web`, `hostile`, `polite`, `crawl`, `faults`, `soak`: simulated sites, difficult servers, failing databases."""

from __future__ import annotations

from contextlib import nullcontext
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

    from driftline.lab.bench.faults_bench import FaultRow


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
    """Serve a simulated web on this machine until Ctrl-C.

    POST /lab/generation?n=N to any of its hosts changes pages.
    """
    from driftline.cli.progress import first_signal
    from driftline.lab.simweb import simweb_client
    from driftline.lab.simweb.world import World
    from driftline.pipeline.stop import Bell

    shape = "lognormal" if latency else "none"
    world = World.from_fields({
        "pages": pages, "hosts": hosts, "seed": seed, "size_mean": size, "latency": latency, "latency_shape": shape,
        "bandwidth": bandwidth, "change_rate": change_rate, "noise": noise, "etag": etag, "error_rate": error_rate,
    })  # fmt: skip
    with simweb_client.serve(world, port=port) as running:
        if ceiling:
            running.prepare()
            for in_flight in (64, 512, 2_048):
                if pages > in_flight:
                    speed = simweb_client.ceiling(running, in_flight=in_flight, pages=max(4 * in_flight, 20_000))
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


def hostile(
    only: Annotated[list[str] | None, typer.Option("--row", metavar="WORDS", help="Only rows so named.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check pages of hostile servers, and measure what each costs.

    The exit status is 1 if one exceeds its limits.
    """
    from driftline.lab.bench.hostile_bench import measure
    from driftline.lab.servers.hostile_servers import HOSTILE_SERVERS

    chosen = [one for one in HOSTILE_SERVERS if not only or any(words in one.name for words in only)]
    if not chosen:
        raise BadSetting(f"There is no such row: choose from {', '.join(one.name for one in HOSTILE_SERVERS)}.")
    rows = list(measure(chosen, show_progress))
    show_progress("")
    if as_json:
        print_json([{**asdict(row), "holds": row.holds} for row in rows])
    else:
        print_plain_table(
            ("row", "seconds", "at most", "peak MB", "at most", "outcome", "reason"),
            [
                (row.row, f"{row.seconds:.2f}", f"{row.most_seconds:.0f}", f"{row.peak_mb:.0f}", f"{row.most_mb:.0f}",
                 row.outcome, f"{row.reason}{'' if row.holds else '  <- exceeds its limits'}")
                for row in rows
            ],
            left=("outcome", "reason"),
        )  # fmt: skip
        broken = sum(not row.holds for row in rows)
        say(f"{len(rows) - broken} of {len(rows)} rows are within their limits.")
    if not all(row.holds for row in rows):
        raise typer.Exit(1)


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
    """Check many hosts, and measure politeness by their logs."""
    from driftline.lab.bench.server_log_bench import measure_politeness
    from driftline.lab.servers.host_farm import Farm

    found = measure_politeness(
        Farm(hosts=hosts, pages=pages, latency=latency, changes=changes, redirects=redirects), delay
    )
    if as_json:
        print_json(asdict(found))
        return
    wanted = 3 if changes else 1  # each page: when it is new, when it has changed, and to confirm that
    away = hosts - 1 if redirects else 0  # hosts with one page more, which leads to one that the first forbids
    asked = hosts * (pages * wanted + 1) + away * (pages * wanted + (2 if changes else 1))
    print_plain_table(
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


def crawl(
    pages: Annotated[int, typer.Option(min=100, metavar="N", help="How many pages the site has.")] = 5_000,
    as_json: JsonOption = False,
) -> None:
    """Crawl a site full of traps, and compare with its log.

    Every page must be fetched once, and nothing else.
    """
    from driftline.crawl.report import skipped_in_words
    from driftline.lab.bench.local_watch_lists import LabError
    from driftline.lab.bench.server_log_bench import measure_crawl

    found = measure_crawl(pages, lambda done, waiting: show_progress(f"{done:,} done, {waiting:,} wait"))
    show_progress("")
    skipped = skipped_in_words(found.report)
    if as_json:
        printed = asdict(found)
        printed["report"]["skipped"] = {why: asdict(one) for why, one in skipped.items()}
        print_json(printed)
        return
    report = found.report
    print_plain_table(
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
            ("error pages sent with status 200", f"{len(report.soft):,}", "2"),
            *((f"addresses skipped, {why}", f"{one.count:,}", "") for why, one in skipped.items()),
            ("seconds", f"{found.seconds:.1f}", ""),
            ("pages a second", f"{found.pages_per_s:,.0f}", ""),
        ],
    )
    if found.missed or found.twice or found.repeated or found.forbidden or report.left:
        raise LabError("The crawl missed or repeated something: see the table.")


def faults(
    restarts: Annotated[int, typer.Option(min=0, help="Restarts of PostgreSQL in the runs of each command.")] = 20,
    freeze: Annotated[float, typer.Option(min=0.0, help="Seconds for which PostgreSQL stands still.")] = 30.0,
    kills: Annotated[int, typer.Option(min=0, help="How often a command is killed, or loses its sessions.")] = 10,
    only: Annotated[
        list[str] | None,
        typer.Option("--row", metavar="WORDS", help="Only rows with all of these words: store, fault or command."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed injects the faults at other moments.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Run check, run and crawl while their database fails.

    It starts database servers of its own. The exit status is 1 if anything is lost.
    """
    from driftline.lab.bench.faults_bench import LONGEST_RECOVERY, measure

    def wanted(*names: str) -> bool:
        line = " ".join(names)
        return not only or any(all(word in line for word in words.split()) for words in only)

    rows: list[FaultRow] = []
    try:
        rows.extend(
            measure(restarts=restarts, freeze=freeze, kills=kills, seed=seed, only=wanted, progress=show_progress)
        )
    finally:  # what was measured until something went wrong took long
        show_progress("")
        if rows and not as_json:
            _print_faults(rows, LONGEST_RECOVERY)
    if not rows:
        raise BadSetting("There is no such row: name it by store, fault and command, such as 'sqlite locked run'.")
    if as_json:
        print_json([{**asdict(row), "holds": row.holds} for row in rows])
    if not all(row.holds for row in rows):
        raise typer.Exit(1)


def _print_faults(rows: Sequence[FaultRow], longest: float) -> None:
    print_plain_table(
        ("store", "fault", "command", "times", "changes", "lost", "twice", "unreported", "again", "recovery s",
         "at once", "shortest s", "delay s", ""),
        [
            (row.store, row.fault, row.command, row.times, row.changes, row.lost, row.duplicated, row.unreported,
             row.repeated, "-" if row.recovery is None else f"{row.recovery:.1f}", row.at_once,
             f"{row.shortest:.3f}", f"{row.delay:g}", "" if row.holds else "<- failed")
            for row in rows
        ],
        left=("fault", "command", ""),
    )  # fmt: skip
    broken = sum(not row.holds for row in rows)
    say(f"{len(rows) - broken} of {len(rows)} rows hold: nothing lost, recorded twice or unreported, polite, and "
        f"at work within {longest:g} s.")  # fmt: skip


def soak(
    command: Annotated[str, typer.Option("--command", metavar="check|run", help="The command to run.")] = "check",
    pages: Annotated[int, typer.Option(min=1, help="How many pages there are.")] = 2_500,
    size: Annotated[int, typer.Option(min=500, help="The size of a page in bytes.")] = 64_000,
    generations: Annotated[int, typer.Option(min=1, help="How often all of the pages change.")] = 3,
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Use a temporary database on this PostgreSQL server instead of SQLite."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Change all pages again and again, and count the reports.

    The exit status is 1 if a change is not recorded and reported exactly once.
    """
    from driftline.lab.bench.soak_bench import COMMANDS, measure
    from driftline.lab.servers.postgres_server import temporary_database

    if command not in COMMANDS:
        raise BadSetting(f"--command takes {' or '.join(COMMANDS)}.")
    with nullcontext(None) if store is None else temporary_database(store) as database:
        row = measure(
            command, lambda folder: database or str(folder / "pages.db"), pages=pages, size=size,
            generations=generations, progress=show_progress,
        )  # fmt: skip
    show_progress("")
    if as_json:
        print_json({**asdict(row), "holds": row.holds})
    else:
        memory = [
            (
                "MB of memory, at the start, every minute and at the end",
                ", ".join(f"{mb:.0f}" for mb in row.resident_mb),
                "",
            )
        ]
        print_plain_table(
            ("", "found", "should be"),
            [
                ("pages", f"{row.pages:,}", ""),
                ("changes recorded", f"{row.recorded:,}", f"{row.changes:,}"),
                ("changes reported", f"{row.reported:,}", f"{row.changes:,}"),
                ("reported again", f"{row.repeated:,}", "0"),
                ("stalls", f"{row.stalls:,}", "0"),
                ("seconds", f"{row.seconds:.1f}", ""),
                *(memory if row.resident_mb else []),
                *((f"{name}: {acquired:,} reservations, in use at the end", f"{in_use:,}", "0")
                  for name, (acquired, in_use) in row.resources.items()),
            ],
        )  # fmt: skip
    if not row.holds:
        raise typer.Exit(1)
