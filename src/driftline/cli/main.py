"""The command itself: what it offers, and how it ends.

Exit status: 0 done, 1 it failed, 2 usage, 130 interrupted. Every error is one plain sentence; DRIFTLINE_DEBUG=1 shows
where an unexpected one came from.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from typer.main import get_command

from driftline import __version__
from driftline.cli import (
    access,
    blocklist_command,
    browser_options,
    changes,
    check,
    crawl_command,
    feedback_command,
    history_commands,
    maintenance,
    rank_command,
    run,
    schedule_command,
    search_command,
    visit_command,
    watchlist,
)
from driftline.cli.filter_options import OrderedCommand
from driftline.cli.lab_command import lab_app
from driftline.cli.output import complain
from driftline.errors import DriftlineError, UsageError
from driftline.runtime import hunt_less_for_cycles
from driftline.setting_errors import explain_option

if TYPE_CHECKING:
    from collections.abc import Sequence

_INTERRUPTED = 130
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # for what is to be written

app = typer.Typer(
    help="Watch web pages and see what changed.",
    epilog="The watch list and its history are kept in a store: see --store of any command, or 'driftline settings'.",
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("add", cls=OrderedCommand)(watchlist.add)
app.command("import")(watchlist.import_)
app.command("list")(watchlist.list_)
app.command("edit", cls=OrderedCommand)(watchlist.edit)
app.command("remove")(watchlist.remove)
app.command("access")(access.access)
app.command("check")(check.check)
app.command("run")(run.run)
app.command("schedule")(schedule_command.schedule)
app.command("crawl")(crawl_command.crawl)
app.command("changes")(changes.changes)
app.command("history")(history_commands.history)
app.command("show")(history_commands.show)
app.command("diff")(history_commands.diff)
app.command("screenshot")(browser_options.screenshot)
app.command("feedback")(feedback_command.feedback)
app.command("search")(search_command.search)
app.command("visit")(visit_command.visit)
app.add_typer(visit_command.visits_app, name="visits")
app.command("rank")(rank_command.rank)
app.command("report-unsafe")(blocklist_command.report_unsafe)
app.add_typer(blocklist_command.blocklist_app, name="blocklist")
app.command("compact")(maintenance.compact)
app.command("doctor")(maintenance.doctor)
app.command("settings")(maintenance.settings)
app.add_typer(lab_app, name="lab")


def _print_version(wanted: bool) -> None:
    if wanted:
        print("driftline", __version__)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _driftline(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(2)


def main() -> NoReturn:
    """Run the command with the arguments of the process, and end the process."""
    hunt_less_for_cycles()
    status = main_with(sys.argv[1:])
    _discard_unwritable()
    gc.freeze()  # all that was loaded goes with the process: to look for cycles in it would take a fifth of a short run
    sys.exit(status)


def main_with(arguments: Sequence[str]) -> int:
    """Run the command; its exit status."""
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        status = get_command(app).main(args=list(arguments), prog_name="driftline", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return 1
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except DriftlineError as error:
        complain(str(error))
        return 2 if isinstance(error, UsageError) else 1
    except Exception as error:  # noqa: BLE001 the last place: whatever went wrong, the user gets a sentence
        return _told(error)
    return status if isinstance(status, int) else 0


def _told(error: Exception) -> int:
    # Typer carries its own copy of click since 0.2x and used click before: what they raise is told by its shape
    format_message = getattr(error, "format_message", None)
    if callable(format_message):
        wrong = getattr(error.__cause__, "errors", None)  # Typer checks values by pydantic since 0.2x, in its words
        if callable(wrong) and hasattr(error, "message"):
            error.message = explain_option(wrong()[0])
        context = getattr(error, "ctx", None)
        command = getattr(context, "command_path", "driftline")
        complain(f"{str(format_message()).rstrip('. ')}: see '{command} --help'.")
        return int(getattr(error, "exit_code", 2))
    if os.environ.get("DRIFTLINE_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
        return 1
    if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
        complain(f"The output could not be written, or not all of it: {error.strerror}.")
        return 1
    # what a database driver says comes wrapped with the statement, which is of no use to the user
    detail = str(getattr(error, "orig", None) or error).strip().partition("\n")[0].rstrip(".")
    kind = f"{type(error).__name__}: {detail}" if detail else type(error).__name__
    complain(f"Something unexpected went wrong ({kind}): try 'driftline doctor'; DRIFTLINE_DEBUG=1 shows where it was.")
    return 1


def _open_what_is_closed() -> None:
    """Who starts the command without an output or an error output wants to read nothing, and not that it fails.

    Nor may a file that is opened later take such a place, and be written to as if it were the output.
    """
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 open until the process ends
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 likewise


def _discard_unwritable() -> None:
    """Drop what cannot be written: the interpreter would try once more at its end, complain, and change the status."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
