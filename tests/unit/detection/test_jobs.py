from __future__ import annotations

import marshal

from driftline.detection.compare import outcome_of
from driftline.detection.examine import examine
from driftline.detection.jobs import Finding, Job, Question
from driftline.model.change import ChangeKind, ChangeSummary, Edit, NoiseKind, Region
from driftline.model.outcome import Changed, IgnoredParts, Lesson, Pair, Proof
from driftline.model.page import AddressKind, PageWarning, WarningKind
from support.making import NOT_THERE, document, job, known, link

FILLER = "<p>" + "A paragraph that says the same at every check, so that the page is not a small one. " * 6 + "</p>"
OLD = f"<main>{FILLER}<p>The fee is 10 €</p><p>Gone</p></main><footer>© 2025 Example</footer>"
NEW = f"<main>{FILLER}<p>The fee is 20 €</p></main><footer>© 2026 Example</footer>"

IGNORED = IgnoredParts(
    label="Also bought", example="Lamp → Rug", others=2, noise=NoiseKind.EVERY_CHECK, page_keys=(b"12345678",),
    host_keys=(), is_news=False,
)  # fmt: skip


def change_between(old: str, new: str) -> ChangeSummary:
    first = examine(job(old.encode()))
    change = examine(job(new.encode(), after=first)._replace(at=1_780_000_000.0)).change
    assert change is not None
    return change


def test_a_finding_arrives_as_it_was_sent() -> None:
    warned = PageWarning(WarningKind.HIDDEN_FRAME, "A hidden frame appeared.")
    for finding in (
        Finding(proof=Proof.BODY, body=b"1"),
        Finding(change=change_between(OLD, NEW), lesson=Lesson(memory=b"m", for_host=(b"h",)), warnings=(warned,)),
        Finding(lesson=Lesson(memory=b"m", for_host=(), ignored=IGNORED)),
        Finding(failure=NOT_THERE, out_of_memory=True),
        examine(job(OLD.encode())),
    ):
        assert Finding.from_plain(marshal.loads(marshal.dumps(finding.to_plain()))) == finding


def test_a_job_arrives_as_it_was_sent() -> None:
    question = Question("http://a/", AddressKind.PAGE, "noindex", True, ("utm_source",), (), False)
    sent = job(NEW.encode(), after=examine(job(OLD.encode())), filters=[["drop", "footer"]])._replace(question=question)
    assert Job.from_plain(marshal.loads(marshal.dumps(sent.to_plain()))) == sent


def test_edits_that_matter_come_first_with_where_they_stand_and_what_they_are() -> None:
    pair = Pair(document(link(known=known())), b"")
    outcome = outcome_of(pair, Finding(text=b"1", change=change_between(OLD, NEW)))
    assert isinstance(outcome, Changed)
    price, gone, year = outcome.change.edits
    assert price == Edit(
        before="The fee is 10 €", after="The fee is 20 €", region=Region.MAIN, kind=ChangeKind.PRICE, noise=None
    )
    assert (gone.before, gone.after, gone.kind, gone.noise) == ("Gone", "", ChangeKind.TEXT, None)
    assert (year.region, year.noise) == (Region.FOOTER, NoiseKind.COPYRIGHT_YEAR)


def test_where_a_removed_line_stood_is_left_open_if_nothing_else_asked_for_it() -> None:
    *_, gone = change_between(
        f"{FILLER}<p>One thing</p><p>Gone</p>", f"{FILLER}<p>Other words altogether here</p>"
    ).edits
    assert (gone.after, gone.region) == ("", None)


def test_a_change_keeps_few_edits_and_little_of_each() -> None:
    shared = "word " * 400
    old = FILLER + "".join(f"<p>{shared} number {n} before</p>" for n in range(60))
    change = change_between(old, old.replace("before", "after"))
    assert len(change.edits) == 20
    assert all(len(text) <= 300 for edit in change.edits for text in (edit.before, edit.after))
    assert change.edits[0].before.startswith("…")
    assert change.edits[0].before.endswith("before")
    assert change.edits[0].after.endswith("after")
