from __future__ import annotations

import json
import os
import queue
import select
import sys
from pathlib import Path

import pytest

from driftline.errors import BadSetting
from driftline.notify.command import Hook

AGAIN = "What it did not get is told again, by the next run at the latest."


def release(fifo: Path) -> None:
    """Let the command end that waits for somebody to write, and those that come after it."""
    writing = os.open(fifo, os.O_WRONLY)
    fifo.unlink()
    os.close(writing)


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


def test_a_command_that_fails_is_told_and_ends_nothing() -> None:
    complaints: list[str] = []
    hook = Hook(f"{sys.executable} -c 'import sys; sys.exit(\"no room\")'", complaints.append)
    done: list[int] = []
    hook.tell({"event": "changed"}, lambda: done.append(1))
    hook.tell({"event": "changed"}, lambda: done.append(2))
    assert hook.close(60.0), "it was told all the same"
    assert done == [1, 2]
    assert len(complaints) == 2
    assert all("ended with status 1: no room" in one for one in complaints)


def test_a_command_that_went_away_meanwhile_is_told_and_ends_nothing(tmp_path: Path) -> None:
    program = tmp_path / "listen"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    complaints: list[str] = []
    hook = Hook(str(program), complaints.append)
    program.unlink()
    for number in range(3):
        hook.tell({"event": "changed", "number": number}, pytest.fail)
    assert not hook.close(60.0)
    assert complaints == [f"'{program}' cannot be run: No such file or directory. {AGAIN}"], "said once"


def test_that_a_command_cannot_be_run_is_said_again_after_it_could(tmp_path: Path) -> None:
    program, heard = tmp_path / "listen", tmp_path / "heard"
    steps: queue.Queue[str] = queue.Queue()
    program.write_text(f"#!/bin/sh\necho >> {heard}\n")
    program.chmod(0o700)
    hook = Hook(str(program), steps.put)
    for runs in (False, True, False):
        program.chmod(0o700 if runs else 0o600)
        hook.tell({"event": "changed"}, lambda: steps.put("told"))
        refused = f"'{program}' cannot be run: Permission denied. {AGAIN}"
        assert steps.get(timeout=60) == ("told" if runs else refused)
    assert not hook.close(60.0)


def test_a_command_that_takes_too_long_was_not_told(tmp_path: Path) -> None:
    fifo = tmp_path / "gate"
    os.mkfifo(fifo)
    complaints: list[str] = []
    hook = Hook(f"cat {fifo}", complaints.append, seconds=0.01)
    hook.tell({"event": "changed"}, pytest.fail)
    assert not hook.close(60.0)
    assert complaints == [f"'cat' took longer than 0.01 s for an event and was stopped. {AGAIN}"]


def test_what_a_command_started_is_stopped_with_it(tmp_path: Path) -> None:
    """A shell in the shell holds one end of a pipe for as long as it lives."""
    alive, gate = tmp_path / "alive", tmp_path / "gate"
    os.mkfifo(alive)
    os.mkfifo(gate)
    reading = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    for seconds in (0.5, 5.0, 50.0):  # the machine may be busy
        hook = Hook(f"sh -c '(exec 3> {alive}; echo here >&3; cat {gate}); true'", lambda _: None, seconds=seconds)
        hook.tell({"event": "changed"})
        hook.close(120.0)
        if select.select([reading], [], [], 0)[0] and os.read(reading, 100) == b"here\n":
            break
    assert select.select([reading], [], [], 60)[0], "it lives on"
    assert os.read(reading, 100) == b""
    os.close(reading)


@pytest.mark.parametrize("command", ["", "   ", "echo 'open"])
def test_what_is_no_command_is_refused_at_once(command: str) -> None:
    with pytest.raises(BadSetting):
        Hook(command, lambda _: None)


