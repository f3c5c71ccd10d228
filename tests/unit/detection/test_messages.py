from __future__ import annotations

import pytest

from driftline.detection.messages import excerpts, listed, old_to_new, only_noise, with_example, words_changed
from driftline.model.change import NoiseKind


def test_every_kind_of_noise_has_words_of_its_own() -> None:
    sentences = {only_noise([kind]) for kind in NoiseKind}
    assert len(sentences) == len(NoiseKind)


def test_several_kinds_of_noise_are_listed() -> None:
    found = only_noise([NoiseKind.CLOCK, NoiseKind.NAVIGATION, NoiseKind.AGE])
    assert found == "Only a clock, the navigation and an age changed."


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ((1, 0, 1), "1 word added in one place."),
        ((1200, 3, 2), "1,200 words added and 3 words removed in 2 places."),
        ((0, 0, 1), "The same words stand in another order in one place."),
    ],
)
def test_words_are_counted(counts: tuple[int, int, int], sentence: str) -> None:
    assert words_changed(*counts) == sentence


def test_an_example_ends_a_sentence() -> None:
    assert with_example("1 word added.", "", "More.") == "1 word added: More."
    assert with_example("1 word added and 1 word removed.", "A", "B") == "1 word added and 1 word removed: A → B."


def test_of_long_texts_the_part_that_differs_is_shown() -> None:
    same = "x" * 500
    assert old_to_new(f"{same}1", f"{same}2") == f"…{'x' * 25}1 → …{'x' * 25}2"
    before, after = excerpts(f"{same}1{same}", f"{same}2{same}", 100)
    assert len(before) == len(after) == 100
    assert before == f"…{'x' * 24}1{'x' * 73}…"
    assert excerpts("short", "", 100) == ("short", "")
    assert excerpts(f"{same}end", same, 100) == (f"…{'x' * 24}end", f"…{'x' * 24}")
    assert excerpts("", same, 100) == ("", f"{'x' * 99}…")


def test_words_are_listed_as_in_a_sentence() -> None:
    assert [listed(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
