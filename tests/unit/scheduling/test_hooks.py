from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from driftline.errors import BadSetting
from driftline.scheduling.hooks import Hook


def test_each_event_runs_the_command_with_the_event_on_its_standard_input(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    program = f"import sys; open({str(heard)!r}, 'a').write(sys.stdin.read() + chr(10))"
    complaints: list[str] = []
    hook = Hook(f'{sys.executable} -c "{program}"', complaints.append)
    hook.tell({"event": "changed", "urls": ["http://a/"]})
    hook.tell({"event": "failing", "urls": ["http://b/"]})
    hook.close(60.0)
    assert [json.loads(line)["event"] for line in heard.read_text().splitlines()] == ["changed", "failing"]
    assert complaints == []


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (f"{sys.executable} -c 'import sys; sys.exit(\"no room\")'", "ended with status 1: no room"),
        ("/nowhere/at/all", "cannot be run: No such file or directory"),
    ],
)
def test_a_command_that_fails_is_told_and_ends_nothing(command: str, complaint: str) -> None:
    complaints: list[str] = []
    hook = Hook(command, complaints.append)
    hook.tell({"event": "changed"})
    hook.tell({"event": "changed"})
    hook.close(60.0)
    assert len(complaints) == 2
    assert all(complaint in one for one in complaints)


@pytest.mark.parametrize("command", ["", "   ", "echo 'open"])
def test_what_is_no_command_is_refused_at_once(command: str) -> None:
    with pytest.raises(BadSetting):
        Hook(command, lambda _: None)
