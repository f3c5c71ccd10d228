from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from driftline.model.change import Importance
from driftline.noise_memory import Memory
from support.properties import searched

KEY, OTHER = b"somekey1", b"somekey2"
HOUR, DAY = 3_600.0, 86_400.0


def remembered(*checks: int, every: float = HOUR) -> Memory:
    memory = Memory()
    for check in checks:
        memory.note([KEY], check, check * every)
    return memory


def mutes(memory: Memory, key: bytes, check: int, every: float = HOUR) -> bool:
    return memory.mutes(key, check, check * every)


def test_what_changed_at_two_checks_in_a_row_is_muted_at_the_third() -> None:
    assert not mutes(remembered(2), KEY, 3)
    assert mutes(remembered(2, 3), KEY, 4)
    assert not mutes(remembered(2, 3), OTHER, 4)


def test_what_stops_changing_is_reported_again() -> None:
    memory = remembered(2, 3, 4)
    assert mutes(memory, KEY, 6)
    assert not mutes(memory, KEY, 20)


def test_what_is_proved_otherwise_lasts_longer_than_the_time_between_rare_checks() -> None:
    memory, month = Memory(), 30 * 24 * 60
    for check in (2, 3, 4):
        memory.note([KEY], check, check * 14 * DAY, within=month)
    assert not memory.comes_and_goes(KEY, 5, 5 * 14 * DAY)
    assert memory.comes_and_goes(KEY, 5, 5 * 14 * DAY, within=month)
    assert not memory.comes_and_goes(KEY, 5, 8 * 14 * DAY, within=month)


def test_what_changes_at_every_check_is_news_if_these_are_weeks_apart() -> None:
    assert mutes(remembered(1, 2, 3, 4, every=DAY), KEY, 5, every=DAY)
    assert not mutes(remembered(1, 2, 3, 4, every=14 * DAY), KEY, 5, every=14 * DAY)
    memory = remembered(1, 2, 3, 4)
    assert not memory.mutes(KEY, 5, 30 * DAY), "it stopped long ago"


def test_what_changes_now_and_then_is_never_muted() -> None:
    memory = remembered(*range(10, 1_000, 10))
    assert not mutes(memory, KEY, 1_000)


def test_what_changed_often_enough_for_the_host_to_know_is_returned_once() -> None:
    memory = Memory()
    assert [memory.note([KEY], check, check * HOUR) for check in (1, 2, 3)] == [[], [KEY], []]


def test_what_the_user_says_outweighs_what_was_learned() -> None:
    memory = remembered(1, 2, 3)
    memory.pin([KEY], Importance.IMPORTANT)
    memory.pin([OTHER], Importance.NOISE)
    memory.note([KEY, OTHER], 4, 4 * HOUR)
    assert memory.pinned(KEY) is Importance.IMPORTANT
    assert memory.pinned(OTHER) is Importance.NOISE
    assert not mutes(memory, KEY, 5)


def test_a_host_counts_pages() -> None:
    memory = Memory()
    for _ in range(3):
        memory.count([KEY])
    assert Memory(memory.to_bytes()).times(KEY) == 3


def test_a_full_memory_keeps_the_newest_and_all_that_is_pinned() -> None:
    memory = Memory()
    memory.pin([KEY], Importance.NOISE)
    for number in range(1_000):
        memory.note([number.to_bytes(8, "little")], number, number * HOUR)
    kept = Memory(memory.to_bytes())
    assert kept.pinned(KEY) is Importance.NOISE
    assert kept.times((999).to_bytes(8, "little")) == 1
    assert kept.times((1).to_bytes(8, "little")) == 0


def test_whatever_the_user_said_is_kept_and_leaves_room_to_learn() -> None:
    memory = Memory()
    said = [number.to_bytes(8, "big") for number in range(1_000)]
    memory.pin(said, Importance.NOISE)
    memory.note([KEY], 5, 5 * HOUR)
    kept = Memory(memory.to_bytes())
    assert all(kept.pinned(key) is Importance.NOISE for key in said)
    assert kept.times(KEY) == 1


def test_what_came_and_went_twice_over_comes_and_goes_until_it_stops() -> None:
    memory = remembered(5, 6, 13)
    assert not memory.comes_and_goes(KEY, 14, 14 * HOUR)
    memory.note([KEY], 14, 14 * HOUR)
    assert memory.comes_and_goes(KEY, 25, 25 * HOUR)
    assert not mutes(memory, KEY, 25)
    assert not memory.comes_and_goes(KEY, 60, 60 * HOUR)


def test_a_full_memory_of_a_host_still_learns() -> None:
    memory = Memory()
    for number in range(1_000):
        memory.count([number.to_bytes(8, "little")])
    memory = Memory(memory.to_bytes())
    for _ in range(3):
        memory.count([KEY])
    assert Memory(memory.to_bytes()).times(KEY) == 3


def test_what_the_user_said_meanwhile_is_taken_over() -> None:
    memory, stored = remembered(1, 2), Memory()
    stored.pin([KEY], Importance.NOISE)
    memory.keep_pins_of(stored)
    assert memory.pinned(KEY) is Importance.NOISE


@searched
@given(st.binary())
def test_whatever_the_bytes_a_memory_can_be_read_from_them(data: bytes) -> None:
    memory = Memory(data)
    assert Memory(memory.to_bytes()).to_bytes() == memory.to_bytes()


@searched
@given(st.lists(st.tuples(st.binary(min_size=8, max_size=8), st.integers(0, 2**31)), max_size=30))
def test_a_memory_survives_being_stored(notes: list[tuple[bytes, int]]) -> None:
    memory = Memory()
    for key, check in notes:
        memory.note([key], check, float(check))
    stored = Memory(memory.to_bytes())
    assert [stored.times(key) for key, _ in notes] == [memory.times(key) for key, _ in notes]
