from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from driftline.pipeline.consumer import fair_share
from driftline.pipeline.queue import BoundedQueue
from support.properties import searched, searched_briefly


def queue_of(capacity: int, capacity_bytes: int = 10**9, lanes: int = 1) -> BoundedQueue[int]:
    """A queue of numbers, each as many bytes large as it says."""
    return BoundedQueue(capacity, capacity_bytes, int, lanes)


def fill(queue: BoundedQueue[int], *items: int) -> None:
    with queue.slots() as slots:
        assert slots.reserve(len(items), wait=False) == len(items)
        slots.put(items)


def room_in(queue: BoundedQueue[int], want: int) -> int:
    """How many places somebody else would get who wants so many."""
    with queue.slots() as slots:
        return slots.reserve(want, wait=False)


def test_items_come_out_in_the_order_in_which_they_went_in() -> None:
    queue = queue_of(10)
    fill(queue, 1, 2, 3)
    fill(queue, 4)
    assert queue.take(2) == [1, 2]
    assert queue.take(10) == [3, 4]


def test_room_counts_what_is_queued_and_what_is_reserved() -> None:
    queue = queue_of(10)
    slots = queue.slots()
    assert slots.reserve(6, wait=False) == 6
    assert slots.reserve(6, wait=False) == 4
    assert slots.reserve(1, wait=False) == 0
    slots.put([1, 2])
    assert slots.reserve(1, wait=False) == 0
    queue.take(1)
    assert slots.reserve(5, wait=False) == 1
    slots.release(3)
    assert slots.reserve(5, wait=False) == 3


def test_what_is_left_of_reserved_places_is_given_back_once() -> None:
    queue = queue_of(10)
    slots = queue.slots()
    slots.reserve(6, wait=False)
    slots.put([1, 2])
    slots.close()
    slots.close()
    assert room_in(queue, 10) == 8
    with pytest.raises(RuntimeError, match="places of a queue"):
        slots.put([3])
    with pytest.raises(RuntimeError, match="places of a queue"):
        slots.release(1)


def test_an_item_that_shrinks_while_it_waits_gives_back_what_it_took() -> None:
    sizes = {1: 60, 2: 60}
    queue: BoundedQueue[int] = BoundedQueue(10, 100, lambda item: sizes[item])
    fill(queue, 1, 2)
    sizes[1] = sizes[2] = 0
    queue.take(1)
    assert queue.statistics().bytes == 60
    queue.take(1)
    assert queue.statistics().bytes == 0


def test_what_nobody_will_take_is_dropped_with_its_bytes() -> None:
    queue = queue_of(10, lanes=3)
    fill(queue, 1, 2, 3, 4)
    queue.take(1)
    queue.close()
    queue.discard()
    assert [use.in_use for use in queue.resources()] == [0, 0, 0]
    assert [(use.acquired, use.released) for use in queue.resources()] == [(4, 4)] * 3
    assert queue.take(10) is None


def test_nothing_can_be_reserved_while_the_bytes_are_at_their_bound() -> None:
    queue = queue_of(10, capacity_bytes=100)
    fill(queue, 60)
    fill(queue, 60)
    assert room_in(queue, 1) == 0
    queue.take(1)
    assert room_in(queue, 1) == 1


def test_one_item_larger_than_the_bound_goes_through_alone() -> None:
    queue = queue_of(10, capacity_bytes=100)
    fill(queue, 5_000)
    assert room_in(queue, 1) == 0
    assert queue.take(1) == [5_000]
    assert room_in(queue, 1) == 1


def test_a_smaller_queue_grants_nothing_until_it_has_run_down() -> None:
    queue = queue_of(10)
    fill(queue, 1, 2, 3, 4)
    queue.resize(3)
    assert room_in(queue, 1) == 0
    queue.take(2)
    assert room_in(queue, 5) == 1
    queue.resize(6)
    assert room_in(queue, 5) == 4


def test_items_are_spread_over_the_lanes_and_each_taker_begins_at_home() -> None:
    queue = queue_of(10, lanes=3)
    fill(queue, 0, 1, 2, 3, 4, 5)
    assert queue.take(10, lane=1) == [1, 4]
    assert queue.take(10, lane=2) == [2, 5]
    assert queue.statistics().stolen == 0


def test_a_taker_whose_lane_is_empty_takes_from_the_fullest_other() -> None:
    queue = queue_of(10, lanes=3)
    fill(queue, 0, 1, 2, 3)
    queue.take(10, lane=1)
    assert queue.take(1, lane=1) == [0]
    assert queue.statistics().stolen == 1
    assert queue.take(10, lane=7 * 3 + 2) == [2]


def test_an_empty_queue_gives_nothing_after_the_timeout() -> None:
    assert queue_of(10).take(1, timeout=0.0) == []


def test_a_closed_queue_gives_what_it_holds_and_then_its_end() -> None:
    queue = queue_of(10)
    fill(queue, 1, 2)
    slots = queue.slots()
    slots.reserve(1, wait=False)
    queue.close()
    assert queue.take(1) == [1]
    slots.put([3])
    assert queue.take(5) == [2, 3]
    assert queue.take(5) is None
    assert slots.reserve(1, wait=True) == 0


