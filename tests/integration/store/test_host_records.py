"""Records about hosts that outlive a run, in either database."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from sqlalchemy import insert

import driftline
from driftline.errors import FailureKind
from driftline.model.page import Failure, Robots
from driftline.store.engine import Store
from driftline.store.host_records import HostRecords
from driftline.store.ledger import Ledger
from driftline.store.schema import runs
from support.making import settings

TOLD = Robots(text="User-agent: *\nDisallow: /é", until=2_000.0)
UNKNOWN = Robots(
    text=None, until=50.0, failure=Failure(kind=FailureKind.ROBOTS, sentence="It is not known."), since=40.0
)


def test_robots_txt_is_remembered_by_origin_and_replaced(where: str) -> None:
    store = Store.open(where)
    records = HostRecords(store)
    records.keep({"http://a": UNKNOWN, "https://b:8443": TOLD}, {}, 0.0)
    assert records.robots_of(["http://a", "https://b:8443", "http://c"]) == {
        "http://a": UNKNOWN,
        "https://b:8443": TOLD,
    }
    records.keep({"http://a": TOLD}, {}, 0.0)
    assert records.robots_of(["http://a"]) == {"http://a": TOLD}
    store.close()


def test_a_robots_txt_that_is_not_used_for_long_is_removed(where: str) -> None:
    store = Store.open(where)
    records = HostRecords(store)
    records.keep({"http://a": TOLD}, {}, 0.0)
    records.forget(2_000.0 + 59 * 86_400.0)
    assert records.robots_of(["http://a"]) == {"http://a": TOLD}
    records.forget(2_000.0 + 61 * 86_400.0)
    assert records.robots_of(["http://a"]) == {}
    store.close()


def test_a_pause_is_remembered_until_it_is_over(where: str) -> None:
    store = Store.open(where)
    records = HostRecords(store)
    records.keep({}, {"a": 100.0, "b": 200.0}, 0.0)
    assert records.pauses(100.0) == {"b": 200.0}
    records.keep({}, {"b": 300.0}, 150.0)
    assert records.pauses(150.0) == {"b": 300.0}
    store.close()


def test_a_pause_from_before_a_clock_was_set_back_begins_once_and_for_good(where: str) -> None:
    store = Store.open(where)
    HostRecords(store).keep({}, {"a": 9_000_600.0, "b": 90_000_000.0}, 9_000_000.0)
    for now in (1_000.0, 1_300.0):  # each as if by another start of the program
        assert HostRecords(store).pauses(now) == {"a": 1_600.0, "b": 1_000.0 + 86_400.0}
    assert HostRecords(store).pauses(1_600.0) == {"b": 87_400.0}
    assert HostRecords(store).pauses(87_400.0) == {}
    store.close()


def test_a_clock_that_another_machine_has_a_little_fast_begins_no_pause_anew(where: str) -> None:
    store = Store.open(where)
    HostRecords(store).keep({}, {"a": 1_600.0}, 1_000.0)
    assert HostRecords(store).pauses(990.0) == {"a": 1_600.0}
    store.close()


def test_the_last_run_that_ended_is_not_one_of_the_future(where: str) -> None:
    store = Store.open(where)
    assert HostRecords(store).last_end(100.0) == -math.inf
    with store.write() as connection:
        rows = [{"scope": "", "started_at": 0.0, "ended_at": end} for end in (90.0, 95.0, 9_000.0)]
        connection.execute(insert(runs), rows)
    assert HostRecords(store).last_end(100.0) == 95.0
    store.close()


def test_the_tags_of_a_hosts_pages_are_found(where: str) -> None:
    with driftline.open(where, settings(store=where)) as pages:
        pages.add("http://a.example/1", tags=["own", "other"])
        pages.add("http://a.example/2", "http://b.example/1", tags=["other"])
    store = Store.open(where)
    assert HostRecords(store).tagged({"own"}) == {"a.example": ["own"]}
    assert HostRecords(store).tagged(()) == {}
    store.close()


@pytest.mark.parametrize("ends", [True, False])
def test_delays_count_from_the_end_of_a_run_that_stopped_or_was_killed_and_is_continued(where: str, ends: bool) -> None:
    store = Store.open(where)
    now = 100.0
    ledger = Ledger(store, lambda: now)
    with driftline.open(where, settings(store=where)) as pages:
        pages.add("http://a.example/1")
    run, _ = ledger.begin(None)
    now = 110.0
    if ends:
        ledger.end(run)
    now = 120.0
    again, continued = ledger.begin(None)
    assert (again, continued) == (run, True)
    assert HostRecords(store).last_end(now) == (110.0 if ends else 120.0)
    now = 130.0
    ledger.begin(None)
    assert HostRecords(store).last_end(now) == 130.0, "it was killed, nobody knows when"
    store.close()


class Times:
    """A store, and a clock that a test sets."""

    def __init__(self, where: str) -> None:
        self.now = 100.0
        self.store = Store.open(where)
        with driftline.open(where, settings(store=where)) as pages:
            pages.add("http://a.example/1")

    def ledger(self) -> Ledger:
        """One of another process."""
        return Ledger(self.store, lambda: self.now)

    def last_end(self) -> float:
        return HostRecords(self.store).last_end(self.now)


@pytest.fixture
def times(where: str) -> Iterator[Times]:
    made = Times(where)
    yield made
    made.store.close()


def check(times: Times, at: float) -> None:
    """Have another process check a page that is not of the watch list, and end."""
    times.now = at
    ledger = times.ledger()
    ledger.end(ledger.begin([7])[0])


def test_an_open_ended_run_detects_that_others_checked_pages_meanwhile(times: Times) -> None:
    ledger = times.ledger()
    run = ledger.begin_without_end(idle=True)
    assert times.last_end() <= 0.0, "it has sent no request yet"
    assert ledger.note_right_taken(run), "nobody knows who came before"
    assert not ledger.note_right_taken(run)
    check(times, 110.0)
    times.now = 111.0
    assert ledger.note_right_taken(run)
    assert times.last_end() == 111.0
    assert not ledger.note_right_taken(run)
    times.now = 120.0
    times.ledger().begin([7])  # it is killed
    times.now = 130.0
    assert ledger.note_right_taken(run)
    assert times.last_end() == 130.0


def test_delays_count_from_a_killed_run_although_others_checked_pages_before(times: Times) -> None:
    ledger = times.ledger()
    run = ledger.begin_without_end(idle=True)
    ledger.note_right_taken(run)
    check(times, 110.0)
    times.now = 120.0
    ledger.note_right_taken(run)
    times.now = 500.0  # it is killed
    times.ledger().begin_without_end()
    assert times.last_end() == 500.0


def test_delays_count_from_a_killed_check_although_others_checked_pages_before(times: Times) -> None:
    ledger = times.ledger()
    run, _ = ledger.begin(None)
    check(times, 110.0)
    times.now = 120.0
    ledger.note_interruption(run)
    assert times.last_end() == 120.0
    times.now = 500.0  # it is killed
    times.ledger().begin_without_end()
    assert times.last_end() == 500.0


def test_delays_count_from_a_killed_check_although_a_run_began_to_wait_meanwhile(times: Times) -> None:
    times.ledger().begin(None)
    times.now = 110.0
    ledger = times.ledger()
    run = ledger.begin_without_end(idle=True)
    times.now = 500.0  # the check is killed
    ledger.note_right_taken(run)
    assert times.last_end() == 500.0
