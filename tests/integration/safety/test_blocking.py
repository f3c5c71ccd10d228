"""Blocklists and reports in a store, and the pages that they block."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

import driftline
from driftline import Driftline
from driftline.api import workspace_of
from driftline.errors import BadSetting, DriftlineError, UsageError
from driftline.safety.blocking import UnsafePages
from support.making import settings
from support.servers import Server, answer
from support.worlds import World


@pytest.fixture
def pages(where: str) -> Iterator[Driftline]:
    with driftline.open(settings=settings(store=where)) as pages:
        yield pages


def write(folder: Path, text: str, name: str = "list.txt") -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def why(pages: Driftline, url: str) -> str | None:
    workspace_of(pages).unsafe.refresh()
    return workspace_of(pages).unsafe.why(url)


def test_a_host_is_blocked_with_its_subdomains_and_nothing_else(pages: Driftline, tmp_path: Path) -> None:
    assert why(pages, "https://bad.example/") is None
    workspace_of(pages).blocklists.add(write(tmp_path, "0.0.0.0 bad.example\n", "hosts"))
    reason = "The host bad.example is on the blocklist 'hosts'."
    for url in ("https://bad.example/", "http://a.b.bad.example:8080/x?y", "http://me:pw@bad.example./"):
        assert why(pages, url) == reason
    for url in ("https://notbad.example/", "https://bad.example.org/", "https://example/", "http://[::1]/"):
        assert why(pages, url) is None
    assert (workspace_of(pages).unsafe.any, workspace_of(pages).unsafe.single) == (True, False)


def test_an_exception_of_any_list_wins_over_all_lists_but_not_over_votes(pages: Driftline, tmp_path: Path) -> None:
    workspace_of(pages).blocklists.add(write(tmp_path, "bad.example\n", "domains"))
    workspace_of(pages).blocklists.add(write(tmp_path, "http://good.bad.example/x\n", "urls"))
    workspace_of(pages).blocklists.add(write(tmp_path, "@@||good.bad.example^\n||worse.example^\n", "mine"))
    assert why(pages, "https://bad.example/") is not None
    assert why(pages, "https://good.bad.example/x") is None
    pages.safety.report("https://good.bad.example/x")
    assert why(pages, "https://good.bad.example/x") is not None
    assert why(pages, "https://good.bad.example/y") is None


def test_an_address_is_blocked_whatever_its_scheme_and_tracking(pages: Driftline, tmp_path: Path) -> None:
    listed = write(tmp_path, '# id,url\n"1","http://mixed.example/bad?a=1"\n', "urlhaus.csv")
    workspace_of(pages).blocklists.add(listed)
    assert why(pages, "https://mixed.example/bad?a=1") == "This address is on the blocklist 'urlhaus.csv'."
    assert why(pages, "https://mixed.example/bad?a=1&utm_source=x") is not None
    assert why(pages, "https://mixed.example/bad") is None
    assert why(pages, "https://mixed.example/") is None
    assert workspace_of(pages).unsafe.single


def test_lists_are_named_updated_and_removed(pages: Driftline, tmp_path: Path) -> None:
    file = write(tmp_path, "bad.example\nnot a host\n")
    taken = workspace_of(pages).blocklists.add(file)
    assert (taken.blocklist.name, taken.blocklist.format, taken.blocklist.hosts) == ("list.txt", "domains", 1)
    assert taken.problems == [(2, "'not a host' is not the name of a host: it has no dot.")]
    write(tmp_path, "worse.example\nworst.example\n")
    (again,) = workspace_of(pages).blocklists.update()
    assert not isinstance(again, DriftlineError)
    assert again.blocklist.hosts == 2
    assert [one.hosts for one in workspace_of(pages).blocklists.all()] == [2]
    assert why(pages, "https://bad.example/") is None
    assert why(pages, "https://worst.example/") is not None
    with pytest.raises(UsageError, match="There is no blocklist 'other'"):
        workspace_of(pages).blocklists.remove("other")
    workspace_of(pages).blocklists.remove(file)
    assert workspace_of(pages).blocklists.all() == []
    assert why(pages, "https://worst.example/") is None


def test_the_same_source_again_is_the_same_list(pages: Driftline, tmp_path: Path) -> None:
    file = write(tmp_path, "bad.example\n")
    workspace_of(pages).blocklists.add(file, "mine")
    workspace_of(pages).blocklists.add(file)
    assert [one.name for one in workspace_of(pages).blocklists.all()] == ["mine"]


def test_a_list_that_cannot_be_read_again_stays_as_it_was(pages: Driftline, tmp_path: Path) -> None:
    file = write(tmp_path, "bad.example\n")
    workspace_of(pages).blocklists.add(file)
    for damage in (lambda: write(tmp_path, "Sorry, we moved.\n"), lambda: Path(file).unlink()):
        damage()
        (error,) = workspace_of(pages).blocklists.update()
        assert isinstance(error, DriftlineError)
        assert str(error).endswith("the list 'list.txt' stays as it was.")
        assert why(pages, "https://bad.example/") is not None


def test_a_list_is_fetched_from_the_web_and_packed_or_not(tmp_path: Path) -> None:
    body = gzip.compress(b"0.0.0.0 bad.example\n")
    with (
        Server(lambda request: answer(body if request.path == "/hosts.gz" else b"", "200 OK")) as server,
        World(tmp_path) as world,
    ):
        taken = workspace_of(world.pages).blocklists.add(server.url("/hosts.gz"))
        assert (taken.blocklist.name, taken.blocklist.hosts) == ("hosts.gz", 1)
        assert why(world.pages, "https://bad.example/") is not None


def test_a_list_on_a_private_network_is_not_fetched(tmp_path: Path) -> None:
    with Server(lambda _: answer(b"bad.example\n")) as server, World(tmp_path, allow_networks=()) as world:
        with pytest.raises(DriftlineError, match=r"cannot be fetched: .*--allow-network"):
            workspace_of(world.pages).blocklists.add(server.url("/list"))
        assert server.requests == []


def test_votes_add_up_until_a_page_is_blocked(pages: Driftline) -> None:
    workspace_of(pages).settings = settings(unsafe_votes=3)
    pages.safety.report("https://page.example/x?utm_source=y", reason="phishing")
    found = pages.safety.report("https://page.example/x", reason=" asks for\npasswords ")
    assert (found.votes, found.reasons) == (2, ("phishing", "asks for passwords"))
    assert why(pages, "https://page.example/x") is None
    pages.safety.report("https://page.example/x", reason="phishing", votes=4)
    told = "This page was reported as unsafe (6 votes: phishing; asks for passwords)."
    assert why(pages, "https://page.example/x") == told
    assert workspace_of(pages).unsafe.single
    assert why(pages, "https://page.example/") is None
    assert pages.safety.withdraw_report("https://page.example/x") == 3
    assert pages.safety.withdraw_report("https://page.example/x") == 0
    assert why(pages, "https://page.example/x") is None


def test_a_report_may_be_of_a_whole_host(pages: Driftline) -> None:
    pages.safety.report("http://page.example:8080/x", whole_host=True)
    assert why(pages, "https://www.page.example/") == "The host page.example was reported as unsafe (1 vote)."
    assert why(pages, "https://example/") is None
    assert not workspace_of(pages).unsafe.single
    assert pages.safety.withdraw_report("https://page.example:8080/other", whole_host=True) == 1


@pytest.mark.parametrize("given", [{"votes": 0}, {"votes": 10_000_000}, {"reason": "x" * 501}])
def test_a_report_that_means_nothing_is_refused(pages: Driftline, given: dict[str, object]) -> None:
    with pytest.raises(BadSetting):
        pages.safety.report("https://page.example/", **given)  # type: ignore[arg-type]


def test_watched_pages_that_are_blocked_are_found_as_they_come_and_go(pages: Driftline, tmp_path: Path) -> None:
    now = 0.0
    unsafe = UnsafePages(workspace_of(pages).store, 1, lambda: now)
    pages.add("https://good.example/", "https://bad.example/1")
    assert unsafe.pages() == {}
    workspace_of(pages).blocklists.add(write(tmp_path, "bad.example\n"))
    assert [one.url for one in unsafe.pages().values()] == ["https://bad.example/1"]
    ids = [page.id for page in pages.pages()]
    assert [one.url for one in unsafe.pages(ids).values()] == ["https://bad.example/1"]
    assert unsafe.pages(ids[:1]) == {}
    pages.add("https://bad.example/2")
    assert [one.url for one in unsafe.pages().values()] == ["https://bad.example/1", "https://bad.example/2"]
    workspace_of(pages).catalog.edit("https://bad.example/1", move_to="https://moved.example/")
    now = 61.0
    assert [one.url for one in unsafe.pages().values()] == ["https://bad.example/2"]
    workspace_of(pages).blocklists.remove("list.txt")
    assert unsafe.pages() == {}
