"""Filters that change lines or decide which changes are reported, and the examples for them in the documentation."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from driftline.detection.examine import examine
from driftline.detection.extract.document import Extraction
from driftline.detection.extract.filters import check_filters, how_read, merged_filters
from driftline.errors import BadFilter, FailureKind, UnreadableBody
from driftline.model.change import Importance, Region
from driftline.model.outcome import Proof
from driftline.model.page import REQUEST_FILTERS, FilterKind
from support.making import failure_kind, job, why_failed

DOCS = Path(__file__).parents[4] / "docs" / "filters.md"
PLAIN = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
MANY = " | ".join(f"Old line of number {number}" for number in range(330))
OTHERS = " | ".join(f"Another word or two about {number * 7919}" for number in range(330))
HEADINGS = ("Lines", "Which changes are reported")
EXAMPLE = "A: 3 | b: 10 | Ad | A: 3"


def filters_of(options: str) -> list[tuple[str, str]]:
    """The filters of a command's options."""
    words = iter(shlex.split(options))
    return [(kind, value) for word in words for kind, value in [(word.removeprefix("--"), next(words))]]


def left(options: str, text: str, content_type: str = PLAIN) -> list[str]:
    """The lines that are left of lines separated by '|'."""
    filters = check_filters(filters_of(options))
    extraction = Extraction(text.replace(" | ", "\n").encode(), content_type, filters)
    extraction.letters()
    return extraction.text().split("\n")


def cells(row: str) -> list[str]:
    """The cells of a row of a table in Markdown."""
    found = re.split(r"(?<!\\)\|", row.strip().strip("|"))
    return [cell.strip().replace(r"\|", "|") for cell in found]


def table_below(heading: str, number: int = 1) -> list[list[str]]:
    """The rows of a table below a heading of the documentation, by default the first, without its head."""
    part = DOCS.read_text().partition(f"### {heading}\n")[2].partition("\n### ")[0]
    tables = [table for table in part.split("\n\n") if table.startswith("|")]
    return [cells(line) for line in tables[number - 1].splitlines()][2:]


def code(cell: str) -> tuple[str, str]:
    """The options and the rest of a cell such as '`OPTIONS`: `REST`'."""
    options, _, rest = cell.strip("`").partition("`: `")
    return options, rest


def importance(options: str, change: str) -> Importance:
    """How important a change is from lines to others, as in '`One` → `One | Two`'."""
    filters = [list(one) for one in check_filters(filters_of(options))]
    old, new = (side.strip("` ").replace(" | ", "\n").encode() for side in change.split("→"))
    first = examine(job(old, PLAIN, filters=filters))
    found = examine(job(new, PLAIN, filters=filters, after=first))
    if found.change is None:
        assert found.proof is Proof.QUIET
        assert not found.blobs
        return Importance.NOISE
    return found.change.importance


@pytest.mark.parametrize("row", table_below("Lines"), ids=lambda row: row[0])
def test_each_example_of_lines_in_the_documentation_does_what_it_says(row: list[str]) -> None:
    options, result = code(row[2])
    assert left(options, EXAMPLE) == result.split(" | ")


@pytest.mark.parametrize("row", table_below("Which changes are reported"), ids=lambda row: row[0])
def test_each_example_of_reported_changes_in_the_documentation_does_what_it_says(row: list[str]) -> None:
    options, reported = code(row[2])
    assert importance(options, reported) is Importance.IMPORTANT
    assert importance(options, row[3]) is Importance.NOISE


@pytest.mark.parametrize("row", table_below("Conditions", 2), ids=lambda row: row[0])
def test_each_example_of_conditions_in_the_documentation_does_what_it_says(row: list[str]) -> None:
    options = row[0].strip("`")
    assert importance(options, row[1]) is Importance.IMPORTANT
    assert importance(options, row[2]) is Importance.NOISE


def test_the_documentation_has_an_example_for_every_filter_of_lines_and_of_reports() -> None:
    shown = {name for heading in HEADINGS for row in table_below(heading) for name, _ in filters_of(code(row[2])[0])}
    of_requests = {kind.value for kind in REQUEST_FILTERS} | {"accept"}
    assert shown == {kind.value for kind in FilterKind} - {"select", "drop", "also", "read"} - of_requests


