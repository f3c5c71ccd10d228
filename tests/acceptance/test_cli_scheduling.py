"""What is checked next, and what is done about what is found."""

from __future__ import annotations

import json
import os
import select
import signal
import sqlite3
import sys
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from command import Command, stopped
from driftline.urls import host_of
from support.servers import Site, closed_port


def test_the_schedule_says_what_comes_next_and_why(driftline: Command, site: Site) -> None:
    asked, usual = site.put("/asked", "one"), site.put("/usual", "two")
    driftline("add", asked, "--every", "5m")
    driftline("check")
    driftline("add", usual)
    terms = {one["url"]: one for one in driftline.json("schedule")}
    assert (terms[asked]["lane"], terms[asked]["every"]) == ("deadline", 300.0)
    assert terms[asked]["due_at"] > 0
    assert datetime.fromisoformat(terms[asked]["due"]).timestamp() == pytest.approx(terms[asked]["due_at"])
    assert datetime.fromisoformat(terms[asked]["tried"]).timestamp() == pytest.approx(terms[asked]["tried_at"])
    assert terms[asked]["why"].startswith("every 5m; checked")
    assert (terms[usual]["why"], terms[usual]["tried"]) == ("never checked", None)
    assert (terms[usual]["lane"], terms[usual]["days"]) == ("new", None)
    told = driftline("schedule", "--limit", "1", "--budget", "10/m")
    assert "never checked" in told.out, "what may be checked now comes before what is due later"
    assert told.err == (
        "2 pages, at most 10 checks a minute; 12 checks an hour of that at set intervals; 1 more page not shown.\n"
    )
    assert "every 5m" in driftline("schedule").out
    assert driftline("schedule", "--policy", "uniform").err == (
        "2 pages, 12 checks an hour at set intervals, the others about once an hour, the longest unchecked first.\n"
    )
    driftline("check")
    assert "longest unchecked first; checked" in driftline("schedule", "--policy", "uniform").out
    assert "in the order of visits; checked" in driftline("schedule", "--policy", "intelligent").out


def test_a_page_is_ranked_by_what_its_check_is_worth(driftline: Command, site: Site) -> None:
    loved, other = site.put("/loved", "one"), site.put("/other", "two")
    driftline("add", other, loved)
    driftline("check")
    for _ in range(3):
        driftline("visit", loved, "--seconds", "60")
    first, second = driftline.json("rank", "--by", "value")
    assert (first["url"], first["frequency"], second["url"], second["frequency"]) == (loved, 3, other, 0)
    assert first["value"] > second["value"] > 0
    assert driftline("rank", "--by", "value", "--csv").out.splitlines()[0].endswith(",watched,value")
    assert "ranks watched pages" in driftline("rank", "--by", "value", "--example").err


def test_a_page_that_is_gone_is_said_to_be(driftline: Command, site: Site, tmp_path: Path) -> None:
    page = site.put("/a", "text")
    driftline("add", page)
    with closing(sqlite3.connect(tmp_path / "pages.db")) as store, store:
        for number in range(1, 6):
            row = (number, 86_400.0 * number)
            store.execute(
                "INSERT INTO checks (page_id, sequence, run_id, at, verdict, status, seconds, bytes, failure_kind,"
                " failure) VALUES (1, ?, 1, ?, 'failed', 404, 0, 0, 'status', 'It failed.')", row,
            )  # fmt: skip
            store.execute(
                "UPDATE states SET sequence = ?, checked_at = ?, verdict = 'failed', failure_kind = 'status',"
                " failure = 'It failed.', failures = failures + 1", row,
            )  # fmt: skip
    assert [one["gone"] for one in driftline.json("list")] == [True]
    assert " gone " in driftline("list").out
    assert "is gone" in driftline("history", page).err
    assert "is gone" in driftline("schedule").out


def test_a_run_tells_each_event_to_the_command_of_the_user(driftline: Command, site: Site, tmp_path: Path) -> None:
    page = site.put("/a", "one two three")
    size = len(site.pages["/a"])
    heard = tmp_path / "heard.jsonl"
    listener = tmp_path / "listen.py"
    listener.write_text(f"import sys\nopen({str(heard)!r}, 'a').write(sys.stdin.read())\n")
    driftline("add", page, "--every", "1s")
    with driftline.start("run", "-v", "--exec", f"{sys.executable} {listener}") as process:
        assert process.stdout is not None
        assert "1 page seen for the first time" in process.stdout.readline()
        site.put("/a", "one two four")
        assert "changed" in process.stdout.readline()
        del site.pages["/a"]
        assert "failing" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()

    assert process.returncode == stopped(err)
    events = [json.loads(line) for line in heard.read_text().splitlines()]
    assert [(event["event"], event["urls"]) for event in events] == [("changed", [page]), ("failing", [page])]
    assert events[0]["reason"] == "1 word added and 1 word removed in one place: one two three → one two four."
    logged = [line for line in err.splitlines() if "verdict=" in line]
    assert any("verdict=new" in line and f"url={page}" in line for line in logged)
    assert f"bytes={size} " in logged[0], "what the page sent, though its body is let go by then"


