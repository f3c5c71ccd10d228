"""The queue of hosts: never more requests at once than allowed, and never before the host's delay is over."""

from __future__ import annotations

import heapq
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.fetch.host import Host, Permit, PriorityRequests
from driftline.fetch.host_queue import HostQueue
from driftline.settings import HostPolicy


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class World:
    """Hosts with names, at which texts wait such as 'a/1': the host, and what is fetched there."""

    clock: Clock = field(default_factory=Clock)
    delay: float = 1.0
    connections: int = 1
    at_address: int = 100

    def __post_init__(self) -> None:
        self.hosts: HostQueue[str] = HostQueue(address_connections=self.at_address, clock=self.clock)
        self._named: dict[str, Host[str]] = {}
        self.permits: dict[str, Permit[str]] = {}

    def host(self, item: str) -> Host[str]:
        name = item.partition("/")[0]
        policy = HostPolicy(delay=self.delay, connections=self.connections)
        return self._named.setdefault(name, Host(name, policy))

    def put(self, *items: str) -> list[str]:
        return [item for _, item in self.hosts.put([(self.host(item), item) for item in items])]

    def done(self, item: str, seconds: float = 0.0, address: str = "", pause: float | None = None) -> list[str]:
        return [left for _, left in self.hosts.done([(self.permits[item], seconds, address, pause)])]

    def take(self, most: int) -> list[str]:
        return self._remember(self.hosts.take(most))

    def granted(self, requests: PriorityRequests[str]) -> list[str]:
        return self._remember(self.hosts.collect(requests, 100))

    def _remember(self, permits: list[Permit[str]]) -> list[str]:
        items = [permit.take_item() for permit in permits]
        self.permits |= dict(zip(items, permits, strict=True))
        return items


def test_a_host_gets_one_request_at_a_time_and_is_paused_after_the_answer() -> None:
    world = World()
    world.put("a/1", "a/2")
    assert world.take(10) == ["a/1"]
    world.clock.now = 50.0
    assert world.take(10) == []
    assert world.hosts.next_in() is None
    world.done("a/1", seconds=0.1)
    assert world.take(10) == []
    assert world.hosts.next_in() == pytest.approx(1.0)
    world.clock.now = 51.0
    assert world.take(10) == ["a/2"]
    assert len(world.hosts) == 0


def test_a_host_is_delayed_also_when_nothing_waits_there() -> None:
    world = World()
    world.put("a/1")
    world.take(1)
    world.done("a/1")
    world.clock.now = 0.5
    world.put("a/2")
    assert world.take(10) == []
    assert world.hosts.next_in() == pytest.approx(0.5)


def test_other_hosts_are_not_held_up() -> None:
    world = World()
    world.put(*[f"a/{number}" for number in range(50)], "b/1", "c/1")
    assert world.take(100) == ["a/0", "b/1", "c/1"]


def test_a_slow_host_is_delayed_for_a_multiple_of_its_latency() -> None:
    world = World()
    world.put("a/1", "a/2")
    world.take(1)
    world.done("a/1", seconds=4.0)
    assert world.hosts.next_in() == pytest.approx(8.0)


def test_a_crawl_delay_is_kept() -> None:
    world = World()
    world.put("a/1", "a/2")
    world.take(1)
    world.hosts.set_crawl_delay(world.host("a/1"), 30.0)
    world.done("a/1")
    assert world.hosts.next_in() == pytest.approx(30.0)


def test_a_host_that_refuses_is_paused_for_longer_each_time_and_at_least_for_its_retry_after() -> None:
    world = World()
    world.put(*[f"a/{number}" for number in range(5)])
    waits = []
    for pause in (0.0, 0.0, 45.0, None):
        (one,) = world.take(1)
        assert world.done(one, 0.01, pause=pause) == []
        waits.append(world.hosts.next_in())
        world.clock.now += waits[-1] or 0.0
    assert waits == [pytest.approx(5.0), pytest.approx(10.0), pytest.approx(45.0), pytest.approx(1.0)]


