"""A run that is killed at any moment loses nothing that it recorded, and repeats nothing."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import driftline
from command import Command
from driftline.api import workspace_of
from driftline.lab.simweb.simweb_client import RunningWeb, serve
from driftline.lab.simweb.world import World
from support.servers import Site

PAGES = 400
KILLS = 20
WORLD = World(
    pages=PAGES, hosts=40, size_mean=20_000, change_rate=0.3, error_rate=0.02, latency=0.2, latency_shape="lognormal"
)


def start(store: Path, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "driftline", *words, "--store", str(store)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def checks_recorded(store: Path) -> int:
    connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    try:
        return int(connection.execute("SELECT count(*) FROM checks").fetchone()[0])
    finally:
        connection.close()


def state_of(store: Path) -> dict[str, Any]:
    """All that a run leaves behind, but for the times at which it happened."""
    with driftline.open(str(store)) as pages:
        assert pages.maintenance.doctor() == []
        return {
            page.url: (
                page.checks,
                page.versions,
                page.verdict,
                page.failure,
                [
                    (check.sequence, check.verdict, check.status, check.version)
                    for check in pages.history.checks(page.url)
                ],
                [
                    (version.body, version.text)
                    for number in range(1, page.versions + 1)
                    for version in [workspace_of(pages).repository.version(page, number)]
                ],
            )
            for page in pages.pages()
        }


def add_pages(store: Path, web: RunningWeb) -> None:
    with driftline.open(str(store)) as pages:
        pages.add(*web.urls())


def check_in_peace(store: Path) -> None:
    with driftline.open(str(store)) as pages:
        pages.check()


def check_through_kills(store: Path, web: RunningWeb, moments: random.Random, most: int) -> int:
    """Check all pages in a run that is killed after a random number of requests or records, again and again.

    How often it was: as often as it may be, or less if the machine is so busy that the run was over before the kill.
    """
    for kills in range(most):
        recorded, requested = checks_recorded(store), web.stats()["requests"]
        by_requests, limit = moments.random() < 0.5, moments.randint(1, 25)
        process = start(store, "check", "--json")
        while is_running(process):
            now = web.stats()["requests"] - requested if by_requests else checks_recorded(store) - recorded
            if now >= limit:
                break
        process.kill()
        process.communicate()
        assert checks_recorded(store) >= recorded, "what was committed is still there"
        if process.returncode == 0:
            return kills
        assert process.returncode == -signal.SIGKILL
    last = start(store, "check", "--json")
    last.communicate()
    assert last.returncode == 0
    return most


def is_running(process: subprocess.Popen[bytes]) -> bool:
    """Whether it is still running some moments later, which are left to it."""
    try:
        process.wait(0.005)
    except subprocess.TimeoutExpired:
        return True
    return False


@pytest.mark.timeout(900)  # more than twenty runs, which take minutes on a machine that is busy with other things
def test_a_run_killed_twenty_times_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    """Generations are checked by a store whose runs are killed up to ten times each, and by one left in peace."""
    moments = random.Random(20261115)
    disturbed, peaceful = tmp_path / "disturbed.db", tmp_path / "peaceful.db"
    with serve(WORLD) as web:
        for store in (disturbed, peaceful):
            add_pages(store, web)
        kills = 0
        for generation in count():
            web.generation(generation)
            kills += check_through_kills(disturbed, web, moments, KILLS // 2)
            check_in_peace(peaceful)
            if kills >= KILLS:
                break
    after_kills, in_peace = state_of(disturbed), state_of(peaceful)
    assert len(in_peace) == PAGES
    assert after_kills == in_peace


def test_a_run_without_an_end_loses_nothing_when_it_is_killed_and_goes_on(tmp_path: Path) -> None:
    store = tmp_path / "pages.db"
    with serve(WORLD) as web:
        with driftline.open(str(store)) as pages:
            pages.add(*web.urls()[:60], every="1s")
        for _ in range(4):
            recorded = checks_recorded(store)
            process = start(store, "run")
            while is_running(process):
                if checks_recorded(store) >= recorded + 90:
                    break
            process.kill()
            process.communicate()
            assert process.returncode == -signal.SIGKILL
            recorded = checks_recorded(store)
    with driftline.open(str(store)) as pages:
        assert pages.maintenance.doctor() == []
        for page in pages.pages():
            assert [check.sequence for check in pages.history.checks(page.url)] == list(range(page.checks, 0, -1))
        assert sum(page.checks for page in pages.pages()) == recorded >= 4 * 90


def test_a_check_reports_what_it_had_recorded_when_it_was_killed(driftline: Command, site: Site) -> None:
    urls = [site.put(f"/{number}", f"Page {number} as it was at first.") for number in range(6)]
    driftline("add", *urls)
    driftline("check")
    for number in range(6):
        site.put(f"/{number}", f"Page {number} says something else by now, at some length.")
    store = driftline.folder / "pages.db"
    process = driftline.start("check", "--host-delay", "0.3", "--host-connections", "1")
    while checks_recorded(store) < 6 + 2:
        assert process.poll() is None
    process.kill()
    process.communicate()
    report = driftline.json("check")
    assert report["continued"]
    assert sorted(change["url"] for change in report["changes"]) == sorted(urls)
    assert report["changed"] < 6


def test_a_change_that_was_recorded_is_told_though_the_run_was_killed(
    driftline: Command, site: Site, tmp_path: Path
) -> None:
    url = site.put("/", "Words of a page, as they were at first.")
    heard = tmp_path / "heard"
    command = f"sh -c 'cat >> {heard}'"
    driftline("add", url, "--every", "1s")
    process = driftline.start("run", "-v", "--exec", command)
    assert process.stderr is not None
    for line in process.stderr:
        if "verdict=new" in line:
            site.put("/", "Words of a page, and they are others now.")
        if "verdict=changed" in line:
            break
    process.kill()
    process.communicate()
    assert driftline("run", "--once", "--exec", command).status == 0
    told = [json.loads(line) for line in heard.read_text().splitlines()]
    assert {(event["event"], *event["urls"]) for event in told} == {("changed", url)}
