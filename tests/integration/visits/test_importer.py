"""Visits from files: browsers' histories, logs and tables, counted once however often they come."""

from __future__ import annotations

import gzip
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event

import driftline
from driftline import Driftline, DriftlineError
from driftline.api import workspace_of
from driftline.errors import BadSetting, UsageError
from support.histories import LINK, REDIRECT_TARGET, REDIRECTED, Seen, add_to_chrome, make_chrome, make_firefox
from support.making import settings

A, B, C = "https://a.example/", "https://b.example/x?y=1", "https://c.example/"
AT = 1_772_366_400.0  # 1 March 2026, 12:00
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Driftline]:
    with driftline.open(settings=settings(store=str(tmp_path / "pages.db"))) as pages:
        yield pages


def sums(pages: Driftline) -> dict[str, tuple[int, float, int]]:
    return {one.url: (one.frequency, one.weightage, one.ttl) for one in pages.visits.totals()}


def log_lines(count: int, start: int = 0) -> str:
    """Two visitors in turns, a request a second."""
    return "".join(
        f"203.0.113.{number % 2} - - [01/Mar/2026:12:{number // 60 % 60:02}:{number % 60:02} +0000] "
        f'"GET /{number % 3} HTTP/1.1" 200 512 "-" "{AGENT}"\n'
        for number in range(start, start + count)
    )


def test_the_history_of_chrome_is_counted_with_its_durations(pages: Driftline, tmp_path: Path) -> None:
    history = make_chrome(
        tmp_path / "History",
        [Seen(A, AT, 30), Seen(B, AT + 30, 12.5), Seen(A, AT + 60, 4), Seen("chrome://settings/", AT + 70, 9)],
    )
    done = pages.visits.import_file(history)
    assert (done.format, done.visits, done.known, done.skipped, done.bad, done.pages) == ("chrome", 3, 0, 1, 0, 2)
    assert sums(pages) == {A: (2, 34.0, 2), B: (1, 12.5, 1)}
    assert pages.visits.totals()[0][5:7] == (AT, AT + 60)


def test_a_tab_that_was_left_open_counts_half_an_hour(pages: Driftline, tmp_path: Path) -> None:
    pages.visits.import_file(make_chrome(tmp_path / "History", [Seen(A, AT, 700_000)]))
    assert sums(pages) == {A: (1, 1_800.0, 1)}


def test_addresses_that_only_redirect_and_frames_are_no_visits_of_chrome(pages: Driftline, tmp_path: Path) -> None:
    visits = [Seen(A, AT, 0, REDIRECTED), Seen(B, AT, 5, REDIRECT_TARGET), Seen(C, AT, 5, LINK | 3), Seen(A, AT, 1, 1)]
    done = pages.visits.import_file(make_chrome(tmp_path / "History", visits))
    assert (done.visits, done.skipped) == (2, 2)
    assert sums(pages) == {A: (1, 1.0, 1), B: (1, 5.0, 1)}


def test_bad_rows_of_a_history_are_named_and_the_others_count(pages: Driftline, tmp_path: Path) -> None:
    visits = [Seen(None, AT), Seen(A, AT, 1), Seen("http://", AT + 1), Seen(A, -11_644_473_600, 1)]
    done = pages.visits.import_file(make_chrome(tmp_path / "History", visits))
    assert (done.visits, done.bad) == (1, 3)
    assert sorted(problem.line for problem in done.problems) == [1, 3, 4]


def test_the_history_of_firefox_is_counted_by_what_it_noted_or_the_time_to_the_next_visit(
    pages: Driftline, tmp_path: Path
) -> None:
    history = make_firefox(
        tmp_path / "places.sqlite",
        [Seen(A, AT), Seen(B, AT + 40, 7), Seen(A, AT + 90, 11), Seen(C, AT + 9_000), Seen("about:home", AT + 9_100)],
    )
    done = pages.visits.import_file(history)
    assert (done.format, done.visits, done.skipped) == ("firefox", 4, 1)
    assert sums(pages) == {A: (2, 51.0, 2), B: (1, 7.0, 1), C: (1, 100.0, 1)}


def test_a_firefox_that_noted_no_times_has_gaps_of_at_most_half_an_hour(pages: Driftline, tmp_path: Path) -> None:
    visits = [Seen(A, AT), Seen(B, AT + 40), Seen(A, AT + 90_000), Seen(C, AT + 90_002)]
    pages.visits.import_file(make_firefox(tmp_path / "places.sqlite", visits, views=False))
    assert sums(pages) == {A: (2, 42.0, 2), B: (1, 1_800.0, 1), C: (1, 0.0, 1)}


