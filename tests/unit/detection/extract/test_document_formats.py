from __future__ import annotations

import json
from pathlib import Path
from subprocess import run
from sys import executable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.detection.extract.document import Extraction
from support.papers import pdf
from support.properties import searched

JSON, XML, RSS, CSV, PDF = "application/json", "application/xml", "application/rss+xml", "text/csv", "application/pdf"


def lines(text: str, content_type: str) -> list[str]:
    return Extraction(text.encode(), content_type).text().split("\n")


def letters(text: str, content_type: str) -> bytes:
    return Extraction(text.encode(), content_type).letters()


def test_json_is_written_by_path_and_value_in_its_own_order() -> None:
    document = '{"b": {"x": 1.50, "a b": true}, "a": [null, "two\\n lines"], "none": {}, "empty": "", "it\'s": []}'
    assert lines(document, JSON) == [
        "$.b.x: 1.50",
        "$.b['a b']: true",
        "$.a[*]: null",
        "$.a[*]: two lines",
        "$.none: {}",
        '$.empty: ""',
        "$['it\\'s']: []",
    ]


def test_elements_of_an_array_are_named_by_what_identifies_them_all() -> None:
    assert lines('{"items": [{"id": 7, "n": 1}, {"id": "x y", "n": 2}]}', JSON) == [
        "$.items[id=7].id: 7",
        "$.items[id=7].n: 1",
        "$.items[id=x y].id: x y",
        "$.items[id=x y].n: 2",
    ]
    assert lines('[{"id": 7, "name": "a"}, {"id": 7, "name": "b"}]', JSON)[0] == "$[name=a].id: 7"
    assert lines('[{"id": 7}, {"no": 8}]', JSON) == ["$[0].id: 7", "$[1].no: 8"]
    assert lines('[{"id": {"deep": 1}}, [2]]', JSON) == ["$[0].id.deep: 1", "$[1][*]: 2"]


def test_an_insertion_in_the_middle_renames_nothing() -> None:
    before = lines('[{"key": "a", "v": 1}, {"key": "c", "v": 3}]', JSON)
    after = lines('[{"key": "a", "v": 1}, {"key": "b", "v": 2}, {"key": "c", "v": 3}]', JSON)
    assert set(before) < set(after)


def test_the_order_of_keys_is_no_change_and_that_of_an_array_is() -> None:
    assert letters('{"a": 1, "b": {"c": 2, "d": 3}}', JSON) == letters('{"b": {"d": 3, "c": 2}, "a": 1}', JSON)
    assert letters('["first", "second"]', JSON) != letters('["second", "first"]', JSON)
    assert letters('[{"id": 1}, {"id": 2}]', JSON) != letters('[{"id": 2}, {"id": 1}]', JSON)


def test_numbers_are_shown_as_they_are_written() -> None:
    long = "9" * 5000
    assert lines(f'{{"a": {long}, "b": 1e999, "c": NaN, "d": -0.10}}', JSON) == [
        f"$.a: {long}",
        "$.b: 1e999",
        "$.c: NaN",
        "$.d: -0.10",
    ]


def test_a_string_is_distinguished_from_the_number_that_it_looks_like() -> None:
    assert lines('{"a": "1", "b": 1, "c": "null", "d": null, "e": "1 x"}', "application/json") == [
        '$.a: "1"', "$.b: 1", '$.c: "null"', "$.d: null", "$.e: 1 x",
    ]  # fmt: skip


def test_a_name_that_is_longer_than_all_it_names_is_not_repeated_for_each_of_them() -> None:
    long = "k" * 100_000
    body = f'{{"{long}": {list(range(1_000))}}}'
    assert lines(body, "application/json") == [body]


def test_a_json_value_on_every_line_is_an_array_of_them() -> None:
    text = '{"id": 1, "v": "a"}\n\n{"id": 2, "v": "b"}\n'
    for content_type in ("application/x-ndjson", "application/jsonl", "text/plain", ""):
        assert lines(text, content_type)[1] == "$[id=1].v: a"


@pytest.mark.parametrize("content_type", ["application/ld+json; charset=utf-8", "text/json", "text/plain", ""])
def test_json_is_recognised_by_its_type_and_by_its_start(content_type: str) -> None:
    assert lines('\ufeff {"a": 1}', content_type) == ["$.a: 1"]


@pytest.mark.parametrize("text", ['{"a": 1', "[INFO] started", "{not json}", "[" * 100_000, '{"a":' * 50_000])
def test_what_only_looks_like_json_is_plain_text(text: str) -> None:
    for content_type in (JSON, "text/plain"):
        assert lines(text, content_type) == [text]


def test_what_lies_very_deep_in_json_is_still_compared() -> None:
    deep, other = ("[" * 80 + inside + "]" * 80 for inside in ("1", "2"))
    assert len(lines(deep, JSON)) == 1
    assert letters(deep, JSON) != letters(other, JSON)


