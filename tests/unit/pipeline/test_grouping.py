from __future__ import annotations

from dataclasses import replace

import pytest

from driftline.durations import utc
from driftline.errors import FailureKind
from driftline.model.change import Change, ChangeKind, Importance, NoiseKind
from driftline.model.event import Danger, EventKind, Ignored, Turn, Turned
from driftline.model.page import WarningKind
from driftline.pipeline.grouping import events_of


def change(
    number: int, cause: bytes, importance: Importance = Importance.IMPORTANT, host: str = "one.example"
) -> Change:
    return Change(
        id=f"{number}-2", url=f"https://{host}/{number}", at=utc(0.0), from_version=1, to_version=2,
        kind=ChangeKind.TEXT, importance=importance, score=0.5 + number / 1000, headline="New: It",
        reason="3 words added in one place.",
        cause=cause,
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
    few = [change(number, b"menu", Importance.NOISE) for number in range(4)]
    many = [change(number, b"footer", Importance.NOISE) for number in range(10, 30)]
    assert [len(event.urls) for event in events_of([*few, *many])] == [20]


def test_an_edit_that_matters_on_one_page_is_an_event_though_it_is_noise_on_another() -> None:
    events = events_of([change(1, b"edit", Importance.NOISE), change(2, b"edit")])
    assert [len(event.urls) for event in events] == [2]


def test_an_event_is_as_important_as_the_most_important_of_its_changes() -> None:
    def importances(*found: Importance) -> list[Importance]:
        changes = [change(number, b"edit", importance) for number, importance in enumerate(found)]
        return [event.importance for event in events_of(changes)]

    assert importances(Importance.MINOR) == [Importance.MINOR]
    assert importances(Importance.NOISE, Importance.MINOR) == [Importance.MINOR]
    assert importances(Importance.MINOR, Importance.IMPORTANT) == [Importance.IMPORTANT]
    assert importances(*[Importance.NOISE] * 5) == [Importance.IMPORTANT], "what the whole site has is news of it"


def turned(page: int, sequence: int, turn: Turn, at: float = 0.0) -> Turned:
    return Turned(
        id=f"{page}-{sequence}",
        url=f"https://one.example/{page}",
        at=utc(at),
        turn=turn,
        kind=FailureKind.STATUS if turn is Turn.FAILING else None,
        reason=f"It is {turn}.",
    )


FAILING, RECOVERED = Turn.FAILING, Turn.RECOVERED


def ignored(number: int, label: str, others: int = 0, kind: NoiseKind = NoiseKind.EVERY_CHECK) -> Ignored:
    return Ignored(
        id=f"{number}-4", url=f"https://one.example/{number}", at=utc(0.0), label=label, example="54 ms → 61 ms",
        others=others, kind=kind,
    )  # fmt: skip


def test_pages_of_a_host_that_ignore_the_same_part_are_one_event() -> None:
    same = [ignored(number, "Server") for number in (1, 2)]
    one, other, several = events_of([], [], [], [*same, ignored(3, "Tips"), ignored(4, "Tips", others=2)])
    assert (one.event, one.kind, one.ids) == (EventKind.IGNORING, NoiseKind.EVERY_CHECK, ("1-4", "2-4"))
    assert one.headline == "Now ignoring 'Server': it differs at every check"
    undo = "To have it reported again on a page: driftline feedback 1-4 --important"
    assert one.reason == f"{one.headline}. {undo}"
    assert other.headline == "Now ignoring 'Tips' (54 ms → 61 ms): it differs at every check"
    assert other.reason == f"{other.headline}. To have it reported again: driftline feedback 3-4 --important"
    assert several.headline == "Now ignoring 'Tips' and 2 other parts: they differ at every check"


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (NoiseKind.COMES_AND_GOES, "it comes and goes"),
        (NoiseKind.OTHER_PAGES, "it differs on other pages too"),
    ],
)
def test_what_is_ignored_says_why(kind: NoiseKind, why: str) -> None:
    (event,) = events_of([], [], [], [ignored(1, "Server", kind=kind)])
    assert event.headline == f"Now ignoring 'Server' (54 ms → 61 ms): {why}"


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


def failing(page: int, reason: str, kind: FailureKind = FailureKind.TIMED_OUT, status: int | None = None) -> Turned:
    return replace(turned(page, 5, FAILING), kind=kind, status=status, reason=reason)


def test_a_host_that_goes_down_is_one_event_whatever_each_page_says_of_it() -> None:
    """The sentences count checks and milliseconds, so they differ; the event says what is true for all its pages."""
    (event,) = events_of([], [
        failing(1, "3 checks in a row failed. Nothing came within 5,003 ms."),
        failing(2, "4 checks in a row failed. Nothing came within 5,001 ms."),
    ])  # fmt: skip
    assert (event.event, event.kind, event.ids) == (EventKind.FAILING, FailureKind.TIMED_OUT, ("1-5", "2-5"))
    assert event.reason == event.headline == "Several checks failed. The server took too long to answer."


def test_a_reason_that_all_pages_share_is_that_of_the_event() -> None:
    same = "3 checks in a row failed. The server answered 404 Not Found."
    (event,) = events_of([], [failing(number, same, FailureKind.STATUS, 404) for number in (1, 2)])
    assert event.reason == same


def test_pages_that_fail_for_other_reasons_are_other_events() -> None:
    found = [
        failing(1, "3 checks failed.", FailureKind.STATUS, 404),
        failing(2, "3 checks failed.", FailureKind.STATUS, 503),
        failing(3, "3 checks failed.", FailureKind.DNS),
        failing(4, "4 checks failed.", FailureKind.STATUS, 503),
    ]
    events = events_of([], found)
    assert [event.ids for event in events] == [("1-5",), ("2-5", "4-5"), ("3-5",)]
    assert events[1].reason == "Several checks failed. The server answered 503 Service Unavailable."


def test_a_host_that_recovers_is_one_event_however_long_each_page_failed() -> None:
    reasons = [f"The page could be read again, after {times} checks that failed." for times in (3, 4)]
    found = [replace(turned(page, 9, RECOVERED), reason=why) for page, why in enumerate(reasons, 1)]
    (event,) = events_of([], found)
    assert (event.event, event.kind, event.ids) == (EventKind.RECOVERED, None, ("1-9", "2-9"))
    assert event.reason == "The pages could be read again, after checks that failed."


@pytest.mark.parametrize("kind", list(FailureKind))
def test_every_kind_of_failure_has_words_for_many_pages(kind: FailureKind) -> None:
    (event,) = events_of([], [failing(1, "One reason.", kind), failing(2, "Another reason.", kind)])
    assert event.reason.startswith("Several checks failed. ")


def test_the_headline_of_pages_that_name_different_things_says_so() -> None:
    one, other = (replace(change(n, b"stock"), headline=f"Sold out: {of}") for n, of in enumerate(("lamp", "x" * 130)))
    assert events_of([one, other])[0].headline == "Sold out: lamp (likewise on 1 more page)"
    assert len(events_of([other, one])[0].headline) <= 120