def test_a_run_goes_on_when_the_store_fails_at_what_is_done_in_idle_time(
    driftline: Command, site: Site, tmp_path: Path
) -> None:
    page = site.put("/a", "one two three")
    driftline("add", page, "--every", "2s")
    driftline("check")
    driftline("edit", page, "--drop", "nav")
    with closing(sqlite3.connect(tmp_path / "pages.db")) as store:
        store.execute("CREATE TRIGGER torn BEFORE UPDATE ON versions BEGIN INSERT INTO nowhere VALUES (1); END")
    with driftline.start("run") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert any("Catching up failed" in line for line in process.stderr)
        site.put("/a", "one two four")
        assert "changed" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
    assert process.returncode == stopped(err)


def test_a_page_that_does_not_answer_holds_up_no_news_of_others(driftline: Command, site: Site) -> None:
    with Site() as slow:
        driftline("add", site.put("/a", "one two three"), slow.put("/b", "text"), "--every", "1s")
        driftline("check")
        site.put("/a", "one two four")
        slow.open_gate.clear()
        with driftline.start("run") as process:
            assert process.stdout is not None
            assert "changed" in process.stdout.readline()
            slow.open_gate.set()
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate()
    assert (process.returncode, out) == (stopped(err), ""), "nothing is told twice"


def test_a_run_that_is_stopped_says_what_it_leaves(driftline: Command, site: Site) -> None:
    with Site() as slow:
        driftline("add", site.put("/a", "text"), slow.put("/b", "text"))
        slow.open_gate.clear()
        with driftline.start("run", "-v", DRIFTLINE_STOP_GRACE="0.2") as process:
            assert process.stderr is not None
            assert any("verdict=new" in line for line in process.stderr)
            assert slow.asked.wait(60)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate()
    assert process.returncode == 1
    assert err.endswith("Stopped: 1 page left for the next run.\n")


@pytest.mark.parametrize("words", [(), ("--once",)])
def test_a_run_says_that_pages_of_one_host_take_long_and_how_many_of_them_are_left(
    driftline: Command, site: Site, words: tuple[str, ...]
) -> None:
    driftline("add", *(site.put(f"/{number}", "text") for number in range(20)))
    with driftline.start("run", "-v", *words, "--host-delay", "50", DRIFTLINE_STOP_GRACE="0.2") as process:
        assert process.stderr is not None
        told = [process.stderr.readline()]
        while not ("verdict=new" in "".join(told) and "to be polite" in "".join(told)):
            told.append(process.stderr.readline())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    [polite] = [line for line in told if "to be polite" in line]
    assert polite.split("about")[0] in [
        f"{number} pages on {host_of(site.url('/'))}, one request every 50 s to be polite: this takes "
        for number in (19, 20)
    ]
    assert "to be polite" not in err
    assert "Stopped: 19 pages left for the next run.\n" in err
    assert process.returncode == 1


def test_a_second_signal_ends_the_command_too_and_the_next_run_tells_its_event_again(
    driftline: Command, tmp_path: Path
) -> None:
    """The command holds one end of a pipe for as long as it lives."""
    alive, heard = tmp_path / "alive", tmp_path / "heard"
    os.mkfifo(alive)
    reading = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    driftline("add", f"http://127.0.0.1:{closed_port()}/")
    slow = f"sh -c 'exec 3> {alive}; echo here >&3; (sleep 600); true'"
    with driftline.start("run", "--once", "--exec", slow, DRIFTLINE_FAIL_AFTER="1") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "failing" in process.stdout.readline()
        assert select.select([reading], [], [], 60)[0]
        assert os.read(reading, 100) == b"here\n"
        process.send_signal(signal.SIGINT)
        assert "Stopping" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert select.select([reading], [], [], 60)[0], "it lives on"
    assert os.read(reading, 100) == b""
    os.close(reading)
    driftline("run", "--once", "--exec", f"sh -c 'cat > {heard}'")
    assert json.loads(heard.read_text())["event"] == "failing"