def test_redirects_downloads_and_embedded_contents_are_no_visits_of_firefox(pages: Driftline, tmp_path: Path) -> None:
    visits = [Seen(A, AT), Seen(B, AT, 0, 5, came_from=1), Seen(C, AT + 1, 0, 7), Seen(C, AT + 2, 0, 4)]
    done = pages.visits.import_file(make_firefox(tmp_path / "places.sqlite", visits))
    assert (done.visits, done.skipped) == (1, 3)
    assert sums(pages) == {B: (1, 0.0, 1)}


@pytest.mark.parametrize("make", [make_chrome, make_firefox])
def test_a_history_counts_once_however_often_it_is_imported(
    pages: Driftline, tmp_path: Path, make: Callable[[Path, Sequence[Seen]], Path]
) -> None:
    visits = [Seen(A, AT, 3), Seen(A, AT), Seen(B, AT + 20, 4)]
    make(tmp_path / "one", visits)
    make(tmp_path / "grown", [*visits, Seen(A, AT + 60, 5)])
    first = pages.visits.import_file(tmp_path / "one")
    before = sums(pages)
    again = pages.visits.import_file(tmp_path / "one")
    assert (first.visits, again.visits, again.known) == (3, 0, 3)
    assert sums(pages) == before
    assert pages.visits.import_file(tmp_path / "grown").visits == 1


def test_a_browser_that_is_writing_is_neither_locked_nor_missed(pages: Driftline, tmp_path: Path) -> None:
    """It holds the only lock, and the newest visit stands in its log and not in the file yet."""
    history = make_chrome(tmp_path / "History", [Seen(A, AT, 1)])
    with closing(sqlite3.connect(history)) as browser:
        browser.execute("PRAGMA journal_mode=WAL")
        browser.execute("PRAGMA locking_mode=EXCLUSIVE")
        browser.execute("PRAGMA wal_autocheckpoint=0")
        add_to_chrome(browser, [Seen(B, AT + 1, 2)])
        browser.commit()
        names = sorted(path.name for path in tmp_path.iterdir())
        contents = history.read_bytes()
        browser.execute("BEGIN EXCLUSIVE")
        assert pages.visits.import_file(history).visits == 2
        add_to_chrome(browser, [Seen(C, AT + 2, 2)])
        browser.commit()
        assert history.read_bytes() == contents
        assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert set(sums(pages)) == {A, B}