def test_the_documentation_names_every_filter_of_requests_with_values_that_are_taken() -> None:
    examples = [example.strip("`") for row in table_below("Requests") for example in row[0].split("`, `")]
    given = [one for example in examples for one in filters_of(example)]
    assert {kind for kind, _ in given} == {kind.value for kind in REQUEST_FILTERS} | {"accept"}
    for kind, value in given:
        check_filters([(kind, value), ("data", "a=1")] if kind == "content-type" else [(kind, value)])


@pytest.mark.parametrize(
    ("options", "text", "result"),
    [
        ("--keep : --lines unique,sort", EXAMPLE, "A: 3 | b: 10"),
        ("--ignore 3 --lines reverse", EXAMPLE, "Ad | b: 10"),
        ("--lines reverse --lines unique", EXAMPLE, "A: 3 | Ad | b: 10"),
        ("--extract '/[a-z]/i' --lines unique", EXAMPLE, "A | b | d"),
        ("--replace '/a/x/i' --keep x", EXAMPLE, "x: 3 | xd | x: 3"),
        ("--keep x --replace '/a/x/i'", "x | a", "x"),
        (r"--replace '/^(.*): (.*)$/\2 \1/'", EXAMPLE, "3 A | 10 b | Ad | 3 A"),
        (r"--replace '/ or /\/ /'", "one or two", "one/ two"),
        (r"--replace '/\// of /'", "3/4", "3 of 4"),
        ("--replace '/Ad//'", EXAMPLE, "A: 3 | b: 10 | A: 3"),
        ("--extract '/(a)(x)?: (\\d)/i'", EXAMPLE, "A 3 | A 3"),
        ("--lines sort", "b | A | a | B | 10 | 9", "10 | 9 | A | a | B | b"),
        ("--lines SORT", "b | a", "a | b"),
        ("--keep a: --ignore ad --lines sort --keep b", EXAMPLE, "A: 3 | A: 3 | b: 10"),
        ("--keep 3 --replace /A/B/ --keep x", EXAMPLE, ""),
    ],
)
def test_filters_of_lines_follow_one_another(options: str, text: str, result: str) -> None:
    assert left(options, text) == result.split(" | ")


def test_lines_of_a_page_are_filtered_after_its_parts_were_selected() -> None:
    page = "<nav>Price 1</nav><main><p>Price <b>12</b> €<p>Price 9 €</main>"
    assert left(r"--select main --extract '/\d+/' --lines sort", page, HTML) == ["12", "9"]


def test_lines_of_json_are_filtered_with_their_paths() -> None:
    text = '{"b": 2, "a": [1, 3]}'
    assert left("--extract '/[ab][^:]*: (.*)/' --lines sort", text, "application/json") == ["1", "2", "3"]


def test_lines_that_are_only_left_out_keep_their_regions() -> None:
    page = f"<nav><li><a href=/>Home</a><li><a href=/x>Other</a></nav><main><p>{'Text of the page. ' * 9}</main>"
    blocks = Extraction(
        page.encode(), HTML, check_filters(filters_of("--ignore other --keep home --keep text"))
    ).blocks()
    assert [(block.region, block.linked) for block in blocks] == [(Region.NAVIGATION, True), (Region.MAIN, False)]


def test_the_source_is_read_line_by_line() -> None:
    page = "<!doctype html>\n<p class=x>\n  Hidden   <i hidden>text</i>\n<script>let a = 1</script>"
    found = left("--read source --ignore doctype", page, HTML)
    assert found == ["<p class=x>", "Hidden <i hidden>text</i>", "<script>let a = 1</script>"]


