from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from driftline.detection.examine import examine
from driftline.detection.jobs import Finding, Job, OldVersions
from driftline.errors import FailureKind, RunStopped
from driftline.model.outcome import Failed, Old, Pair, Proof, Unchanged, Verdict
from driftline.model.page import Failure
from driftline.pipeline.consumer import Steps
from support.making import document, job, known, link


class Versions:
    """Old versions, of which one cannot be read."""

    def __init__(self, bad: int = 0) -> None:
        self.bad = bad

    def recall(self, page_ids: Sequence[int]) -> dict[int, Old]:
        if self.bad in page_ids:
            raise OSError("the disk is on fire")
        return {}

    def recall_contents(self, old: Mapping[int, Old], hosts: Mapping[int, str]) -> dict[int, Old]:
        return {}


class Reader:
    """Reads bodies, and raises at one of them."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error or RuntimeError("odd page")

    def examine(self, jobs: Sequence[Job], old: OldVersions | None = None) -> list[Finding]:
        if any(job.wire == b"raise" for job in jobs):
            raise self.error
        return [examine(job(one.wire)) for one in jobs]


def test_a_version_that_cannot_be_read_fails_its_own_page_only() -> None:
    steps = Steps(Versions(bad=2), Reader(), 1_000)
    documents = [
        document(link(page_id=number, known=known(body=old)), b"new")
        for number, old in enumerate([b"one", b"two", b"three"], start=1)
    ]
    pairs = steps.recall(documents)
    assert [pair.document.link.page_id for pair in pairs] == [1, 2, 3]
    failures = [pair.document.failure for pair in pairs]
    assert failures[0] is failures[2] is None
    assert failures[1] is not None
    assert failures[1].kind is FailureKind.INTERNAL
    assert "the disk is on fire" in failures[1].sentence


def test_a_version_that_cannot_be_read_leaves_the_proofs_of_other_pages_alone() -> None:
    steps = Steps(Versions(bad=2), Reader(), 1_000)
    same = document(link(page_id=1, known=known(body=b"same")), b"same")
    pairs = steps.recall([same, document(link(page_id=2, known=known(body=b"old")), b"new")])
    assert pairs[0].proof is Proof.WIRE
    assert pairs[1].document.failure is not None


def test_what_the_link_proves_is_settled_and_the_rest_is_left_as_it_came() -> None:
    steps = Steps(Versions(), Reader(), 1_000)
    same = document(link(page_id=1, known=known(body=b"same")), b"same")
    other = document(link(page_id=2, known=known(body=b"old")), b"new")
    new = document(link(page_id=3), b"first")
    not_modified = document(link(page_id=4, known=known(body=b"x")), b"", status=304)
    refused = Failure(kind=FailureKind.REFUSED, sentence="Nobody is there.")
    broken = document(link(page_id=5, known=known(body=b"")), b"", failure=refused)
    outcomes, left = steps.prove_unchanged([same, other, new, not_modified, broken])
    assert [(one.document, one.proof) for one in outcomes if isinstance(one, Unchanged)] == [
        (same, Proof.WIRE),
        (not_modified, Proof.VALIDATORS),
    ]
    assert len(outcomes) == 2
    assert left == [other, new, broken]
    assert [one.body for one in left] == [b"new", b"first", b""]
    assert same.body == b""


def test_a_page_that_makes_comparing_raise_fails_alone_and_the_order_is_kept() -> None:
    steps = Steps(Versions(), Reader(), 1_000)
    pairs = [Pair(document(link(page_id=number), body), b"") for number, body in enumerate([b"a", b"raise", b"c"])]
    outcomes = steps.compare(pairs)
    assert [one.verdict for one in outcomes] == [Verdict.NEW, Verdict.FAILED, Verdict.NEW]
    assert [one.document.link.page_id for one in outcomes] == [0, 1, 2]
    assert isinstance(outcomes[1], Failed)
    assert outcomes[1].failure.sentence == "Driftline itself failed to read this page (RuntimeError: odd page)."


def test_a_run_that_is_stopped_fails_no_page() -> None:
    steps = Steps(Versions(), Reader(RunStopped("The run was stopped.")), 1_000)
    with pytest.raises(RunStopped):
        steps.compare([Pair(document(link(), b"raise"), b""), Pair(document(link(), b"x"), b"")])
