"""The text of --help: options and commands in panels, as plain text.

Typer draws panels only with rich, whose import takes longer than everything else that `--help` does. These classes
write the same panels as sections of click's plain help.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from typer.core import TyperCommand, TyperGroup

WATCH_LIST = "Watch list"
CHECKING = "Check pages"
LOOKING_BACK = "Look back"
VISITS = "Visits"
SAFETY = "Safety"
UPKEEP = "Upkeep"
MEASURING = "Measure"
WHAT_COUNTS = "What counts as a change"
BROWSER = "Pages that need a browser"
POLITENESS = "Politeness and networks"
SCHEDULE = "Schedule (advanced)"
PIPELINE = "Pipeline (advanced)"

_RANGE = re.compile(r"; x[<>]=?\d+(?=\])|\s*\[x[<>]=?\d+\]")  # how click shows a limit: [default: 20; x>=1]
_FIRST_COLUMN = 28  # characters; longer names get a line of their own


class PanelCommand(TyperCommand):
    """A command whose options are shown by panel: those without one first, advanced ones last."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options."""
        _write_parameters(self, ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line, without the braces that Typer puts around required arguments."""
        return [piece.translate({ord("{"): None, ord("}"): None}) for piece in super().collect_usage_pieces(ctx)]


class PanelGroup(TyperGroup):
    """A group of commands that are shown by panel, in the order in which the panels first appear."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options of the group, then its commands."""
        _write_parameters(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one line for each command."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        shown = [(name, command) for name, command in commands if command is not None and not command.hidden]
        widest = max((len(name) for name, _ in shown), default=0)
        panels: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for name, command in shown:
            summary = command.get_short_help_str(formatter.width - widest - 4)
            panels[getattr(command, "rich_help_panel", None) or "Commands"].append((name.ljust(widest), summary))
        _write_sections(formatter, panels)


def _write_parameters(command: Any, ctx: Any, formatter: Any) -> None:
    panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        name, text = record
        text = _RANGE.sub("", text).rstrip()  # a wrong number is explained when it is given
        panel = getattr(parameter, "rich_help_panel", None) or "Options"
        if parameter.param_type_name == "argument":
            panel, name = "Arguments", parameter.metavar or name  # without the Python type that Typer adds
        panels.setdefault(panel, []).append((name, text))
    options = [name for panel, rows in panels.items() if panel != "Arguments" for name, _ in rows]
    widest = min(_FIRST_COLUMN, max((len(name) for name in options), default=0))
    for panel, rows in panels.items():
        if panel != "Arguments":
            panels[panel] = [(name.ljust(widest), text) for name, text in rows]
    _write_sections(formatter, panels)


def _write_sections(formatter: Any, panels: dict[str, list[tuple[str, str]]]) -> None:
    for title, rows in sorted(panels.items(), key=lambda panel: "(advanced)" in panel[0]):
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows, col_max=_FIRST_COLUMN)