def test_a_line_that_comes_back_is_reported_unless_only_unseen_lines_are() -> None:
    """Also with another line beside it, that never stood there."""
    texts = ["One of them", "One of them | Two of them", "One of them", "One of them | Two of them",
             "One of them | Two of them | Three of them"]  # fmt: skip
    for options, reported in (
        ("--only added", [True, False, True, True]),
        ("--only unseen", [True, False, False, True]),
    ):
        filters = [list(one) for one in check_filters(filters_of(options))]
        before = examine(job(texts[0].encode(), PLAIN, filters=filters))
        blobs = list(before.blobs)
        found: list[bool] = []
        memory = b""
        for number, text in enumerate(texts[1:], start=2):
            body = text.replace(" | ", "\n").encode()
            again = job(body, PLAIN, filters=filters, after=before, blobs=tuple(blobs))
            seen = examine(again._replace(memory=memory, check=number))
            assert seen.change is not None
            assert seen.lesson is not None
            found.append(seen.change.importance is Importance.IMPORTANT)
            before, memory = seen, seen.lesson.memory
            blobs += seen.blobs
        assert found == reported


@pytest.mark.parametrize("options", ["--keep 'no such text'", "--extract '/no such text/'", "--replace '/.*//'"])
def test_a_page_may_have_nothing_of_what_is_watched(options: str) -> None:
    filters = [list(one) for one in check_filters(filters_of(options))]
    found = examine(job(b"<p>One<p>Two", filters=filters))
    assert found.failure is None
    assert left(options, "<p>One<p>Two", HTML) == [""]


def test_a_replacement_may_begin_another_line() -> None:
    assert left(r"--replace '/, /\n/'", "a 1, b 2, c 3") == ["a 1", "b 2", "c 3"]


def test_a_replacement_that_makes_too_much_fails_the_check() -> None:
    filters = [["replace", "/(.)/" + r"\1" * 400 + "/"]] * 3
    found = examine(job(b"<p>" + b"abc" * 20, filters=filters))
    assert failure_kind(found) is FailureKind.SELECTION
    assert why_failed(found).endswith("makes more than 20,000,000 characters of this page.")


@pytest.mark.parametrize(
    "options", ["--replace '/nothing/x/'", "--lines unique", "--lines reverse", "--extract '/.+/'", "--lines sort"]
)
def test_lines_keep_the_regions_that_they_come_from(options: str) -> None:
    page = f"<nav><li><a href=/>Home</a><li><a href=/x>Other</a></nav><main><p>{'Text of the page. ' * 9}</main>"
    blocks = Extraction(page.encode(), HTML, check_filters(filters_of(options))).blocks()
    found = {block.text[:5]: (block.region, block.linked) for block in blocks}
    assert found == {
        "Home": (Region.NAVIGATION, True), "Other": (Region.NAVIGATION, True), "Text ": (Region.MAIN, False),
    }  # fmt: skip


def test_the_source_of_an_error_page_is_an_error_page() -> None:
    filters = [["read", "source"]]
    page = "<title>Shop</title><p>" + "A pen that writes for a good while. " * 9
    first = examine(job(page.encode(), filters=filters))
    assert first.title == "Shop"
    wall = b"<title>Just a moment...</title><p>Checking your browser before accessing the site. Enable JavaScript."
    assert failure_kind(examine(job(wall, filters=filters, after=first))) is FailureKind.BROKEN


