"""Synthetic pages are edited and checked, and what is reported is counted."""

from __future__ import annotations

import pytest

from driftline.lab.bench.local_watch_lists import LabError
from driftline.lab.bench.reports_bench import EDITS, INTERVALS, PageEdit, SyntheticPage, check_all, synthetic_pages


def page(*edits: PageEdit) -> SyntheticPage:
    lines = "".join(f"<p>Paragraph {number} is about something else.</p>" for number in range(30))
    body = f"<title>Shop</title><main><h1>Kettle</h1><p>In stock</p><p>[[%H:%M]], [[token]]</p>{lines}</main>"
    return SyntheticPage("kettle", "text/html", body, edits)


def test_there_are_forty_pages_of_many_kinds_with_ten_edits_of_each_sort() -> None:
    pages = synthetic_pages()
    assert len(pages) == 40
    assert len({one.content_type for one in pages}) > 4
    for one in pages:
        assert [edit.matters for edit in one.edits] == [False, True] * EDITS


def test_every_edit_finds_what_it_replaces_once() -> None:
    for one in synthetic_pages():
        body = one.body
        for edit in one.edits:
            assert body.count(edit.old) == 1, (one.name, edit.old)
            body = body.replace(edit.old, edit.new)


def test_what_is_reported_is_counted_by_whether_the_edit_matters() -> None:
    sold, hidden = PageEdit(True, "In stock", "Sold out"), PageEdit(False, "<h1>", '<h1 class="x">')
    sentence = PageEdit(
        False, "<p>Paragraph 3", "<p>This sentence is new and somebody thinks it is noise.</p><p>Paragraph 3"
    )
    [row] = check_all([page(hidden, sold, sentence)], lambda _: None, ["1 d"])
    assert (row.page, row.interval, row.found, row.false_alarms) == ("kettle", "1 d", 1, 1)
    assert [(edit.matters, edit.reported) for edit in row.edits] == [(False, False), (True, True), (False, True)]
    assert row.edits[1].headline == "Sold out: Kettle"
    assert row.edits[0].reason


def test_what_a_second_fetch_does_not_have_is_not_reported() -> None:
    drawn = PageEdit(
        False, "<p>Paragraph 3", "<p>We recommend books.</p><p>Paragraph 3", "<p>Read songs.</p><p>Paragraph 3"
    )
    [row] = check_all([page(drawn)], lambda _: None, ["1 h"])
    assert row.false_alarms == 0


def test_an_edit_of_something_that_is_not_there_is_an_error_of_the_page() -> None:
    with pytest.raises(LabError, match="0 times on the page 'kettle'"):
        list(check_all([page(PageEdit(True, "no such text", "x"))], lambda _: None))


def test_an_unknown_page_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(LabError, match=r"There are: .*shop"):
        synthetic_pages(["ship"])
    assert [one.name for one in synthetic_pages(["shop"])] == ["shop"]


def test_headlines_are_short_and_say_something() -> None:
    """All pages at one interval: each report has a headline of a line, which is not only a count."""
    for row in check_all(synthetic_pages(), lambda _: None, list(INTERVALS)[:1]):
        for edit in row.edits:
            if edit.reported and edit.matters:
                assert 0 < len(edit.headline) <= 120
                assert any(map(str.isalpha, edit.headline)), edit.headline
