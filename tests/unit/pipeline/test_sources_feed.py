from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from driftline.errors import RunStopped, StoreBusy, StoreError
from driftline.model.outcome import Link
from driftline.pipeline.sources import Feed
from driftline.store.process_locks import Claim
from support.making import link


class Pages:
    """Makes links of pages, each with the number of times that was done, and gives the right to check them."""

    def __init__(self) -> None:
        self.made = 0
        self.gone: set[int] = set()
        self.rights = 0
        self.busy = False
        self.lost = False

    def links(self, page_ids: Sequence[int]) -> list[Link]:
        self.made += 1
        return [link(page_id=page_id, sequence=self.made) for page_id in page_ids if page_id not in self.gone]

    @contextmanager
    def right(self) -> Iterator[Claim]:
        if self.busy or self.rights:
            raise StoreBusy("Another run is checking.")
        self.rights += 1
        self.lost = False
        yield self
        self.rights -= 1

    def holds(self) -> bool:
        return not self.lost

    def feed(self) -> Feed:
        return Feed(self.links, self.right)


def taken(feed: Feed, most: int = 100) -> list[int]:
    return [one.page_id for one in feed.take(most)]


def test_pages_are_handed_out_in_the_order_in_which_they_were_offered() -> None:
    feed = Pages().feed()
    feed.offer([3, 1])
    feed.offer([2])
    assert taken(feed, 2) == [3, 1]
    assert taken(feed, 2) == [2]
    assert taken(feed) == []
    assert not feed.exhausted, "more may be offered at any time"


def test_a_page_is_not_taken_over_again_before_it_is_settled_and_that_was_heard() -> None:
    feed = Pages().feed()
    feed.offer([1, 2, 1])
    assert taken(feed) == [1, 2]
    feed.offer([1, 2, 3])
    assert taken(feed) == [3]
    feed.settle([1])
    feed.offer([1])
    assert taken(feed) == [], "who offers does not know yet what came of it"
    assert feed.settled() == [1]
    feed.offer([1, 2])
    assert taken(feed) == [1]
    assert len(feed) == 3


def test_a_link_is_made_when_it_is_handed_out() -> None:
    pages = Pages()
    feed = pages.feed()
    feed.offer([1, 2])
    assert pages.made == 0
    assert [one.sequence for one in feed.take(1)] == [1]
    assert [one.sequence for one in feed.take(1)] == [2]


def test_a_page_that_was_removed_while_it_waited_is_settled() -> None:
    pages = Pages()
    feed = pages.feed()
    feed.offer([1, 2, 3])
    pages.gone = {2}
    assert taken(feed) == [1, 3]
    assert feed.settled() == [2]
    assert len(feed) == 2


def test_the_right_to_check_is_held_as_long_as_any_page_is() -> None:
    pages = Pages()
    feed = pages.feed()
    feed.offer([])
    assert pages.rights == 0
    feed.offer([1, 2])
    feed.offer([3])
    assert pages.rights == 1
    feed.take(3)
    feed.settle([1, 2])
    assert pages.rights == 1
    feed.settle([3])
    assert pages.rights == 0, "whether or not it was heard yet that they are settled"
    feed.offer([1])
    assert pages.rights == 0, "it is still held back"
    feed.settled()
    feed.offer([1])
    assert pages.rights == 1
    feed.give_up()
    assert (pages.rights, feed.unchecked()) == (0, [1])


def test_nothing_is_taken_over_once_the_right_is_lost() -> None:
    pages = Pages()
    feed = pages.feed()
    feed.offer([1])
    pages.lost = True
    with pytest.raises(StoreError, match="lost"), feed.claimed():
        pytest.fail("somebody else may be checking")
    with pytest.raises(StoreError, match="lost"):
        feed.offer([2])
    assert feed.held() == [1]


def test_nothing_is_taken_over_while_another_process_checks() -> None:
    pages = Pages()
    feed = pages.feed()
    pages.busy = True
    with pytest.raises(StoreBusy):
        feed.offer([1])
    assert (taken(feed), len(feed)) == ([], 0)
    pages.busy = False
    feed.offer([1])
    assert taken(feed) == [1]


def test_the_right_is_held_while_it_is_decided_what_to_offer() -> None:
    pages = Pages()
    feed = pages.feed()
    with feed.claimed():
        with feed.claimed():
            assert pages.rights == 1
        assert pages.rights == 1
    assert pages.rights == 0, "nothing was offered"
    feed.offer([1])
    with feed.claimed():
        feed.take(1)
        feed.settle([1])
        assert pages.rights == 1, "what was under way is done, but more may come"
        feed.offer([2])
    assert pages.rights == 1
    feed.take(1)
    feed.settle([2])
    assert pages.rights == 0


