from __future__ import annotations

from driftline.durations import utc
from driftline.model.change import Change, Matter
from driftline.model.event import Danger, Turn, Turned
from driftline.model.page import WarningKind
from driftline.pipeline.grouping import events_of


def change(number: int, cause: bytes, verdict: Matter = Matter.MEANINGFUL, host: str = "one.example") -> Change:
    return Change(
        id=f"{number}-2", url=f"https://{host}/{number}", at=utc(0.0), from_version=1, to_version=2, kind="text",
        verdict=verdict, score=0.5 + number / 1000, reason="3 words added in one place.", cause=cause,
    )  # fmt: skip


def test_the_same_edit_on_many_pages_of_a_host_is_one_event_with_its_pages() -> None:
    events = events_of([change(number, b"footer") for number in range(300)])
    assert len(events) == 1
    assert events[0].urls == tuple(f"https://one.example/{number}" for number in range(300))
    assert events[0].score == 0.5 + 299 / 1000


def test_the_same_edit_on_two_hosts_is_two_events() -> None:
    events = events_of([change(1, b"edit"), change(2, b"edit", host="two.example")])
    assert [event.host for event in events] == ["one.example", "two.example"]


def test_changes_without_a_cause_are_events_of_their_own() -> None:
    assert [len(event.urls) for event in events_of([change(1, b""), change(2, b"")])] == [1, 1]


def test_an_edit_beside_the_content_is_news_only_if_many_pages_share_it() -> None:
    few = [change(number, b"menu", Matter.NOISE) for number in range(4)]
    many = [change(number, b"footer", Matter.NOISE) for number in range(10, 30)]
    assert [len(event.urls) for event in events_of([*few, *many])] == [20]


def test_an_edit_that_matters_on_one_page_is_an_event_though_it_is_noise_on_another() -> None:
    events = events_of([change(1, b"edit", Matter.NOISE), change(2, b"edit")])
    assert [len(event.urls) for event in events] == [2]


def turned(page: int, sequence: int, turn: Turn, at: float = 0.0) -> Turned:
    return Turned(
        id=f"{page}-{sequence}",
        url=f"https://one.example/{page}",
        at=utc(at),
        turn=turn,
        kind="",
        reason=f"It is {turn}.",
    )


FAILING, RECOVERED = Turn.FAILING, Turn.RECOVERED


def told(*found: Turned | Change | Danger) -> list[tuple[str, ...]]:
    events = events_of(
        [one for one in found if isinstance(one, Change)],
        [one for one in found if isinstance(one, Turned)],
        [one for one in found if isinstance(one, Danger)],
    )
    return [(event.event, *event.ids) for event in events]


def test_a_page_is_not_said_to_fail_after_it_recovered_because_another_recovered_before() -> None:
    found = [turned(2, 4, RECOVERED), turned(1, 5, FAILING), turned(1, 6, RECOVERED)]
    assert told(*found) == [("recovered", "2-4"), ("failing", "1-5"), ("recovered", "1-6")]


def test_pages_that_turn_together_are_still_told_together() -> None:
    found = [turned(1, 5, FAILING), turned(2, 9, FAILING), turned(2, 10, RECOVERED), turned(1, 7, RECOVERED)]
    assert told(*found) == [("failing", "1-5", "2-9"), ("recovered", "2-10", "1-7")]


def test_a_page_that_fails_again_has_two_events_of_it() -> None:
    found = [turned(1, 5, FAILING), turned(1, 6, RECOVERED), turned(1, 7, FAILING), turned(2, 7, FAILING)]
    assert told(*found) == [("failing", "1-5"), ("recovered", "1-6"), ("failing", "1-7", "2-7")]


def test_what_happened_to_a_page_before_it_changed_is_told_before() -> None:
    danger = Danger(id="1-1", url="https://one.example/1", at=utc(0.0), kind=WarningKind.CERTIFICATE, reason="")
    found = (change(1, b"footer"), change(2, b"footer"), turned(1, 3, RECOVERED), danger)
    assert told(*found) == [("warning", "1-1"), ("changed", "2-2", "1-2"), ("recovered", "1-3")]


def test_the_order_is_that_of_the_checks_whatever_the_clock_said() -> None:
    assert told(turned(1, 10, RECOVERED, at=5.0), turned(1, 9, FAILING, at=9.0)) == [
        ("failing", "1-9"),
        ("recovered", "1-10"),
    ]
