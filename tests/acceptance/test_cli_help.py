"""--help in plain words, and the completion of commands by the shell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command import Command

VERBS = {
    "Add", "Change", "Check", "Compare", "Count", "Crawl", "Find", "Import", "Keep", "Make", "Manage", "Mark",
    "Measure", "Read", "Remove", "Repeat", "Report", "Run", "Save", "Serve", "Set", "Show", "Judge", "Store",
}  # fmt: skip
GROUPS = ((), ("visits",), ("blocklist",), ("lab",))
COMMAND = re.compile(r"^  ([a-z][a-z-]*)  +([A-Z].*)$", re.MULTILINE)


def commands(driftline: Command, group: tuple[str, ...]) -> dict[str, str]:
    """The commands that --help lists, each with its summary."""
    return dict(COMMAND.findall(driftline(*group, "--help").out))


@pytest.mark.parametrize("group", GROUPS)
def test_every_command_is_summed_up_on_one_line_that_begins_with_a_verb(
    driftline: Command, group: tuple[str, ...]
) -> None:
    found = commands(driftline, group)
    assert found
    for name, summary in found.items():
        assert not summary.endswith("..."), f"{name}: cut at 80 columns"
        assert summary.split()[0] in VERBS, name


@pytest.mark.parametrize("group", GROUPS)
def test_every_help_fits_into_80_columns_and_shows_no_types_of_python(
    driftline: Command, group: tuple[str, ...]
) -> None:
    for name in commands(driftline, group):
        shown = driftline(*group, name, "--help")
        assert shown.status == 0
        assert "<list" not in shown.out
        assert "<str>" not in shown.out
        assert all(len(line) <= 80 for line in shown.out.splitlines()), shown.out


def test_the_parameters_of_the_paper_stand_in_a_panel_of_their_own_at_the_end(driftline: Command) -> None:
    everyday, _, advanced = driftline("check", "--help").out.partition("Pipeline (advanced):")
    for option in ("--pipeline", "--producers", "--slots", "--consumers", "--comparers", "--queues", "--capacity"):
        assert option not in everyday
        assert option in advanced
    assert everyday.index("--tag") < everyday.index("--host-delay")


def test_the_rank_explains_its_columns(driftline: Command) -> None:
    text = " ".join(driftline("rank", "--help").out.split())
    for words in ("number of visits", "seconds spent", "found the page available", "TTL > frequency/2"):
        assert words in text


@pytest.fixture
def bash(tmp_path: Path) -> Path:
    """A new home for a shell."""
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    return tmp_path


def in_bash(home: Path, line: str) -> str:
    """What a line prints in bash; Typer finds the shell by the parent process, so bash must not replace itself."""
    program = Path(sys.executable).with_name("driftline")
    environment = {"HOME": str(home), "PATH": f"{program.parent}:{os.environ['PATH']}", "TERM": "dumb"}
    ran = subprocess.run(
        ["bash", "-c", f"{line}; exit $?"], capture_output=True, text=True, env=environment, cwd=home, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_completion_of_the_shell_can_be_shown_and_installed(bash: Path) -> None:
    script = in_bash(bash, "driftline --show-completion")
    assert "_DRIFTLINE_COMPLETE=complete_bash" in script
    assert "completion installed" in in_bash(bash, "driftline --install-completion")
    assert "driftline" in (bash / ".bashrc").read_text()


@pytest.mark.parametrize(
    ("words", "place", "found"), [("driftline sch", 1, "schedule"), ("driftline check --ho", 2, "--host-delay")]
)
def test_commands_and_options_are_completed(bash: Path, words: str, place: int, found: str) -> None:
    request = f"COMP_WORDS='{words}' COMP_CWORD={place} _DRIFTLINE_COMPLETE=complete_bash"
    assert found in in_bash(bash, f"{request} driftline").split()