def test_closing_wakes_everybody_who_waits() -> None:
    empty, full = queue_of(1), queue_of(1)
    fill(full, 1)
    with ThreadPoolExecutor(8) as threads:
        takers = [threads.submit(empty.take, 1) for _ in range(4)]
        givers = [threads.submit(full.slots().reserve, 1, wait=True) for _ in range(4)]
        empty.close()
        full.close()
        assert [taker.result(30) for taker in takers] == [None] * 4
        assert [giver.result(30) for giver in givers] == [0] * 4


def test_waits_are_counted_with_their_seconds() -> None:
    ticks = iter(range(100))
    queue: BoundedQueue[int] = BoundedQueue(1, 100, int, monotonic=lambda: float(next(ticks)))
    queue.take(1, timeout=0.0)
    statistics = queue.statistics()
    assert (statistics.empty_waits, statistics.empty_seconds, statistics.full_waits) == (1, 1.0, 0)


@pytest.mark.parametrize("lanes", [1, 3])
def test_many_threads_move_every_item_once_and_never_pass_the_capacity(lanes: int) -> None:
    queue = queue_of(7, capacity_bytes=40, lanes=lanes)
    begin = threading.Barrier(8)
    overfull: list[int] = []

    def give(first: int) -> None:
        begin.wait()
        left = list(range(first, first + 300))
        slots = queue.slots()
        while left:
            room = slots.reserve(3, wait=True)
            statistics = queue.statistics()
            if statistics.depth + statistics.reserved > 7:
                overfull.append(statistics.depth + statistics.reserved)
            some, left = left[:room], left[room:]
            slots.release(room - len(some))
            slots.put(some)

    def take(lane: int) -> list[int]:
        begin.wait()
        got: list[int] = []
        while (items := queue.take(1 + lane, lane)) is not None:
            got += items
        return got

    with ThreadPoolExecutor(8) as threads:
        takers = [threads.submit(take, lane) for lane in range(4)]
        givers = [threads.submit(give, number * 300) for number in range(4)]
        for giver in givers:
            giver.result(60)
        queue.close()
        got = Counter(item for taker in takers for item in taker.result(60))
    assert overfull == []
    assert got == Counter(range(1_200))
    statistics = queue.statistics()
    assert (statistics.put, statistics.taken, statistics.depth, statistics.bytes, statistics.reserved) == (
        1_200, 1_200, 0, 0, 0,
    )  # fmt: skip
    assert 0 < statistics.deepest <= 7


@searched
@given(st.integers(0, 5_000), st.integers(0, 64))
def test_a_share_is_at_least_one_item_and_grows_with_the_queue_up_to_a_batch(depth: int, consumers: int) -> None:
    share = fair_share(depth, consumers)
    assert 1 <= share <= fair_share(depth + 1, consumers) <= fair_share(10**6, 1)
    assert share >= fair_share(depth, consumers + 1)


@pytest.mark.parametrize(
    ("depth", "consumers", "share"), [(0, 2, 8), (20, 2, 8), (100, 2, 25), (101, 2, 26), (10_000, 2, 64), (100, 0, 64)]
)
def test_a_share_is_half_of_what_is_there_for_each_consumer(depth: int, consumers: int, share: int) -> None:
    assert fair_share(depth, consumers) == share


class QueueRules(RuleBasedStateMachine):
    """A queue beside the simplest model of it: a list, and how much is reserved."""

    def __init__(self) -> None:
        super().__init__()
        self.capacity = 6
        self.queue = queue_of(6, capacity_bytes=30, lanes=2)
        self.slots = self.queue.slots()
        self.held: list[int] = []
        self.reserved = 0
        self.put = self.taken = 0

    @rule(want=st.integers(1, 8))
    def reserve(self, want: int) -> None:
        room = 0 if sum(self.held) >= 30 else max(0, self.capacity - len(self.held) - self.reserved)
        granted = self.slots.reserve(want, wait=False)
        assert granted == min(want, room)
        self.reserved += granted

    @precondition(lambda self: self.reserved)
    @rule(data=st.data())
    def give(self, data: st.DataObject) -> None:
        items = data.draw(st.lists(st.integers(0, 20), min_size=1, max_size=self.reserved))
        self.slots.put(items)
        self.reserved -= len(items)
        self.held += items
        self.put += len(items)

    @precondition(lambda self: self.reserved)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(0, self.reserved))
        self.slots.release(count)
        self.reserved -= count

    @rule(most=st.integers(1, 5), lane=st.integers(0, 3))
    def take(self, most: int, lane: int) -> None:
        items = self.queue.take(most, lane, timeout=0.0)
        assert items is not None
        assert len(items) <= most
        assert bool(items) == bool(self.held)
        for item in items:
            self.held.remove(item)
        self.taken += len(items)

    @rule(capacity=st.integers(1, 10))
    def resize(self, capacity: int) -> None:
        self.queue.resize(capacity)
        self.capacity = capacity

    @invariant()
    def figures_add_up(self) -> None:
        found = self.queue.statistics()
        assert (found.depth, found.reserved, found.bytes) == (len(self.held), self.reserved, sum(self.held))
        assert (found.put, found.taken) == (self.put, self.taken)
        assert found.put - found.taken == found.depth == self.queue.depth
        assert found.deepest >= found.depth


TestQueueRules = QueueRules.TestCase
TestQueueRules.settings = settings(searched_briefly, stateful_step_count=30)