def test_what_waits_is_handed_out_after_the_end_but_not_after_it_was_closed() -> None:
    feed = Pages().feed()
    feed.offer([1, 2])
    feed.end()
    assert [feed.exhausted, taken(feed), feed.exhausted] == [False, [1, 2], True]
    other = Pages().feed()
    other.offer([1])
    other.close()
    assert other.exhausted
    assert taken(other) == []
    assert other.unchecked() == [1]


def test_who_listens_hears_of_every_offer_and_of_the_end() -> None:
    feed = Pages().feed()
    heard: list[int] = []
    feed.listen(lambda: heard.append(len(feed)), list)
    feed.offer([1])
    feed.offer([2, 3])
    feed.end()
    assert heard == [1, 3, 3]


def test_who_makes_way_keeps_only_what_is_being_checked() -> None:
    pages, wanted = Pages(), False
    feed = Feed(pages.links, pages.right, wanted=lambda: wanted)

    def give_back() -> list[int]:
        feed.put_off([2], 0.0)
        return [2]

    feed.listen(lambda: None, give_back)
    feed.offer([1, 2, 3, 4])
    assert taken(feed, 2) == [1, 2]
    assert feed.make_way() is None, "there is nobody"
    wanted = True
    assert feed.make_way() == [3, 4, 2]
    assert (feed.held(), taken(feed), pages.rights) == ([1], [], 1)
    feed.settle([1])
    assert pages.rights == 0
    feed.offer([3, 2])
    assert taken(feed) == [3, 2], "they may be offered again"


def test_no_more_is_wanted_than_twice_what_was_taken_lately() -> None:
    feed = Pages().feed()
    first = feed.next_portion()
    feed.offer(range(first))
    assert feed.next_portion() == 0
    feed.take(first)
    assert feed.next_portion() == 2 * first
    feed.offer(range(first, 3 * first))
    feed.take(2 * first)
    feed.offer(range(3 * first, 3 * first + 10))
    assert feed.next_portion() == 4 * first - 10
    assert feed.next_portion() == first - 10, "nothing was taken since"


def test_each_page_goes_to_one_of_many_threads() -> None:
    feed = Pages().feed()
    begin = threading.Barrier(8)
    feed.offer(range(5_000))
    feed.end()

    def draw(most: int) -> list[int]:
        begin.wait()
        got: list[int] = []
        while not feed.exhausted:
            got += taken(feed, most)
        return got

    with ThreadPoolExecutor(8) as threads:
        got = [number for part in threads.map(draw, range(1, 9)) for number in part]
    assert sorted(got) == list(range(5_000))


def test_a_page_that_is_put_off_is_held_without_a_right_until_its_time_has_come() -> None:
    pages = Pages()
    now = 0.0
    feed = Feed(pages.links, pages.right, lambda: now)
    feed.offer([1, 2])
    assert taken(feed) == [1, 2]
    feed.put_off([1], 60.0)
    assert pages.rights == 1
    feed.settle([2])
    assert pages.rights == 0, "others have their turn"
    assert feed.settled() == [2]
    assert feed.held() == [1]
    now = 60.0
    assert feed.held() == []
    feed.offer([1])
    assert taken(feed) == [1]


def test_pages_that_are_put_off_are_told_from_those_that_were_not_checked() -> None:
    pages, now = Pages(), 0.0
    feed = Feed(pages.links, pages.right, lambda: now)
    feed.offer([1, 2, 3, 4])
    taken(feed)
    feed.put_off([1], 60.0)
    feed.put_off([4], 0.0)  # it is watched no more
    feed.settle([2])
    assert (feed.unchecked(), feed.put_off_for_now()) == ([3], 1)
    now = 60.0
    assert (feed.unchecked(), feed.put_off_for_now()) == ([3], 0)


def test_pages_that_a_failed_run_had_at_hand_are_checked_by_the_next_one() -> None:
    pages = Pages()
    feed = pages.feed()
    feed.offer([1, 2, 3, 4, 5])
    assert taken(feed, 4) == [1, 2, 3, 4]
    feed.settle([1])
    feed.put_off([2], 60.0)
    feed.close()
    feed.restart(lambda: False)
    assert sorted(taken(feed)) == [3, 4, 5]
    assert pages.rights == 1


def test_a_right_that_was_lost_is_taken_again_before_pages_are_checked_anew() -> None:
    pages = Pages()
    feed = pages.feed()
    feed.offer([1])
    pages.lost = True
    assert not feed.may_fetch()
    feed.restart(lambda: False)
    assert feed.may_fetch()
    assert pages.rights == 1


def test_a_stop_ends_the_wait_for_a_right() -> None:
    pages = Pages()
    feed = pages.feed()
    feed.offer([1])
    pages.lost = pages.busy = True
    with pytest.raises(RunStopped):
        feed.restart(lambda: True)


def test_a_right_that_comes_back_after_all_pages_were_withdrawn_is_given_back() -> None:
    pages = Pages()
    feed = pages.feed()
    feed.offer([1, 2])
    pages.lost = pages.busy = True

    def withdraw_and_let_the_other_end() -> bool:
        feed.withdraw()
        pages.busy = False
        return False

    feed.restart(withdraw_and_let_the_other_end)
    assert pages.rights == 0
    feed.offer([1])
    assert taken(feed) == [1]


