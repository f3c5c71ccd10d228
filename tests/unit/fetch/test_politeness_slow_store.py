"""No lock is held while the store is read or others are called: a store that does not answer delays one producer."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from driftline.errors import FailureKind, StoreUnavailable
from driftline.fetch.host import Host, PriorityRequests
from driftline.fetch.host_queue import HostQueue
from driftline.model.outcome import Document, Link
from driftline.model.page import Failure, Robots
from driftline.settings import HostPolicy
from support.hosts import Records
from support.polite import Queue, Run, allowed

PATIENCE = 10.0  # seconds after which a test fails that would hang
KNOWN = {"hosts": {"*.known": {"robots": "ignore"}}}


@dataclass
class BlockingRecords(Records):
    """Records that cannot be read before `answer` is set."""

    reading: threading.Event = field(default_factory=threading.Event)
    answer: threading.Event = field(default_factory=threading.Event)

    def robots_of(self, origins: Sequence[str]) -> dict[str, Robots]:
        self.reading.set()
        assert self.answer.wait(PATIENCE)
        return super().robots_of(origins)


@contextmanager
def another_producer_reading(run: Run, records: BlockingRecords, found: list[str]) -> Iterator[None]:
    """Have another thread take a link, which waits for the store until the end of the block."""
    thread = threading.Thread(target=lambda: found.extend(run.take(1)))
    thread.start()
    try:
        assert records.reading.wait(PATIENCE)
        yield
    finally:
        records.answer.set()
        thread.join(PATIENCE)


def test_while_one_producer_reads_records_another_gets_links_of_hosts_that_are_known() -> None:
    records, found = BlockingRecords(), list[str]()
    run = Run(["http://new/1", "http://a.known/1", "http://b.known/1"], records, given=KNOWN)
    with another_producer_reading(run, records, found):
        assert run.take() == ["http://a.known/1", "http://b.known/1"]
        assert not run.links.exhausted
    assert found == ["http://new/robots.txt"]


def test_a_producer_leaves_links_of_new_hosts_to_the_one_that_is_reading() -> None:
    records, found, woken = BlockingRecords(), list[str](), list[str]()
    first = ["http://new/1", *[f"http://a.known/{number}" for number in range(255)]]
    run = Run([*first, "http://newer/1", "http://b.known/1"], records, given=KNOWN)
    run.links.listen(lambda: woken.append("all"))
    with another_producer_reading(run, records, found):
        assert run.take() == ["http://a.known/0", "http://b.known/1"]
        woken.clear()
    assert woken == ["all", "all"], "for the host that was left, and for the end of the source"
    assert found == ["http://new/robots.txt"]
    assert run.take() == ["http://newer/robots.txt"]
    assert records.looked_for == ["http://new", "http://newer"]


def test_no_more_links_than_some_are_read_ahead_while_the_store_does_not_answer() -> None:
    records, found = BlockingRecords(), list[str]()
    run = Run([f"http://new{number}/" for number in range(9_000)], records)
    with another_producer_reading(run, records, found):
        for _ in range(9):
            assert run.take() == []
        assert run.links.next_in() is None, "there is nothing to do but wait"
        assert not run.source.exhausted
    assert found
    taken = len(found)
    while links := run.take(1_000):
        taken += len(links)
    assert taken == 9_000


def test_links_whose_records_cannot_be_read_are_not_lost() -> None:
    class Away(Records):
        def robots_of(self, origins: Sequence[str]) -> dict[str, Robots]:
            if not self.forgot_at:
                raise StoreUnavailable("The database is away.")
            return super().robots_of(origins)

    run = Run(["http://a/1"], Away())
    with pytest.raises(StoreUnavailable):
        run.take()
    assert not run.links.exhausted
    run.records.forgot_at.append(run.now)  # from now on it answers
    assert run.take() == ["http://a/robots.txt"]


def test_links_whose_records_are_being_read_can_be_given_back() -> None:
    records, found = BlockingRecords(), list[str]()
    run = Run(["http://new/1", "http://new/2"], records)
    with another_producer_reading(run, records, found):
        assert run.links.give_back() == [1, 2]
        assert run.source.later == {1: 0.0, 2: 0.0}
    assert found == []
    assert run.links.exhausted


def test_pages_of_which_only_the_id_was_kept_are_read_while_others_go_on() -> None:
    seen: list[list[int]] = []

    class Watched(Run):
        def made(self, page_ids: Sequence[int]) -> list[Link]:
            seen.append(self.links.give_back())  # needs the lock
            return super().made(page_ids)

    run = Watched([f"http://a/{number}" for number in range(2_500)])
    (robots,) = [url for _ in range(3) for url in run.take()]
    run.answer(robots, status=404)
    assert len(seen[0]) == 2_500
    assert run.later(1.0) == []


def test_a_source_may_call_back_when_pages_are_postponed() -> None:
    seen: list[list[int]] = []

    class Asking(Queue):
        def put_off(self, page_ids: Sequence[int], seconds: float) -> None:
            super().put_off(page_ids, seconds)
            if seconds:
                seen.append(run.links.give_back())

    run = allowed("http://a/1", "http://a/2", "http://a/3", queue=Asking)
    assert run.take() == ["http://a/1"]
    run.answer("http://a/1", status=429, headers="Retry-After: 3600\r\n")
    assert sorted(run.source.later) == [2, 3]
    assert seen == [[], []]


def test_an_owner_may_collect_what_it_is_woken_for_at_once() -> None:
    hosts: HostQueue[str] = HostQueue(address_connections=8, clock=lambda: 0.0)
    collected: list[str | None] = []
    requests: PriorityRequests[str] = PriorityRequests(
        lambda: collected.extend(one.item for one in hosts.collect(requests, 9))
    )
    hosts.put_first(Host("a", HostPolicy()), "again", requests)
    assert hosts.take(1) == []
    assert collected == ["again"]


def test_several_producers_fetch_every_page_once_while_records_are_read_slowly() -> None:
    class Slow(Records):
        def robots_of(self, origins: Sequence[str]) -> dict[str, Robots]:
            pause.wait(0.002)
            return super().robots_of(origins)

    pause, counted = threading.Event(), threading.Lock()
    fetched: Counter[int] = Counter()
    known = {
        f"http://h{host}": Robots(text="User-agent: *\nDisallow: /no\n", until=2_000.0) for host in range(0, 900, 3)
    }
    urls = [f"http://h{number % 900}/{number}" for number in range(4_000)]
    run = Run(urls, Slow(known), given={"host_delay": 0.0, "host_connections": 4})

    def produce() -> None:
        while not run.links.exhausted or run.links.statistics().in_use:
            links = run.links.take(64)
            pages = run.links.done([
                Document(link, 404 if link.page_id < 0 else 200, b"", b"", 0, link.url, 0, run.now, 0.01,
                         Failure(kind=FailureKind.STATUS, sentence="None.") if link.page_id < 0 else None)
                for link in links
            ])  # fmt: skip
            with counted:
                fetched.update(document.link.page_id for document in pages)
            if not links:
                pause.wait(0.001)

    with ThreadPoolExecutor(4) as threads:
        for producer in [threads.submit(produce) for _ in range(4)]:
            producer.result(60.0)
    assert fetched == Counter(range(1, 4_001))
    assert run.links.exhausted
