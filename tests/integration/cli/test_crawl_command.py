"""`crawl` prints what it found, in a table or as JSON, and refuses options that make no sense."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from driftline.cli.main import main_with
from support.servers import Site


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTLINE_STORE", str(tmp_path / "pages.db"))
    monkeypatch.setenv("HOME", str(tmp_path))


def put(site: Site, path: str, *links: str, words: str = "") -> str:
    listed = "".join(f'<a href="{link}"></a>' for link in links)
    own = " ".join(f"{path.strip('/') or 'front'}{letter}" for letter in "abcdefghijklmnop")
    site.pages[path] = f"<!doctype html><title>{path}</title><p>{words or own}</p>{listed}".encode()
    return site.url(path)


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> tuple[str, str]:
    assert main_with(["crawl", *words]) == status
    captured = capsys.readouterr()
    return captured.out, captured.err


def crawled(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return json.loads(said(capsys, *words, "--json")[0])


def test_the_table_shows_what_was_found_and_what_was_skipped(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """With a number and an example for each."""
    front = put(site, "/", "/a", "https://elsewhere.example/", "/logo.png")
    put(site, "/a")
    out, err = said(capsys, front)
    lines = {line.rpartition("  ")[0].strip() or line: line for line in out.splitlines()}
    assert any(line.startswith("found ") and " 2 " in line for line in lines.values())
    assert any("skipped, out of scope" in line and "https://elsewhere.example/" in line for line in lines.values())
    assert out.splitlines()[-1].startswith("Fetched 2 pages in ")
    assert err == ""


def test_the_next_crawl_names_what_is_different(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """New, gone and moved pages by their addresses; and that there is nothing, if so."""
    front = put(site, "/", "/a", "/b")
    put(site, "/a")
    put(site, "/b")
    said(capsys, front, "--watch")
    site.pages["/moved"] = site.pages.pop("/a")
    del site.pages["/b"]
    put(site, "/", "/moved", "/c")
    put(site, "/c")
    out, _ = said(capsys)  # without a seed: all sites that are kept watched
    assert f"new     {site.url('/c')}" in out
    assert f"gone    {site.url('/b')}" in out
    assert f"moved   {site.url('/a')} → {site.url('/moved')}" in out
    out, _ = said(capsys, front, "--watch")
    assert "Nothing is new, gone, moved or changed since the last crawl." in out


def test_what_is_gone_is_named_once(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """And counted afterwards, for as long as something links to it; it is no failure of the crawl."""
    front = put(site, "/", "/a")
    put(site, "/a")
    said(capsys, front)
    del site.pages["/a"]
    out, _ = said(capsys, front)
    assert f"gone    {site.url('/a')}" in out
    for _ in range(2):
        out, _ = said(capsys, front)
        assert site.url("/a") not in out
        assert [line.split() for line in out.splitlines() if "gone, reported" in line] == [
            ["gone,", "reported", "before", "1"]
        ]
    assert (crawled(capsys, front)["failed"], crawled(capsys, front)["gone_before"]) == ([], 1)


def test_a_site_that_is_gone_is_an_error_each_time(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Though it is reported as gone only once."""
    front = put(site, "/")
    said(capsys, front)
    del site.pages["/"]
    for _ in range(2):
        _, err = said(capsys, front, status=1)
        assert err == f"driftline: {front} is gone: there is nothing to crawl.\n"


