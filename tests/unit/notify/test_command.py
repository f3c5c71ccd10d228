"""The command that gets each event: run once for each, again when it fails, in the order of its pages."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from driftline.durations import utc
from driftline.errors import BadSetting
from driftline.model.change import ChangeKind
from driftline.model.event import Event, EventKind, EventPage
from driftline.notify.command import GIVE_UP_AFTER, TOO_OLD, CommandEnd, CommandResult, CommandRunner, UserCommand
from driftline.store.events import Retry


def event(number: int, *ids: str, what: EventKind = EventKind.CHANGED, at: float = 1_000.0) -> Event:
    return Event(
        id=number, event=what, at=utc(at), host="a.example",
        urls=tuple(f"http://a.example/{one}" for one in ids or ("1",)),
        kind=ChangeKind.TEXT, score=1.0, headline="It says something else.", reason="Words.",
        ids=ids or (f"{number}-1",),
    )  # fmt: skip


@dataclass
class Waiting:
    """A reader of a log that is a list."""

    events: list[Event] = field(default_factory=list)
    position: int = 0
    kept: dict[int, Retry] = field(default_factory=dict)

    def read(self) -> list[Event]:
        return [one for one in self.events if one.id > self.position]

    def advance(self, event: Event) -> None:
        self.position = max(self.position, event.id)

    def retries(self) -> list[Retry]:
        return [self.kept[number] for number in sorted(self.kept)]

    def retry(self, retry: Retry) -> None:
        self.kept[retry.event.id] = retry
        self.advance(retry.event)

    def forget(self, retry: Retry) -> None:
        del self.kept[retry.event.id]


@dataclass
class Clock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


def runner(
    line: str, waiting: Waiting, complain: Callable[[str], None] = pytest.fail, *, clock: Clock | None = None,
    timeout: float = 60.0, first_retry: float = 10.0,
) -> CommandRunner:  # fmt: skip
    return CommandRunner(
        UserCommand(line, timeout), waiting, complain, clock=clock or Clock(), first_retry=first_retry
    )  # fmt: skip


def delivered(path: Path) -> list[int]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()] if path.exists() else []


def release(fifo: Path) -> None:
    with fifo.open("w") as gate:
        gate.write("on\n")


def test_each_event_is_one_line_of_json_on_standard_input(tmp_path: Path) -> None:
    file = tmp_path / "events"
    waiting = Waiting([event(1), event(2)])
    assert runner(f"sh -c 'cat >> {file}'", waiting).close(lambda: None)
    assert delivered(file) == [1, 2]
    assert waiting.position == 2
    first = json.loads(file.read_text().splitlines()[0])
    assert first["headline"] == "It says something else."
    assert first["time"] == "1970-01-01T00:16:40+00:00"


def test_events_that_come_later_are_delivered_when_it_is_woken(tmp_path: Path) -> None:
    file = tmp_path / "events"
    waiting = Waiting()
    at_work = runner(f"sh -c 'cat >> {file}'", waiting)
    waiting.events.append(event(1))
    at_work.wake()
    assert at_work.close(lambda: None)
    assert delivered(file) == [1]


def test_no_password_reaches_the_command(tmp_path: Path) -> None:
    file = tmp_path / "events"
    given = Event(
        id=1, event=EventKind.CHANGED, at=utc(1_000.0), host="a", urls=("http://me:sesame@a/",), kind=None, score=1.0,
        headline="", reason="http://u:sesame@b/ → c", ids=("1-1",),
    )  # fmt: skip
    assert runner(f"sh -c 'cat >> {file}'", Waiting([given])).close(lambda: None)
    assert "sesame" not in file.read_text()
    assert json.loads(file.read_text())["urls"] == ["http://me:***@a/"]


def fails_times(tmp_path: Path, times: int) -> str:
    """A command that fails so many times, then writes its events to a file."""
    tries, events = tmp_path / "tries", tmp_path / "events"
    return f"sh -c 'if [ $(wc -c < {tries}) -lt {times} ]; then printf x >> {tries}; exit 1; fi; cat >> {events}'"


def test_a_command_that_fails_three_times_and_then_succeeds_gets_its_event(tmp_path: Path) -> None:
    (tmp_path / "tries").touch()
    complaints: list[str] = []
    waiting, clock = Waiting([event(1)]), Clock()
    line = fails_times(tmp_path, 3)
    for tries in range(1, 4):
        assert not runner(line, waiting, complaints.append, clock=clock).close(lambda: None)
        assert waiting.kept[1].attempts == tries
        clock.now += 3_600
    assert runner(line, waiting, complaints.append, clock=clock).close(lambda: None)
    assert delivered(tmp_path / "events") == [1]
    assert waiting.kept == {}
    assert complaints[0] == "'sh' ended with status 1. It will be run again for the change 1-1."


def test_it_is_tried_again_by_itself(tmp_path: Path) -> None:
    """With the real clock and hardly any pause: the fourth try succeeds."""
    import time

    (tmp_path / "tries").touch()
    done = threading.Event()

    class Watched(Waiting):
        def forget(self, retry: Retry) -> None:
            super().forget(retry)
            done.set()

    waiting = Watched([event(1, at=time.time())])
    at_work = CommandRunner(UserCommand(fails_times(tmp_path, 3)), waiting, lambda _: None, first_retry=0.01)
    assert done.wait(60)
    assert at_work.close(lambda: None)
    assert delivered(tmp_path / "events") == [1]


def test_the_pause_doubles_from_try_to_try(tmp_path: Path) -> None:
    waiting, clock = Waiting([event(1)]), Clock()
    pauses = []
    for _ in range(4):
        runner("false", waiting, lambda _: None, clock=clock).close(lambda: None)
        pauses.append(waiting.kept[1].next_at - clock.now)
        clock.now = waiting.kept[1].next_at
    assert pauses == [10.0, 20.0, 40.0, 80.0]


def test_after_a_day_an_event_is_given_up(tmp_path: Path) -> None:
    complaints: list[str] = []
    waiting, clock = Waiting([event(1)]), Clock()
    runner("false", waiting, complaints.append, clock=clock).close(lambda: None)
    clock.now += GIVE_UP_AFTER
    assert runner("false", waiting, complaints.append, clock=clock).close(lambda: None)
    assert waiting.kept == {}
    assert complaints[-1] == "'false' ended with status 1. It failed for a day: the change 1-1 is given up."


def test_an_event_that_was_held_up_has_a_day_of_its_own(tmp_path: Path) -> None:
    """Its day begins when it fails for the first time, not when an earlier event of its page began to hold it up."""
    waiting, clock = Waiting([event(1, "1-5"), event(2, "1-6")]), Clock()

    def run() -> None:
        runner("false", waiting, lambda _: None, clock=clock).close(lambda: None)

    run()
    clock.now += GIVE_UP_AFTER
    run()
    assert [(one.event.id, one.attempts, one.since) for one in waiting.retries()] == [(2, 1, clock.now)]
    clock.now += GIVE_UP_AFTER - 1
    run()
    assert [one.event.id for one in waiting.retries()] == [2]
    clock.now += 1
    run()
    assert waiting.kept == {}


def test_events_of_long_ago_are_passed_over_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "events"
    waiting = Waiting([event(1), event(2), event(3, at=1_000.0 + TOO_OLD)])
    complaints: list[str] = []
    clock = Clock(1_001.0 + TOO_OLD)
    assert runner(f"sh -c 'cat >> {file}'", waiting, complaints.append, clock=clock).close(lambda: None)
    assert delivered(file) == [3]
    assert complaints == ["2 events are older than a week and not delivered to 'sh'."]


def test_a_run_that_ends_tries_everything_once(tmp_path: Path) -> None:
    """Although each try takes longer than the pause before the next."""
    clock = Clock()
    waiting = Waiting([event(1), event(2)])
    ending = threading.Event()

    class Slow(UserCommand):
        def run(self, given: bytes) -> CommandResult:
            ending.wait(60)
            clock.now += 60.0
            return super().run(given)

    at_work = CommandRunner(Slow("false"), waiting, lambda _: None, clock=clock)
    assert not at_work.close(ending.set)
    assert [retry.attempts for retry in waiting.retries()] == [1, 1]


def test_what_happened_to_a_page_is_delivered_in_order(tmp_path: Path) -> None:
    """The first event fails once; an event of another page does not wait for it, those of the same page do."""
    (tmp_path / "tries").touch()
    waiting = Waiting([
        event(1, "1-5", "2-5", what=EventKind.FAILING), event(2, "3-9"), event(3, "2-6", what=EventKind.RECOVERED),
        event(4, "1-6", what=EventKind.RECOVERED),
    ])  # fmt: skip
    line = fails_times(tmp_path, 1)
    clock = Clock()
    assert not runner(line, waiting, lambda _: None, clock=clock).close(lambda: None)
    assert delivered(tmp_path / "events") == [2]
    clock.now += 10
    assert runner(line, waiting, clock=clock).close(lambda: None)
    assert delivered(tmp_path / "events") == [2, 1, 3, 4]


def found_by_crawl(number: int, what: EventKind, *urls: str, pages: tuple[EventPage, ...] = ()) -> Event:
    return replace(event(number), event=what, urls=urls, ids=(), pages=pages)


def test_what_a_crawl_found_of_a_page_keeps_its_place_too(tmp_path: Path) -> None:
    """Of a watched page, whatever its address is, and of one that is not watched."""
    (tmp_path / "tries").touch()
    page = EventPage(id=1, url="http://a.example/one", title="", tags=(), check=None)
    waiting = Waiting([
        found_by_crawl(1, EventKind.NEW, "http://a.example/one", "http://a.example/two", pages=(page,)),
        event(2, "1-6"), found_by_crawl(3, EventKind.GONE, "http://a.example/two"),
        found_by_crawl(4, EventKind.NEW, "http://a.example/three"),
    ])  # fmt: skip
    line, clock = fails_times(tmp_path, 1), Clock()
    assert not runner(line, waiting, lambda _: None, clock=clock).close(lambda: None)
    assert delivered(tmp_path / "events") == [4]
    clock.now += 10
    assert runner(line, waiting, clock=clock).close(lambda: None)
    assert delivered(tmp_path / "events") == [4, 1, 2, 3]


def test_a_command_that_takes_too_long_is_ended_and_tried_again(tmp_path: Path) -> None:
    fifo = tmp_path / "gate"
    os.mkfifo(fifo)
    complaints: list[str] = []
    waiting = Waiting([event(1)])
    assert not runner(f"cat {fifo}", waiting, complaints.append, timeout=0.05).close(lambda: None)
    assert "took longer than 0.05 s" in complaints[0]
    assert waiting.kept[1].attempts == 1


def test_a_command_that_went_away_meanwhile_is_tried_again(tmp_path: Path) -> None:
    program = tmp_path / "listen"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    complaints: list[str] = []
    waiting = Waiting([event(1), event(2)])
    command = UserCommand(str(program))
    program.unlink()
    at_work = CommandRunner(command, waiting, complaints.append, clock=Clock())
    assert not at_work.close(lambda: None)
    assert "No such file" in complaints[0]
    assert len([one for one in complaints if "No such file" in one]) == 1, "the same complaint is made once"
    assert len(waiting.kept) == 2


@pytest.mark.parametrize("command", ["", "   ", "echo 'open"])
def test_what_is_no_command_is_refused_at_once(command: str) -> None:
    with pytest.raises(BadSetting):
        UserCommand(command)


@pytest.mark.parametrize("command", ["no-such-program --json", "./text", "/nowhere/at/all", ".", "~/listen"])
def test_a_command_that_cannot_be_run_is_refused_at_once(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text").write_text("no program")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadSetting, match=r"is not found.*sh -c"):
        UserCommand(command)


@pytest.mark.parametrize(
    ("command", "operator"),
    [
        ("cat > events", ">"), ("cat>>events", ">>"), ("cat 2>/dev/null", "2>"), ("cat | wc", "|"),
        ("true && cat", "&&"), ("true; cat", ";"), ("cat &", "&"), ("echo $HOME", "$HOME"),
        ("echo $(date)", "$("), ("echo `date`", "`"),
    ],
)  # fmt: skip
def test_a_command_that_needs_a_shell_is_refused_with_the_one_that_works(command: str, operator: str) -> None:
    with pytest.raises(BadSetting) as raised:
        UserCommand(command)
    assert f"'{operator}'" in str(raised.value)
    assert f"sh -c '{command}'" in str(raised.value)


@pytest.mark.parametrize(
    "command",
    ["sh -c 'cat > events'", 'sh -c "cat > $X"', "cat '>'", "echo http://a.example/?a=1&b=2", r"echo \; \$HOME"],
)
def test_what_is_quoted_needs_no_shell(command: str) -> None:
    assert UserCommand(command).name in command


def test_a_stop_leaves_what_takes_too_long_to_the_next_run(tmp_path: Path) -> None:
    fifo = tmp_path / "gate"
    os.mkfifo(fifo)
    complaints: list[str] = []
    waiting = Waiting([event(1), event(2)])
    looks: Iterator[float | None] = iter([None, 0.01])
    assert not runner(f"cat {fifo}", waiting, complaints.append).close(lambda: next(looks, 0.0))
    assert complaints == ["'cat' did not get all events in time: the next run delivers the rest."]
    assert (waiting.position, waiting.kept) == (0, {})


def test_what_a_command_leaves_running_holds_up_nothing(tmp_path: Path) -> None:
    fifo = tmp_path / "gate"
    os.mkfifo(fifo)
    waiting = Waiting([event(1), event(2)])
    assert runner(f"sh -c 'cat {fifo} & true'", waiting).close(lambda: None)
    release(fifo)


def test_a_command_has_a_session_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "session"
    line = f"""{sys.executable} -c "import os; open('{file}', 'w').write(str(os.getsid(0)))" """
    assert runner(line, Waiting([event(1)])).close(lambda: None)
    assert int(file.read_text()) != os.getsid(0)


@pytest.mark.parametrize("trapped", ["", "trap : TERM; "])
def test_a_stop_ends_the_command_with_all_that_it_started(tmp_path: Path, trapped: str) -> None:
    """A shell in the shell holds one end of a pipe for as long as it lives, and may ignore SIGTERM."""
    alive, gate = tmp_path / "alive", tmp_path / "gate"
    os.mkfifo(alive)
    os.mkfifo(gate)
    reading = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    inner = f"{trapped}exec 3> {alive}; echo here >&3; while true; do cat {gate}; done"
    waiting = Waiting([event(1)])
    at_work = runner(f"sh -c '({inner}); true'", waiting, lambda _: None)
    assert select.select([reading], [], [], 60)[0]
    assert os.read(reading, 100) == b"here\n"
    assert not at_work.close(lambda: 0.0)
    assert select.select([reading], [], [], 60)[0], "it lives on"
    assert os.read(reading, 100) == b""
    os.close(reading)
    assert waiting.position == 0


def test_nothing_is_run_any_more_after_a_stop(tmp_path: Path) -> None:
    file = tmp_path / "events"
    command = UserCommand(f"sh -c 'cat >> {file}'")
    command.stop()
    waiting = Waiting([event(1)])
    at_work = CommandRunner(command, waiting, pytest.fail, clock=Clock())
    assert not at_work.close(lambda: None)
    assert not file.exists()
    assert waiting.position == 0


def test_a_stop_while_the_command_is_being_started_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a signal handler, which interrupts the thread that starts it: no lock may be held there."""
    fifo = tmp_path / "gate"
    os.mkfifo(fifo)
    command = UserCommand(f"cat {fifo}", timeout=5.0)
    ended: list[int | None] = []  # its status when it is waited for

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *given: Any, **options: Any) -> None:
            super().__init__(*given, **options)
            command.stop()

        def wait(self, timeout: float | None = None) -> int:
            ended.append(self.poll())
            return super().wait(timeout)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    assert command.run(b"{}") == CommandResult(end=CommandEnd.STOPPED)
    assert ended == [-signal.SIGTERM]


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("true", CommandResult(end=CommandEnd.SUCCEEDED)),
        ("false", CommandResult(end=CommandEnd.FAILED, error="'false' ended with status 1.")),
        (
            "sh -c 'echo no such list. >&2; exit 3'",
            CommandResult(end=CommandEnd.FAILED, error="'sh' ended with status 3: no such list."),
        ),
        (
            "sh -c 'kill -9 $$'",
            CommandResult(end=CommandEnd.FAILED, error="'sh' was killed by signal 9 (SIGKILL)."),
        ),
        (
            f"sh -c 'kill -{signal.SIGRTMIN + 2} $$'",
            CommandResult(end=CommandEnd.FAILED, error=f"'sh' was killed by signal {signal.SIGRTMIN + 2}."),
        ),
    ],
)
def test_a_run_of_the_command_says_how_it_ended(line: str, result: CommandResult) -> None:
    assert UserCommand(line).run(b"{}") == result