def test_nothing_waits_at_a_host_that_sends_a_long_retry_after() -> None:
    world = World()
    world.put("a/1", "a/2", "b/1")
    world.take(10)
    assert world.done("a/1", pause=3_600.0) == ["a/2"]
    assert world.put("a/3", "b/2") == ["a/3"]
    assert len(world.hosts) == 1
    assert world.hosts.paused_for(world.host("a/3")) == pytest.approx(3_600.0)
    assert world.hosts.paused_for(world.host("b/2")) is None
    world.clock.now = 3_600.0
    assert world.put("a/3") == []
    assert "a/3" in world.take(10)


def test_several_connections_begin_one_delay_apart() -> None:
    world = World(connections=2)
    world.put("a/1", "a/2", "a/3")
    assert len(world.take(10)) == 1
    world.clock.now = 1.0
    assert len(world.take(10)) == 1
    world.clock.now = 9.0
    assert world.take(10) == []


def test_a_host_of_the_users_own_without_delay_takes_all_it_may_at_once() -> None:
    world = World(delay=0.0, connections=3)
    world.put(*[f"a/{number}" for number in range(5)])
    assert len(world.take(10)) == 3


def test_hosts_without_delay_share_what_is_taken() -> None:
    world = World(delay=0.0, connections=100)
    world.put(*[f"{host}/{number}" for host in "ab" for number in range(50)])
    assert {item[0] for item in world.take(10)} == {"a", "b"}


def test_hosts_that_share_an_address_share_its_connections() -> None:
    world = World(at_address=2)
    world.put("a/1", "b/1", "c/1", "d/1")
    for one in world.take(10):
        world.done(one, address="192.0.2.1")
    world.clock.now = 10.0
    world.put("a/2", "b/2", "c/2", "d/2")
    first = world.take(10)
    assert len(first) == 2
    assert world.take(10) == []
    world.done(first[0], address="192.0.2.1")
    assert len(world.take(10)) == 1


def test_the_address_of_a_redirecting_response_is_learned_too_and_its_target_counts_there() -> None:
    world = World(at_address=2)
    world.put("a/1", "b/1", "c/1", "d/1")
    for one in world.take(10):
        world.hosts.continue_with(world.permits[one], f"{one}/further", "192.0.2.1")
    further = world.take(10)
    assert len(further) == 4
    for one in further[:3]:
        world.done(one)
    world.clock.now = 10.0
    world.put("a/2", "b/2", "c/2")
    assert len(world.take(10)) == 1, "beside the one that is still there"
    world.done(further[3])
    assert len(world.take(10)) == 1


def test_what_is_put_first_goes_before_what_waited_longer() -> None:
    world = World()
    world.put("a/1")
    world.hosts.put_first(world.host("a"), "a/2")
    assert world.take(10) == ["a/2"]


def test_a_priority_request_goes_first_to_who_sent_it_and_counts_as_a_request_of_its_host() -> None:
    world = World()
    woken: list[str] = []
    requests: PriorityRequests[str] = PriorityRequests(lambda: woken.append("owner"))
    world.put("a/1", "a/2")
    world.hosts.put_first(world.host("a"), "a/again", requests)
    assert world.take(10) == []
    assert world.granted(requests) == ["a/again"]
    assert woken == ["owner"]
    world.done("a/again")
    world.clock.now = 1.0
    assert world.take(10) == ["a/1"]


def test_a_priority_request_is_granted_at_its_time_although_no_other_item_is_taken() -> None:
    world = World()
    requests: PriorityRequests[str] = PriorityRequests(lambda: None)
    world.put("a/1")
    world.take(1)
    world.hosts.put_first(world.host("a"), "a/again", requests)
    world.done("a/1")
    assert world.granted(requests) == []
    world.clock.now = 1.0
    assert world.granted(requests) == ["a/again"]


