"""Links wait at their hosts: never more requests at once than allowed, and never sooner than the host's rest."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.fetching.hosts import Hosts, Manners
from driftline.model import Link


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def link(host: str, number: int = 1) -> Link:
    return Link(number, f"http://{host}/{number}", 1, None)


def hosts_of(clock: Clock, *, delay: float = 1.0, connections: int = 1, at_address: int = 100) -> Hosts:
    return Hosts(lambda _: Manners(delay=delay, connections=connections), at_address=at_address, clock=clock)


def taken(hosts: Hosts, most: int = 100) -> list[str]:
    return [found.url for found in hosts.take(most)]


def test_a_host_gets_one_request_at_a_time_and_rests_after_the_answer() -> None:
    clock = Clock()
    hosts = hosts_of(clock)
    first, second = link("a", 1), link("a", 2)
    hosts.put([first, second])
    assert hosts.take(10) == [first]
    clock.now = 50.0
    assert hosts.take(10) == []
    assert hosts.next_in() is None
    hosts.done(first, seconds=0.1)
    assert hosts.take(10) == []
    assert hosts.next_in() == pytest.approx(1.0)
    clock.now = 51.0
    assert hosts.take(10) == [second]
    assert len(hosts) == 0


def test_other_hosts_are_not_held_up() -> None:
    hosts = hosts_of(Clock())
    hosts.put([link("a", number) for number in range(50)] + [link("b"), link("c")])
    assert taken(hosts) == ["http://a/0", "http://b/1", "http://c/1"]


def test_a_slow_host_rests_for_a_multiple_of_its_own_time() -> None:
    clock = Clock()
    hosts = hosts_of(clock)
    first = link("a", 1)
    hosts.put([first, link("a", 2)])
    hosts.take(1)
    hosts.done(first, seconds=4.0)
    assert hosts.next_in() == pytest.approx(8.0)


def test_the_delay_that_a_host_asks_for_is_kept() -> None:
    clock = Clock()
    hosts = hosts_of(clock)
    first = link("a", 1)
    hosts.put([first, link("a", 2)])
    hosts.take(1)
    hosts.ask(first, 30.0)
    hosts.done(first, seconds=0.0)
    assert hosts.next_in() == pytest.approx(30.0)


def test_a_host_that_refuses_is_left_alone_for_longer_each_time_and_at_least_as_long_as_it_says() -> None:
    clock = Clock()
    hosts = hosts_of(clock)
    hosts.put([link("a", number) for number in range(5)])
    waits = []
    for pause in (0.0, 0.0, 120.0, None):
        (one,) = hosts.take(1)
        hosts.done(one, seconds=0.01, pause=pause)
        waits.append(hosts.next_in())
        clock.now += waits[-1] or 0.0
    assert waits == [pytest.approx(5.0), pytest.approx(10.0), pytest.approx(120.0), pytest.approx(1.0)]


def test_several_connections_begin_one_rest_apart() -> None:
    clock = Clock()
    hosts = hosts_of(clock, connections=2)
    hosts.put([link("a", number) for number in range(3)])
    assert len(hosts.take(10)) == 1
    clock.now = 1.0
    assert len(hosts.take(10)) == 1
    clock.now = 9.0
    assert hosts.take(10) == []


def test_a_host_of_the_users_own_without_delay_takes_all_it_may_at_once() -> None:
    hosts = hosts_of(Clock(), delay=0.0, connections=3)
    hosts.put([link("a", number) for number in range(5)])
    assert len(hosts.take(10)) == 3


def test_hosts_that_share_an_address_share_its_connections() -> None:
    clock = Clock()
    hosts = hosts_of(clock, at_address=2)
    names = ["a", "b", "c", "d"]
    hosts.put([link(name, 1) for name in names])
    for one in hosts.take(10):
        hosts.done(one, seconds=0.0, address="192.0.2.1")
    clock.now = 10.0
    hosts.put([link(name, 2) for name in names])
    first = hosts.take(10)
    assert len(first) == 2
    assert hosts.take(10) == []
    hosts.done(first[0], seconds=0.0, address="192.0.2.1")
    assert len(hosts.take(10)) == 1


def test_what_is_put_first_goes_before_what_waited_longer() -> None:
    hosts = hosts_of(Clock())
    hosts.put([link("a", 1)])
    hosts.put_first(link("a", 2))
    assert taken(hosts) == ["http://a/2"]


@given(
    pages=st.lists(st.tuples(st.integers(0, 5), st.floats(0.0, 3.0)), min_size=1, max_size=60),
    connections=st.integers(1, 3), delay=st.sampled_from([0.0, 0.5, 1.0]), most=st.integers(1, 8),
    addresses=st.integers(1, 3), at_address=st.integers(1, 4),
)  # fmt: skip
def test_whatever_the_hosts_do_every_link_comes_once_and_no_host_gets_more_than_it_may(
    pages: list[tuple[int, float]], connections: int, delay: float, most: int, addresses: int, at_address: int
) -> None:
    clock = Clock()
    hosts = hosts_of(clock, delay=delay, connections=connections, at_address=at_address)
    latency = {number: seconds for number, (_, seconds) in enumerate(pages)}
    hosts.put([link(f"h{host}", number) for number, (host, _) in enumerate(pages)])
    in_flight: list[tuple[float, int, Link]] = []
    busy: dict[str, int] = {}
    began: dict[str, float] = {}
    seen: list[int] = []
    while len(hosts) or in_flight:
        for one in hosts.take(most):
            busy[one.host] = busy.get(one.host, 0) + 1
            assert busy[one.host] <= connections
            assert clock.now - began.get(one.host, -10.0) >= delay - 1e-9
            began[one.host] = clock.now
            seen.append(one.page_id)
            heapq.heappush(in_flight, (clock.now + latency[one.page_id], one.page_id, one))
        wait = hosts.next_in()
        ends = in_flight[0][0] if in_flight else float("inf")
        assert wait is not None or in_flight
        clock.now = max(clock.now, min(ends, clock.now + (float("inf") if wait is None else wait)))
        while in_flight and in_flight[0][0] <= clock.now:
            one = heapq.heappop(in_flight)[2]
            busy[one.host] -= 1
            hosts.done(one, seconds=latency[one.page_id], address=f"192.0.2.{int(one.host[1:]) % addresses}")
    assert sorted(seen) == list(range(len(pages)))
