"""What the README promises works as it is written there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import driftline as package
from command import Command
from support.servers import Server, html

README = Path(__file__).parents[2] / "README.md"


def test_the_library_example_prints_what_changed(tmp_path: Path) -> None:
    """The example is taken from the README and run twice, as it stands but for the address."""
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    words = ["first words", "other words"]
    with Server(lambda _: html(words[0])) as server:
        script = example.replace("https://example.com/", server.url("/"))
        runs = []
        for _ in range(2):
            command = [sys.executable, "-W", "error", "-c", script]
            environment = os.environ | {"HOME": str(tmp_path)}
            ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
            assert ran.returncode == 0, ran.stderr
            runs.append(ran.stdout)
            words[0] = words[1]
    assert runs[0] == ""
    assert "-first words" in runs[1]
    assert "+other words" in runs[1]


def test_the_example_is_the_one_in_the_help_of_the_package() -> None:
    """Whoever types help(driftline) sees the same lines, or lines as short."""
    assert package.__doc__ is not None
    assert 'with driftline.open("pages.db") as pages:' in package.__doc__


def test_every_command_of_the_table_is_there(driftline: Command) -> None:
    """Each command that the README names answers to --help."""
    rows = re.findall(r"^\| (`.*?) \|", README.read_text(), re.MULTILINE)
    commands = {words.split(" ")[0] for row in rows for words in re.findall(r"`(.*?)`", row)}
    assert len(commands) > 10
    for command in commands:
        assert driftline(command, "--help").status == 0, command
