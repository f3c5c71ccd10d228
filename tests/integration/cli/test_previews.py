"""`add` checks at once and shows what is watched; `try` shows it without saving; `edit` shows what is left."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from driftline.cli.main import main_with
from support.servers import Site

Run = Callable[..., tuple[int, str, str]]
PEN = "<h1>Blue pen</h1><p class=price>€39.99</p><p>In stock</p><p class=ad>Buy ink!</p>"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRIFTLINE_STORE", str(tmp_path / "pages.db"))
    monkeypatch.setenv("DRIFTLINE_CHECK_ADDED", "true")

    def run_command(*arguments: str) -> tuple[int, str, str]:
        status = main_with(arguments)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run_command


def test_add_checks_a_page_at_once_and_shows_its_title_and_what_is_watched(site: Site, run: Run) -> None:
    url = site.put("/pen", PEN)
    shown = (
        f"Added {url}\n  A page\n  Watched: all of its text: 4 lines, 7 words\n    Blue pen\n    €39.99\n    In stock\n"
        "    Buy ink!\n"
    )
    assert run("add", url) == (0, shown, "")
    [page] = json.loads(run("list", "--json")[1])
    assert (page["checks"], page["versions"], page["verdict"]) == (1, 1, "new")
    assert run("check")[1].startswith("1 page in ")


def test_add_shows_what_filters_leave_and_names_those_that_make_no_difference(site: Site, run: Run) -> None:
    url = site.put("/pen", PEN)
    status, out, err = run(
        "add",
        url,
        "--select",
        ".price",
        "--select",
        ".cost",
        "--drop",
        ".adz",
        "--when",
        "price < 30",
        "--ignore",
        "ink",
    )
    assert status == 0
    assert out == f"Added {url}\n  A page\n  Watched: 1 line\n    €39.99\n  Now: price is €39.99\n"
    assert [line.partition("'")[2].partition("'")[0] for line in err.splitlines()] == [
        "select .cost", "drop .adz", "ignore ink",
    ]  # fmt: skip


def test_a_page_that_cannot_be_read_is_added_and_add_says_why(site: Site, run: Run) -> None:
    good, bad = site.put("/pen", PEN), site.url("/nix")
    status, out, err = run("add", good, bad)
    assert status == 0
    assert out.startswith(f"Added {good}\nAdded {bad}\n{good}\n  A page\n")
    assert err == f"{bad}: The first check failed. The server answered 404 Not Found.\n"
    assert [page["verdict"] for page in json.loads(run("list", "--json")[1])] == ["new", "failed"]


def test_a_filter_that_selects_nothing_is_reported_when_the_page_is_added(site: Site, run: Run) -> None:
    url = site.put("/pen", PEN)
    assert "The filter 'select .cost' matches nothing on this page" in run("add", url, "--select", ".cost")[2]


def test_pages_are_checked_later_if_the_user_wants_so(site: Site, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("add", site.put("/pen", PEN), "--later")[1] == f"Added {site.url('/pen')}\n"
    monkeypatch.setenv("DRIFTLINE_CHECK_ADDED", "false")
    assert run("add", site.put("/ink", PEN))[1] == f"Added {site.url('/ink')}\n"
    assert [page["checks"] for page in json.loads(run("list", "--json")[1])] == [0, 0]
    assert not site.asked.is_set()


def test_what_was_found_of_added_pages_is_in_the_json(site: Site, run: Run) -> None:
    good, bad = site.put("/pen", PEN), site.url("/nix")
    found = json.loads(run("add", good, bad, "--when", "price < 30", "--json")[1])
    first, second = found["checked"]
    assert (first["url"], first["title"], first["lines"], first["problem"]) == (good, "A page", 4, None)
    assert first["readings"] == {"price": "€39.99"}
    assert second == {"url": bad, "problem": "The first check failed. The server answered 404 Not Found."}


def test_try_shows_what_would_be_watched_and_saves_nothing(site: Site, run: Run, tmp_path: Path) -> None:
    url = site.put("/pen", PEN)
    status, out, err = run("try", url, "--read", "offers", "--when", "stock appears")
    assert (status, err) == (0, "")
    assert out == (
        f"{url}\n  A page\n  Watched: 2 lines\n    Price: €39.99\n    Stock: in stock\n  Now: stock is in stock\n"
    )
    assert not (tmp_path / "pages.db").exists()
    assert run("try", site.url("/nix")) == (
        1, "", f"{site.url('/nix')}: The first check failed. The server answered 404 Not Found.\n",
    )  # fmt: skip


def test_try_heeds_blocklists_and_the_filters_of_all_pages(site: Site, run: Run) -> None:
    url, other = site.put("/pen", PEN), site.put("/ink", PEN)
    run("add", other, "--later")
    run("filters", "--all", "--ignore", "ink")
    assert "Buy ink!" not in run("try", url)[1]
    run("report-unsafe", other)
    status, _, err = run("try", other)
    assert status == 1
    assert "is blocked" in err


def test_values_of_a_page_without_a_version_says_why(site: Site, run: Run) -> None:
    run("add", site.url("/nix"))
    status, _, err = run("values", site.url("/nix"))
    assert status == 1
    assert "has no version yet: its last check failed. The server answered 404" in err


def test_a_slow_expression_is_reported_and_does_not_hang_a_preview(site: Site, run: Run) -> None:
    url = site.put("/pen", "a" * 60 + "!")
    run("add", url)
    assert "takes too long" in run("edit", url, "--ignore", "/(a+)+$/")[1]


def test_edit_shows_what_its_filters_leave_of_the_last_version(site: Site, run: Run) -> None:
    url = site.put("/pen", PEN)
    run("add", url)
    status, out, err = run("edit", url, "--keep", "stock", "--drop", ".adz")
    assert status == 0
    assert out.splitlines()[1:] == ["  A page", "  Watched: 1 line", "    In stock"]
    assert err == "The filter 'drop .adz' makes no difference on this page as it is now.\n"
    assert "matches nothing on this page" in run("edit", url, "--select", ".cost")[1]


def test_prices_are_printed_and_drawn_over_time(site: Site, run: Run) -> None:
    url = site.put("/pen", PEN)
    run("add", url, "--read", "offers")
    site.put("/pen", PEN.replace("39.99", "29.99"))
    assert "Price €39.99 → €29.99" in run("check")[1]
    rows = [line.split() for line in run("values", url)[1].splitlines()]
    assert rows[0] == ["version", "when", "price", "stock"]
    assert [(row[0], row[3]) for row in rows[1:]] == [("2", "€29.99"), ("1", "€39.99")]
    found = json.loads(run("values", url, "--json")[1])
    assert [one["values"]["price"]["number"] for one in found] == [29.99, 39.99]
    drawn = run("values", url, "--plot")[1].splitlines()
    assert drawn[0] == "price"
    assert drawn[1].startswith("39.99 ┤─")
    assert drawn[8].startswith("29.99 ┤ ")
    assert drawn[8].endswith("╰") or drawn[8].endswith("─")


def test_values_says_what_to_do_if_there_is_no_number(site: Site, run: Run) -> None:
    url = site.put("/words", "<p>Only words, and no more than some of them.")
    run("add", url)
    assert "use --read offers" in run("values", url)[2]
