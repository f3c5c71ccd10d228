"""`lab experiment`: the first paper's study, its tables beside ours."""

from __future__ import annotations

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
