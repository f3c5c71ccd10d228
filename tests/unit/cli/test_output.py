"""How times, sizes and hostile texts are printed."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.cli.output import ago, clean, clean_lines, iso, print_json, size
from driftline.durations import utc
from driftline.plurals import count


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (-5, "just now"),
        (0.4, "just now"),
        (1, "1 second ago"),
        (59.9, "59 seconds ago"),
        (60, "1 minute ago"),
        (200, "3 minutes ago"),
        (7_300, "2 hours ago"),
        (86_400, "1 day ago"),
        (604_800 * 3, "3 weeks ago"),
    ],
)
def test_an_age_is_written_in_its_largest_unit(age: float, words: str) -> None:
    assert ago(utc(1_000_000 - age), 1_000_000) == words


def test_what_never_was_has_no_age() -> None:
    assert ago(None, 5) == "never"
    assert iso(None) is None


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_000, "1 kB"),
        (12_345_678, "12.3 MB"),
        (999_600, "1 MB"),
        (5e9, "5 GB"),
        (2e15, "2e+03 TB"),
    ],
)
def test_a_size_is_written_with_three_digits(amount: float, text: str) -> None:
    assert size(amount) == text


def test_a_number_agrees_with_its_noun() -> None:
    assert [count(number, "page") for number in (0, 1, 6_540)] == ["0 pages", "1 page", "6,540 pages"]


def test_a_time_for_programs_is_in_utc() -> None:
    assert iso(utc(0.5)) == "1970-01-01T00:00:00.500000Z"


@given(st.text())
def test_no_control_character_survives_and_no_text_is_lost(text: str) -> None:
    shown = clean(text)

    assert len(shown) == len(text)
    assert not any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in shown)
    assert all(kept in (was, "\ufffd") for was, kept in zip(text, shown, strict=True))


def test_line_ends_and_tabs_stay_where_lines_are_shown() -> None:
    assert clean("a\tb\nc\rd\x1b[2J\u202e", lines=True) == "a\tb\nc\ufffdd\ufffd[2J\ufffd"


@pytest.mark.parametrize(
    "document",
    [
        {}, [], "text", 7, {"none": [], "empty": {}}, [1, {"a": [2]}],
        {"added": ["a", "b"], "more": {"list": [1, {"x": [None]}]}, "rows": [{"y": [1, 2]}, [3], "line\nend"]},
    ],
)  # fmt: skip
def test_a_document_is_printed_as_json_with_two_spaces_a_level(
    document: object, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    print_json(document)
    assert capsys.readouterr().out == json.dumps(document, indent=2) + "\n"


def test_long_lists_are_printed_item_by_item(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(sys.stdout, "write", written.append)
    print_json({"added": [f"http://example.org/{number}" for number in range(1_000)]})
    assert max(map(len, written)) < 100
    assert len(json.loads("".join(written))["added"]) == 1_000


def test_no_item_of_a_list_shows_a_password(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"added": ["http://me:secret@example.org/"], "text": ["http://me:secret@example.org/"]})
    shown = json.loads(capsys.readouterr().out)
    assert shown == {"added": ["http://me:***@example.org/"], "text": ["http://me:secret@example.org/"]}


def test_each_line_of_a_report_is_cleaned_and_stays_a_line() -> None:
    report = "Threads:\n  main: waits\x1b[31m\n  http://me:secret@example.org/"
    assert clean_lines(report) == "Threads:\n  main: waits\ufffd[31m\n  http://me:***@example.org/"
