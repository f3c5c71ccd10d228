from __future__ import annotations

import gzip

import pytest

from driftline.detection.compare import compare, confirm, job_of, recall
from driftline.detection.examine import examine
from driftline.detection.jobs import Finding, Job
from driftline.errors import FailureKind
from driftline.model.outcome import Blob, Changed, Failed, Old, Pair, Proof, Verdict
from driftline.model.page import Failure
from driftline.store.blobs import digest, unpack
from support.making import change_of, document, failure_kind, job, known, link, why_failed

ONE = b"<title>One</title><p>one page with a few words</p>"


class NoVersions:
    """An old version may not be asked for."""

    def recall(self, page_ids: object) -> dict[int, Old]:
        raise AssertionError(f"{page_ids!r} was asked for")

    def recall_contents(self, old: object, hosts: object) -> dict[int, Old]:
        raise AssertionError(f"{old!r} was asked for, at {hosts!r}")


class Scripted:
    """Returns prepared findings, and remembers the jobs."""

    def __init__(self, *findings: Finding) -> None:
        self.findings = list(findings)
        self.jobs: list[Job] = []

    def examine(self, jobs: object, old: object = None) -> list[Finding]:
        assert isinstance(jobs, list)
        self.jobs += jobs
        return self.findings


def contents(finding: Finding) -> dict[bytes, Blob]:
    return {blob.digest: blob for blob in finding.blobs}


def test_a_new_page_is_a_version_whose_body_and_text_read_back() -> None:
    found = examine(job(ONE))
    assert (found.failure, found.proof, found.change) == (None, None, None)
    assert (found.title, found.size, found.content_type, found.charset) == ("One", len(ONE), "text/html", "utf-8")
    assert unpack(found.body, contents(found)) == ONE
    assert unpack(found.text, contents(found)) == b"one page with a few words"


def test_the_same_body_in_another_coding_is_proved_by_the_body() -> None:
    found = examine(job(gzip.compress(ONE), codings=["gzip"], after=examine(job(ONE))))
    assert (found.proof, found.body) == (Proof.BODY, digest(ONE))


def test_another_body_that_says_the_same_is_proved_by_the_text() -> None:
    other = b"<div class=x>one <b>page</b> with\na few words</div>"
    found = examine(job(other, after=examine(job(ONE))))
    assert (found.proof, found.body, found.blobs) == (Proof.TEXT, digest(other), ())


def test_a_changed_page_is_packed_against_its_old_version() -> None:
    first = examine(job(ONE * 50))
    second = examine(job(ONE * 50 + b"<p>more</p>", after=first))
    assert second.change is not None
    assert second.change.reason == "1 word added in one place: more."
    assert second.blobs[0].base == first.body
    assert unpack(second.text, contents(first) | contents(second)).endswith(b"more")


def test_an_old_version_that_is_broken_is_our_own_failure() -> None:
    found = examine(job(b"<p>new</p>", after=examine(job(ONE)), blobs=()))
    assert failure_kind(found) is FailureKind.INTERNAL
    assert "doctor" in why_failed(found)


def test_a_body_that_cannot_be_decoded_is_a_failure_of_its_page() -> None:
    assert failure_kind(examine(job(b"nonsense", codings=["gzip"]))) is FailureKind.BODY
    bomb = job(gzip.compress(bytes(100_000)), codings=["gzip"], limit=1_000)
    assert failure_kind(examine(bomb)) is FailureKind.TOO_LARGE


def test_recalling_reads_no_version_where_validators_or_wire_bytes_prove_the_page_unchanged() -> None:
    before = known(body=b"same")
    not_modified = document(link(known=before), b"", status=304)
    same = document(link(known=before), b"same")
    new = document(link(), b"anything")
    broken = document(link(known=before), b"?", failure=Failure(kind=FailureKind.DNS, sentence="No."))
    pairs = recall([not_modified, same, new, broken], NoVersions())
    assert [pair.proof for pair in pairs] == [Proof.VALIDATORS, Proof.WIRE, None, None]