def test_filters_are_merged_in_the_order_of_the_edits() -> None:
    def merged(before: str, added: str) -> list[tuple[str, str]]:
        found = merged_filters(check_filters(filters_of(before)), check_filters(filters_of(added)))
        return [(one.kind.value, one.value) for one in found]

    twice = "--lines sort --replace /a/b/ --lines sort"
    assert merged("--lines sort", "--replace /a/b/ --lines sort") == filters_of(twice)
    assert merged("--drop .ad --ignore x", "--ignore x --drop .ad") == filters_of("--drop .ad --ignore x")
    assert merged("--only added", "--only removed") == filters_of("--only removed")
    for before, added in (
        ("--read source", "--select p"), ("--select p", "--read source"), ("--trigger x", "--only added"),
    ):  # fmt: skip
        with pytest.raises(BadFilter):
            merged(before, added)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--extract price", "is not a regular expression: write /REGEX/"),
        ("--extract '/(/'", "is not a regular expression: missing"),
        ("--extract '/a/g'", "only 'i' is known"),
        ("--replace price", "is not of the form /REGEX/TEXT/"),
        ("--replace '/a/'", "is not of the form"),
        ("--replace '/a/b/c/'", "is not of the form"),
        ("--replace '/(/x/'", "is not a regular expression"),
        (r"--replace '/a/\1/'", "has a text that cannot be put in: invalid group reference"),
        ("--lines shuffle", "There is no 'lines shuffle': use sort, reverse or unique"),
        ("--only changed", "There is no 'only changed': use added, removed or unseen"),
        ("--lines ''", "is empty"),
        ("--only added --only removed", "exclude each other"),
        ("--read markup", "There is no 'read markup': use source"),
        ("--read source --select h1", "no parts can be named"),
        ("--read source --also links", "no parts can be named"),
        ("--quiet-while ''", "is empty"),
        ("--only added --trigger x", "does not go with a trigger"),
        ("--only added --trigger-removed x", "does not go with a trigger"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(options: str, message: str) -> None:
    with pytest.raises(BadFilter, match=re.escape(message)):
        check_filters(filters_of(options))


def test_parts_named_beside_the_source_by_a_later_edit_fail_the_check() -> None:
    with pytest.raises(UnreadableBody, match="remove select, drop and also with 'driftline edit --no-filters'"):
        Extraction(b"<p>", HTML, [("read", "source"), ("select", "p")])


def test_filters_that_decide_what_is_reported_leave_the_text_as_it_was_read() -> None:
    assert how_read([["only", "added"], ["quiet-while", "x"], ["trigger-removed", "y"]]) == how_read(None)
    assert how_read([["lines", "sort"], ["keep", "x"]]) != how_read([["keep", "x"], ["lines", "sort"]])


@pytest.mark.parametrize(
    ("options", "change", "expected"),
    [
        ("--only removed", f"`{MANY} | Gone one | Gone two` → `{OTHERS}`", Importance.IMPORTANT),
        ("--only added", "`One` → `Two`", Importance.IMPORTANT),
        ("--only removed", "`Price 3` → `Price 4`", Importance.IMPORTANT),
        ("--only added", "`One | Two | Three four five` → `Three four five | One | Two`", Importance.NOISE),
        ("--trigger new --trigger-removed old", "`An old one` → `None at all`", Importance.IMPORTANT),
        ("--trigger new --trigger-removed old", "`An old one` → `An old one, rewritten`", Importance.IMPORTANT),
        ("--trigger new --trigger-removed old", "`An old one | x` → `An old one | y`", Importance.NOISE),
        ("--quiet-while closed --trigger new", "`x` → `new, but closed`", Importance.NOISE),
        ("--quiet-while '/^closed$/'", "`x` → `new, not closed`", Importance.IMPORTANT),
    ],
)
def test_filters_of_reports_decide_together(options: str, change: str, expected: Importance) -> None:
    assert importance(options, change) is expected


def test_the_headline_names_the_line_that_was_waited_for() -> None:
    def headline(options: str, old: str, new: str) -> str:
        filters = [list(one) for one in check_filters(filters_of(options))]
        first = examine(job(old.encode(), filters=filters))
        found = examine(job(new.encode(), filters=filters, after=first)).change
        assert found is not None
        return found.headline

    page = f"<main><p>{'Text of the page. ' * 9}</main><footer>{{}}</footer>"
    old, new = page.format("<p>Sold out<p>About us"), page.format("<p>About us<p>Careers")
    assert headline("--trigger-removed 'sold out'", old, new) == "Removed: Sold out"
    assert headline("--trigger careers", old, new) == "New: Careers"


def test_what_is_left_out_says_why() -> None:
    only_added = [["only", "added"]]
    first = examine(job(b"One\nTwo", PLAIN, filters=only_added))
    found = examine(job(b"One", PLAIN, filters=only_added, after=first)).change
    assert found is not None
    assert found.reason == "Only what the filter 'only' leaves out changed."
