from __future__ import annotations

import pytest

from driftline.detection.diff.tables import cells_between, changed_cells, heading
from driftline.durations import utc
from driftline.model.outcome import Version

PRICES = (
    "<table><caption>Prices</caption><thead><tr><th>model<th>price<th>stock</thead>"
    "<tr><td>Model A<td>10<td>3<tr><td>Model B<td>{}<td>4</table>"
)


def differences(old: str, new: str) -> list[str]:
    return [str(cell) for cell in changed_cells(old, new)]


def test_a_cell_is_named_by_its_column_and_row() -> None:
    (cell,) = changed_cells(PRICES.format(12), PRICES.format(14))
    assert str(cell) == "price / Model B: 12 → 14"
    assert cell == ("Prices", "Model B", "price", "12", "14")
    assert changed_cells(PRICES.format(12), PRICES.format(12)) == []


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ("<tr><th>model<th>price<tr><td>A<td>{}", "price / A"),
        ("<tr><td>model<td>price<tr><td>A<td>{}", "price / A"),
        ("<tr><th>Weight<td>{}<tr><th>Height<td>3", "column 2 / Weight"),
        ("<tr><td>1<td>2<tr><td>A<td>{}", "column 2 / A"),
        ("<tr><th><th>price<tr><td><td>{}", "price / row 1"),
        ("<tr><th>m<th>p<th>p<tr><td>A<td>1<td>{}", "p (2) / A"),
        ("<tr><th>m<th>p<tr><td>A<td>1<tr><td>A<td>{}", "p / A (2)"),
        ("<tr><th>m<th colspan=2>p<tr><td>A<td>1<td>{}", "p (2) / A"),
        ("<tr><th>m<th>k<th>p<tr><td rowspan=2>A<td>x<td>1<tr><td>y<td>{}", "p / A (2)"),
        ("<tr><th>m<th>p<tr><td>A<td colspan=x>{}", "p / A"),
        ("<tr><th>rank<th>club<th>points<tr><td>1.<td>Rooks<td>{}", "points / Rooks"),
        ("<tr><th>line<th>stop<th>at<tr><td>2026<td>Harbour<td>{}", "at / 2026"),
        ("<tr><th>m<th>p<tr><td>A<td><p>new</p><p>{}</p>", "p / A"),
    ],
)
def test_rows_and_columns_have_names(table: str, place: str) -> None:
    (found,) = changed_cells(f"<table>{table.format(7)}</table>", f"<table>{table.format(8)}</table>")
    assert found.place == place


def test_rows_and_columns_that_moved_or_came_are_still_the_same() -> None:
    old = "<table><tr><th>m<th>p<th>q<tr><td>A<td>1<td>2<tr><td>B<td>3<td>4</table>"
    rows = ("<tr><td>C<td>0<td>0<td>0", "<tr><td>B<td>0<td>5<td>3", "<tr><td>A<td>0<td>2<td>1")
    new = f"<table><tr><th>m<th>new<th>q<th>p{''.join(rows)}</table>"
    assert differences(old, new) == ["q / B: 4 → 5"]


def test_each_table_is_held_against_the_one_of_the_same_columns() -> None:
    sizes = "<table><tr><th>size<th>cm<tr><td>S<td>40</table>"
    assert differences(sizes + PRICES.format(12), PRICES.format(13) + sizes) == ["price / Model B: 12 → 13"]


def test_tables_that_are_there_for_the_layout_are_passed_over() -> None:
    layout = "<table><tr><td>menu<td>{}</table>"
    assert differences(layout.format(PRICES.format(1)), layout.format(PRICES.format(2))) == ["price / Model B: 1 → 2"]
    assert differences("<table><tr><td>a<td>b</table>", "<table><tr><td>a<td>c</table>") == []


def test_a_hostile_table_is_cut_short() -> None:
    wide = "<table><tr><th>a<th>b<tr><td>x<td colspan=99999999 rowspan=99999999>{}</table>"
    assert len(changed_cells(wide.format(1), wide.format(2))) < 300
    spanned = "<table><tr><th>a<th>b<tr><th>x<td colspan=200 rowspan=200>{}" + "<tr><th>x" * 200 + "</table>"
    assert len(changed_cells(spanned.format(1) * 30, spanned.format(2) * 30)) < 200_000
    assert changed_cells("<table>" * 3_000, "<table>" * 3_000 + "x") == []


def test_the_head_of_a_place_names_its_cells() -> None:
    cells = changed_cells(PRICES.format(12), PRICES.format(14).replace("<td>4", "<td>0"))
    assert heading([*cells], ["12"], ["14"]) == "price / Model B"
    assert heading([*cells], ["12", "4"], ["14", "0"]) == "price / Model B and 1 more"
    assert heading([*cells], ["other"], []) == ""


def test_each_part_of_a_diff_is_headed_by_its_own_cells() -> None:
    rows = "<table><tr><th>model<th>price" + "".join(f"<tr><td>{name}<td>{{}}" for name in "ABC") + "</table>"
    cells = changed_cells(rows.format(12, 12, 12), rows.format(14, 14, 14))
    heads = [heading(cells, ["12"] * many, ["14"] * many) for many in (1, 2, 1)]
    assert heads == ["price / A", "price / B and 1 more", ""]


@pytest.mark.parametrize(
    ("cell", "text", "shown"),
    [
        ("{}", "Model B\n{}", True),
        ("{}", "Not 7 nor 8 but {}0 of them", False),
        ("<p>new</p><p>{}</p>", "Model B\nnew\n{}\nend", True),
        ("<a href=/x>now</a> {}", "Model B\nnow {}", True),
        ("{}", "Model B", False),
    ],
)
def test_cells_that_the_filters_leave_out_are_not_reported(cell: str, text: str, *, shown: bool) -> None:
    def version(word: str) -> Version:
        body = f"<table><tr><th>model<th>price<tr><td>Model B<td>{cell.format(word)}</table>".encode()
        said = f"Version {word} of the page\n{text}".replace("{}", word)
        return Version(
            url="http://a.example/", number=1, at=utc(0.0), size=len(body), title="", content_type="text/html",
            charset="utf-8", final_url="http://a.example/", body=body, text=said.encode(),
        )  # fmt: skip

    assert bool(cells_between(version("7"), version("8"))) is shown
