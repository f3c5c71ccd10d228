from __future__ import annotations

from driftline.model.change import ChangeKind, ChangeSummary, Edit, Importance, NoiseKind
from driftline.store.outbox import edits_of, stored_edits


def test_edits_of_a_minor_change_are_read_back_as_minor() -> None:
    edit = Edit(
        before="'a'", after="’a’", region=None, kind=ChangeKind.TEXT, noise=NoiseKind.TYPOGRAPHY, heading="Terms"
    )  # fmt: skip
    change = ChangeSummary(
        kind=ChangeKind.TEXT, importance=Importance.MINOR, score=0.4, reason="Only quotes.", words_added=0,
        words_removed=0, edits=(edit,),
    )  # fmt: skip
    assert edits_of(stored_edits(change)) == (edit,)
    assert edits_of(stored_edits(change))[0].importance is Importance.MINOR
