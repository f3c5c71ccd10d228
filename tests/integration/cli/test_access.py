"""`access`: credentials reach the pages they are for, and nobody else."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from driftline.cli.main import main_with
from support.browsers import insist_on_browser, scripted
from support.servers import Answer, Request, Server, answer, html


def let_in(request: Request) -> Answer:
    if request.headers.get("authorization") == "Bearer open-sesame" or request.headers.get("x-key") == "open-sesame":
        if request.path == "/app":
            return scripted("fetch('/data').then(got => got.text()).then(text => document.body.innerHTML = text)")
        return html("The members' page, for those who were let in.")
    return answer(b"", status="401 Unauthorized")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(let_in) as started:
        yield started


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> Path:
    path = tmp_path / "store.db"
    monkeypatch.setenv("DRIFTLINE_STORE", str(path))
    monkeypatch.setenv("DRIFTLINE_ALLOW_NETWORKS", "127.0.0.0/8")
    assert main_with(["add", server.url("/a"), server.url("/b"), "--tag", "members"]) == 0
    return path


def found(server: Server, capsys: pytest.CaptureFixture[str]) -> dict[str, str | None]:
    """What the last check of each page found, by its path."""
    main_with(["check"])
    capsys.readouterr()
    assert main_with(["list", "--json"]) == 0
    told = capsys.readouterr().out
    assert "open-sesame" not in told
    return {page["url"].removeprefix(server.url("")): page["verdict"] for page in json.loads(told)}


def test_a_page_is_let_in_by_its_token(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main_with(["access", server.url("/a"), "--bearer", "open-sesame"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{server.url('/a')}: bearer token"
    assert found(server, capsys) == {"/a": "new", "/b": "failed"}


def test_all_pages_of_a_tag_are_also_those_to_come(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main_with(["access", "--tag", "members", "--header", "X-Key: open-sesame"]) == 0
    assert main_with(["add", server.url("/c"), "--tag", "members"]) == 0
    assert main_with(["add", server.url("/d")]) == 0
    assert found(server, capsys) == {"/a": "new", "/b": "new", "/c": "new", "/d": "failed"}


def test_the_page_overrules_its_tag(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main_with(["access", "--tag", "members", "--bearer", "open-sesame"]) == 0
    assert main_with(["access", server.url("/b"), "--bearer", "stale"]) == 0
    assert found(server, capsys) == {"/a": "new", "/b": "failed"}


def test_a_secret_may_come_by_standard_input(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("open-sesame\n"))
    assert main_with(["access", server.url("/a"), "--bearer", "-"]) == 0
    assert found(server, capsys)["/a"] == "new"


def test_a_secret_may_stay_in_the_environment(
    server: Server, store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main_with(["access", server.url("/a"), "--bearer", "env:MEMBERS"]) == 0
    assert found(server, capsys)["/a"] == "failed"
    monkeypatch.setenv("MEMBERS", "open-sesame")
    assert found(server, capsys)["/a"] == "new"
    assert b"open-sesame" not in store.read_bytes()


def test_what_is_set_is_listed_without_secrets(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    main_with(["access", server.url("/a"), "--basic", "me:open-sesame", "--cookie", "session=open-sesame"])
    main_with(["access", "--tag", "members", "--proxy", "http://me:open-sesame@proxy.example:3128"])
    capsys.readouterr()
    assert main_with(["access"]) == 0
    told = capsys.readouterr().out
    assert told.splitlines() == [
        f"{server.url('/a')}: cookie session, password of me",
        "tag members: proxy http://proxy.example:3128",
    ]
    assert main_with(["access", "--json"]) == 0
    assert "open-sesame" not in capsys.readouterr().out


def test_it_can_be_taken_away(server: Server, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main_with(["access", server.url("/a"), "--bearer", "open-sesame", "--cookie", "a=1"])
    assert main_with(["access", server.url("/a"), "--without", "bearer"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(": cookie a")
    assert main_with(["access", server.url("/a"), "--clear"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(": nothing set")
    with sqlite3.connect(store) as connection:
        assert connection.execute("select count(*) from pages where settings != '{}'").fetchone() == (0,)


def test_a_tag_that_no_page_has_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTLINE_TAGS", '{"own": {"delay": 0}, "members": {"delay": 0}}')
    for words in (["--tag", "mebmers", "--bearer", "open-sesame"], ["--tag", "mebmers", "--json"], []):
        capsys.readouterr()
        assert main_with(["access", *words]) == 0
        assert (
            "No page has the tag 'mebmers' yet: see the tags in use with 'driftline list'." in capsys.readouterr().err
        )
    main_with(["doctor"])
    told = "no page has the tag 'mebmers' (set by 'driftline access'), nor 'own' (in the settings file): "
    assert f"Tags: {told}its settings have no effect." in capsys.readouterr().out
    main_with(["access", "--tag", "mebmers", "--clear"])
    main_with(["access", "--tag", "members", "--bearer", "open-sesame"])
    monkeypatch.delenv("DRIFTLINE_TAGS")
    capsys.readouterr()
    main_with(["access"])
    main_with(["doctor"])
    told_last = capsys.readouterr()
    assert "No page has the tag" not in told_last.err
    assert "Tags: every tag with settings is in use." in told_last.out


@pytest.mark.parametrize(
    "words",
    [
        ["--bearer", "open-sesame"],
        ["URL", "--tag", "members"],
        ["--tag", "two words", "--bearer", "open-sesame"],
        ["--tag", "", "--bearer", "open-sesame"],
        ["URL", "--without", "bearer"],
        ["URL", "--header", "open-sesame"],
        ["URL", "--basic", "-", "--bearer", "-"],
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main_with(["access", *(server.url("/a") if word == "URL" else word for word in words)]) == 2
    assert "open-sesame" not in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--header", "--cookie", "--basic", "--bearer", "--proxy"])
def test_an_empty_secret_is_a_slip_and_changes_nothing(
    option: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main_with(["access", server.url("/a"), "--header", "X-Key: open-sesame"]) == 0
    assert main_with(["access", server.url("/a"), "--clear", option, ""]) == 2
    assert f"{option} is empty" in capsys.readouterr().err
    assert found(server, capsys)["/a"] == "new"


def test_what_a_page_has_by_its_tag_is_shown_with_it(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main_with(["access", "--tag", "members", "--bearer", "open-sesame"]) == 0
    capsys.readouterr()
    assert main_with(["access", server.url("/a")]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{server.url('/a')}: nothing set", "tag members: bearer token"]


def test_what_was_seen_without_it_proves_nothing(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    main_with(["access", server.url("/a"), "--bearer", "open-sesame"])
    assert found(server, capsys)["/a"] == "new"
    main_with(["access", server.url("/a"), "--clear"])
    assert found(server, capsys)["/a"] == "failed"
    main_with(["access", server.url("/a"), "--header", "X-Key: open-sesame"])
    assert found(server, capsys)["/a"] == "unchanged"


def test_credentials_are_used_in_the_browser_too_if_a_page_needs_one(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    insist_on_browser()
    monkeypatch.setenv("DRIFTLINE_HOST_DELAY", "0")
    main_with(["add", server.url("/app"), "--render", "auto"])
    main_with(["access", server.url("/app"), "--bearer", "open-sesame"])
    assert found(server, capsys)["/app"] == "new"
    for command in ("show", "history"):
        assert main_with([command, server.url("/app"), "--json"]) == 0
    told = capsys.readouterr()
    assert "for those who were let in" in told.out
    assert "open-sesame" not in told.out + told.err
    assert [request.headers.get("authorization") for request in server.asked_for("/data")] == ["Bearer open-sesame"]


def test_what_lets_us_in_at_one_host_does_not_move_to_another(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    own = ["--header", "X-Own: open-sesame", "--basic", "me:open-sesame", "--cookie", "s=open-sesame"]
    main_with(["access", server.url("/a"), *own, "--proxy", "none"])
    main_with(["access", "--tag", "members", "--header", "X-Key: open-sesame"])
    capsys.readouterr()
    with Server(let_in, address="127.0.0.2") as other:
        assert main_with(["edit", server.url("/a"), "--url", other.url("/a")]) == 0
        told = capsys.readouterr()
        assert "Removed, because it was set for the old address: header X-Own, cookie s, password of me." in told.err
        assert "open-sesame" not in told.out + told.err
        main_with(["check", other.url("/a")])
        (asked,) = other.asked_for("/a")
        assert {"x-own", "authorization", "cookie"} & {*asked.headers} == set()
        assert asked.headers["x-key"] == "open-sesame", "a tag means all pages that have it"
        capsys.readouterr()
        main_with(["access", other.url("/a")])
        assert capsys.readouterr().out.splitlines()[0] == f"{other.url('/a')}: proxy none", "no host sees a proxy"


def test_what_lets_us_in_stays_with_a_page_that_moves_within_its_host(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    main_with(["access", server.url("/a"), "--bearer", "open-sesame"])
    capsys.readouterr()
    assert main_with(["edit", server.url("/a"), "--url", server.url("/c"), "--tag", "moved"]) == 0
    assert "Removed, because" not in capsys.readouterr().err
    main_with(["check", server.url("/c")])
    assert server.asked_for("/c")[0].headers["authorization"] == "Bearer open-sesame"


@pytest.mark.parametrize("target", [["http://intranet.invalid/a"], ["--tag", "intranet"]])
def test_robots_txt_is_asked_for_by_the_proxy_of_the_page_and_with_nothing_else_of_it(
    target: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody but the proxy knows the host, and nobody is to see who asks."""
    monkeypatch.setenv("DRIFTLINE_ROBOTS", "obey")

    def intranet(request: Request) -> Answer:
        return answer(b"", "404 Not Found") if request.path.endswith("robots.txt") else html("What the intranet says.")

    main_with(["add", "http://intranet.invalid/a", "--tag", "intranet"])
    with Server(intranet) as proxy:
        main_with(["access", *target, "--proxy", proxy.url(), "--bearer", "open-sesame", "--cookie", "s=open-sesame"])
        assert main_with(["check", "http://intranet.invalid/a"]) == 0
        robots, page = proxy.requests
    assert [robots.path, page.path] == ["http://intranet.invalid/robots.txt", "http://intranet.invalid/a"]
    assert "open-sesame" not in str(robots.headers)
    assert page.headers["authorization"] == "Bearer open-sesame"
    assert "1 new" in capsys.readouterr().out


def test_a_proxy_that_is_missing_is_named_and_tried_again(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTLINE_ROBOTS", "obey")
    main_with(["access", server.url("/a"), "--proxy", "env:WAY", "--bearer", "open-sesame"])
    main_with(["check", server.url("/a")])
    assert "The environment variable WAY, which has a credential of this page, is not set." in capsys.readouterr().out
    monkeypatch.setenv("WAY", "none")
    assert found(server, capsys)["/a"] == "new"
