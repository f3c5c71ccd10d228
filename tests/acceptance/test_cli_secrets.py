"""Passwords in addresses are used for fetching, and shown to nobody."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from command import Command
from support.servers import Answer, Request, Server, answer, html

SECRET = "open-sesame"


class Guarded:
    """A page that wants to know who asks."""

    def __init__(self) -> None:
        self.words = "five euros"
        self.asked: list[str] = []

    def answer(self, request: Request) -> Answer:
        self.asked.append(request.headers.get("authorization", ""))
        if request.path == "/gone":
            return answer(b"", "404 Not Found")
        return html(f"<p>{self.words}. Write to ftp://me:{self.words[:4]}@example.com/.</p>")


def test_a_password_is_used_and_nowhere_shown(driftline: Command, tmp_path: Path) -> None:
    guarded = Guarded()
    with Server(guarded.answer) as server:
        place = server.url("/page").removeprefix("http://")
        page, gone = f"http://me:{SECRET}@{place}", f"http://me:{SECRET}@{place.replace('page', 'gone')}"
        shown = f"http://me:***@{place}"
        file = tmp_path / "diff.html"
        said: list[str] = []

        def run(*arguments: str) -> str:
            ended = driftline(*arguments)
            said.extend((ended.out, ended.err))
            return ended.out

        run("add", page, gone)
        run("add", page, "--json")
        run("check")
        guarded.words = "nine euros"
        run("check", "--json", "--all")
        for command in ("list", "history", "show", "diff", "edit"):
            more = {"list": (), "edit": (page, "--tag", "x")}.get(command, (page,))
            run(command, *more)
            run(command, *more, "--json")
        run("diff", page, "--html", str(file))
        run("search", "nine")
        run("search", "nine", "--json")
        run("feedback", "1-2", "--noise")
        run("feedback", "--list")
        run("visit", page, "--seconds", "5")
        assert shown in run("rank", "--csv")
        run("history", page.replace("page", "other"))
        run("doctor")
        run("show", gone)
        assert run("show", shown) == "nine euros. Write to ftp://me:nine@example.com/.\n", "a hidden one will do"
        assert shown in run("list")
        run("remove", shown, "--yes")
        assert [found["url"] for found in driftline.json("list")] == [shown.replace("page", "gone")]
    assert f"Basic {base64.b64encode(f'me:{SECRET}'.encode()).decode()}" in guarded.asked
    assert [text for text in said if SECRET in text] == []
    assert SECRET not in file.read_text()


@pytest.mark.parametrize(
    "url",
    [
        f"http://me:{SECRET}@",
        f"ftp://me:{SECRET}@example.com/",
        f"http://me:{SECRET}@a b/",
        f"me:{SECRET}@example.com/x",
        f"http://me:{SECRET}#x@127.0.0.1/lamp",
        f"http://me:{SECRET}/x@127.0.0.1/lamp",
        f"http:///me:{SECRET}@host/",
        f"http:/me:{SECRET}@host/",
        f"https//me:{SECRET}@host/",
        f"//me:{SECRET}@host/",
    ],
)
def test_an_address_that_is_refused_does_not_show_its_password(driftline: Command, url: str) -> None:
    ended = driftline("add", url)

    assert ended.status == 2
    assert SECRET not in ended.err


def test_a_database_password_that_is_a_parameter_is_nowhere_shown(driftline: Command) -> None:
    store = f"postgresql://127.0.0.1:1/db?user=u&password={SECRET}"
    for words in (("settings",), ("settings", "--json"), ("list",), ("doctor", "--quick"), ("-v", "list")):
        ended = driftline(*words, DRIFTLINE_STORE=store)
        assert SECRET not in ended.out + ended.err
        assert "***" in ended.out + ended.err or "127.0.0.1:1" not in ended.out + ended.err
