"""The command `driftline`: its subcommands, and its exit status.

Exit status: 0 done, 1 it failed, 2 usage, 130 interrupted. Every error is one plain sentence; DRIFTLINE_DEBUG=1 shows
the traceback of an unexpected one.
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
    add_command,
    blocklist_command,
    check,
    crawl_command,
    diff_command,
    doctor,
    feedback_command,
    history_commands,
    lab_accuracy,
    lab_servers,
    lab_speed,
    maintenance,
    preview,
    rank_command,
    run,
    schedule_command,
    search_command,
    visit_command,
    watchlist,
)
from driftline.cli.help_panels import (
    CHECKING,
    LOOKING_BACK,
    MEASURING,
    SAFETY,
    UPKEEP,
    VISITS,
    WATCH_LIST,
    PanelCommand,
    PanelGroup,
)
from driftline.cli.log_output import is_json_asked_for, is_json_log, restored_log, set_up_log
from driftline.cli.output import complain
from driftline.cli.page_options import OrderedCommand
from driftline.errors import DriftlineError, UsageError
from driftline.runtime import collect_garbage_rarely

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_INTERRUPTED = 130
_BEFORE_COMMAND = ("-v", "--verbose", "--log-format")  # options of every command
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # output cannot be written

app = typer.Typer(
    help="Watch web pages and see what changed.",
    epilog="Start with 'driftline add URL' and 'driftline run'. 'driftline COMMAND --help' explains a command.",
    cls=PanelGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS: tuple[tuple[str, str, Callable[..., None], type[PanelCommand]], ...] = (
    (WATCH_LIST, "add", add_command.add, OrderedCommand),
    (WATCH_LIST, "try", preview.try_, OrderedCommand),
    (WATCH_LIST, "import", add_command.import_, PanelCommand),
    (WATCH_LIST, "list", watchlist.list_, PanelCommand),
    (WATCH_LIST, "edit", watchlist.edit, OrderedCommand),
    (WATCH_LIST, "filters", watchlist.filters_, OrderedCommand),
    (WATCH_LIST, "remove", watchlist.remove, PanelCommand),
    (WATCH_LIST, "access", access.access, PanelCommand),
    (CHECKING, "check", check.check, PanelCommand),
    (CHECKING, "run", run.run, PanelCommand),
    (CHECKING, "schedule", schedule_command.schedule, PanelCommand),
    (CHECKING, "crawl", crawl_command.crawl, PanelCommand),
    (LOOKING_BACK, "changes", history_commands.changes, PanelCommand),
    (LOOKING_BACK, "history", history_commands.history, PanelCommand),
    (LOOKING_BACK, "show", history_commands.show, PanelCommand),
    (LOOKING_BACK, "diff", diff_command.diff, PanelCommand),
    (LOOKING_BACK, "values", history_commands.values, PanelCommand),
    (LOOKING_BACK, "screenshot", history_commands.screenshot, PanelCommand),
    (LOOKING_BACK, "search", search_command.search, PanelCommand),
    (LOOKING_BACK, "feedback", feedback_command.feedback, PanelCommand),
    (VISITS, "visit", visit_command.visit, PanelCommand),
    (VISITS, "rank", rank_command.rank, PanelCommand),
    (SAFETY, "report-unsafe", blocklist_command.report_unsafe, PanelCommand),
    (UPKEEP, "compact", maintenance.compact, PanelCommand),
    (UPKEEP, "doctor", doctor.doctor, PanelCommand),
    (UPKEEP, "settings", maintenance.settings, PanelCommand),
)
for _panel, _name, _function, _class in _COMMANDS:
    app.command(_name, cls=_class, rich_help_panel=_panel)(_function)
lab_app = typer.Typer(help="Measure speed, accuracy and politeness on test sites.", cls=PanelGroup)
_LAB_COMMANDS: tuple[Callable[..., None], ...] = (
    lab_servers.web,
    lab_speed.experiment,
    lab_speed.speed,
    lab_speed.tuning,
    lab_speed.scale,
    lab_accuracy.noise,
    lab_accuracy.detection,
    lab_accuracy.reports,
    lab_accuracy.storage,
    lab_accuracy.freshness,
    lab_accuracy.picking,
    lab_servers.hostile,
    lab_servers.polite,
    lab_servers.crawl,
    lab_servers.faults,
    lab_servers.soak,
)
for _lab_command in _LAB_COMMANDS:
    lab_app.command(cls=PanelCommand)(_lab_command)
app.add_typer(visit_command.visits_app, name="visits", rich_help_panel=VISITS)
app.add_typer(blocklist_command.blocklist_app, name="blocklist", rich_help_panel=SAFETY)
app.add_typer(lab_app, name="lab", rich_help_panel=MEASURING)


def _print_version(wanted: bool) -> None:
    if wanted:
        print("driftline", __version__)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _driftline(
    context: typer.Context,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            show_default=False,
            help="Log what happens on standard error: the state changes of a run, or every step with -vv.",
        ),
    ] = 0,
    log_format: Annotated[
        str,
        typer.Option(
            "--log-format",
            metavar="text|json",
            show_default=False,
            help="How to log. With json, everything on standard error is one JSON object per line. [default: text]",
        ),
    ] = "text",
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    if log_format not in ("text", "json"):
        raise UsageError(f"'{log_format}' is not a format of the log: use text or json.")
    set_up_log(verbose, "json" if log_format == "json" else "text")
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(2)


def main() -> NoReturn:
    """Run the command with the arguments of the process, and end the process."""
    collect_garbage_rarely()
    status = main_with(sys.argv[1:])
    _discard_unwritable()
    gc.freeze()  # a last garbage collection at exit would take a fifth of a short run
    sys.exit(status)


def main_with(arguments: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    with restored_log():
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
        except Exception as error:  # noqa: BLE001 the last resort: every error becomes a sentence
            if not is_json_log() and is_json_asked_for(arguments):  # the command was refused before its options count
                set_up_log(0, "json")
            return _report(error)
    return status if isinstance(status, int) else 0


def _report(error: Exception) -> int:
    # Typer has its own copy of click since 0.2x and used click before, so their errors are recognised by shape
    format_message = getattr(error, "format_message", None)
    if callable(format_message):
        wrong = getattr(error.__cause__, "errors", None)  # Typer checks values with pydantic since 0.2x
        if callable(wrong) and hasattr(error, "message"):
            from driftline.settings import explain_option

            error.message = explain_option(wrong()[0])
        context = getattr(error, "ctx", None)
        command = getattr(context, "command_path", "driftline")
        option = getattr(error, "option_name", None)
        if option in _BEFORE_COMMAND and command != "driftline":
            complain(f"The option {option} stands before the command: write 'driftline {option}{command[9:]}'.")
            return int(getattr(error, "exit_code", 2))
        sentence = str(format_message()).rstrip(". ")
        complain(
            f"{sentence} See '{command} --help'." if sentence.endswith("?") else f"{sentence}: see '{command} --help'."
        )
        return int(getattr(error, "exit_code", 2))
    if os.environ.get("DRIFTLINE_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
        return 1
    if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
        complain(f"The output could not be written completely: {error.strerror}.")
        return 1
    if isinstance(error, UnicodeEncodeError):  # such bytes become characters that nothing but a file name can have
        complain("An argument has bytes that are not text in UTF-8: write it in UTF-8.")
        return 2
    # SQLAlchemy adds the statement to the message of the driver, which does not help the user
    detail = str(getattr(error, "orig", None) or error).strip().partition("\n")[0].rstrip(".")
    kind = f"{type(error).__name__}: {detail}" if detail else type(error).__name__
    complain(f"Unexpected error ({kind}): run 'driftline doctor', or set DRIFTLINE_DEBUG=1 to see the traceback.")
    return 1


def _open_closed_streams() -> None:
    """Open /dev/null for standard streams that were closed by the caller.

    Otherwise printing fails, or a file opened later gets their descriptor and is overwritten by the output.
    """
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 open until the process ends
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 likewise


def _discard_unwritable() -> None:
    """Drop output that cannot be written: Python would try again at exit, complain, and change the exit status."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