def test_a_priority_request_is_refused_by_a_host_that_sends_a_retry_after() -> None:
    world = World()
    requests: PriorityRequests[str] = PriorityRequests(lambda: None)
    world.put("a/1")
    world.take(1)
    world.hosts.put_first(world.host("a"), "a/2", requests)
    world.done("a/1", pause=3_600.0)
    world.hosts.put_first(world.host("a"), "a/3", requests)
    assert [*requests.refused] == ["a/2", "a/3"]


def test_a_request_that_a_redirect_made_counts_too() -> None:
    world = World()
    world.hosts.count_redirect(world.host("b"))
    world.put("b/1")
    assert world.take(10) == []
    assert world.hosts.next_in() == pytest.approx(1.0)


def test_a_permit_passes_to_the_next_request_of_a_redirect_and_to_no_other() -> None:
    world = World()
    world.put("a/1", "a/2")
    assert world.take(10) == ["a/1"]
    world.hosts.continue_with(world.permits["a/1"], "a/1/further", "")
    assert len(world.hosts) == 2
    assert world.take(10) == ["a/1/further"]
    world.clock.now += 10.0
    assert world.take(10) == []
    world.done("a/1/further")
    world.clock.now += 1.0
    assert world.take(10) == ["a/2"]


def test_what_is_not_fetched_after_all_makes_room() -> None:
    world = World(delay=0.0)
    world.put("a/1", "a/2")
    world.take(10)
    world.hosts.release([world.permits["a/1"]])
    assert world.take(10) == ["a/2"]


def test_once_cleared_nothing_waits_but_priority_requests() -> None:
    world = World()
    requests: PriorityRequests[str] = PriorityRequests(lambda: None)
    world.put("a/1", "b/1")
    world.hosts.put_first(world.host("a"), "a/again", requests)
    world.hosts.clear()
    assert len(world.hosts) == 0
    assert world.take(10) == []
    assert world.granted(requests) == ["a/again"]


def test_what_would_go_on_after_that_makes_room_for_them() -> None:
    world = World(at_address=1)
    requests: PriorityRequests[str] = PriorityRequests(lambda: None)
    world.put("a/1")
    world.take(10)
    world.hosts.put_first(world.host("a"), "a/again", requests)
    world.hosts.clear()
    world.hosts.continue_with(world.permits["a/1"], "a/1/further", "192.0.2.1")
    world.clock.now += 1.0
    assert (len(world.hosts), world.take(10), world.granted(requests)) == (0, [], ["a/again"])


def test_a_host_with_a_transfer_is_cleared_too() -> None:
    world = World()
    world.put("a/1", "a/2", "b/1", "b/2")
    assert world.take(10) == ["a/1", "b/1"]
    world.hosts.clear()
    assert world.done("a/1") == []
    assert world.done("b/1", pause=3_600.0) == []
    assert world.put("a/3") == []
    world.clock.now += 10.0
    assert (len(world.hosts), world.take(10), world.hosts.next_in()) == (0, [], None)


def test_a_redirect_that_was_not_taken_before_the_end_gives_its_permit_back() -> None:
    world = World()
    world.put("a/1")
    world.take(1)
    world.hosts.continue_with(world.permits["a/1"], "a/1/further", "")
    world.hosts.clear()
    assert world.hosts.statistics().in_use == 0


def test_priority_requests_that_are_cancelled_are_granted_no_more_and_give_back_what_was() -> None:
    world = World()
    cancelled: PriorityRequests[str] = PriorityRequests(lambda: None)
    world.put("a/1", "b/1")
    world.take(1)
    world.hosts.put_first(world.host("a"), "a/again", cancelled)
    world.hosts.put_first(world.host("b"), "b/again", cancelled)
    assert world.hosts.collect(cancelled, 0) == []
    assert [permit.item for permit in cancelled.granted] == ["b/again"]
    world.hosts.cancel(cancelled)
    world.done("a/1")
    world.clock.now += 1.0
    assert sorted(world.take(10)) == ["b/1"]
    assert not cancelled.granted
    assert world.hosts.statistics().in_use == 1


