"""`run` crawls watched sites again when they are due, and reports what is new, gone, moved or changed."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from driftline.cli.main import main_with
from support.servers import Site


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRIFTLINE_STORE", str(tmp_path / "pages.db"))
    return tmp_path / "pages.db"


def put(site: Site, path: str, *links: str, words: str = "") -> str:
    listed = "".join(f'<a href="{link}"></a>' for link in links)
    own = " ".join(f"{path.strip('/') or 'front'}{letter}" for letter in "abcdefghijklmnop")
    site.pages[path] = f"<!doctype html><title>{path}</title><p>{words or own}</p>{listed}".encode()
    return site.url(path)


def a_day_later(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("UPDATE sites SET started_at = started_at - 90000")


def rebuilt(site: Site, store: Path) -> None:
    """A site that was crawled yesterday, and is another one today."""
    front = put(site, "/", "/a", "/b", "/c")
    for path in ("/a", "/b", "/c"):
        put(site, path)
    assert main_with(["crawl", front, "--watch"]) == 0
    site.pages["/moved"] = site.pages.pop("/a")
    del site.pages["/b"]
    put(site, "/c", words="Quite other words stand here now, and enough of them to tell that it is another text.")
    put(site, "/", "/moved", "/c", "/d")
    put(site, "/d")
    a_day_later(store)


def told(heard: Path) -> dict[str, Any]:
    return {event["event"]: event for event in map(json.loads, heard.read_text().splitlines())}


def test_a_site_that_is_due_is_crawled_and_its_events_are_published(
    site: Site, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once; new pages are watched, and those that changed are checked."""
    rebuilt(site, store)
    heard = tmp_path / "heard"
    command = f"sh -c 'cat >> {heard}'"
    capsys.readouterr()
    assert main_with(["run", "--once", "--exec", command]) == 0
    said = capsys.readouterr()
    events = told(heard)
    assert events["new"]["urls"] == [site.url("/d")]
    assert events["gone"]["urls"] == [site.url("/b")]
    assert (events["moved"]["urls"], events["moved"]["to"]) == ([site.url("/a")], [site.url("/moved")])
    assert site.url("/c") in events["changed"]["urls"]
    assert f"new               {site.url('/d')}  It is new on the site." in said.out
    assert said.err.startswith(f"Crawling {site.url('/')}, which is kept watched.\n")
    heard.unlink()
    assert main_with(["list"]) == 0
    assert site.url("/d") in capsys.readouterr().out
    assert main_with(["run", "--once", "--exec", command]) == 0
    assert not heard.exists()


def test_news_of_a_site_are_shown_for_its_pages_and_their_tags(
    site: Site, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rebuilt(site, store)
    heard = tmp_path / "heard"
    assert main_with(["run", "--once", "--exec", f"sh -c 'cat >> {heard}'"]) == 0
    assert main_with(["edit", site.url("/d"), "--tag", "fresh"]) == 0
    events = told(heard)
    assert [(page["url"], page["title"]) for page in events["new"]["pages"]] == [(site.url("/d"), "/d")]
    assert [page["url"] for page in events["gone"]["pages"]] == [site.url("/b")]
    assert {page["url"] for page in events["moved"]["pages"]} == {site.url("/a"), site.url("/moved")}
    assert all(page["tags"] for page in events["new"]["pages"])

    def shown(*options: str) -> list[str]:
        capsys.readouterr()
        assert main_with(["changes", "--json", *options]) == 0
        return [event["event"] for event in json.loads(capsys.readouterr().out)]

    assert shown("--tag", "fresh") == ["new"]
    assert shown(site.url("/d")) == ["new"]
    assert "gone" in shown(site.url("/b"))
    assert "moved" in shown(site.url("/moved"))


def test_what_could_not_be_delivered_is_delivered_by_the_next_run(site: Site, store: Path, tmp_path: Path) -> None:
    """The site gets no request for that."""
    rebuilt(site, store)
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF, or nearly")
    broken.chmod(0o700)
    heard = tmp_path / "heard"
    assert main_with(["run", "--once", "--exec", str(broken)]) == 1
    site.pages.clear()
    assert main_with(["run", "--once", "--exec", f"sh -c 'cat >> {heard}'"]) == 0
    assert {"new", "gone", "moved"} <= told(heard).keys()
    assert told(heard)["gone"]["urls"] == [site.url("/b")]


def test_a_run_without_end_crawls_between_checks(site: Site, store: Path, tmp_path: Path) -> None:
    rebuilt(site, store)
    heard = tmp_path / "heard"
    command = f"sh -c 'cat >> {heard}; grep -q changed {heard} && kill -INT {os.getpid()}; true'"
    assert main_with(["run", "--exec", command]) == 0
    assert {"new", "gone", "moved", "changed"} <= told(heard).keys()


def test_a_site_is_not_crawled_again_before_its_time(
    site: Site, store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor where it is never to be."""
    front = put(site, "/")
    main_with(["crawl", front, "--watch", "--every", "30h"])
    a_day_later(store)
    capsys.readouterr()
    assert main_with(["run", "--once"]) == 0
    assert "Crawling" not in capsys.readouterr().err
    main_with(["crawl", front, "--watch", "--fresh"])  # keeps its interval
    with closing(sqlite3.connect(store)) as connection:
        assert json.loads(connection.execute("SELECT options FROM sites").fetchone()[0])["every"] == "30h"
        connection.execute("""UPDATE sites SET started_at = 0, options = '{"within": "host"}'""")
        connection.commit()
    monkeypatch.setenv("DRIFTLINE_RECRAWL", "never")
    capsys.readouterr()
    assert main_with(["run", "--once"]) == 0
    assert "Crawling" not in capsys.readouterr().err
