from __future__ import annotations

import pytest

from driftline.detection.examine import examine
from driftline.detection.extract.document import Extraction, letters_of
from driftline.detection.extract.filters import awaited_by, check_filters, how_read
from driftline.detection.jobs import Finding
from driftline.errors import BadFilter, FailureKind, UnreadableBody
from driftline.model.change import Importance
from driftline.model.outcome import Blob, Proof
from driftline.model.page import FilterKind
from driftline.store.blobs import unpack
from support.making import failure_kind, job, why_failed

HTML = "text/html; charset=utf-8"
PROSE = "A pen that writes, and that goes on writing for a good while when others have long stopped."
PAGE = f"""<title>Shop</title><body><nav><a href=/>Home</a> <a href=/x>Other pages</a></nav>
<main><h1>Pen</h1><p class=price>5 €</p><div class=ads>Buy <b class=price>1 €</b></div>
<table><tr class=row><td>size</td><td>small</td></tr><tr class=row><td>ink</td><td>blue</td></tr></table>
<p>{PROSE}</p></main><footer><p>© Us</p></footer></body>"""
RECORDS = '{"meta": {"at": 1}, "items": [{"id": 1, "price": 5, "in": {"stock": true}}, {"id": 2, "price": 12.5}]}'


def lines(*filters: tuple[str, str], body: str = PAGE, content_type: str = HTML) -> list[str]:
    read = Extraction(body.encode(), content_type, filters)
    letters = read.letters()
    text = read.text()
    assert letters == letters_of(text)
    return text.split("\n")


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ([("select", "h1")], ["Pen"]),
        ([("select", "h1, .price")], ["Pen", "5 €", "1 €"]),
        ([("select", "h1, main h1")], ["Pen"]),
        ([("drop", "b, .price, main .ads"), ("select", "main > :not(table)")], ["Pen", PROSE]),
        (
            [("select", "main"), ("select", "css:footer")],
            ["Pen", "5 €", "size", "small", "ink", "blue", PROSE, "© Us"],
        ),
        ([("select", "h1"), ("select", "main"), ("drop", "table, .ads")], ["Pen", "5 €", PROSE]),
        ([("select", ".ads, .ads b")], ["Buy 1 €"]),
        ([("select", ".ads"), ("select", ".price")], ["5 €", "Buy 1 €"]),
        ([("select", "footer"), ("select", "xpath://h1")], ["Pen", "© Us"]),
        ([("select", "xpath://p/@class"), ("select", "h1")], ["Pen", "price"]),
        ([("select", ".there-is-none"), ("select", "xpath://footer")], ["© Us"]),
        ([("drop", ".ads"), ("select", ".price")], ["5 €"]),
        ([("select", ".price"), ("drop", "b")], ["5 €"]),
        ([("select", "tr.row"), ("ignore", "ink")], ["size", "small", "blue"]),
        ([("select", "tr.row:nth-child(2) td")], ["ink", "blue"]),
        ([("select", "footer")], ["© Us"]),
        ([("select", "xpath://h1")], ["Pen"]),
        ([("select", "xpath://table/tbody/tr[1]/td")], ["size", "small"]),
        ([("select", "xpath://h1 | //h1/text()"), ("drop", "xpath://footer")], ["Pen"]),
        ([("select", "xpath://h1/text()"), ("select", "xpath://h1/text()")], ["Pen"]),
        ([("select", "xpath://div[@class='ads']/text()"), ("drop", "b")], ["Buy"]),
        ([("select", "xpath://b/text()"), ("select", "h1"), ("drop", "b")], ["Pen"]),
        ([("select", "td /*"), ("select", "h1")], ["Pen", "size", "small", "ink", "blue"]),
        ([("select", "xpath://p/@class")], ["price"]),
        ([("select", "xpath:count(//td)")], ["4"]),
        ([("select", "xpath:count(//td) div 8")], ["0.5"]),
        ([("select", "xpath:count(//td) > 3")], ["true"]),
        ([("drop", "td:nth-of-type(1)"), ("drop", "td:nth-of-type(2)"), ("select", "table, h1")], ["Pen"]),
        ([("drop", "tr:nth-child(1)"), ("drop", "xpath://tr[2]"), ("select", "h1")], ["Pen"]),
        ([("drop", "main"), ("drop", "main p"), ("select", "footer")], ["© Us"]),
        ([("select", "xpath:normalize-space(//h1)")], ["Pen"]),
        ([("drop", "nav, footer, table"), ("drop", "xpath://div"), ("ignore", "/^a pen/i")], ["Pen", "5 €"]),
        ([("select", "css: h1")], ["Pen"]),
    ],
)
def test_filters_leave_the_parts_that_they_name(filters: list[tuple[str, str]], left: list[str]) -> None:
    assert lines(*filters) == left


