from __future__ import annotations

import pytest

from driftline.model.change import ChangeKind, ChangeSummary, Edit, Importance, NoiseKind


@pytest.mark.parametrize(
    ("least", "reaching"),
    [
        (Importance.IMPORTANT, ["important"]),
        (Importance.MINOR, ["important", "minor"]),
        (Importance.NOISE, ["important", "minor", "noise"]),
    ],
)
def test_what_is_more_important_reaches_every_lower_level(least: Importance, reaching: list[str]) -> None:
    assert [one.value for one in Importance if one.reaches(least)] == reaching


def edit(noise: NoiseKind | None) -> Edit:
    return Edit(before="", after="It", region=None, kind=ChangeKind.TEXT, noise=noise)


def test_a_change_is_about_the_edits_that_are_as_important_as_it_is() -> None:
    real, styled, clock = edit(None), edit(NoiseKind.TYPOGRAPHY), edit(NoiseKind.CLOCK)
    assert [one.importance for one in (real, styled, clock)] == ["important", "minor", "noise"]
    for importance, decisive in (
        (Importance.IMPORTANT, (real,)), (Importance.MINOR, (styled,)), (Importance.NOISE, ()),
    ):  # fmt: skip
        change = ChangeSummary(
            kind=ChangeKind.TEXT, importance=importance, score=0.5, reason="It.", words_added=1, words_removed=0,
            edits=(clock, styled, real),
        )  # fmt: skip
        assert change.decisive_edits == decisive
