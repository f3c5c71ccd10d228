"""Write the reference of every command and option, as the command itself describes them.

python scripts/cli_reference.py docs/reference/cli.md

A test fails if the file is not what this program writes: `make reference` brings it up to date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.main import get_command

from driftline.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterator

INTRODUCTION = """# Commands

<!-- Written by scripts/cli_reference.py: change the help texts in src/driftline/cli, then run `make reference`. -->

What `driftline COMMAND --help` says, for every command.
"""
WIDTH = 10_000  # help texts are not wrapped: Markdown does that


def main(target: Path) -> None:
    """Write the reference."""
    target.write_text(reference(), encoding="utf-8")


def reference() -> str:
    """Return the reference of all commands, in Markdown."""
    command: Any = get_command(app)
    parts = [INTRODUCTION]
    parts += ["\n".join(section(path, one)) for path, one in commands(command, "driftline")]
    return "\n".join(parts)


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the command and those below it, each with what one types for it."""
    yield path, command
    for name, one in getattr(command, "commands", {}).items():
        if not one.hidden:
            yield from commands(one, f"{path} {name}")


def section(path: str, command: Any) -> Iterator[str]:
    """Yield the lines about one command: what it does, its arguments, and its options by panel."""
    context = command.make_context(path, [], resilient_parsing=True, terminal_width=WIDTH, max_content_width=WIDTH)
    yield f"## `{path}`"
    yield ""
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"    {path} {usage}".rstrip()
    yield ""
    yield prose(command.help or "")
    yield ""
    panels: dict[str, list[str]] = {}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None or parameter.name == "help":
            continue
        names, text = re.sub(r" <[\w\[\]]+>$", "", record[0]), record[1]
        panel = getattr(parameter, "rich_help_panel", None) or ""
        panels.setdefault(panel, []).append(f"| `{cell(names)}` | {cell(escaped(text))} |")
    for panel, rows in panels.items():
        if panel:
            yield f"**{panel}**"
            yield ""
        yield "| option | |"
        yield "|---|---|"
        yield from rows
        yield ""


def prose(text: str) -> str:
    """Return a help text as Markdown paragraphs, each on a line."""
    paragraphs = re.split(r"\n\s*\n", text.replace("\b", "").replace("\f", "").strip())
    return "\n\n".join(escaped(" ".join(paragraph.split())) for paragraph in paragraphs)


def cell(text: str) -> str:
    """Return a text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def escaped(text: str) -> str:
    """Return a text in which Markdown and HTML find nothing to interpret."""
    return re.sub(r"([\\*_<>\[\]`#])", r"\\\1", text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
