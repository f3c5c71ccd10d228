"""`visit`, `visits import`: feed frequency, weightage and TTL."""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftline.cli.options import JsonOption, StoreOption, opened
from driftline.cli.output import clean, count, iso, print_json, say
from driftline.errors import DriftlineError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from driftline.model import Visited
    from driftline.visits.importer import Imported

visits_app = typer.Typer(help="Visits to pages, from where they are recorded.")


def visit(
    url: Annotated[str, typer.Argument(metavar="URL", help="The address of a page.", show_default=False)],
    seconds: Annotated[float, typer.Option("--seconds", metavar="S", help="How long the visit took.")] = 0.0,
    unavailable: Annotated[bool, typer.Option("--unavailable", help="The page could not be seen.")] = False,
    add: Annotated[bool, typer.Option("--add", help="Watch the page if it is not watched yet.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count a visit to a page, watched or not."""
    with opened(store) as watch_list:
        visited = watch_list.visit(url, seconds=seconds, available=not unavailable, add=add)
    if as_json:
        print_json(visited_row(visited) | {"watched": visited.watched})
        return
    times = f"{count(visited.frequency, 'visit')}, {seconds_of(visited)} s, available {count(visited.ttl, 'time')}"
    say(clean(f"{visited.url}: {times}."))
    if not visited.watched:
        say("It is not watched, and counted for later: --add watches it.", to_stderr=True)


@visits_app.command("import")
def import_(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A browser's history, a server log or a table, packed by gzip or not; - for standard input.",
        ),
    ],
    file_format: Annotated[
        str | None,
        typer.Option("--format", metavar="chrome|firefox|log|csv", help="What it is. [default: found by itself]"),
    ] = None,
    site: Annotated[
        str | None, typer.Option("--site", metavar="URL", help="The site that a server log is of.", show_default=False)
    ] = None,
    add: Annotated[
        bool, typer.Option("--add", help="Watch the pages that were available and are not watched yet.")
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count the visits of a browser's history, a server log or a table; what was counted before counts nothing."""
    from driftline.cli.progress import counted

    with _as_file(file) as (path, name), opened(store) as watch_list, counted() as told:
        done = watch_list.import_visits(path, format=file_format, site=site, add=add, called=name, told=told)
    row = "visit" if done.format in ("chrome", "firefox") else "line"
    for problem in done.problems:
        say(clean(f"{name}, {row} {problem.line}: {problem.sentence}"), to_stderr=True)
    if done.bad > len(done.problems):
        more = count(done.bad - len(done.problems), f"more {row}")
        say(f"{more} could not be read.", to_stderr=True)
    if as_json:
        print_json(_as_json(done))
    elif done.bad and not done.visits + done.known + done.skipped:
        raise DriftlineError(f"{name} holds no visit that can be read.")
    else:
        say(_told(done, add=add))


@contextmanager
def _as_file(file: str) -> Iterator[tuple[Path, str]]:
    """Where the visits are, and what that is called; standard input is put into a file first, to be read twice.

    A mistyped name is found out here, before a store is made for nothing.
    """
    from driftline.visits.importer import insist_on_file

    if file != "-":
        insist_on_file(Path(file), file)
        yield Path(file), file
        return
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile(prefix="driftline-") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        yield Path(copy.name), "Standard input"


def seconds_of(visited: Visited) -> str:
    """Its weightage for people, to a tenth of a second."""
    return f"{visited.weightage:,.1f}".removesuffix(".0")


def visited_row(visited: Visited) -> dict[str, Any]:
    """The columns of the second paper's table, and when the visits were."""
    times = {
        name: iso(at) if at else None for name, at in (("first_at", visited.first_at), ("last_at", visited.last_at))
    }
    return {
        "url": visited.url, "frequency": visited.frequency, "weightage": visited.weightage, "ttl": visited.ttl,
    } | times  # fmt: skip


def _told(done: Imported, *, add: bool) -> str:
    remarks = [f"{done.known:,} counted before"] if done.known else []
    remarks += [f"{done.skipped:,} skipped as no visits to web pages"] if done.skipped else []
    remarks += [f"{done.bad:,} bad"] if done.bad else []
    pages = f" to {count(done.pages, 'page')}" if done.visits and not done.known else ""
    said = f"Counted {count(done.visits, 'visit')}{pages}" + (f" ({', '.join(remarks)})." if remarks else ".")
    return f"{said} Watching {count(done.added, 'more page')}." if add else said


def _as_json(done: Imported) -> dict[str, Any]:
    return {
        "format": done.format, "visits": done.visits, "known": done.known, "skipped": done.skipped, "bad": done.bad,
        "problems": [{"line": problem.line, "reason": problem.sentence} for problem in done.problems],
        "pages": done.pages, "added": done.added,
    }  # fmt: skip
