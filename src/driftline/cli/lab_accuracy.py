"""`lab detection`, `lab noise`, `lab storage`: how well changes are judged, and how compactly versions are kept."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path  # noqa: TC003 typer reads the annotations when it runs
from typing import Annotated

import typer

from driftline.cli.lab_output import table, tell
from driftline.cli.options import JsonOption  # noqa: TC001 typer reads the annotations when it runs
from driftline.cli.output import print_json, say
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
        tell(f"generation {row.generation} of {generations}")
        rows.append(row)
    tell("one footer for all")
    footers = edit_footers(pages, seed)
    tell("")
    if as_json:
        print_json({"generations": [asdict(row) for row in rows], "footers": asdict(footers)})
        return
    names = ("generation", "real", "false", "missed", "noisy")
    table(names, [tuple(f"{getattr(row, name):,}" for name in names) for row in rows])
    say(
        f"The same edit in the footers of {footers.pages:,} pages of a host: "
        f"{count(footers.events, 'event')} about {footers.pages_of_events:,} pages."
    )


def detection(
    folder: Annotated[Path, typer.Argument(help="A folder with pairs.jsonl or chains.jsonl, and their files.")],
    errors: Annotated[int, typer.Option(min=0, help="List so many of the worst errors of each kind.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Judge labelled changes of real pages, beside naive detectors."""
    from driftline.lab.bench import detection_bench as lab

    found = list(lab.examine(lab.cases(folder), tell))
    tell("")
    rows = lab.rows(found)
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    table(
        ("", "detector", "precision", "recall", "F1", "false alarms", "ms a case", "99 %"),
        [
            (row.cases, row.detector, *(f"{share:.3f}" for share in (row.precision, row.recall, row.f1)),
             f"{row.false_alarm_rate:.4f}", *(f"{ms:.1f}" for ms in (row.ms, row.ms_99)))
            for row in rows
        ],
    )  # fmt: skip
    alarms, misses = lab.worst(found, errors)
    for title, some in (("False alarms, the surest first", alarms), ("Missed changes, the surest first", misses)):
        if some:
            say("")
            say((title, "bold"))
            table(("case", "score", "reason"), [(one.case.name, f"{one.score:.2f}", one.reason) for one in some])


def storage(
    folder: Annotated[Path, typer.Argument(help="A folder with chains.jsonl and its files.")],
    as_json: JsonOption = False,
) -> None:
    """Store many versions of real pages, and measure size and reading time."""
    from driftline.lab.bench import storage_bench as lab

    rows = list(lab.measure(folder, tell))
    tell("")
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    table(
        ("kept", "", "versions", "raw MB", "contents MB", "file MB", "ratio", "ms a version", "99 %", "longest"),
        [
            (row.kept, row.state, f"{row.versions:,}", f"{row.raw_mb:.1f}", f"{row.contents_mb:.2f}",
             f"{row.stored_mb:.2f}", f"{row.ratio:.1f}",
             *(f"{ms:.1f}" for ms in (row.read_ms, row.read_ms_99, row.read_ms_longest)))
            for row in rows
        ],
    )  # fmt: skip
