"""`visit`, `visits import`: count visits to pages, for `rank` and the schedule."""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.help_panels import PanelCommand, PanelGroup
from driftline.cli.options import JsonOption, StoreOption, opened
from driftline.cli.output import clean, iso, print_json, say
from driftline.errors import DriftlineError
from driftline.plurals import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from driftline.model.visit import Visited
    from driftline.visits.importer import ImportedVisits

visits_app = typer.Typer(help="Import visits from browsers, server logs and tables.", cls=PanelGroup)


def visit(
    url: Annotated[str, typer.Argument(metavar="URL", help="A page, watched or not.", show_default=False)],
    seconds: Annotated[
        float,
        typer.Option("--seconds", metavar="S", help="Length of the visit in seconds. [default: 0]", show_default=False),
    ] = 0.0,
    unavailable: Annotated[bool, typer.Option("--unavailable", help="The page was not available.")] = False,
    add: Annotated[bool, typer.Option("--add", help="Also watch the page.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count a visit to a page."""
    with opened(store) as watch_list:
        visited = watch_list.visit(url, seconds=seconds, available=not unavailable, add=add)
    if as_json:
        print_json(visited_row(visited) | {"watched": visited.watched})
        return
    spent = f"{seconds_of(visited)} s in all"
    times = f"{count(visited.frequency, 'visit')}, {spent}, available {count(visited.ttl, 'time')}"
    say(clean(f"{visited.url}: {times}."))
    if not visited.watched:
        say("This page is not watched: add it with --add.", to_stderr=True)


@visits_app.command("import", cls=PanelCommand)
def import_(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A browser history, a server log or a CSV file, plain or gzip; - for standard input.",
        ),
    ],
    file_format: Annotated[
        str | None,
        typer.Option("--format", metavar="chrome|firefox|log|csv", help="Format of the file. [default: detected]"),
    ] = None,
    site: Annotated[
        str | None,
        typer.Option(
            "--site", metavar="URL", help="The site of a server log, such as https://example.org.", show_default=False
        ),
    ] = None,
    add: Annotated[bool, typer.Option("--add", help="Also watch the pages that were available.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count the visits in a browser history, a server log or a CSV file.

    Importing a file again counts only its new visits.
    """
    from driftline.cli.progress import counted

    with _as_file(file) as (path, name), opened(store) as watch_list, counted() as show:
        done = watch_list.visits.import_file(path, format=file_format, site=site, add=add, label=name, progress=show)
    row = "visit" if done.format in ("chrome", "firefox") else "line"
    for problem in done.problems:
        say(clean(f"{name}, {row} {problem.line}: {problem.sentence}"), to_stderr=True)
    if done.bad > len(done.problems):
        more = count(done.bad - len(done.problems), f"more {row}")
        say(f"{more} could not be read.", to_stderr=True)
    if as_json:
        print_json(_as_json(done))
    elif done.bad and not done.visits + done.known + done.skipped:
        raise DriftlineError(f"{name} has no readable visit in it: give the format with --format.")
    else:
        say(_summary(done, add=add))


@contextmanager
def _as_file(file: str) -> Iterator[tuple[Path, str]]:
    """Return the file and its name for messages; standard input is copied to a file, because it is read twice.

    Raise DriftlineError for a mistyped name here, before a store is created.
    """
    from driftline.visits.importer import require_file

    if file != "-":
        require_file(Path(file), file)
        yield Path(file), file
        return
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile(prefix="driftline-") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        yield Path(copy.name), "Standard input"


def seconds_of(visited: Visited) -> str:
    """Return the weightage for people, to a tenth of a second."""
    return f"{visited.weightage:,.1f}".removesuffix(".0")


def visited_row(visited: Visited) -> dict[str, Any]:
    """Return the columns of the second paper's table, and when the first and last visit were."""
    times = {
        name: iso(at) if at else None for name, at in (("first_at", visited.first_at), ("last_at", visited.last_at))
    }
    return {
        "url": visited.url, "frequency": visited.frequency, "weightage": visited.weightage, "ttl": visited.ttl,
    } | times  # fmt: skip


def _summary(done: ImportedVisits, *, add: bool) -> str:
    remarks = [f"{done.known:,} counted before"] if done.known else []
    remarks += [f"{done.skipped:,} skipped: not visits to web pages"] if done.skipped else []
    remarks += [f"{done.bad:,} unreadable"] if done.bad else []
    pages = f" to {count(done.pages, 'page')}" if done.visits and not done.known else ""
    sentence = f"Counted {count(done.visits, 'visit')}{pages}" + (f" ({', '.join(remarks)})." if remarks else ".")
    return f"{sentence} Added {count(done.added, 'page')}." if add else sentence


def _as_json(done: ImportedVisits) -> dict[str, Any]:
    return {
        "format": done.format, "visits": done.visits, "known": done.known, "skipped": done.skipped, "bad": done.bad,
        "problems": [{"line": problem.line, "reason": problem.sentence} for problem in done.problems],
        "pages": done.pages, "added": done.added,
    }  # fmt: skip
