"""Pages that redirect to other hosts, by the logs of those hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

import driftline
from driftline import Plan
from driftline.api import workspace_of
from driftline.errors import FailureKind
from driftline.http.credentials import read_access
from driftline.lab.bench.server_log_bench import measure_politeness
from driftline.lab.servers.host_farm import Farm
from support.making import settings
from support.servers import Answer, Request, Server, answer, html, redirect
from support.worlds import WIRINGS

OBEYING = {"robots": "obey", "host_connections": 1, "host_delay": 0.001}


def elsewhere(request: Request) -> Answer:
    """A host that forbids some of its pages."""
    if request.path == "/robots.txt":
        return answer(b"User-agent: driftline\nDisallow: /private/\n", "200 OK", "Content-Type: text/plain")
    return html(f"{request.path} of another host")


@pytest.mark.parametrize("changes", [False, True])
def test_a_host_that_all_others_redirect_to_is_contacted_politely(changes: bool) -> None:
    found = measure_politeness(Farm(hosts=12, pages=2, latency=0.01, changes=changes, redirects=True), delay=0.05)
    assert (found.pages, found.failed) == (12 * 3 + 11, 12 + 11)
    assert found.changed == 12 * 2 * changes
    assert found.requests == (12 * 7 + 11 * 8 if changes else 12 * 3 + 11 * 3)
    assert found.forbidden == 0
    assert found.at_once == 1
    assert found.shortest >= 0.05


@pytest.mark.parametrize("plan", WIRINGS)
def test_the_robots_txt_of_a_redirect_target_is_obeyed(plan: Plan, tmp_path: Path) -> None:
    def script(request: Request) -> Answer:
        led = request.path.startswith("/to/")
        return redirect(other.url(request.path.removeprefix("/to"))) if led else answer(b"", "404 Not Found")

    with (
        Server(elsewhere, address="127.0.0.2") as other,
        Server(script) as server,
        driftline.open(settings=settings(store=str(tmp_path / "pages.db"), **OBEYING)) as pages,
    ):
        pages.add(*[server.url(f"/to/{number}") for number in range(5)], server.url("/to/private/1"))
        report = pages.check(plan=plan)
        assert (report.new, report.failed) == (5, 1)
        (forbidden,) = [page for page in pages.pages() if page.failure is not None]
        assert forbidden.url == server.url("/to/private/1")
        assert forbidden.failure is not None
        assert forbidden.failure.kind is FailureKind.ROBOTS
        assert forbidden.failure.sentence.startswith(f"The page redirects to {other.url('/private/1')}: the robots.txt")
        (check,) = pages.history.checks(server.url("/to/3"))
        assert check.redirected_to == other.url("/3")
    assert sorted(request.path for request in other.requests) == ["/0", "/1", "/2", "/3", "/4", "/robots.txt"]


def test_a_robots_txt_at_another_host_is_requested_there_and_obeyed_here(tmp_path: Path) -> None:
    def script(request: Request) -> Answer:
        return redirect(other.url("/robots.txt")) if request.path == "/robots.txt" else html("here")

    with (
        Server(elsewhere, address="127.0.0.2") as other,
        Server(script) as server,
        driftline.open(settings=settings(store=str(tmp_path / "pages.db"), **OBEYING)) as pages,
    ):
        pages.add(server.url("/1"), server.url("/private/1"))
        report = pages.check()
        assert (report.new, report.failed) == (1, 1)
        assert [request.path for request in other.requests] == ["/robots.txt"]
        assert [request.path for request in server.requests] == ["/robots.txt", "/1"]


def test_a_loop_over_two_hosts_ends_after_as_many_redirects_as_there_may_be(tmp_path: Path) -> None:
    with (
        Server(lambda _: redirect(server.url("/again")), address="127.0.0.2") as other,
        Server(lambda _: redirect(other.url("/and-again"))) as server,
        driftline.open(settings=settings(store=str(tmp_path / "pages.db"), max_redirects=4)) as pages,
    ):
        pages.add(server.url("/page"))
        assert pages.check().failed == 1
        (page,) = pages.pages()
        assert page.failure is not None
        assert page.failure.kind is FailureKind.REDIRECTS
        asked = [[request.path for request in one.requests if "robots" not in request.path] for one in (server, other)]
        assert asked == [["/page", "/again", "/again"], ["/and-again"] * 2]


def test_secrets_and_cookies_stay_with_the_host_that_they_are_for_though_it_is_left_and_come_back_to(
    tmp_path: Path,
) -> None:
    def script(request: Request) -> Answer:
        if request.path == "/back":
            return html("welcome")
        return redirect(other.url("/way"), "Set-Cookie: seen=yes; Path=/")

    with (
        Server(lambda _: redirect(server.url("/back")), address="127.0.0.2") as other,
        Server(script) as server,
        driftline.open(settings=settings(store=str(tmp_path / "pages.db"), robots="ignore")) as pages,
    ):
        pages.add(server.url("/in"))
        workspace_of(pages).accesses.edit_pages(pages.pages(), read_access(bearer="open-sesame").before)
        assert pages.check().new == 1
        (back,) = server.asked_for("/back")
        assert (back.headers["authorization"], back.headers["cookie"]) == ("Bearer open-sesame", "seen=yes")
        (way,) = other.asked_for("/way")
        assert not {"authorization", "cookie"} & set(way.headers)


def test_a_host_that_is_paused_is_paused_by_redirects_too(tmp_path: Path) -> None:
    """The page that leads there is neither failed nor lost, and others of its host are checked."""
    refusal = answer(b"", "429 Too Many Requests", "Retry-After: 3600")
    with (
        Server(lambda _: refusal, address="127.0.0.2") as other,
        Server(lambda request: html("here") if request.path == "/stays" else redirect(other.url())) as server,
        driftline.open(settings=settings(store=str(tmp_path / "pages.db"), robots="ignore", host_delay=0.001)) as pages,
    ):
        pages.add(server.url("/1"), server.url("/2"), server.url("/stays"))
        report = pages.check(plan=Plan(pipeline="sequential"))
        assert (report.new, report.failed, report.left) == (1, 1, 1)
        assert [*report.quiet] == [f"127.0.0.2:{other.port}"]
        assert len(other.requests) == 1


def test_the_target_of_a_redirect_within_the_origin_is_kept_without_the_password(tmp_path: Path) -> None:
    with (
        Server(lambda request: html("here") if request.path == "/en" else redirect("/en#top")) as server,
        driftline.open(settings=settings(store=str(tmp_path / "pages.db"))) as pages,
    ):
        (url,) = pages.add(server.url().replace("://", "://me:open-sesame@"))
        assert pages.check().new == 1
        assert "authorization" in server.asked_for("/en")[0].headers
        (check,) = pages.history.checks(url)
        assert (check.redirected_to, pages.history.version(url).final_url) == (server.url("/en"), server.url("/en"))