def test_a_redirect_of_a_cancelled_request_gives_its_permit_back() -> None:
    world = World()
    requests: PriorityRequests[str] = PriorityRequests(lambda: None)
    world.hosts.put_first(world.host("a"), "a/again", requests)
    assert world.granted(requests) == ["a/again"]
    world.hosts.cancel(requests)
    world.hosts.continue_with(world.permits["a/again"], "a/again/further", "", requests)
    assert world.hosts.statistics().in_use == 0


def test_each_priority_request_is_granted_to_one_of_the_threads_that_share_them() -> None:
    world = World(delay=0.0, connections=20_000, at_address=20_000)
    requests: PriorityRequests[str] = PriorityRequests(lambda: None)
    together = threading.Barrier(4, timeout=10)

    def collect(_thread: int) -> list[str]:
        got: list[str] = []
        for number in range(40):
            if together.wait() == 0:
                for one in range(300):
                    world.hosts.put_first(world.host("a"), f"a/{number}/{one}", requests)
            together.wait()
            got += [permit.take_item() for permit in world.hosts.collect(requests, 300)]
            together.wait()
        return got

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            got = [item for part in threads.map(collect, range(4)) for item in part]
    finally:
        sys.setswitchinterval(interval)
    assert sorted(got) == sorted(f"a/{number}/{one}" for number in range(40) for one in range(300))


def test_a_permit_is_given_back_once() -> None:
    world = World()
    world.put("a/1", "a/2")
    world.take(1)
    world.done("a/1")
    with pytest.raises(RuntimeError, match="twice"):
        world.done("a/1")
    world.hosts.release([world.permits["a/1"]])
    assert world.hosts.statistics().in_use == 0


@given(
    pages=st.lists(st.tuples(st.integers(0, 5), st.floats(0.0, 3.0), st.integers(0, 2)), min_size=1, max_size=60),
    connections=st.integers(1, 3), delay=st.sampled_from([0.0, 0.5, 1.0]), most=st.integers(1, 8),
    addresses=st.integers(1, 3), at_address=st.integers(1, 4),
)  # fmt: skip
def test_whatever_the_hosts_do_all_comes_once_and_no_host_gets_more_than_it_may(
    pages: list[tuple[int, float, int]], connections: int, delay: float, most: int, addresses: int, at_address: int
) -> None:
    world = World(delay=delay, connections=connections, at_address=at_address)
    clock, hosts = world.clock, world.hosts
    requests: PriorityRequests[str] = PriorityRequests(lambda: None)
    items = {f"h{host}/{number}": (seconds, again) for number, (host, seconds, again) in enumerate(pages)}
    world.put(*items)
    in_flight: list[tuple[float, str]] = []
    busy: dict[str, int] = {}
    began: dict[str, float] = {}
    seen: list[str] = []
    while len(hosts) or in_flight or len(seen) < len(items) + sum(again for _, again in items.values()):
        for item in [*world.take(most), *world.granted(requests)]:
            host = item.partition("/")[0]
            busy[host] = busy.get(host, 0) + 1
            assert busy[host] <= connections
            assert clock.now - began.get(host, -10.0) >= delay - 1e-9
            began[host] = clock.now
            seen.append(item)
            heapq.heappush(in_flight, (clock.now + items.get(item, (0.1, 0))[0], item))
        wait = hosts.next_in()
        ends = in_flight[0][0] if in_flight else float("inf")
        assert wait is not None or in_flight
        clock.now = max(clock.now, min(ends, clock.now + (float("inf") if wait is None else wait)))
        while in_flight and in_flight[0][0] <= clock.now:
            item = heapq.heappop(in_flight)[1]
            host = item.partition("/")[0]
            busy[host] -= 1
            world.done(item, items.get(item, (0.1, 0))[0], address=f"192.0.2.{int(host[1:]) % addresses}")
            for number in range(items.get(item, (0.0, 0))[1]):
                hosts.put_first(world.host(item), f"{item}/{number}", requests if number else None)
    assert hosts.statistics().in_use == 0
    assert sorted(seen) == sorted([
        *items, *[f"{item}/{number}" for item, (_, again) in items.items() for number in range(again)],
    ])  # fmt: skip