FEED = """<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>
<title>News &amp; more</title><link>https://example.com/</link><lastBuildDate>{built}</lastBuildDate><ttl>60</ttl>
<generator>Maker {built}</generator>{items}</channel></rss>"""
FIRST = """<item><title>First</title><link>https://example.com/1</link><guid>1</guid>
<pubDate>Mon, 06 Jan 2025 10:00:00 GMT</pubDate>
<description><![CDATA[<p>Some <b>bold</b> words</p><script>x()</script>]]></description></item>"""
SECOND = "<item><title>Second &lt;i&gt;thing&lt;/i&gt;</title><link>https://example.com/2</link></item>"


def test_a_feed_is_written_entry_by_entry() -> None:
    read = Extraction(FEED.format(built="now", items=FIRST + SECOND).encode(), RSS)
    assert read.title() == "News & more"
    assert read.text().split("\n") == [
        "News & more",
        "First",
        "https://example.com/1",
        "Mon, 06 Jan 2025 10:00:00 GMT",
        "Some bold words",
        "Second thing",
        "https://example.com/2",
    ]


def test_when_a_feed_was_built_and_in_which_order_its_entries_come_is_no_change() -> None:
    one, other = FEED.format(built="now", items=FIRST + SECOND), FEED.format(built="later", items=SECOND + FIRST)
    assert letters(one, RSS) == letters(other, RSS)
    assert letters(one, RSS) != letters(FEED.format(built="now", items=FIRST), RSS)


def test_entries_that_share_a_link_are_all_written() -> None:
    shared = "<item><title>{}</title><link>https://example.com/</link></item>"
    feed = FEED.format(built="now", items=shared.format("Down") + shared.format("Up again") + shared.format("Down"))
    assert lines(feed, RSS)[1::2] == ["Down", "Up again"]


def test_all_contents_of_an_entry_are_written_with_its_file() -> None:
    entry = """<item><title>One</title><guid>1</guid><description>{}</description><content:encoded>{}</content:encoded>
    <enclosure url="https://example.com/one.mp3?token=1"/></item>"""
    feed = FEED.format(built="now", items=entry.format("In short", "The fee is 5 euros."))
    assert lines(feed, RSS)[1:] == ["One", "In short", "The fee is 5 euros.", "https://example.com/one.mp3"]
    feed = FEED.format(built="now", items=entry.format("The fee is", "The fee is 5 euros."))
    assert lines(feed, RSS)[1:] == ["One", "The fee is 5 euros.", "https://example.com/one.mp3"]


