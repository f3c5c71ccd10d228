"""What is remembered of hosts from one run to the next, in either database."""

from __future__ import annotations

import driftline
from driftline.model import Failure, FailureKind, Robots
from driftline.versions.hosts import HostRecords
from driftline.versions.store import Store
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


def test_a_pause_is_remembered_until_it_is_over(where: str) -> None:
    store = Store.open(where)
    records = HostRecords(store)
    records.keep({}, {"a": 100.0, "b": 200.0}, 0.0)
    assert records.pauses(100.0) == {"b": 200.0}
    records.keep({}, {"b": 300.0}, 150.0)
    assert records.pauses(0.0) == {"b": 300.0}
    store.close()


def test_the_tags_of_a_hosts_pages_are_found(where: str) -> None:
    with driftline.open(where, settings(store=where)) as pages:
        pages.add("http://a.example/1", tags=["own", "other"])
        pages.add("http://a.example/2", "http://b.example/1", tags=["other"])
    store = Store.open(where)
    assert HostRecords(store).tagged({"own"}) == {"a.example": ["own"]}
    assert HostRecords(store).tagged(()) == {}
    store.close()