def test_a_right_that_an_offer_took_meanwhile_ends_the_wait_for_it() -> None:
    pages = Pages()
    feed = pages.feed()
    feed.offer([1, 2])
    pages.lost = pages.busy = True
    looks: list[bool] = []

    def withdraw_and_offer_another() -> bool:
        looks.append(True)
        feed.withdraw()
        pages.busy = False
        feed.offer([3])
        return len(looks) > 1

    feed.restart(withdraw_and_offer_another)
    assert (pages.rights, taken(feed)) == (1, [3])


def test_a_run_that_failed_is_not_asked_for_pages_any_more() -> None:
    pages = Pages()
    feed = pages.feed()
    woken: list[bool] = []
    feed.listen(lambda: woken.append(True), lambda: [1, 2])
    feed.offer([1, 2])
    taken(feed)
    feed.close()
    feed.restart(lambda: False)
    assert sorted(feed.withdraw()) == [1, 2], "each is given back once"
    assert (len(feed), feed.held()) == (0, [])
    feed.end()
    assert len(woken) == 1


def test_a_page_that_is_not_held_any_more_is_not_put_off() -> None:
    pages = Pages()
    feed = pages.feed()
    feed.offer([1, 2, 3])
    taken(feed, 1)
    feed.settle([1])
    feed.withdraw()
    feed.put_off([1, 2, 3], 60.0)
    assert (len(feed), feed.put_off_for_now(), feed.settled()) == (0, 0, [1])


def test_a_page_that_was_put_off_and_is_settled_all_the_same_counts_once() -> None:
    feed = Pages().feed()
    feed.offer([1, 2])
    taken(feed)
    feed.put_off([1], 60.0)
    feed.settle([1])
    assert (len(feed), feed.settled(), feed.put_off_for_now()) == (1, [1], 0)


def test_whenever_the_right_is_taken_the_turn_begins_before_any_page_is_offered() -> None:
    pages = Pages()
    feed = pages.feed()
    turns: list[tuple[int, int]] = []

    class Listener:
        def right_taken(self) -> None:
            turns.append((pages.rights, len(feed)))

    feed.offer([1])
    feed.notify_of_right(Listener())
    assert turns == [(1, 1)], "the right was held already"
    feed.offer([2])
    feed.settle(taken(feed))
    with feed.claimed():
        feed.offer([3])
    assert turns == [(1, 1), (1, 0)]


def test_a_turn_that_cannot_begin_gives_the_right_back() -> None:
    pages = Pages()
    feed = pages.feed()

    class Listener:
        def right_taken(self) -> None:
            raise StoreError("The store is away.")

    feed.notify_of_right(Listener())
    with pytest.raises(StoreError, match="away"):
        feed.offer([1])
    assert (pages.rights, feed.held()) == (0, [])


class Slow(Pages):
    """Pages whose right takes until a gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.gate = threading.Event()

    @contextmanager
    def right(self) -> Iterator[Claim]:
        self.reached.set()
        assert self.gate.wait(30)
        with super().right() as claim:
            yield claim


def test_a_feed_can_be_used_while_the_right_to_check_is_being_taken() -> None:
    pages = Slow()
    feed = pages.feed()
    with ThreadPoolExecutor(2) as threads:
        offered = threads.submit(feed.offer, [1])
        assert pages.reached.wait(30)
        second = threads.submit(feed.offer, [2])
        try:
            assert (taken(feed), feed.held(), feed.settled()) == ([], [], [])
            feed.settle([7])
            feed.put_off([7], 1.0)
        finally:
            pages.gate.set()
        offered.result(30)
        second.result(30)
    assert pages.rights == 1, "the second offer waited for the right that the first one took"
    feed.settle(taken(feed))
    assert pages.rights == 0


def test_a_right_that_is_refused_is_tried_again_by_the_next_offer() -> None:
    pages = Slow()
    pages.busy = True
    feed = pages.feed()
    with ThreadPoolExecutor(2) as threads:
        offers = [threads.submit(feed.offer, [number]) for number in (1, 2)]
        assert pages.reached.wait(30)
        pages.gate.set()
        for offer in offers:
            with pytest.raises(StoreBusy):
                offer.result(30)
    pages.busy = False
    feed.offer([3])
    assert (pages.rights, feed.held()) == (1, [3])


def test_threads_that_offer_and_settle_at_once_leave_no_right_behind() -> None:
    pages = Pages()
    feed = pages.feed()

    def check(number: int) -> None:
        for _ in range(50):
            feed.offer([number])
            feed.settle(taken(feed))
            feed.settled()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(check, range(4)))
    feed.settle(taken(feed))
    assert (pages.rights, len(feed)) == (0, 0)