def test_the_main_content_is_found_by_itself() -> None:
    found = lines(("select", "main"))
    assert found[0] == "Pen"
    assert found[-1].startswith("A pen that writes")
    assert not {"Home Other pages", "© Us"} & set(found)


def test_the_main_content_is_found_where_nothing_is_marked() -> None:
    page = f"<div class=menu><a>Home</a></div><div><p>{'Some words. ' * 20}</p></div><div id=footer>© Us</div>"
    assert lines(("select", "main"), body=page) == [("Some words. " * 20).strip()]
    assert lines(("select", "main"), body="<nav>only a menu</nav>") == ["only a menu"]


def test_the_title_stays_that_of_the_page() -> None:
    assert Extraction(PAGE.encode(), HTML, [("select", "h1")]).title() == "Shop"


def test_what_is_selected_is_what_the_page_is_about_wherever_it_stands() -> None:
    before, after = (f"<p>{'words ' * 99}</p><footer><p>Call {number} for help</p></footer>" for number in ("us", "me"))
    for filters, verdict in ((None, Importance.NOISE), ([["select", "footer"]], Importance.IMPORTANT)):
        first = examine(job(before.encode(), filters=filters))
        found = examine(job(after.encode(), after=first, filters=filters))
        assert found.change is not None
        assert found.change.importance is verdict


@pytest.mark.parametrize(
    ("body", "content_type", "value"),
    [
        (PAGE, HTML, ".gone"),
        (PAGE, HTML, "xpath://h7"),
        (PAGE, HTML, "xpath://h7/text()"),
        (PAGE, HTML, "json:$.a"),
        (RECORDS, "application/json", "json:$.gone"),
        (RECORDS, "application/json", "h1"),
        ("<a/>", "text/xml", "xpath://b"),
        ("a,b\n1,2", "text/csv", "h1"),
        ("words", "text/plain", "xpath://a"),
        ("{broken", "application/json", "json:$"),
        ("\0\0", "image/png", "h1"),
    ],
)
def test_a_selection_of_nothing_is_a_failure_and_no_version(body: str, content_type: str, value: str) -> None:
    found = examine(job(body.encode(), content_type, filters=[["select", value]]))
    assert failure_kind(found) is FailureKind.SELECTION
    assert f"'select {value}'" in why_failed(found)
    assert found.blobs == ()


def test_an_expression_that_fails_on_a_page_is_reported() -> None:
    with pytest.raises(UnreadableBody, match="fails on this page"):
        Extraction(b"<p>x", HTML, [("select", "xpath:$nobody")])


def test_parts_are_dropped_from_among_control_characters() -> None:
    page = "<p>one<b>two</b> \x01three\ufffe</p>"
    assert lines(("drop", "xpath://b"), body=page) == ["one three"]
    xml = "<a>one<b>two</b> \x01three</a>"
    assert lines(("drop", "xpath://b"), body=xml, content_type="text/xml") == ["/a: one three"]


def test_a_selection_that_is_there_and_empty_is_a_version() -> None:
    assert lines(("select", "p"), body="<p></p>") == [""]


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ([("select", "json:$.items[*].price")], ["$.items[id=1].price: 5", "$.items[id=2].price: 12.5"]),
        ([("select", "json:$.items[?@.price > 10].id")], ["$.items[id=2].id: 2"]),
        ([("select", "json:$..stock")], ["$.items[id=1].in.stock: true"]),
        ([("drop", "json:$.items")], ["$.meta.at: 1"]),
        (
            [("select", "json:$.items[0]"), ("drop", "json:$..price"), ("ignore", ".id")],
            ["$.items[id=1].in.stock: true"],
        ),
        (
            [("select", "json:$.meta"), ("select", "json:$..id")],
            ["$.meta.at: 1", "$.items[id=1].id: 1", "$.items[id=2].id: 2"],
        ),
        ([("select", "json:$.none"), ("select", "json:$.meta")], ["$.meta.at: 1"]),
        (
            [("drop", "json:$.items[0]"), ("drop", "json:$.items[1].id"), ("drop", "json:$.meta")],
            ["$.items[id=2].price: 12.5"],
        ),
        ([("select", "main"), ("drop", "json:$.items"), ("drop", "nav")], ["$.meta.at: 1"]),
    ],
)
def test_json_is_filtered_by_json_path(filters: list[tuple[str, str]], left: list[str]) -> None:
    read = Extraction(RECORDS.encode(), "application/json", filters)
    assert read.text().split("\n") == left