def test_a_log_of_a_hundred_thousand_lines_counts_once_however_often_it_comes(pages: Driftline, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(log_lines(100_000))
    first = pages.visits.import_file(log, site="https://a.example")
    before = sums(pages)
    again = pages.visits.import_file(log, site="https://a.example")
    assert (first.visits, again.visits, again.known) == (100_000, 0, 100_000)
    assert sums(pages) == before
    assert sum(frequency for frequency, _, _ in before.values()) == 100_000


def test_a_log_that_grew_was_rotated_and_packed_gives_what_the_whole_gives(tmp_path: Path) -> None:
    whole = log_lines(300)
    lines = whole.splitlines(keepends=True)
    parts = {"access.log": "".join(lines[:100]), "access.log.1": "".join(lines[:200]), "later.log": "".join(lines[50:])}
    with driftline.open(settings=settings(store=str(tmp_path / "parts.db"))) as pages:
        for name, text in parts.items():
            (tmp_path / name).write_text(text)
            pages.visits.import_file(tmp_path / name, site="a.example")
        (tmp_path / "access.log.2.gz").write_bytes(gzip.compress(whole.encode()))
        last = pages.visits.import_file(tmp_path / "access.log.2.gz", site="a.example")
        in_parts = sums(pages)
    (tmp_path / "whole.log").write_text(whole)
    with driftline.open(settings=settings(store=str(tmp_path / "whole.db"))) as pages:
        pages.visits.import_file(tmp_path / "whole.log", site="a.example")
        assert sums(pages) == in_parts
    assert (last.visits, last.known) == (0, 300)


def test_an_interrupted_import_keeps_what_it_counted_and_continues(pages: Driftline, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(log_lines(12_000))

    def stop(done: int, total: int) -> None:
        assert (done, total) == (5_000, 12_000)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pages.visits.import_file(log, site="a.example", progress=stop)
    assert sum(one.frequency for one in pages.visits.totals()) == 5_000
    done = pages.visits.import_file(log, site="a.example")
    assert (done.visits, done.known) == (7_000, 5_000)
    assert sum(one.frequency for one in pages.visits.totals()) == 12_000


def test_a_packed_log_that_breaks_off_is_refused_and_counts_once_it_is_whole(pages: Driftline, tmp_path: Path) -> None:
    whole = gzip.compress(log_lines(20_000).encode())
    log = tmp_path / "access.log.gz"
    log.write_bytes(whole[: len(whole) * 2 // 3])
    with pytest.raises(DriftlineError, match="is damaged"):
        pages.visits.import_file(log, site="a.example", format="log")
    log.write_bytes(whole)
    done = pages.visits.import_file(log, site="a.example")
    assert done.visits + done.known == 20_000
    assert sum(one.frequency for one in pages.visits.totals()) == 20_000


def test_visited_pages_are_watched_if_they_were_available(pages: Driftline, tmp_path: Path) -> None:
    table = tmp_path / "visits.csv"
    table.write_text(f"url,available\n{A},1\n{B},0\n{C},0\n{C},1\n")
    pages.visits.import_file(table)
    assert pages.pages() == []
    done = pages.visits.import_file(table, add=True)
    assert (done.visits, done.added) == (0, 2)
    assert [page.url for page in pages.pages()] == [A, C]
    assert {one.url: one.watched for one in pages.visits.totals()} == {A: True, B: False, C: True}


def test_a_visit_adds_its_page_only_with_the_option(pages: Driftline) -> None:
    assert not pages.visit("a.example", seconds=2).watched
    counted = pages.visit("A.example", seconds=3, available=False, add=True)
    assert (counted.frequency, counted.weightage, counted.ttl, counted.watched) == (2, 5.0, 1, True)
    assert [page.url for page in pages.pages()] == [A]


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_visit_takes_some_time_or_none(pages: Driftline, seconds: float) -> None:
    with pytest.raises(BadSetting, match="0 or more"):
        pages.visit(A, seconds=seconds, add=True)
    assert pages.visits.totals() == []
    assert pages.pages() == []


def test_the_rank_follows_the_visits_and_its_threshold_is_a_setting(tmp_path: Path) -> None:
    where = str(tmp_path / "pages.db")
    with driftline.open(settings=settings(store=where)) as pages:
        for url, times, there in ((A, 4, 2), (B, 2, 2), (C, 1, 1)):
            for turn in range(times):
                pages.visit(url, seconds=10 if url == C else 1, available=turn < there)
        assert [one.url for one in pages.rank()] == [B, C]
        assert [one.url for one in pages.rank("frequency")] == [A, B, C]
        assert [one.url for one in pages.rank("weightage")] == [C, A, B]
        with pytest.raises(BadSetting, match="use frequency, weightage, intelligent, value"):
            pages.rank("colour")
    with driftline.open(settings=settings(store=where, rank_threshold=0.4)) as pages:
        assert [one.url for one in pages.rank()] == [A, B, C]


def test_what_is_no_history_is_refused_with_a_sentence(pages: Driftline, tmp_path: Path) -> None:
    text, empty, other = tmp_path / "notes.txt", tmp_path / "empty", tmp_path / "other.db"
    text.write_text("dear diary\n")
    empty.touch()
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE urls (url)")
    for path in (text, empty, other):
        with pytest.raises(UsageError):
            pages.visits.import_file(path)
    with pytest.raises(UsageError, match="not the history of chrome"):
        pages.visits.import_file(make_firefox(tmp_path / "places.sqlite", []), format="chrome")
    with pytest.raises(DriftlineError, match="cannot be read"):
        pages.visits.import_file(tmp_path / "nowhere")
    with pytest.raises(BadSetting, match="not a format"):
        pages.visits.import_file(text, format="safari")


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"], ids=["old Mac", "Windows", "Unix"])
def test_a_table_counts_whatever_ends_its_lines(pages: Driftline, tmp_path: Path, end: str) -> None:
    table = tmp_path / "visits.csv"
    rows = [f"https://a.example/{number},{'n' * 50}" for number in range(3_000)]
    table.write_bytes(end.join(["url,notes", *rows, "no address,x", "b.example,y"]).encode())
    done = pages.visits.import_file(table)
    assert (done.format, done.visits, done.bad, done.problems[0].line) == ("csv", 3_001, 1, 3_002)


def test_what_is_no_text_is_refused_with_a_sentence(pages: Driftline, tmp_path: Path) -> None:
    binary = tmp_path / "picture"
    for seed in range(20):
        binary.write_bytes(random.Random(seed).randbytes(300_000))
        with pytest.raises(UsageError, match="is not the history of a browser, a server log or a table"):
            pages.visits.import_file(binary)
        with pytest.raises(UsageError, match="must name its columns"):
            pages.visits.import_file(binary, format="csv")


def test_an_address_in_broken_characters_does_not_stop_an_import(pages: Driftline, tmp_path: Path) -> None:
    history = make_chrome(tmp_path / "History", [Seen(A, AT, 1), Seen(B, AT + 1, 2)])
    with closing(sqlite3.connect(history)) as browser:
        browser.execute("UPDATE urls SET url = cast(? AS TEXT) WHERE id = 1", (b"https://a.example/\xff",))
        browser.commit()
    assert pages.visits.import_file(history).visits == 2


def test_a_history_that_is_damaged_is_refused_with_a_sentence(pages: Driftline, tmp_path: Path) -> None:
    history = make_chrome(tmp_path / "History", [Seen(f"{A}{number}", AT + number) for number in range(2_000)])
    damaged = tmp_path / "Damaged"
    shutil.copyfile(history, damaged)
    with damaged.open("r+b") as file:
        file.seek(4_096)
        file.write(b"\xff" * (history.stat().st_size - 4_096))
    with pytest.raises(DriftlineError, match=r"Damaged is damaged .*: import another copy"):
        pages.visits.import_file(damaged)


def test_a_browser_is_to_be_closed_only_if_it_wrote_meanwhile(
    pages: Driftline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = make_chrome(tmp_path / "History", [Seen(A, AT)])
    with history.open("r+b") as file:
        file.seek(4_096)
        file.write(b"\xff" * (history.stat().st_size - 4_096))
    copy = shutil.copyfile

    def while_it_is_written(source: str, target: Path) -> None:
        copy(source, target)
        with history.open("ab") as file:
            file.write(b"x")

    monkeypatch.setattr(shutil, "copyfile", while_it_is_written)
    with pytest.raises(DriftlineError, match=r"was written to while it was copied .*: close the browser"):
        pages.visits.import_file(history)


def test_a_history_of_another_browser_is_reported_as_such(pages: Driftline, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "History")) as browser:
        browser.execute("CREATE TABLE urls (address)")
        browser.execute("CREATE TABLE visits (moment)")
    with pytest.raises(DriftlineError, match=r"has not the columns .*no such column"):
        pages.visits.import_file(tmp_path / "History")


def test_a_long_address_counts_if_only_tracking_makes_it_long(tmp_path: Path) -> None:
    tracked, long = f"{A}?utm_source={'x' * 3_000}", f"{A}?y={'x' * 3_000}"
    history = make_chrome(tmp_path / "History", [Seen(tracked, AT), Seen(long, AT + 1)])
    where = str(tmp_path / "pages.db")
    with driftline.open(settings=settings(store=where)) as pages:
        done = pages.visits.import_file(history)
        assert (done.visits, done.bad) == (1, 1)
        assert sums(pages) == {A: (1, 0.0, 1)}
    with driftline.open(settings=settings(store=str(tmp_path / "kept.db"), tracking="-utm_*")) as pages:
        assert pages.visits.import_file(history).bad == 2, "for whom it is no tracking, it is too long"


def test_by_value_never_visited_pages_come_first_of_equal_ones_and_a_limit_reads_no_more_than_it_needs(
    pages: Driftline,
) -> None:
    urls = [f"https://page{number}.example/" for number in range(1_200)]
    pages.add(*urls)
    for number in (7, 3):
        pages.visit(urls[number], available=False)
    read: list[str] = []
    event.listen(workspace_of(pages).store.engine, "before_cursor_execute", lambda *given: read.append(given[2]))
    few = pages.rank("value", 5)
    of_few = [statement for statement in read if "LEFT OUTER JOIN visits" in statement]
    read.clear()
    everything = pages.rank("value")

    assert len(of_few) == 1
    assert len([statement for statement in read if "LEFT OUTER JOIN visits" in statement]) == 3
    assert few == everything[:5]
    assert sorted(one.url for one in everything) == sorted(urls)
    assert everything == sorted(everything, key=lambda one: (-one.value, one.sno))
    assert {one.url: one.frequency for one in everything if one.sno} == {urls[7]: 1, urls[3]: 1}
    assert all(one.watched for one in everything)
