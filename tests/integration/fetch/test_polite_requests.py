"""Polite runs, as the servers see them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import driftline
from driftline import Plan, Stop
from driftline.api import workspace_of
from driftline.cli.main import main_with
from driftline.errors import FailureKind
from driftline.lab.bench.server_log_bench import measure_politeness
from driftline.lab.servers.host_farm import Farm
from support.making import settings
from support.servers import Answer, Request, Server, answer, html
from support.worlds import WIRINGS

OBEYING = {"robots": "obey", "host_connections": 1}


class Site:
    """Pages with a robots.txt, of which a test sets what it forbids and after how many requests it is busy."""

    def __init__(self) -> None:
        self.words = "as it is"
        self.refuses_after = 1_000

    def __call__(self, request: Request) -> Answer:
        if request.path == "/robots.txt":
            return answer(b"User-agent: driftline\nDisallow: /private/\n", "200 OK", "Content-Type: text/plain")
        self.refuses_after -= 1
        if self.refuses_after < 0:
            return answer(b"", "429 Too Many Requests", "Retry-After: 3600")
        return html(f"{request.path} {self.words}")


def test_the_logs_of_many_hosts_prove_that_a_check_is_polite() -> None:
    found = measure_politeness(Farm(hosts=12, pages=3, latency=0.01), delay=0.05)
    assert (found.pages, found.failed) == (12 * 4, 12)
    assert found.requests == 12 * 4
    assert found.forbidden == 0
    assert found.at_once == found.connections == 1
    assert found.shortest >= 0.05


def test_pages_that_change_are_fetched_again_as_politely() -> None:
    found = measure_politeness(Farm(hosts=12, pages=2, latency=0.01, changes=True), delay=0.05)
    assert found.changed == 12 * 2
    assert found.requests == 12 * (1 + 3 * 2)
    assert found.at_once == 1
    assert found.shortest >= 0.05


@pytest.mark.parametrize("plan", WIRINGS)
def test_robots_txt_is_obeyed_and_requested_once_in_every_wiring(plan: Plan, tmp_path: Path) -> None:
    site = Site()
    with (
        Server(site) as server,
        driftline.open(settings=settings(store=str(tmp_path / "pages.db"), host_delay=0.001, **OBEYING)) as pages,
    ):
        pages.add(*[server.url(f"/{number}") for number in range(6)], server.url("/private/1"))
        first = pages.check(plan=plan)
        assert (first.new, first.failed) == (6, 1)
        (forbidden,) = [page for page in pages.pages() if page.failure is not None]
        assert forbidden.failure is not None
        assert forbidden.failure.kind is FailureKind.ROBOTS
        site.words = "as it has become, which is quite another thing to say"
        assert pages.check(plan=plan).changed == 6
    assert len(server.asked_for("/robots.txt")) == 1
    assert not server.asked_for("/private/1")
    assert len(server.requests) == 1 + 6 + 2 * 6


def test_pages_of_a_host_that_sends_a_retry_after_are_neither_failed_nor_lost(tmp_path: Path) -> None:
    site = Site()
    site.refuses_after = 3
    with (
        Server(site) as server,
        driftline.open(settings=settings(store=str(tmp_path / "pages.db"), **OBEYING)) as pages,
    ):
        pages.add(*[server.url(f"/{number}") for number in range(10)])
        report = pages.check()
        assert (report.new, report.failed, report.left) == (3, 1, 6)
        assert [*report.quiet] == [f"127.0.0.1:{server.port}"]
        asked = len(server.requests)
        with Server(Site()) as other:
            pages.add(other.url("/"))
            for new in (1, 0):
                again = pages.check()
                assert (again.pages, again.new, again.left, again.continued) == (1, new, 10, False)
        assert len(server.requests) == asked, "and hold up no other host"


def test_pages_that_are_put_off_are_not_due_when_a_run_is_stopped(tmp_path: Path) -> None:
    site, stop = Site(), Stop()
    site.refuses_after = 3
    with (
        Server(site) as server,
        driftline.open(settings=settings(store=str(tmp_path / "pages.db"), **OBEYING)) as pages,
    ):
        pages.add(*[server.url(f"/{number}") for number in range(10)])
        scheduler = workspace_of(pages).runs.scheduler(once=True)
        with workspace_of(pages).runs.keep_checking(lambda _: None, stop=stop) as running:
            planner = workspace_of(pages).runs.planner(scheduler, running.feed, stop, pytest.fail)
            planner.offer()
            while len(running.feed):
                running.wait(0.01)
            stop.request()
        planner.end(once=True)
        assert (running.put_off, running.left, planner.left(once=False)) == (6, 0, 0)


def test_what_is_due_and_was_not_checked_is_left_whether_or_not_it_was_offered(tmp_path: Path) -> None:
    site, stop = Site(), Stop()
    with (
        Server(site) as server,
        driftline.open(settings=settings(store=str(tmp_path / "pages.db"), host_delay=50.0)) as pages,
    ):
        pages.add(*[server.url(f"/{number}") for number in range(10)])
        slow: list[tuple[str, int, float]] = []
        scheduler = workspace_of(pages).runs.scheduler()
        with workspace_of(pages).runs.keep_checking(lambda _: None, stop=stop) as running:
            planner = workspace_of(pages).runs.planner(
                scheduler, running.feed, stop, pytest.fail, slow=lambda *host: slow.append(host)
            )
            planner.offer(256)
            while len(running.feed):
                running.wait(0.01)
            planner.offer(256)
            stop.request()
        planner.end(once=False)
        assert (running.left, planner.left(once=False)) == (0, 9)
        pages.remove(server.url("/7"))
        scheduler.refresh()
        assert planner.left(once=False) == 8
    assert slow == [(f"127.0.0.1:{server.port}", 9, 50.0)]


def test_the_pages_of_a_host_that_take_long_are_reported_in_a_run_that_is_fed(tmp_path: Path) -> None:
    stop, reported = Stop(), threading.Event()
    slow: list[tuple[str, int, float]] = []

    def report(*of: Any) -> None:
        slow.append(of)
        reported.set()

    with (
        Server(Site()) as server,
        driftline.open(settings=settings(store=str(tmp_path / "pages.db"), host_delay=50.0)) as pages,
    ):
        pages.add(*[server.url(f"/{number}") for number in range(10)])
        with workspace_of(pages).runs.keep_checking(lambda _: None, stop=stop, slow=report) as running:
            running.feed.offer([page.id for page in pages.pages()])
            assert reported.wait(60)
            stop.request()
    assert slow == [(f"127.0.0.1:{server.port}", 10, 50.0)]


def test_the_command_names_the_hosts_that_sent_a_retry_after_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRIFTLINE_STORE", str(tmp_path / "pages.db"))
    site = Site()
    site.refuses_after = 1
    with Server(site) as server:
        main_with(["add", *[server.url(f"/{number}") for number in range(3)], server.url("/private/1")])
        assert main_with(["check", "--robots", "obey", "--host-connections", "1"]) == 0
        said = capsys.readouterr()
        assert f"The robots.txt of 127.0.0.1:{server.port} asks not to fetch this page" in said.out.replace("\n", " ")
        assert "1 page postponed" in said.err
        assert "asked us to slow down (Retry-After) until" in said.err


def test_robots_txt_is_ignored_where_that_is_requested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRIFTLINE_STORE", str(tmp_path / "pages.db"))
    monkeypatch.setenv("DRIFTLINE_ROBOTS", "obey")
    with Server(Site()) as server:
        main_with(["add", server.url("/private/1"), "--tag", "own"])
        assert main_with(["check", "--robots", "ignore"]) == 0
        monkeypatch.setenv("DRIFTLINE_TAGS", '{"own": {"robots": "ignore"}}')
        assert main_with(["check"]) == 0
        assert [request.path for request in server.requests] == ["/private/1"] * 2


def test_a_page_in_a_private_network_is_reported_as_such_though_it_is_its_robots_txt_that_was_requested(
    tmp_path: Path,
) -> None:
    given = settings(store=str(tmp_path / "pages.db"), allow_networks=(), **OBEYING)
    with Server(Site()) as server, driftline.open(settings=given) as pages:
        pages.add(server.url("/1"))
        pages.check()
        (page,) = pages.pages()
        assert page.failure is not None
        assert page.failure.kind is FailureKind.NOT_ALLOWED
        assert "allow it with --allow-network 127.0.0.0/8" in page.failure.sentence


def test_no_more_pages_of_a_host_are_picked_than_it_may_be_contacted_for(tmp_path: Path) -> None:
    with driftline.open(settings=settings(store=str(tmp_path / "pages.db"), host_delay=1.0)) as pages:
        pages.add(*[f"http://{host}.example/{number}" for host in "ab" for number in range(5)])
        scheduler = workspace_of(pages).runs.scheduler()
        scheduler.refresh()
        names = {page.id: page.url for page in pages.pages()}
        assert sorted(names[page_id] for page_id in scheduler.pick()) == ["http://a.example/0", "http://b.example/0"]


def test_a_run_without_an_end_puts_off_pages_of_a_host_that_sent_a_retry_after(tmp_path: Path) -> None:
    site = Site()
    site.refuses_after = 2
    checked = threading.Semaphore(0)
    with (
        Server(site) as server,
        driftline.open(settings=settings(store=str(tmp_path / "pages.db"), **OBEYING)) as pages,
    ):
        pages.add(*[server.url(f"/{number}") for number in range(6)])
        ids = [page.id for page in pages.pages()]
        with workspace_of(pages).runs.keep_checking(
            lambda recorded: checked.release(len(recorded.outcomes))
        ) as keeping:
            keeping.feed.offer(ids)
            for _ in range(3):
                checked.acquire()
            pages_held = keeping.feed.held()
        assert len(pages_held) >= 3
        assert (keeping.put_off, keeping.left) == (3, 0)
    assert len(server.requests) == 1 + 3
