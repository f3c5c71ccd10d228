"""What a check found: four types that nothing can change, each with what it can have."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

import driftline
from driftline.model.change import Importance
from driftline.model.outcome import (
    Blob,
    Document,
    Examined,
    Link,
    NoiseVersion,
    Outcome,
    Proof,
    Unchanged,
    Verdict,
    changes_to_report,
    version_made_by,
)
from support.making import EXAMINED, change_of, changed, document, failed, new, new_version, unchanged

BLOB = Blob(b"", None, 0, 0, bytes(100))


def noise(cause: bytes) -> Unchanged:
    kept = NoiseVersion(new_version(BLOB, number=2), change_of(Importance.NOISE, cause))
    return Unchanged(document(), Proof.NOISE, EXAMINED, kept)


@pytest.mark.parametrize("outcome", [new(), unchanged(), changed(), failed()], ids=lambda one: one.verdict)
def test_an_outcome_cannot_be_changed(outcome: Outcome) -> None:
    with pytest.raises(FrozenInstanceError):
        outcome.document = document()  # type: ignore[misc]
    with pytest.raises((AttributeError, TypeError)):
        outcome.recalled = b""  # type: ignore[union-attr]


def test_each_outcome_has_its_verdict() -> None:
    assert [one.verdict for one in (new(), unchanged(), changed(), failed())] == [
        Verdict.NEW, Verdict.UNCHANGED, Verdict.CHANGED, Verdict.FAILED,
    ]  # fmt: skip


def test_new_and_changed_pages_make_a_version_and_noise_may() -> None:
    found: list[Outcome] = [new(), changed(), noise(b""), unchanged(), failed()]
    assert [version_made_by(one) is not None for one in found] == [True, True, True, False, False]


def test_changes_that_matter_are_reported_and_noise_only_if_others_may_share_its_cause() -> None:
    found: list[Outcome] = [new(), changed(), noise(b""), noise(b"footer"), unchanged(), failed()]
    assert [one.change.importance for one in changes_to_report(found)] == [Importance.IMPORTANT, Importance.NOISE]


def test_an_outcome_holds_what_its_document_and_its_version_hold() -> None:
    page = document(body=b"12345")
    assert [one.held_bytes() for one in (unchanged(page), new(page, BLOB), noise(b"x"))] == [5, 105, 112]
    page.release_body()
    assert (page.body, page.size, unchanged(page).held_bytes()) == (b"", 5, 0)


def test_a_page_that_was_not_read_wants_no_browser() -> None:
    shell = Examined(wire=b"", body=b"", reading="", wants_script=True)
    assert not unchanged().wants_script
    assert Unchanged(document(), Proof.TEXT, shell).wants_script


def test_links_and_documents_are_not_changed_but_for_the_permit() -> None:
    """What `model.outcome` says of them: the classes themselves cannot enforce it, because that costs too much."""
    names = "|".join({field.name for kind in (Link, Document) for field in fields(kind)})
    assigned = re.compile(rf"\b(?:document|link)\.({names})\b *(?:[-+|]?=)(?!=)")
    found = {
        (path.name, match[1])
        for path in Path(driftline.__file__).parent.rglob("*.py")
        for match in assigned.finditer(path.read_text())
    }
    assert found == {("politeness.py", "permit")}
