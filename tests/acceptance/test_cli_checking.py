"""Checking pages from the command line."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

import driftline as package
from command import Command, stopped
from driftline.api import workspace_of
from support.servers import Site

_FIGURES = {
    "pages", "new", "changed", "unchanged", "failed", "left", "seconds", "effective_ms", "bytes", "pipeline",
    "producers", "slots", "consumers", "comparers", "queues", "continued", "changes", "failures",
}  # fmt: skip


def test_a_check_tells_what_is_new_changed_unchanged_and_failed(driftline: Command, site: Site) -> None:
    driftline("add", site.put("/a", "one two three"), site.put("/b", "the same"), site.url("/missing"))

    first = driftline.json("check")
    assert first.keys() >= _FIGURES
    assert (first["pages"], first["new"], first["failed"], first["left"]) == (3, 2, 1, 0)
    assert first["failures"] == [
        {"url": site.url("/missing"), "kind": "status", "reason": "The server answered 404 Not Found."}
    ]

    site.put("/a", "one two four")
    second = driftline("check")
    assert second.status == 0
    lines = second.out.splitlines()
    assert lines[0].startswith(f"changed   1-2     {site.url('/a')}  one two three → one two four")
    assert lines[1] == f"failed            {site.url('/missing')}  The server answered 404 Not Found."
    assert lines[2].startswith("3 pages in ")
    assert "0 new, 1 changed, 1 unchanged, 1 failed (" in lines[2]
    assert second.err == ""

    site.put("/a", "one two five")
    (change,) = driftline.json("check")["changes"]
    assert change.items() >= {"url": site.url("/a"), "kind": "text", "from_version": 2, "to_version": 3}.items()


@pytest.mark.parametrize(
    "options",
    [
        ("--pipeline", "sequential"),
        ("--pipeline", "three-section", "--producers", "2", "--comparers", "2"),
        ("--queues", "2", "--producers", "2", "--slots", "3", "--consumers", "2", "--capacity", "10"),
    ],
)
def test_every_pipeline_finds_the_same(driftline: Command, site: Site, options: tuple[str, ...]) -> None:
    driftline("add", *(site.put(f"/{number}", f"text {number}") for number in range(5)))

    found = driftline.json("check", *options)

    assert (found["pages"], found["new"]) == (5, 5)
    asked = dict(zip(options[::2], options[1::2], strict=True))
    for option in ("--pipeline", "--producers", "--slots", "--queues", "--comparers"):
        assert str(found[option[2:]]) == asked.get(option, str(found[option[2:]]))


def test_only_the_named_or_tagged_pages_are_checked(driftline: Command, site: Site) -> None:
    driftline("add", site.put("/a", "a"), "--tag", "x")
    driftline("add", site.put("/b", "b"))

    assert driftline.json("check", site.url("/b"))["pages"] == 1
    assert driftline.json("check", "--tag", "x")["new"] == 1


def test_long_lists_are_cut_short(driftline: Command, site: Site) -> None:
    driftline("import", "-", given="\n".join(site.put(f"/{number}", "Some words.") for number in range(12)))
    driftline("check")
    site.pages.clear()

    lines = driftline("check").out.splitlines()

    assert len(lines) == 12
    assert lines[10] == "failed            … and 2 more: list them with --all"
    named = driftline("check", "--all").out.splitlines()
    assert [line for line in named if line.startswith("failed")] == named[:12]


def test_a_signal_stops_the_run_and_the_next_check_continues_it(driftline: Command, site: Site) -> None:
    driftline("add", *(site.put(f"/{number}", "text") for number in range(3)))
    site.open_gate.clear()

    with driftline.start("check", "--json", DRIFTLINE_STOP_GRACE="0.2") as process:
        site.asked.wait()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()

    assert process.returncode == 1
    assert '"left": 3' in out
    assert "Stopping after the requests in flight…" in err
    assert "3 pages left" in err
    assert "Traceback" not in err

    site.open_gate.set()
    again = driftline("check")
    assert again.status == 0
    assert "Continuing an interrupted check: 3 pages left. Start over with --fresh." in again.err
    assert again.out.startswith("3 pages in ")


def test_a_second_signal_ends_at_once(driftline: Command, site: Site) -> None:
    driftline("add", site.put("/a", "text"))
    site.open_gate.clear()

    with driftline.start("check", DRIFTLINE_STOP_GRACE="100") as process:
        site.asked.wait()
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Stopping")
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130


def test_a_terminal_sees_the_bar_and_the_colours(driftline: Command, site: Site) -> None:
    driftline("add", site.put("/a", "text"))

    status, shown = driftline.on_terminal("check")

    assert status == 0
    assert "1/1" in shown
    assert "\x1b[36m1 new\x1b[0m" in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h")


def test_a_run_follows_the_pages_and_ends_on_a_signal(driftline: Command, site: Site) -> None:
    page = site.put("/a", "one two three")
    with driftline.start("run") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stderr.readline().startswith(
            "No pages are watched yet: in another terminal, type: driftline add https://"
        )
        driftline("add", page, "--every", "1s")
        assert "1 page seen for the first time" in process.stdout.readline()
        site.put("/a", "one two four")
        line = process.stdout.readline()
        assert "changed" in line
        assert page in line
        del site.pages["/a"]
        assert "failing" in process.stdout.readline()
        site.put("/a", "one two four")
        assert "recovered" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()

    assert process.returncode == stopped(err)
    assert "Traceback" not in err


def test_a_single_round_checks_only_what_is_due(driftline: Command, site: Site) -> None:
    driftline("add", site.put("/a", "text"))

    assert "1 page seen for the first time" in driftline("run", "--once").out
    driftline("add", site.put("/b", "text"))
    assert driftline("run", "--once").status == 0
    assert driftline("run", "--once").err.startswith("Nothing is due. The next page is due at ")

    assert [page["checks"] for page in driftline.json("list")] == [1, 1]


def test_a_check_waits_for_its_turn_beside_another(driftline: Command, site: Site, tmp_path: Path) -> None:
    driftline("add", site.put("/a", "text"))
    with package.open(str(tmp_path / "pages.db")) as other, ExitStack() as turn:
        turn.enter_context(workspace_of(other).store.right_to_check())
        with driftline.start("check") as process:
            assert process.stderr is not None
            assert f"(process {os.getpid()}) is checking the pages of" in process.stderr.readline()
            turn.close()
            out, _ = process.communicate()
    assert process.returncode == 0
    assert out.startswith("1 page in ")
