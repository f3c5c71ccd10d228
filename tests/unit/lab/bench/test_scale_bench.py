"""Which commands the table of `lab scale` has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from driftline.cli.main import app
from driftline.lab.bench.scale_bench import Files, commands


def with_a_store(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the commands that use a store, each as the words that begin it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from with_a_store(command, (*path, name))
        elif any(parameter.name == "store" for parameter in command.params):
            yield (*path, name)


def test_every_command_that_uses_a_store_is_measured(tmp_path: Path) -> None:
    measured = [one.arguments for one in commands(80, 100, Files.write(tmp_path, 100))]
    used = [words for words in with_a_store(get_command(app)) if words[0] not in ("lab", "settings")]

    assert used
    assert [words for words in used if not any(given[: len(words)] == words for given in measured)] == []


def test_as_many_addresses_and_visits_are_imported_as_there_are_pages(tmp_path: Path) -> None:
    files = Files.write(tmp_path, 50)
    addresses = files.addresses.read_text().splitlines()

    assert len(set(addresses)) == 50
    assert [line.split(",")[0] for line in files.visits.read_text().splitlines()] == ["url", *addresses]
