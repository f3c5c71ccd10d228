"""The frontier hands out what is most promising, once, and ends when nothing is under way."""

from __future__ import annotations

from collections.abc import Sequence

from driftline.crawl.frontier import Frontier
from driftline.model.outcome import Link
from driftline.model.page import AddressKind
from driftline.store.crawls import KNOWN, FrontierEntry


def links(ids: Sequence[int]) -> list[Link]:
    return [Link(number, f"https://site.example/{number}", 0, None) for number in ids]


def places(*numbers: int, priority: float = 1.0, kind: AddressKind = AddressKind.PAGE) -> list[FrontierEntry]:
    return [FrontierEntry(priority, number, kind) for number in numbers]


def taken(frontier: Frontier, most: int = 100) -> list[int]:
    return [link.page_id for link in frontier.take(most)]


def test_what_has_the_lowest_priority_comes_first() -> None:
    """Then what was met first."""
    frontier = Frontier(links)
    frontier.settle((), [*places(3, 1), *places(2, priority=0.5)])
    assert taken(frontier, 2) == [2, 1]
    assert repr(frontier).startswith("<Frontier pages=1 lists=0 in_flight=2 ")
    assert taken(frontier) == [3]


def test_it_is_exhausted_only_when_nothing_is_under_way() -> None:
    """What is under way may lead to more."""
    frontier = Frontier(links)
    frontier.settle((), places(1))
    assert taken(frontier) == [1]
    assert not frontier.exhausted
    frontier.settle([1], places(2))
    assert not frontier.exhausted
    assert taken(frontier) == [2]
    frontier.settle([2])
    assert frontier.exhausted


def test_an_address_that_is_named_twice_is_handed_out_once() -> None:
    """A sitemap may name it again, with another priority, while it is under way."""
    frontier = Frontier(links)
    frontier.settle((), [*places(1), *places(1, priority=0.0)])
    assert taken(frontier) == [1]


def test_no_more_pages_than_allowed_are_handed_out() -> None:
    """Lists are not counted, and what turned out not to be wanted does not count."""
    frontier = Frontier(lambda ids: [link for link in links(ids) if link.page_id != 1], most=2)
    frontier.settle((), [*places(1, 2, 3, 4), *places(9, priority=-1.0, kind=AddressKind.SITEMAP)])
    assert taken(frontier) == [9, 2]
    assert taken(frontier) == [3]
    frontier.settle([9, 2, 3])
    assert frontier.exhausted
    assert len(frontier) == 1


def test_few_are_handed_out_at_a_time_where_the_order_may_change() -> None:
    """What comes of the first decides what is next."""
    frontier = Frontier(links, ahead=2)
    frontier.settle((), places(1, 2, 3))
    assert taken(frontier) == [1, 2]
    assert taken(frontier) == []
    frontier.settle([1], places(7, priority=0.1))
    assert taken(frontier) == [7]


def test_pages_that_are_known_wait_until_all_else_is_done() -> None:
    """A sitemap may say meanwhile that they are as they were."""
    frontier = Frontier(links)
    frontier.settle((), [*places(1, priority=KNOWN), *places(2)])
    assert taken(frontier) == [2]
    assert taken(frontier) == []
    frontier.settle([2])
    assert taken(frontier) == [1]


def test_what_is_put_off_is_left_to_the_next_crawl() -> None:
    """Its host wants to be left alone."""
    frontier = Frontier(links)
    frontier.settle((), places(1, 2))
    assert taken(frontier) == [1, 2]
    frontier.put_off([1], 60.0)
    frontier.settle([2], places(1))
    assert taken(frontier) == []
    assert frontier.exhausted


def test_closed_means_closed() -> None:
    """Nothing more is handed out."""
    frontier = Frontier(links)
    frontier.settle((), places(1))
    frontier.close()
    assert frontier.exhausted
    assert taken(frontier) == []


def test_few_lists_are_under_way_at_a_time_and_hold_up_no_page() -> None:
    """Each may name very many pages, which are to be recorded before the next is read."""
    frontier = Frontier(links)
    frontier.settle((), [*places(*range(1, 21), priority=-1.0, kind=AddressKind.SITEMAP), *places(100)])
    assert taken(frontier) == [*range(1, 5), 100]
    frontier.settle([1, 2])
    assert taken(frontier) == [5, 6]
    assert not frontier.exhausted


def test_it_tells_how_many_new_pages_wait_and_whether_there_were_enough() -> None:
    """Those that an earlier round found do not count, nor do lists."""
    frontier = Frontier(links, most=1)
    frontier.settle((), [*places(1, 2), *places(3, priority=KNOWN), *places(4, priority=-1.0, kind=AddressKind.FEED)])
    assert (frontier.new, frontier.limited) == (2, False)
    assert taken(frontier) == [4, 1]
    assert (frontier.new, frontier.limited) == (1, True)