def test_atom_and_rdf_are_feeds_too() -> None:
    atom = """<feed xmlns="http://www.w3.org/2005/Atom"><title type="html">Log</title><updated>2025-01-01</updated>
    <entry><id>urn:1</id><title>One</title><link rel="edit" href="/edit/1"/><link href="/1"/>
    <updated>2025-01-02</updated><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">It <b>is</b></div>
    </content></entry></feed>"""
    assert lines(atom, "application/atom+xml") == ["Log", "One", "/1", "2025-01-02", "It is"]
    rdf = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
    xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>Old</title></channel>
    <item><title>One</title><link>/1</link><dc:date>2025-01-02</dc:date></item></rdf:RDF>"""
    assert lines(rdf, "text/plain") == ["Old", "One", "/1", "2025-01-02"]


def test_a_feed_that_is_slightly_broken_is_read_all_the_same() -> None:
    broken = FEED.format(built="now", items="<item><title>R&D at&nbsp;work</title></item>")
    assert "News & more" in lines(broken, RSS)


def test_other_xml_is_written_by_path_and_value() -> None:
    text = """<?xml version="1.0"?><c:shop xmlns:c="urn:c" name="Mine"><!-- note --><book id="a"><price>5</price></book>
    <book id="b"><price cur="EUR">6</price> or so</book><empty/><note>one</note><note>two</note></c:shop>"""
    assert lines(text, XML) == [
        "/shop/@name: Mine",
        "/shop/book[@id=a]/@id: a",
        "/shop/book[@id=a]/price: 5",
        "/shop/book[@id=b]/@id: b",
        "/shop/book[@id=b]: or so",
        "/shop/book[@id=b]/price/@cur: EUR",
        "/shop/book[@id=b]/price: 6",
        "/shop/empty:",
        "/shop/note[1]: one",
        "/shop/note[2]: two",
    ]


def test_the_pages_of_a_sitemap_are_named_by_their_addresses() -> None:
    text = "<urlset><url><loc>/a</loc><lastmod>1</lastmod></url><url><loc>/b</loc></url></urlset>"
    assert "/urlset/url[loc=/a]/lastmod: 1" in lines(text, XML)


def test_a_page_that_is_sent_as_xml_is_read_as_a_page() -> None:
    assert lines("<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><p>one</p></html>", XML) == ["one"]


def test_entities_are_never_expanded() -> None:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<?xml version="1.0"?><!DOCTYPE z [<!ENTITY l0 "lol">{laughs}]><z a="&l9;">&l9;</z>'
    assert lines(bomb, XML) == [bomb]
    secret = Path(__file__).as_uri()
    stolen = f'<!DOCTYPE z [<!ENTITY x SYSTEM "{secret}">]><z>&x;</z>'
    assert lines(stolen, XML) == [stolen]
    assert lines(f'<!DOCTYPE z SYSTEM "{secret}"><z>fine</z>', XML) == ["/z: fine"]


@pytest.mark.parametrize("text", ["<a><b></a>", "<", "no markup", "<a>" * 5000])
def test_xml_that_is_broken_is_plain_text(text: str) -> None:
    assert lines(text, XML) == [text]


def test_a_table_is_written_row_by_row_under_the_names_of_its_columns() -> None:
    text = 'name,price,note\r\npen,"1,50","in\nstock"\r\n\r\nink,3,\r\nlast,4,x,more\r\n'
    assert lines(text, CSV) == [
        "name | price | note",
        "name: pen | price: 1,50 | note: in stock",
        "name: ink | price: 3",
        "name: last | price: 4 | note: x | column 4: more",
    ]


@pytest.mark.parametrize(
    ("text", "content_type"),
    [("a;b\n1,5;2", CSV), ("a\tb\n1,5\t2", CSV), ("a\tb\n1,5\t2", "text/tab-separated-values"), ("a|b\n1,5|2", CSV)],
)
def test_the_delimiter_of_a_table_is_found(text: str, content_type: str) -> None:
    assert lines(text, content_type)[1] == "a: 1,5 | b: 2"


def test_a_table_without_names_has_none() -> None:
    assert lines("1,2\n3,4", CSV) == ["1 | 2", "3 | 4"]


def test_a_table_with_an_endless_field_is_plain_text() -> None:
    endless = 'a,"' + "x" * 200_000
    assert lines(endless, CSV) == [endless]


def test_a_pdf_is_written_as_the_lines_of_its_pages() -> None:
    document = pdf(["Terms of use", "Fees (2025): 5"], ["Page two"], title="Terms")
    for content_type in (PDF, "application/octet-stream", ""):
        read = Extraction(document, content_type)
        assert read.text().split("\n") == ["Terms of use", "Fees (2025): 5", "Page two"]
        assert (read.title(), read.charset) == ("Terms", "binary")


def test_a_pdf_that_cannot_be_read_is_compared_by_its_bytes() -> None:
    whole = pdf(["words"])
    encrypted = whole.replace(b"/Root 1 0 R", b"/Root 1 0 R /Encrypt << /Filter /Nobody >>")
    for document in (whole[:100], encrypted, pdf([])):
        read = Extraction(document, PDF)
        assert read.text().startswith(f"This document is not text: {len(document)} bytes of {PDF}")
        assert read.letters() != Extraction(document + b"x", PDF).letters()


def test_without_the_extra_the_error_explains_how_to_read_a_pdf(tmp_path: Path) -> None:
    (tmp_path / "pypdf.py").write_text("raise ImportError")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from driftline.detection.extract.document import Extraction\n"
        "print(Extraction(b'%PDF-1.4', 'application/pdf').text())"
    )
    printed = run([executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.startswith("This document is not text: 8 bytes of application/pdf, digest ")
    assert printed.endswith("Reading the text of a PDF needs the 'pdf' extra: pip install 'driftline[pdf]'.\n")


@pytest.mark.parametrize("broken", ["<:", "<a:1 b:2='3'>x</a:1>", "<rss><:/><a:/><1:2/><item a:='1' :b='2'/></rss>"])
def test_names_that_are_no_names_break_nothing(broken: str) -> None:
    assert lines(broken, XML)


def test_an_undeclared_prefix_is_still_a_prefix() -> None:
    feed = "<rss><channel><item><title>T</title><dc:creator>Ann</dc:creator></item></channel></rss>"
    declared = feed.replace("<rss>", "<rss xmlns:dc='http://purl.org/dc/elements/1.1/'>")
    assert lines(feed, RSS) == lines(declared, RSS)


KINDS = [JSON, "application/x-ndjson", XML, RSS, CSV, "text/tab-separated-values", PDF, "text/plain", ""]
STARTS = [
    b"",
    b"{",
    b"[",
    b"<?xml version='1.0'?>",
    b"<rss><channel>",
    b"<feed>",
    b"%PDF-1.4\n",
    b"a,b\n1,",
    b"\xff\xfe",
]
INSIDES = st.binary(max_size=200) | st.text(alphabet="{}[]\":,<>/&;a1 \n\t!-='", max_size=200).map(str.encode)


@searched
@given(st.sampled_from(STARTS), INSIDES, st.sampled_from(KINDS))
def test_no_bytes_are_too_broken_for_any_format(start: bytes, inside: bytes, content_type: str) -> None:
    read = Extraction(start + inside, content_type)
    read.letters()
    read.title()
    assert "  " not in read.text()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@searched
@given(VALUES)
def test_json_has_the_same_text_however_its_keys_are_ordered_and_it_is_laid_out(value: object) -> None:
    one, other = json.dumps(value), json.dumps(value, sort_keys=True, indent=3, ensure_ascii=False)
    assert letters(one, JSON) == Extraction(other.encode("utf-8", "surrogatepass"), JSON).letters()
