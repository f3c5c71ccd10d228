"""The visit database on both databases: nothing is lost, and nothing counts twice."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.model.visit import Visit, Visited
from driftline.store.engine import Store
from driftline.store.pages import Catalog
from driftline.store.visit_records import Visits
from support.properties import searched_briefly

PAGE, OTHER = "https://page.example/", "https://other.example/"


@pytest.fixture
def visits(store: Store) -> Visits:
    return Visits(store)


def all_at_once(*jobs: threading.Thread) -> None:
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()


def test_visits_are_counted_by_the_papers_algorithm(visits: Visits) -> None:
    assert visits.record(PAGE, at=10, seconds=3.5, available=True) == Visited(1, PAGE, 1, 3.5, 1, 10, 10)
    assert visits.record(OTHER, at=20, seconds=0, available=False)[2:5] == (1, 0, 0)
    assert visits.record(PAGE, at=30, seconds=4, available=False) == Visited(1, PAGE, 2, 7.5, 1, 10, 30)
    assert [one.url for one in visits.all()] == [PAGE, OTHER]


def test_the_totals_of_a_visit_include_whether_the_page_is_watched(store: Store, visits: Visits) -> None:
    Catalog(store).add([PAGE])
    assert visits.record(PAGE, at=1, seconds=1, available=True).watched
    assert not visits.record(OTHER, at=1, seconds=1, available=True).watched
    assert [one.watched for one in visits.all()] == [True, False]


def test_fifty_threads_that_visit_one_page_are_all_counted(where: str) -> None:
    """Ten through each of five stores, as different processes would."""
    stores = [Store.open(where) for _ in range(5)]
    start = threading.Barrier(50)

    def go(store: Store, number: int) -> None:
        start.wait()
        for turn in range(4):
            Visits(store).record(PAGE, at=number, seconds=0.5, available=turn % 2 == 0)

    all_at_once(*(threading.Thread(target=go, args=(stores[number % 5], number)) for number in range(50)))
    (counted,) = Visits(stores[0]).all()
    assert counted == Visited(counted.sno, PAGE, 200, 100.0, 100, 0, 49)
    for store in stores:
        store.close()


def test_imports_of_the_same_visits_at_the_same_time_count_them_once(where: str) -> None:
    stores = [Store.open(where) for _ in range(4)]
    batch = [Visit(f"https://page.example/{key % 7}", key, 1.0, available=True, key=key) for key in range(1, 701)]
    start, counted = threading.Barrier(4), []

    def go(store: Store, number: int) -> None:
        visits = Visits(store)
        start.wait()
        ordered = batch if number % 2 else batch[::-1]
        counted.append(sum(visits.record_once(ordered[some : some + 100]) for some in range(0, 700, 100)))

    all_at_once(*(threading.Thread(target=go, args=(store, number)) for number, store in enumerate(stores)))
    assert sum(counted) == 700
    assert {(one.frequency, one.weightage, one.ttl) for one in Visits(stores[0]).all()} == {(100, 100.0, 100)}
    for store in stores:
        store.close()


def test_a_visit_that_becomes_longer_counts_its_seconds_in_full_and_still_once(visits: Visits) -> None:
    visit = Visit(PAGE, 5, 10.0, available=True, key=-(2**63))
    assert visits.record_once([visit]) == 1
    assert visits.record_once([visit._replace(seconds=25.0)]) == 0
    assert visits.record_once([visit._replace(seconds=10.0)]) == 0
    assert visits.all() == [Visited(1, PAGE, 1, 25.0, 1, 5, 5)]


def test_addresses_are_numbered_in_the_order_of_their_first_visit(visits: Visits) -> None:
    urls = [f"https://page.example/{name}" for name in "cabdbac"]
    visits.record_once(Visit(url, at, 0.0, available=True, key=at) for at, url in enumerate(urls))
    assert [one.url[-1] for one in visits.all()] == ["c", "a", "b", "d"]


def test_pages_that_are_removed_keep_their_visits(store: Store, visits: Visits) -> None:
    """They are the user's visits, and count again if the page is watched again."""
    catalog = Catalog(store)
    catalog.add([PAGE])
    visits.record(PAGE, at=1, seconds=1, available=True)
    catalog.remove([PAGE])
    assert visits.all() == [Visited(1, PAGE, 1, 1.0, 1, 1, 1, watched=False)]


many = st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ab"), st.integers(0, 50), st.booleans()), max_size=20)


@searched_briefly
@given(many, st.lists(st.integers(0, 20), max_size=4))
def test_however_a_file_is_cut_and_repeated_the_sums_are_those_of_reading_it_once(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, str, int, bool]], cuts: list[int]
) -> None:
    found = [Visit(url, at, seconds, ok, key) for key, (at, url, seconds, ok) in enumerate(rows)]
    store = Store.open(str(tmp_path_factory.mktemp("visits") / "pages.db"))
    visits = Visits(store)
    for cut in cuts:
        visits.record_once(visit._replace(seconds=visit.seconds / 2) for visit in found[:cut])
    visits.record_once(found)
    sums = {
        url: (
            sum(visit.url == url for visit in found),
            sum(visit.seconds for visit in found if visit.url == url),
            sum(visit.available for visit in found if visit.url == url),
        )
        for url in {visit.url for visit in found}
    }
    assert {one.url: (one.frequency, one.weightage, one.ttl) for one in visits.all()} == sums
    store.close()