def test_what_was_recorded_is_told_even_if_the_run_fails(driftline: Command, site: Site, tmp_path: Path) -> None:
    with Site() as slow:
        driftline("add", site.put("/a", "one two three"), slow.put("/b", "text"), "--every", "1s")
        driftline("check")
        with closing(sqlite3.connect(tmp_path / "pages.db")) as store:
            torn = "BEFORE INSERT ON checks WHEN NEW.page_id = 2 BEGIN SELECT RAISE(ABORT, 'torn'); END"
            store.execute(f"CREATE TRIGGER torn {torn}")
        site.put("/a", "one two four")
        slow.open_gate.clear()
        with driftline.start("run", "-v") as process:
            assert process.stderr is not None
            assert any("verdict=changed" in line for line in process.stderr)
            slow.open_gate.set()
            out, _ = process.communicate()
    assert process.returncode == 1
    assert [line.split()[2] for line in out.splitlines()] == ["changed"]


def test_intervals_that_would_take_the_whole_budget_are_refused(driftline: Command, site: Site) -> None:
    budget = {"DRIFTLINE_BUDGET": "10/m"}
    assert driftline("add", site.put("/a", "text"), "--every", "10s", **budget).status == 0
    refused = driftline("add", site.put("/b", "text"), "--every", "20s", **budget)
    assert (refused.status, refused.out) == (2, "")
    assert "more than 80% of the budget of 10/m" in refused.err
    assert len(driftline.json("list")) == 1


def test_a_page_counts_once_against_the_budget_with_the_interval_that_it_will_have(
    driftline: Command, site: Site
) -> None:
    budget = {"DRIFTLINE_BUDGET": "10/m"}
    page = site.put("/a", "text")
    assert driftline("add", page, "--every", "8s", **budget).status == 0
    assert driftline("edit", page, "--every", "10s", **budget).status == 0
    assert driftline("edit", page, "--every", "8s", **budget).status == 0
    again = driftline("add", page, "--every", "8s", **budget)
    assert (again.status, again.out) == (0, f"Already watched: {page}\n")
    refused = driftline("edit", page, "--every", "7s", **budget)
    assert (refused.status, refused.out) == (2, "")
    assert "more than 80% of the budget" in refused.err
    assert driftline("edit", page, "--every", "9s", DRIFTLINE_BUDGET="1/m").status == 0, "it asks for less than before"


def test_intervals_that_would_take_all_that_a_host_is_asked_are_refused(driftline: Command) -> None:
    cap = {"DRIFTLINE_HOST_BUDGET": "10/m"}
    assert driftline("add", "https://a.example/1", "--every", "10s", **cap).status == 0
    assert driftline("add", "https://b.example/1", "--every", "20s", **cap).status == 0
    refused = driftline("add", "https://b.example/2", "https://a.example/2", "--every", "20s", **cap)
    assert refused.status == 2
    assert "on a.example take 9/m, more than 80% of the host budget of 10/m" in refused.err


def test_a_run_warns_of_intervals_that_take_its_whole_budget(driftline: Command, site: Site) -> None:
    driftline("add", site.put("/a", "text"), "--every", "1s")
    with driftline.start("run", "--budget", "30/m", DRIFTLINE_HOST_BUDGET="20/m") as process:
        assert process.stderr is not None
        assert "take 1/s, more than 80% of the budget of 30/m" in process.stderr.readline()
        assert "take 1/s, more than 80% of the host budget of 20/m" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
    assert process.returncode == stopped(err), err


@pytest.mark.parametrize("words", [(), ("--budget", "1/m"), ("--policy", "fixed")])
def test_a_single_pass_checks_all_that_is_due_whatever_the_budget(
    driftline: Command, site: Site, words: tuple[str, ...]
) -> None:
    driftline("add", *(site.put(f"/{number}", "text") for number in range(3)))
    ended = driftline("run", "--once", *words, DRIFTLINE_BUDGET="1/m", DRIFTLINE_HOST_BUDGET="1/m")
    assert "3 pages seen for the first time" in ended.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "--budget", "lots", "--once"), "write 10/s"),
        (("run", "--budget", "", "--once"), "write 10/s"),
        (("run", "--policy", "", "--once"), "use value, intelligent, fixed, uniform"),
        (("schedule", "--budget", ""), "write 10/s"),
        (("run", "--policy", "best", "--once"), "use value, intelligent, fixed, uniform"),
        (("run", "--exec", "", "--once"), "is empty"),
        (("run", "--policy", "value", "--once"), "nothing to choose by 'value'"),
        (("schedule", "--every", "never"), "never"),
    ],
)
def test_bad_options_get_a_sentence(driftline: Command, words: tuple[str, ...], said: str) -> None:
    ended = driftline(*words)
    assert ended.status == 2
    assert said in ended.err
    assert len(ended.err.strip().splitlines()) == 1