def test_json_is_one_document(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """With every figure of the table; without seeds, a list with one for each site."""
    front = put(site, "/", "/a")
    put(site, "/a")
    found = crawled(capsys, front, "--watch", "--tag", "mine")
    assert (found["pages"], found["fetched"], found["new"]) == (2, 2, [front, site.url("/a")])
    assert found["tag"] == "mine"
    assert found["pages_per_s"] > 0
    assert [one["seeds"] for one in crawled(capsys)] == [[front]]


def test_json_has_what_was_skipped_by_the_words_of_the_table(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """So that a script that reads them does not depend on how the reasons are stored."""
    front = put(site, "/", "/logo.png", "/a/a/a/a")
    out, _ = said(capsys, front)
    skipped = crawled(capsys, front)["skipped"]
    assert skipped == {
        "not a page": {"count": 1, "examples": [site.url("/logo.png")]},
        "trap: repeating path": {"count": 1, "examples": [site.url("/a/a/a/a")]},
    }
    assert all(f"skipped, {why} " in out for why in skipped)


def test_a_site_that_robots_txt_forbids_is_an_error_that_says_so(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    front = put(site, "/")
    site.pages["/robots.txt"] = b"User-agent: *\nDisallow: /\n"
    _, err = said(capsys, front, "--robots", "obey", status=1)
    assert "robots.txt does not allow fetching" in err


def test_lists_that_cannot_be_read_are_named(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """Each with the reason: a site whose sitemaps fail must not look complete."""
    front = put(site, "/")
    lost = site.url("/lost.xml")
    site.pages["/sitemap.xml"] = f"<sitemapindex><sitemap><loc>{lost}</loc></sitemap></sitemapindex>".encode()
    out, _ = said(capsys, front)
    assert any(line.startswith(f"unread  {lost}  ") and "404" in line for line in out.splitlines())
    [unread] = crawled(capsys, front)["unread_lists"]
    assert unread["url"] == lost
    assert "404" in unread["reason"]


def test_a_crawl_that_is_limited_says_how_to_go_on(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """And the same command goes on."""
    front = put(site, "/", "/a", "/b")
    put(site, "/a")
    put(site, "/b")
    _, err = said(capsys, front, "--most", "2")
    assert err == "1 URL left after the limit of 2 pages (--most): run the same command to continue.\n"
    out, err = said(capsys, front, "--most", "2")
    assert err.startswith("Continuing the crawl of ")
    assert out.splitlines()[-1].startswith("Fetched 1 page in ")


def test_it_says_that_a_site_lists_more_than_is_taken_in(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    front = put(site, "/", "/many", "/more")
    for name in ("many", "more"):
        put(site, f"/{name}", *(f"/{name}/{number}" for number in range(5_500)))
    _, err = said(capsys, front, "--most", "3")
    assert "\n1,000 URLs not followed because the queue is full" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["hello"], "'hello' is not the address of a web page"),
        (["ftp://example.com/"], "only http and https"),
        (["https://example.com/", "--scope", "galaxy"], "There is no scope 'galaxy'"),
        (["https://example.com/", "--depth", "-1"], "--depth must be 0 or more"),
        (["https://example.com/", "--most", "0"], "--most must be 1 or more"),
        (["https://example.com/", "--include", "*"], "--include '*' says nothing"),
        (["https://example.com/", "--exclude", "/*"], "is excluded by --exclude"),
        (["https://example.com/", "--keywords", ","], "--keywords names no word"),
        (["https://example.com/", "--tag", "x"], "--tag needs --watch"),
        (["https://example.com/", "--watch", "--tag", "two words"], "is not a tag"),
        ([], "No site is watched yet"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is fetched."""
    _, err = said(capsys, *words, status=2)
    assert sentence in err
    assert err.count("\n") == 1


def test_a_site_that_cannot_be_reached_is_an_error(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """With the reason."""
    _, err = said(capsys, site.url("/missing"), status=1)
    assert "No page found at" in err
    assert "404" in err


def test_a_seed_that_leads_elsewhere_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    """The new address may be what was meant; it is another site all the same."""
    from support.servers import Server, redirect

    with Server(lambda _: redirect("https://elsewhere.example/")) as server:
        _, err = said(capsys, server.url(), status=1)
    assert "redirects to https://elsewhere.example/, which is outside the scope" in err


def test_the_lab_says_whether_a_crawl_is_what_it_should_be(capsys: pytest.CaptureFixture[str]) -> None:
    """By the log of a site with traps."""
    assert main_with(["lab", "crawl", "--pages", "100"]) == 0
    lines = {line[:40].strip(): line[40:].split() for line in capsys.readouterr().out.splitlines()}
    assert lines["pages of the site that were fetched"][-2:] == ["100", "100"]
    assert lines["fetched twice, under whichever address"][-2:] == ["0", "0"]
