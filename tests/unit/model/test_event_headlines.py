"""The headline of a change, which is the same wherever the change is shown."""

from __future__ import annotations

import pytest

from driftline import Change, ChangeKind, Edit, Matter
from driftline.durations import utc

REASON = "3 words added in one place."


def edit(before: str, after: str) -> Edit:
    return Edit(before=before, after=after, region=None, kind=ChangeKind.TEXT, noise=None)


@pytest.mark.parametrize(
    ("edits", "headline"),
    [
        ((), REASON),
        ((edit("Price 5 €", "Price 6 €"),), "Price 5 € → Price 6 €"),
        ((edit("", "A  new\nline"),), "New: A new line"),
        ((edit("Gone", ""), edit("a", "b")), "Removed: Gone (and 1 more)"),
        ((edit("", "word " * 20),), f"New: {'word ' * 8}word…"),
    ],
)
def test_a_change_says_in_one_line_what_changed(edits: tuple[Edit, ...], headline: str) -> None:
    change = Change(
        id="1-2", url="https://a.example/", at=utc(0.0), from_version=1, to_version=2, kind=ChangeKind.TEXT,
        verdict=Matter.MEANINGFUL, score=0.5, reason=REASON, edits=edits,
    )  # fmt: skip
    assert change.headline == headline