@pytest.mark.parametrize("command", ["no-such-program --json", "./text", "/nowhere/at/all", ".", "~/listen"])
def test_a_command_that_cannot_be_run_is_refused_at_once(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text").write_text("no program")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadSetting, match=r"is not found.*sh -c"):
        Hook(command, lambda _: None)


def test_a_full_queue_does_not_keep_a_run_from_ending(tmp_path: Path) -> None:
    fifo = tmp_path / "gate"
    os.mkfifo(fifo)
    complaints: list[str] = []
    hook = Hook(f"cat {fifo}", complaints.append, most=2)  # waits until somebody writes
    for number in range(4):
        hook.tell({"event": "changed", "number": number})
    assert not hook.close(0.05)
    assert complaints[0].startswith("2 events wait for 'cat'")
    assert complaints[-1] == "4 events were not told to 'cat' in time: the next run does it."


def test_every_command_has_its_time_as_long_as_nobody_is_in_a_hurry(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    hook = Hook(f"sh -c 'cat >> {heard}; echo >> {heard}'", pytest.fail, most=9)
    for number in range(9):
        hook.tell({"number": number})
    assert hook.close(0.0, lambda: False)
    assert [json.loads(line)["number"] for line in heard.read_text().splitlines()] == [*range(9)]


def test_a_hurry_that_comes_later_is_heard(tmp_path: Path) -> None:
    fifo = tmp_path / "gate"
    os.mkfifo(fifo)
    complaints: list[str] = []
    hook = Hook(f"cat {fifo}", complaints.append)
    hook.tell({"event": "changed"})
    looks = iter([False, False, True])
    assert not hook.close(0.0, lambda: next(looks))
    assert complaints == ["1 event was not told to 'cat' in time: the next run does it."]


def test_an_event_for_which_there_was_no_room_is_not_forgotten_in_the_end(tmp_path: Path) -> None:
    fifo = tmp_path / "gate"
    os.mkfifo(fifo)
    complaints: list[str] = []
    hook = Hook(f"cat {fifo}", complaints.append, most=1)
    for _ in range(3):
        hook.tell({"event": "changed"})
    release(fifo)
    assert not hook.close(60.0, lambda: False)
    assert complaints[0].startswith("1 events wait for 'cat'")


def test_what_a_command_leaves_running_holds_up_nothing(tmp_path: Path) -> None:
    fifo = tmp_path / "gate"
    os.mkfifo(fifo)
    complaints: list[str] = []
    hook = Hook(f"sh -c 'cat {fifo} & echo no room >&2; exit 3'", complaints.append)
    hook.tell({"event": "changed"})
    hook.tell({"event": "changed"})
    hook.close(30.0)
    assert complaints == ["'sh' ended with status 3: no room"] * 2
    release(fifo)


def test_a_command_does_not_hear_what_the_terminal_says_to_the_run(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    hook = Hook(f"""{sys.executable} -c "import os; open('{heard}', 'w').write(str(os.getsid(0)))" """, pytest.fail)
    hook.tell({"event": "changed"})
    hook.close(60.0)
    assert int(heard.read_text()) != os.getsid(0)


def test_the_command_is_told_no_password(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    hook = Hook(f"{sys.executable} -c \"import sys; open({str(heard)!r}, 'w').write(sys.stdin.read())\"", print)
    hook.tell({"event": "changed", "at": 1.5, "urls": ["http://me:sesame@a/"], "reason": "http://u:sesame@b/ → c"})
    hook.close(60.0)
    assert json.loads(heard.read_text()) == {
        "event": "changed", "at": 1.5, "urls": ["http://me:***@a/"], "reason": "http://u:***@b/ → c",
    }  # fmt: skip


@pytest.mark.parametrize("trapped", ["", "trap : TERM; "])
def test_a_hurry_ends_the_command_with_all_that_it_started(tmp_path: Path, trapped: str) -> None:
    """A shell in the shell holds one end of a pipe for as long as it lives, and may not hear that it is to end."""
    alive, gate = tmp_path / "alive", tmp_path / "gate"
    os.mkfifo(alive)
    os.mkfifo(gate)
    reading = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    inner = f"{trapped}exec 3> {alive}; echo here >&3; while true; do cat {gate}; done"
    hook = Hook(f"sh -c '({inner}); true'", lambda _: None)
    hook.tell({"event": "changed"}, pytest.fail)
    assert select.select([reading], [], [], 60)[0]
    assert os.read(reading, 100) == b"here\n"
    assert not hook.close(0.0)
    assert select.select([reading], [], [], 60)[0], "it lives on"
    assert os.read(reading, 100) == b""
    os.close(reading)


def test_nothing_is_run_any_more_after_a_hurry(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    hook = Hook(f"sh -c 'cat >> {heard}'", pytest.fail)
    hook.cut_off()
    hook.tell({"event": "changed"}, pytest.fail)
    assert not hook.close(60.0)
    assert not heard.exists()


def test_what_was_not_told_of_a_page_is_told_before_what_comes_later(tmp_path: Path) -> None:
    """The first event cannot be told at its time; another page does not wait for it."""
    program, heard = tmp_path / "listen", tmp_path / "heard"
    program.write_text(f"#!/bin/sh\ncat >> {heard}; echo >> {heard}\n")
    program.chmod(0o700)
    steps: queue.Queue[str] = queue.Queue()
    hook = Hook(str(program), steps.put)
    program.chmod(0o600)
    hook.tell({"event": "failing", "ids": ("1-5", "2-5")})
    assert "Permission denied" in steps.get(timeout=60)
    program.chmod(0o700)
    hook.tell({"event": "changed", "ids": ("3-9",)})
    hook.tell({"event": "recovered", "ids": ("2-6",)})
    hook.tell({"event": "recovered", "ids": ("1-6",)})
    assert hook.close(60.0), "in the end all were told"
    told = [json.loads(line) for line in heard.read_text().splitlines()]
    assert [(one["event"], one["ids"]) for one in told] == [
        ("changed", ["3-9"]), ("failing", ["1-5", "2-5"]), ("recovered", ["2-6"]), ("recovered", ["1-6"]),
    ]  # fmt: skip


def test_what_has_no_room_keeps_back_what_comes_later_of_its_pages(tmp_path: Path) -> None:
    fifo, heard = tmp_path / "gate", tmp_path / "heard"
    os.mkfifo(fifo)
    started: queue.Queue[str] = queue.Queue()
    hook = Hook(f"sh -c 'cat >> {heard}; echo >> {heard}; cat {fifo}'", started.put, most=1)
    hook.tell({"ids": ("1-1",)})
    while not heard.exists():
        os.sched_yield()
    hook.tell({"ids": ("2-1",)})
    hook.tell({"ids": ("3-1",)})  # no room
    assert "one more is left" in started.get(timeout=60)
    release(fifo)
    while "2-1" not in heard.read_text():
        os.sched_yield()
    hook.tell({"ids": ("3-2",)})
    assert not hook.close(60.0)
    assert "3-" not in heard.read_text()
