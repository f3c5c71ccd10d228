"""One page in several spellings, and pages that were added when other rules held."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from driftline.api.watch_list import Driftline
from driftline.errors import BadURL, UnknownPage, UsageError
from driftline.settings import Settings
from driftline.store.engine import Store
from driftline.store.pages import Catalog
from driftline.store.schema import pages

PAGE = "https://münchen.example/%7Eanna/?b=2&utm_source=mail&a=1#top"
NAME = "https://xn--mnchen-3ya.example/~anna/?b=2&a=1"
SPELLINGS = [
    PAGE, NAME, "https://münchen.example/~anna/?b=2&a=1", "HTTPS://MÜNCHEN.example:443/x/../%7eanna/?b=2&gclid=9&a=1",
]  # fmt: skip
TRACKED = "https://a.example/?utm_source=mail"
PLAIN = "https://a.example/"
LONG = f"https://a.example/{'a' * 3_000}"


@pytest.fixture
def file_store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(str(tmp_path / "file.db"))
    yield store
    store.close()


def watched_before(store: Store, *urls: str) -> None:
    """Watch pages under names that the rules of today would not give them."""
    assert Catalog(store, tracking=["-*"]).add(urls) == list(urls)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_page_is_found_in_every_spelling(file_store: Store, spelling: str) -> None:
    catalog = Catalog(file_store)
    assert catalog.add([PAGE]) == [NAME]

    assert catalog.find(spelling).url == NAME
    assert catalog.add([spelling]) == catalog.unwatched([spelling]) == []
    assert catalog.names([spelling]) == {spelling: NAME}


def test_spellings_of_one_page_given_at_once_are_one_page(store: Store) -> None:
    catalog = Catalog(store)

    assert catalog.unwatched(SPELLINGS) == [NAME]
    assert catalog.add(SPELLINGS) == [NAME]
    assert [page.url for page in catalog.find_all(SPELLINGS)] == [NAME]


def test_a_page_that_was_added_under_other_rules_keeps_its_name_and_is_found_by_it(store: Store) -> None:
    watched_before(store, TRACKED)
    catalog = Catalog(store)

    assert catalog.find("A.example?utm_source=mail").url == TRACKED
    assert catalog.add([TRACKED]) == catalog.unwatched([TRACKED]) == []
    with pytest.raises(UnknownPage, match=PLAIN):
        catalog.find(PLAIN)
    catalog.add([NAME])
    assert list(catalog.old_names()) == [TRACKED]


def test_where_both_names_are_watched_each_page_is_found_by_its_own(store: Store) -> None:
    watched_before(store, TRACKED, PLAIN)
    catalog = Catalog(store)

    assert [page.url for page in catalog.find_all([TRACKED, PLAIN])] == [TRACKED, PLAIN]
    assert catalog.find("https://a.example/?utm_source=other").url == PLAIN
    assert catalog.remove([TRACKED]) == [TRACKED]
    assert [page.url for page in catalog.all()] == [PLAIN]


def test_an_edit_gives_an_old_page_its_canonical_name_unless_another_page_has_it(store: Store) -> None:
    watched_before(store, TRACKED)
    catalog = Catalog(store)

    assert catalog.edit(TRACKED, move_to=TRACKED).url == PLAIN

    watched_before(store, TRACKED.replace("mail", "web"))
    with pytest.raises(UsageError, match="watched already"):
        catalog.edit(TRACKED.replace("mail", "web"), move_to=PLAIN)


@pytest.mark.parametrize("url", [LONG, "https://https//example.com/"])
def test_a_page_whose_address_is_refused_by_now_can_still_be_found_and_removed(file_store: Store, url: str) -> None:
    catalog = Catalog(file_store)
    catalog.add([PLAIN])
    with file_store.write() as connection:
        connection.execute(update(pages).values(url=url))

    assert catalog.find(url).url == url
    assert catalog.remove([url]) == [url]
    for refused in (catalog.add, catalog.unwatched, catalog.find_all):
        with pytest.raises(BadURL):
            refused([url])
    assert catalog.all() == []


def test_the_longest_address_fits_into_either_store(store: Store) -> None:
    letters = "".join(chr(97 + number * number % 26) + str(number) for number in range(1_000))
    longest = f"{PLAIN}{letters}"[:2_500]

    assert Catalog(store).add([longest]) == [longest]


def test_the_changes_to_tracking_hold_for_adding_and_finding(file_store: Store) -> None:
    catalog = Catalog(file_store, tracking=("ref", "-utm_source"))

    assert catalog.add([f"{TRACKED}&ref=x&gclid=y"]) == [TRACKED]
    assert catalog.find(f"{TRACKED}&ref=z").url == TRACKED
    # what was dropped stays dropped when the rules change, and pages stay what they are
    assert Catalog(file_store).find(TRACKED).url == TRACKED


def test_a_hidden_password_and_another_spelling_go_together(file_store: Store) -> None:
    catalog = Catalog(file_store)
    catalog.add(["https://me:secret@a.example/"])

    assert catalog.find("https://me:***@A.example/?gclid=1").url == "https://me:secret@a.example/"
    assert catalog.add(["https://me:***@a.example/"]) == []


def test_visits_in_every_spelling_count_for_the_page(store: Store) -> None:
    with Driftline(store, Settings()) as watch_list:
        watch_list.add(NAME)
        for spelling in SPELLINGS:
            visited = watch_list.visit(spelling)

    assert (visited.url, visited.frequency, visited.watched) == (NAME, len(SPELLINGS), True)


def test_visits_count_for_a_page_that_has_an_old_name(store: Store) -> None:
    watched_before(store, TRACKED)
    with Driftline(store, Settings()) as watch_list:
        assert watch_list.visit(TRACKED, add=True).url == TRACKED
        assert [page.url for page in watch_list.pages()] == [TRACKED]


def test_imported_visits_count_for_the_page_and_once_whatever_the_rules_are(store: Store, tmp_path: Path) -> None:
    table = tmp_path / "visits.csv"
    table.write_text("url,seconds,available\n" + "".join(f"{spelling},5,1\n" for spelling in SPELLINGS))
    with Driftline(store, Settings()) as watch_list:
        done = watch_list.visits.import_file(table, add=True)
        assert (done.visits, done.pages, done.added, done.bad) == (4, 1, 1, 0)
        (visited,) = watch_list.visits.totals()
        assert (visited.url, visited.frequency, visited.weightage, visited.watched) == (NAME, 4, 20.0, True)

        keeping = Driftline(store, Settings(tracking=("-*",)))
        assert keeping.visits.import_file(table).known == 4


def test_an_address_that_is_too_long_costs_one_row_of_the_visits(store: Store, tmp_path: Path) -> None:
    table = tmp_path / "visits.csv"
    table.write_text(f"url\n{LONG}\n{PLAIN}\n")
    with Driftline(store, Settings()) as watch_list:
        done = watch_list.visits.import_file(table)

    assert (done.visits, done.bad) == (1, 1)
    assert "the most is 2,500" in done.problems[0].sentence