def test_xml_is_filtered_by_xpath_without_prefixes() -> None:
    text = """<a:shop xmlns:a="urn:a"><a:book id="1"><price>5</price> and <old/>tail</a:book><book id="2"/></a:shop>"""
    assert lines(("select", "xpath://book/price"), body=text, content_type="text/xml") == ["/price: 5"]
    assert lines(("select", "xpath://book/@id"), body=text, content_type="text/xml") == ["1", "2"]
    dropped = lines(("drop", "xpath://price"), ("drop", "xpath://old"), body=text, content_type="text/xml")
    assert dropped == ["/shop/book[@id=1]/@id: 1", "/shop/book[@id=1]: and tail", "/shop/book[@id=2]/@id: 2"]


def test_a_line_is_ignored_by_text_in_any_case_or_by_regular_expression() -> None:
    page = "<p>Seen</p><p>ONLINE now: 5</p><p>C++ (beta)</p><p>/path/to/x</p>"
    assert lines(("ignore", "online  NOW"), body=page) == ["Seen", "C++ (beta)", "/path/to/x"]
    assert lines(("ignore", "/^seen/"), ("ignore", "c++ ("), body=page) == ["Seen", "ONLINE now: 5", "/path/to/x"]
    assert lines(("ignore", "/^seen/i"), ("ignore", "/path/to/x"), body=page) == ["ONLINE now: 5", "C++ (beta)"]


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("select", "div > p[", ("'select div > p['", "CSS", "from '[' on")),
        ("drop", ")", ("'drop )'", "CSS")),
        ("select", "xpath://a[", ("'select xpath://a['", "XPath", "from '[' on")),
        ("select", "xpath:nobody(//a)", ("XPath",)),
        ("select", "json:$.a[", ("JSONPath", "from '[' on")),
        ("ignore", "/a(b/", ("regular expression", "character 2")),
        ("trigger", "/[/", ("regular expression",)),
        ("select", "  ", ("is empty",)),
        ("select", "json:", ("JSONPath", "cannot be read")),
        ("ignore", "x" * 2000, ("too long",)),
        ("nonsense", "x", ("no filter 'nonsense'", "select, drop, ignore, keep")),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused_with_what_is_wrong_and_where(
    kind: str, value: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(BadFilter) as refused:
        check_filters([("select", "main"), (kind, value)])
    for word in words:
        assert word in str(refused.value)


def test_filters_that_make_sense_are_kept_as_they_are() -> None:
    given = [
        ("select", "main"),
        ("select", "xpath://a[1]"),
        ("drop", "json:$..x"),
        ("ignore", "/a|[[b]/"),
        ("trigger", "x"),
    ]
    checked = check_filters(given)
    assert checked == given
    assert all(isinstance(one.kind, FilterKind) for one in checked)


@pytest.mark.parametrize(
    ("old", "new", "importance"),
    [
        ("a\nb", "a\nc", Importance.NOISE),
        ("a\nb", "a\nb\nNow SOLD OUT here", Importance.IMPORTANT),
        ("sold out", "still sold out", None),
        ("sold out\nx", "sold out\ny", Importance.NOISE),
        ("sold out\nx", "x", Importance.NOISE),
    ],
)
def test_a_change_counts_only_if_what_the_page_waits_for_was_added(
    old: str, new: str, importance: Importance | None
) -> None:
    assert awaited_by([["trigger", "sold out"]], old, new) is importance
    assert awaited_by([["select", "main"]], old, new) is None
    assert awaited_by(None, old, new) is None


def test_the_way_of_reading_has_a_name_that_triggers_leave_alone() -> None:
    names = {
        how_read(filters) for filters in (None, [["select", "a"]], [["drop", "a"]], [["drop", "a"], ["select", "a"]])
    }
    assert len(names) == 4
    assert how_read([["trigger", "x"]]) == how_read([]) == how_read(None)


def kept(*findings: Finding) -> dict[bytes, Blob]:
    return {blob.digest: blob for finding in findings for blob in finding.blobs}


def test_other_filters_alone_are_no_change() -> None:
    first = examine(job(PAGE.encode()))
    filters = [["select", ".price"]]
    for body in (PAGE, PAGE.replace("© Us", "© Them")):
        found = examine(job(body.encode(), after=first, filters=filters))
        assert (found.proof, found.reading) == (Proof.REREAD, how_read(filters))
        assert found.change is not None
        assert (found.change.importance, found.change.reason) == (
            Importance.NOISE,
            "The page did not change: it is read through other filters than before.",
        )
        assert unpack(found.text, kept(first, found)).decode() == "5 €\n1 €"


def test_a_change_that_came_with_other_filters_is_found_among_what_they_leave() -> None:
    first = examine(job(PAGE.encode()))
    found = examine(job(PAGE.replace("5 €", "6 €").encode(), after=first, filters=[["select", ".price"]]))
    assert found.proof is None
    assert found.change is not None
    reason = "1 word added and 1 word removed in one place: 5 € → 6 €."
    assert (found.change.importance, found.change.reason) == (Importance.IMPORTANT, reason)


def test_a_part_that_is_selected_before_it_appears_is_new_when_it_does() -> None:
    first = examine(job(b"<p>one"))
    found = examine(job(b"<p>one<h1>two", after=first, filters=[["select", "h1"]]))
    assert found.proof is None
    assert found.change is not None
    assert (found.change.importance, found.change.headline) == (Importance.IMPORTANT, "New: two")


def test_a_part_that_was_there_and_is_marked_up_anew_is_no_change() -> None:
    first = examine(job(b"<h1>Pen</h1><p class=price>5 euros", filters=[["select", ".price"]]))
    body = b"<div class=offer><h1>Pen</h1><p>5 euros</div>"
    found = examine(job(body, after=first, filters=[["select", ".offer"]]))
    assert found.proof is Proof.REREAD
    dearer = examine(job(body.replace(b"5", b"6"), after=first, filters=[["select", ".offer"]]))
    assert dearer.change is not None
    assert dearer.change.headline == "New: 6 euros"


@pytest.mark.parametrize("select", ["xpath://div/text()", "div", "xpath://div"])
def test_text_after_a_comment_is_selected(select: str) -> None:
    assert lines(("select", select), body="<body><div>a<!-- c -->b</div>") == ["ab"]


def test_text_after_a_dropped_element_is_kept_with_the_element_around_it() -> None:
    filters = ("select", "xpath://div/text()"), ("drop", "b")
    assert lines(*filters, body="<body><div>a<b>x</b>c</div>") == ["a", "c"]


def test_a_part_is_dropped_although_another_filter_matches_the_whole_document() -> None:
    body = "<html class=no-js><body><div class=ads>Buy</div><p>Pen"
    assert lines(("drop", ".no-js"), ("drop", ".ads"), body=body) == ["Pen"]


def test_a_part_that_an_older_extractor_did_not_find_is_where_the_comparison_begins() -> None:
    first = examine(job(b"<p>one"))._replace(reading="1")
    found = examine(job(b"<p>one<h1>two", after=first, filters=[["select", "h1"]]))
    assert found.proof is Proof.REREAD


def test_a_better_extractor_raises_no_alarm() -> None:
    first = examine(job(PAGE.encode()))._replace(reading="1")
    same = examine(job(PAGE.encode(), after=first))
    assert (same.proof, same.reading) == (Proof.TEXT, how_read(None))
    other_words = first._replace(text=examine(job(b"<p>as it was read once")).text)
    found = examine(job(PAGE.encode(), after=other_words))
    assert found.proof is Proof.REREAD
    assert found.change is not None
    assert found.change.reason == "The page did not change: it is read in another way than before."


@pytest.mark.parametrize("value", ["/a/x", "/a/g", "/a\\/b/gi", "/sold out/im"])
def test_a_flag_that_is_not_known_is_refused(value: str) -> None:
    with pytest.raises(BadFilter, match="only 'i' is known"):
        check_filters([("trigger", value)])


@pytest.mark.parametrize("value", ["/path/to/x", "/usr/bin", "/a/i", "/a/", "a/x", "/x", "//x"])
def test_a_path_is_a_text_like_any_other(value: str) -> None:
    assert check_filters([("trigger", value)]) == [("trigger", value)]


@pytest.mark.parametrize(
    "value", ["body", "html", "*", ":not(main)", "p, body", "xpath://body", "xpath:/*", "xpath://*"]
)
def test_a_drop_that_leaves_nothing_of_any_page_is_refused(value: str) -> None:
    with pytest.raises(BadFilter, match="would leave nothing of any page"):
        check_filters([("drop", value)])


@pytest.mark.parametrize(
    "value", ["p", "body > div", "main *", "head", "xpath://body/div", "xpath:string(//h1)", "json:$.a"]
)
def test_a_drop_that_leaves_something_is_fine(value: str) -> None:
    assert check_filters([("drop", value)]) == [("drop", value)]


@pytest.mark.parametrize(("content_type", "body"), [("text/html", b"<p>Fee 5"), ("application/json", b'{"fee": 5}')])
def test_a_page_of_which_nothing_is_left_cannot_be_read(content_type: str, body: bytes) -> None:
    with pytest.raises(UnreadableBody, match="ignore every line"):
        Extraction(body, content_type, [["ignore", "/.*/"]]).text()