def test_an_event_that_is_no_change_is_named_by_what_happened_to_its_page() -> None:
    complaints: list[str] = []
    failing = replace(event(7, "3-4", what=EventKind.FAILING), urls=("http://me:sesame@a.example/3",))
    runner("false", Waiting([failing]), complaints.append).close(lambda: None)
    assert complaints[0].endswith("It will be run again for the event 'failing http://me:***@a.example/3'.")


def test_without_temporary_files_an_attempt_fails_and_the_next_delivers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, folder = tmp_path / "events", tmp_path / "temporary"
    complaints: list[str] = []
    waiting, clock = Waiting([event(1), event(2)]), Clock()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert not runner(f"sh -c 'cat >> {file}'", waiting, complaints.append, clock=clock).close(lambda: None)
    assert sorted(waiting.kept) == [1, 2]
    assert "no temporary file can be written (No such file or directory)" in complaints[0]
    folder.mkdir()
    assert runner(f"sh -c 'cat >> {file}'", waiting, complaints.append, clock=clock).close(lambda: None)
    assert delivered(file) == [1, 2]


def test_a_full_disk_is_one_failed_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", partial(open, "/dev/full", "r+b", buffering=0))
    result = UserCommand("true").run(b"{}")
    assert result.end is CommandEnd.FAILED
    assert "(No space left on device): free space, or set TMPDIR" in result.error
