"""The pages of the documentation that are written by programs are up to date."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_reference_of_the_commands_is_what_the_commands_say() -> None:
    reference = runpy.run_path(str(ROOT / "scripts" / "cli_reference.py"))["reference"]
    written = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert written == reference(), "docs/reference/cli.md is out of date: run 'make reference'"
