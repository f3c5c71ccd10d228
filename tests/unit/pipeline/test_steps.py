from __future__ import annotations

from collections.abc import Sequence

import pytest

from driftline.detection.examination import Finding, Job, examine
from driftline.errors import RunStopped
from driftline.model import FailureKind, Old, Pair, Verdict
from driftline.pipeline.consumers import Steps
from support.making import document, job, known, link


class Versions:
    """Old versions, of which one cannot be read."""

    def __init__(self, bad: int = 0) -> None:
        self.bad = bad

    def recall(self, page_ids: Sequence[int]) -> dict[int, Old]:
        if self.bad in page_ids:
            raise OSError("the disk is on fire")
        return {}


class Reader:
    """Reads bodies, and raises at one of them."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error or RuntimeError("odd page")

    def examine(self, jobs: Sequence[Job]) -> list[Finding]:
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


def test_a_page_that_makes_comparing_raise_fails_alone_and_the_order_is_kept() -> None:
    steps = Steps(Versions(), Reader(), 1_000)
    pairs = [Pair(document(link(page_id=number), body), b"") for number, body in enumerate([b"a", b"raise", b"c"])]
    outcomes = steps.compare(pairs)
    assert [one.verdict for one in outcomes] == [Verdict.NEW, Verdict.FAILED, Verdict.NEW]
    assert [one.document.link.page_id for one in outcomes] == [0, 1, 2]
    assert outcomes[1].failure is not None
    assert outcomes[1].failure.sentence == "Driftline itself failed on this page (RuntimeError: odd page)."


def test_a_run_that_is_stopped_fails_no_page() -> None:
    steps = Steps(Versions(), Reader(RunStopped("The run was stopped.")), 1_000)
    with pytest.raises(RunStopped):
        steps.compare([Pair(document(link(), b"raise"), b""), Pair(document(link(), b"x"), b"")])
