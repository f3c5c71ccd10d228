from __future__ import annotations

from driftline.model import Change, Matter
from driftline.pipeline.events import events_of


def change(number: int, cause: bytes, verdict: Matter = Matter.MEANINGFUL, host: str = "one.example") -> Change:
    return Change(
        id=f"{number}-2", url=f"https://{host}/{number}", at=0.0, from_version=1, to_version=2, kind="text",
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
