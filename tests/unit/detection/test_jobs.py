from __future__ import annotations

import marshal

from driftline.detection.compare import outcome_of
from driftline.detection.examine import examine
from driftline.detection.jobs import Finding, FoundChange
from driftline.model import ChangeKind, Edit, NoiseKind, Pair, Region
from support.making import document, job, known, link

FILLER = "<p>" + "A paragraph that says the same at every check, so that the page is not a small one. " * 6 + "</p>"
OLD = f"<main>{FILLER}<p>The fee is 10 €</p><p>Gone</p></main><footer>© 2025 Example</footer>"
NEW = f"<main>{FILLER}<p>The fee is 20 €</p></main><footer>© 2026 Example</footer>"


def change_between(old: str, new: str) -> FoundChange:
    first = examine(job(old.encode()))
    change = examine(job(new.encode(), after=first)._replace(at=1_780_000_000.0)).change
    assert change is not None
    return change


def test_a_finding_arrives_as_it_was_sent() -> None:
    for finding in (Finding(proof="body", body=b"1"), Finding(change=change_between(OLD, NEW), warnings=(("a", "b"),))):
        assert Finding.from_plain(marshal.loads(marshal.dumps(finding.to_plain()))) == finding


def test_edits_that_matter_come_first_with_where_they_stand_and_what_they_are() -> None:
    pair = Pair(document(link(known=known())), b"")
    change = outcome_of(pair, Finding(text=b"1", change=change_between(OLD, NEW))).change
    assert change is not None
    price, gone, year = change.edits
    assert price == Edit(
        before="The fee is 10 €", after="The fee is 20 €", region=Region.MAIN, kind=ChangeKind.PRICE, noise=None
    )
    assert (gone.before, gone.after, gone.kind, gone.noise) == ("Gone", "", ChangeKind.TEXT, None)
    assert (year.region, year.noise) == (Region.FOOTER, NoiseKind.COPYRIGHT_YEAR)


def test_where_a_removed_line_stood_is_left_open_if_nothing_else_asked_for_it() -> None:
    *_, gone = change_between(
        f"{FILLER}<p>One thing</p><p>Gone</p>", f"{FILLER}<p>Other words altogether here</p>"
    ).edits
    assert (gone.after, gone.region) == ("", "")


def test_a_change_keeps_few_edits_and_little_of_each() -> None:
    shared = "word " * 400
    old = FILLER + "".join(f"<p>{shared} number {n} before</p>" for n in range(60))
    change = change_between(old, old.replace("before", "after"))
    assert len(change.edits) == 20
    assert all(len(text) <= 300 for edit in change.edits for text in (edit.before, edit.after))
    assert change.edits[0].before.startswith("…")
    assert change.edits[0].before.endswith("before")
    assert change.edits[0].after.endswith("after")