def test_comparing_reads_only_the_pages_that_are_left_open_and_keeps_the_order() -> None:
    before = known(body=b"same")
    failure = Failure(kind=FailureKind.DNS, sentence="No.")
    documents = [
        document(link(page_id=1), b"first"),
        document(link(page_id=2, known=before), b"same"),
        document(link(page_id=3), b"third"),
        document(link(page_id=4), b"", failure=failure),
    ]
    examiner = Scripted(Finding(body=b"1"), Finding(failure=Failure(kind=FailureKind.HOSTILE, sentence="It is.")))
    outcomes = compare(recall(documents, NoVersions()), examiner, NoVersions(), 100)
    assert [one.document.link.page_id for one in outcomes] == [1, 2, 3, 4]
    assert [one.verdict for one in outcomes] == [Verdict.NEW, Verdict.UNCHANGED, Verdict.FAILED, Verdict.FAILED]
    assert [one.wire for one in examiner.jobs] == [b"first", b"third"]
    assert isinstance(outcomes[3], Failed)
    assert outcomes[3].failure == failure


def test_the_codings_and_the_type_are_those_of_the_last_response() -> None:
    fetched = document(link(), b"x", content_type="text/plain", headers="Content-Encoding: br\r\n")
    fetched.headers = b"HTTP/1.1 302 X\r\nContent-Encoding: gzip\r\nLocation: /\r\n\r\n" + fetched.headers
    examiner = Scripted(Finding())
    compare(recall([fetched], NoVersions()), examiner, NoVersions(), 100)
    assert (examiner.jobs[0].codings, examiner.jobs[0].content_type) == (["br"], "text/plain")


LONG = "".join(f"<p>Plan {n} costs {n}0 euros a month and has a support line.</p>" for n in range(30))
WALL = b"<title>Just a moment...</title><h1>Checking your browser</h1><p>Enable JavaScript and cookies to continue</p>"


@pytest.mark.parametrize("one", [["ignore", "Last updated"], ["drop", "footer"], ["select", "main"], ["also", "links"]])
def test_a_wall_is_known_whatever_filters_leave_of_a_page(one: list[str]) -> None:
    page = f"<title>Prices</title><main>{LONG}</main><footer>Last updated today</footer>".encode()
    found = examine(job(WALL, after=examine(job(page, filters=[one])), filters=[one]))
    assert why_failed(found).startswith("The site shows a block page")


def test_bodies_are_released_once_they_are_compared_but_for_a_change_that_is_fetched_again() -> None:
    change = Finding(body=b"2", text=b"2", change=change_of())
    for twice, left in ((False, [b"", b""]), (True, [b"", b"changed"])):
        pages = [document(link(page_id=1), b"new"), document(link(page_id=2, known=known()), b"changed")]
        outcomes = compare(
            [Pair(page, b"") for page in pages], Scripted(Finding(body=b"1"), change), NoVersions(), 100, twice=twice
        )
        assert [one.document.body for one in outcomes] == left


def test_a_change_is_released_when_it_is_confirmed() -> None:
    page = document(link(known=known()), b"changed")
    change = Finding(body=b"2", text=b"2", change=change_of())
    (found,) = compare([Pair(page, b"")], Scripted(change), NoVersions(), 100, twice=True)
    assert isinstance(found, Changed)
    (final,) = confirm([(found, document(page.link, b"other"))], Scripted(change), 100)
    assert isinstance(final, Changed)
    assert (final.pair, final.document.body, final.document.size) == (None, b"", 7)


def test_a_body_that_was_released_is_never_taken_for_an_empty_page() -> None:
    """That would be reported as a change of everything."""
    page = document(link(known=known()), b"body")
    page.release_body()
    with pytest.raises(ValueError, match="was released"):
        job_of(Pair(page, b""), 100)
