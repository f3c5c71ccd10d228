from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from driftline.model.outcome import Link
from driftline.pipeline.sources import LinkQueue
from support.making import link


def links(count: int) -> Iterator[Link]:
    return (link(page_id=number) for number in range(count))


def test_links_come_in_order_until_there_are_no_more() -> None:
    queue = LinkQueue(links(5))
    assert [one.page_id for one in queue.take(3)] == [0, 1, 2]
    assert [one.page_id for one in queue.take(3)] == [3, 4]
    assert queue.exhausted
    assert queue.take(3) == []


def test_links_are_drawn_only_as_they_are_wanted() -> None:
    drawn: list[int] = []

    def source() -> Iterator[Link]:
        for number in range(10):
            drawn.append(number)
            yield link(page_id=number)

    LinkQueue(source()).take(4)
    assert drawn == [0, 1, 2, 3]


def test_a_closed_queue_hands_out_nothing_more() -> None:
    queue = LinkQueue(links(5))
    queue.take(1)
    queue.close()
    assert queue.exhausted
    assert queue.take(1) == []


def test_closing_does_not_wait_for_a_thread_that_reads() -> None:
    reading, read_on = threading.Event(), threading.Event()

    def source() -> Iterator[Link]:
        reading.set()
        read_on.wait()
        yield link(page_id=1)

    queue = LinkQueue(source())
    with ThreadPoolExecutor(2) as threads:
        taken = threads.submit(queue.take, 1)
        reading.wait()
        closed = threads.submit(queue.close)
        try:
            closed.result(10)
        finally:
            read_on.set()
        assert taken.result() == [], "it is closed by now"


def test_each_link_goes_to_one_of_many_threads() -> None:
    queue = LinkQueue(links(5_000))
    begin = threading.Barrier(8)

    def draw(most: int) -> list[int]:
        begin.wait()
        got: list[int] = []
        while some := queue.take(most):
            got += [one.page_id for one in some]
        return got

    with ThreadPoolExecutor(8) as threads:
        got = [number for part in threads.map(draw, range(1, 9)) for number in part]
    assert sorted(got) == list(range(5_000))


def test_a_thread_that_finds_another_one_reading_gets_nothing_and_is_woken_afterwards() -> None:
    reading, read_on = threading.Event(), threading.Event()
    woken: list[bool] = []

    def source() -> Iterator[Link]:
        reading.set()
        read_on.wait()
        yield from links(3)

    queue = LinkQueue(source())
    queue.listen(lambda: woken.append(queue.exhausted), list)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(queue.take, 2)
        reading.wait()
        try:
            assert queue.take(2) == []
            assert not queue.exhausted
        finally:
            read_on.set()
        assert [one.page_id for one in first.result(30)] == [0, 1]
    assert woken == [False]
    assert [one.page_id for one in queue.take(2)] == [2]
    assert woken == [False], "nobody was turned away"


def test_a_source_that_fails_leaves_the_links_to_the_next_thread() -> None:
    class Failing:
        def __init__(self) -> None:
            self.left = [link(page_id=1)]
            self.fails = True

        def __iter__(self) -> Iterator[Link]:
            return self

        def __next__(self) -> Link:
            if self.fails:
                self.fails = False
                raise OSError("the disk is on fire")
            if not self.left:
                raise StopIteration
            return self.left.pop()

    queue = LinkQueue(Failing())
    with pytest.raises(OSError, match="fire"):
        queue.take(2)
    assert not queue.exhausted
    assert len(queue.take(2)) == 1
    assert queue.exhausted
