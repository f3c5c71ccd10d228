"""Each program in examples/ does what its first lines say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.servers import Site

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str, folder: Path, *arguments: str) -> str:
    """Run an example in a folder, and return what it printed on standard output."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *arguments]
    environment = os.environ | {"HOME": str(folder), "TZ": "UTC"}
    ran = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_print_changes_prints_the_difference_of_a_changed_page(site: Site, tmp_path: Path) -> None:
    urls = [site.put("/a", "the old words"), site.put("/b", "always the same")]
    assert example("print_changes", tmp_path, *urls) == ""
    site.put("/a", "the new words")
    printed = example("print_changes", tmp_path, *urls)
    assert "-the old words" in printed
    assert "+the new words" in printed
    assert urls[1] not in printed


def test_price_prints_the_old_and_the_new_price(site: Site, tmp_path: Path) -> None:
    url = site.put("/product", "A chair <b class=price>€39.99</b>")
    assert example("price", tmp_path, url, ".price") == ""
    site.put("/product", "A fine chair <b class=price>€29.99</b>")
    assert example("price", tmp_path, url, ".price") == "€39.99 → €29.99\n"


def test_whole_site_prints_new_and_gone_pages(site: Site, tmp_path: Path) -> None:
    first, second, third = (site.url(f"/{name}") for name in ("first", "second", "third"))
    start = site.put("/", "<a href=first>One</a> <a href=second>Two</a>")
    site.put("/first", "The first page of the site")
    site.put("/second", "The second page, which will be removed")
    assert sorted(example("whole_site", tmp_path, start).splitlines()) == [
        f"new {start}",
        f"new {first}",
        f"new {second}",
    ]
    site.put("/", "<a href=first>One</a> <a href=second>Two</a> <a href=third>Three</a>")
    site.put("/third", "The third page, which was added")
    del site.pages["/second"]
    again = example("whole_site", tmp_path, start).splitlines()
    assert f"new {third}" in again
    assert f"gone {second}" in again
    assert f"new {first}" not in again


def test_history_prints_the_checks_and_writes_the_newest_change(site: Site, tmp_path: Path) -> None:
    url = site.put("/", "the old words")
    example("print_changes", tmp_path, url)
    site.put("/", "the new words")
    example("print_changes", tmp_path, url)
    verdicts = [line.split()[2] for line in example("history", tmp_path, "pages.db", url, "c.html").splitlines()]
    assert verdicts == ["changed", "new"]
    assert "words" in (tmp_path / "c.html").read_text()


def test_visits_ranks_pages_and_counts_no_visit_twice(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text(
        "url,time,seconds,available\n"
        "https://a.example/,2026-01-01T10:00:00Z,30,yes\n"
        "https://b.example/,2026-01-01T10:01:00Z,10,yes\n"
        "https://b.example/,2026-01-01T10:02:00Z,10,yes\n"
    )
    for _ in range(2):
        heading, *rows = example("visits", tmp_path, "visits.csv").splitlines()
        assert heading.split() == ["visits", "seconds", "available", "page"]
        assert [row.split() for row in rows] == [
            ["2", "20", "2", "https://b.example/"],
            ["1", "30", "1", "https://a.example/"],
        ]


def test_every_example_has_a_test() -> None:
    tested = set(Path(__file__).read_text().split('"'))
    assert {path.stem for path in EXAMPLES.glob("*.py")} <= tested
