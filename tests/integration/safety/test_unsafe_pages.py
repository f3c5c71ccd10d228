"""A page that is blocked is not fetched, by no kind of run, and comes back by itself."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from driftline import Plan, Stop
from driftline.api import workspace_of
from driftline.errors import FailureKind
from driftline.model.outcome import Outcome, Verdict
from driftline.model.page import WarningKind
from support.servers import Answer, Request, Server, answer, html, redirect, self_signed
from support.worlds import WIRINGS, World

CALM = "<p>Words that stay as they are.</p>"
PACKED = f"<script>eval(function(p,a,c,k,e,d){{return p}}('0 1',2,2,'{'a|b' * 30}'.split('|')))</script>"


def paths(world: World) -> list[str]:
    return [request.path for request in world.server.requests]


@pytest.mark.parametrize("plan", WIRINGS)
def test_a_check_leaves_blocked_pages_out_and_takes_them_up_again(tmp_path: Path, plan: Plan) -> None:
    with World(tmp_path, confirm=False) as world:
        urls = world.watch(4)
        begun: list[int] = []
        world.pages.safety.report(urls[2], reason="it sells snake oil")
        report = workspace_of(world.pages).runs.check(None, plan=plan, started=lambda total, _: begun.append(total))
        assert (report.pages, report.new, report.failed, report.left, begun) == (3, 3, 0, 0, [3])
        assert report.blocked == [(urls[2], "This page was reported as unsafe (1 vote: it sells snake oil).")]
        assert "/2" not in paths(world)
        page = workspace_of(world.pages).catalog.find(urls[2])
        assert (page.checks, page.failures, page.verdict) == (0, 0, None)
        world.pages.safety.withdraw_report(urls[2])
        report = world.pages.check(plan=plan)
        assert (report.pages, report.new, report.unchanged, report.blocked) == (4, 1, 3, [])


def test_what_was_known_of_a_page_is_still_known_when_it_comes_back(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        (url,) = world.watch(1)
        world.pages.check()
        world.pages.safety.report(url)
        world.words["/0"] = "something else by now"
        assert world.pages.check(url).pages == 0
        world.pages.safety.withdraw_report(url)
        report = world.pages.check(url)
        assert report.changed == 1
        assert workspace_of(world.pages).catalog.find(url).versions == 2
        assert len(world.server.requests) == 3  # the second version is confirmed


def test_a_run_without_an_end_takes_no_blocked_page_and_notices_at_once(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        urls = world.watch(3)
        ids = {page.url: page.id for page in world.pages.pages()}
        world.pages.safety.report(urls[1])
        outcomes: list[Outcome] = []
        scheduler = workspace_of(world.pages).runs.scheduler()
        scheduler.refresh()
        assert set(scheduler.pick()) == {ids[urls[0]], ids[urls[2]]}
        world.pages.safety.withdraw_report(urls[1])
        world.pages.safety.report(urls[0])
        assert set(scheduler.pick()) == {ids[urls[1]], ids[urls[2]]}
        stop = Stop()
        runs = workspace_of(world.pages).runs
        with runs.keep_checking(lambda recorded: outcomes.extend(recorded.outcomes), stop=stop) as endless:
            endless.feed.offer(ids.values())  # by who did not know that one of them is blocked
        assert endless.left == 0
        assert sorted(outcome.document.link.url for outcome in outcomes) == urls[1:]
        assert "/0" not in paths(world)


def test_the_schedule_shows_that_a_page_is_blocked_and_puts_it_last(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        urls = world.watch(3)
        world.pages.safety.report(urls[0], reason="spam")
        scheduler = workspace_of(world.pages).runs.scheduler(to_look=True)
        scheduler.refresh()
        terms = scheduler.upcoming()
        assert [(one.url, one.lane) for one in terms] == [(urls[1], "new"), (urls[2], "new"), (urls[0], "unsafe")]
        assert terms[2].reason == "This page was reported as unsafe (1 vote: spam)."
        assert terms[2].due_at is None


def test_a_page_that_is_blocked_is_in_no_rank(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        good, bad = world.watch(2)
        for url in (good, bad):
            world.pages.visit(url, seconds=5)
        world.pages.safety.report(bad)
        for by in ("frequency", "weightage", "intelligent", "value"):
            assert [one.url for one in world.pages.rank(by)] == [good]
        world.pages.safety.withdraw_report(bad)
        assert len(world.pages.rank()) == 2


def test_a_page_that_redirects_to_a_listed_host_fails_and_keeps_its_version(tmp_path: Path) -> None:
    with Server(lambda _: html("bad"), address="127.0.0.2") as bad:
        target: list[str] = []

        def script(_: Request) -> Answer:
            return redirect(target[0]) if target else html("good words")

        with Server(script) as server, World(tmp_path) as world:
            url = server.url("/")
            world.pages.add(url)
            world.pages.check()
            listed = tmp_path / "domains"
            listed.write_text("bad.example\n127.0.0.2\n")
            workspace_of(world.pages).blocklists.add(str(listed))
            target.append(bad.url("/landing"))
            assert world.pages.check().failed == 1
            page = workspace_of(world.pages).catalog.find(url)
            assert page.failure is not None
            assert page.failure.kind is FailureKind.UNSAFE
            assert "127.0.0.2 is on the blocklist 'domains'" in page.failure.sentence
            assert (page.versions, bad.connections) == (1, 0)
            target.clear()
            assert world.pages.check().unchanged == 1


def test_a_program_in_the_place_of_a_page_is_never_kept(tmp_path: Path) -> None:
    program = b"MZ" + b"\x90\0" * 29 + (64).to_bytes(4, "little") + b"PE\0\0" + bytes(500)
    with (
        Server(lambda _: answer(program, "200 OK", "Content-Type: text/html")) as server,
        World(tmp_path) as world,
    ):
        world.pages.add(server.url("/"))
        assert world.pages.check().failed == 1
        page = workspace_of(world.pages).catalog.find(server.url("/"))
        assert page.failure is not None
        assert page.failure.sentence == "The response is a program for Windows, not a page: it is not stored."
        assert page.versions == 0


def test_a_script_that_appears_is_warned_of_once_though_the_text_stays(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        (url,) = world.watch(1)
        world.words["/0"] = CALM
        world.pages.check()
        assert workspace_of(world.pages).safety_of(world.pages.pages()) == {}
        for salt in range(3):
            world.words["/0"] = f"{CALM}<!-- {salt} -->{PACKED}"
            report = world.pages.check()
            assert report.unchanged == 1
            told = [(event.event, event.urls, event.kind) for event in report.events]
            assert told == ([("warning", (url,), WarningKind.OBFUSCATED_SCRIPT)] if not salt else [])
        (page,) = world.pages.pages()
        assert [one.kind for one in workspace_of(world.pages).safety_of([page])[page.id].warnings] == [
            WarningKind.OBFUSCATED_SCRIPT
        ]
        news = world.pages.history.checks(url, news_only=True)
        assert [(check.sequence, len(check.warnings)) for check in news] == [(2, 1), (1, 0)]


def test_a_warning_goes_with_the_version_that_it_is_of(tmp_path: Path) -> None:
    with World(tmp_path, confirm=False) as world:
        (url,) = world.watch(1)
        for words in (CALM, f"{CALM}<p>Now with more to read than before.</p>{PACKED}", "<p>All is well again.</p>"):
            world.words["/0"] = words
            world.pages.check()
        (page,) = world.pages.pages()
        assert workspace_of(world.pages).safety_of([page]) == {}
        checks = world.pages.history.checks(url)
        assert [(check.verdict, len(check.warnings)) for check in checks] == [
            (Verdict.CHANGED, 0), (Verdict.CHANGED, 1), (Verdict.NEW, 0),
        ]  # fmt: skip


def test_a_certificate_that_is_not_trusted_is_warned_of(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    if certificate is None:
        pytest.skip("there is no openssl command to make a certificate with")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with Server(lambda _: html("here"), context) as server, World(tmp_path) as world:
        world.pages.add(server.url("/"))
        world.pages.check()
        (page,) = world.pages.pages()
        (warned,) = workspace_of(world.pages).safety_of([page])[page.id].warnings
        assert warned.kind is WarningKind.CERTIFICATE
        assert "certificate" in warned.sentence


def test_a_host_that_looks_like_another_that_is_watched_is_warned_of(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.pages.add("https://example.com/", "https://\u0435xample.com/login", "https://b\u00fccher.example/")
        (warned,) = workspace_of(world.pages).safety_of(world.pages.pages()).values()
        assert warned.blocked is None
        assert warned.sentence == "The host \u0435xample.com (xn--xample-2of.com) looks like example.com."
