"""Feeds and XML as their authors write them: what a reader of the feed sees is what is compared."""

from __future__ import annotations

from itertools import product

import pytest

from driftline.detection.extract.document import Extraction

ATOM = '<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>Shop</title><entry>{}</entry></feed>'
RSS = '<?xml version="1.0"?><rss version="2.0"><channel><title>Shop</title><item>{}</item></channel></rss>'
RSS_TYPE = "application/rss+xml"
BEFORE = ["", "\ufeff", "\n ", "<!-- made by hand -->"]
XHTML = 'type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">'


def entry(markup: str, around: str, content_type: str = "application/xml") -> list[str]:
    """Return the lines of a feed with one entry, without the title of the feed."""
    title, *lines = Extraction(around.format(markup).encode(), content_type).text().split("\n")
    assert title == "Shop"
    return lines


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (f"<content {XHTML}<p>We <b>now</b> ship all orders.</p></div></content>", "We now ship all orders."),
        (f"<summary {XHTML}Only <i>two</i> left<br/>in stock</div></summary>", "Only two left in stock"),
        (f"<content {XHTML}<p>One</p><p>Two</p>Three</div></content>", "One Two Three"),
        (f"<title {XHTML}A <em>new</em> pen</div></title>", "A new pen"),
        ('<title type="html">A &lt;b&gt;new&lt;/b&gt; pen</title>', "A new pen"),
        ("<title>Tom &amp; Jerry</title>", "Tom & Jerry"),
        ('<title type="text">Use &lt;div&gt; now</title>', "Use <div> now"),
        ('<content type="html">&lt;p&gt;Fish &amp;amp; chips&lt;/p&gt;</content>', "Fish & chips"),
        ('<content type="html"><![CDATA[<p>It <b>is</b> here</p>]]></content>', "It is here"),
        ("<summary>plain<!-- not shown --> text</summary>", "plain text"),
        (f"<content {XHTML}<script>var x</script>shown</div></content>", "shown"),
    ],
)
def test_an_atom_entry_is_read_with_all_that_its_tags_enclose_and_divide(content: str, shown: str) -> None:
    assert entry(content, ATOM) == [shown]


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("<description>It is <b>very</b> warm</description>", "It is very warm"),
        ("<description>It is&nbsp;very warm</description>", "It is very warm"),
        ("<title>Caf&eacute; &ndash; open</title>", "Café – open"),
        ("<title>5 &euro;</title>", "5 €"),
        ("<title>a &unknown; b</title>", "a &unknown; b"),
        ("<description>&lt;p&gt;It is &lt;b&gt;very&lt;/b&gt; warm&lt;/p&gt;</description>", "It is very warm"),
        ("<description><![CDATA[<p>It is&nbsp;<b>very</b> warm</p>]]></description>", "It is very warm"),
        ("<description><![CDATA[a <!-- b --> c]]></description>", "a c"),
        ("<description><p>One</p>tail<p>Two</p></description>", "One tail Two"),
        ("<title>1 &lt; 2</title>", "1 < 2"),
        ("<title>AT&T rises 5% on Q&A</title>", "AT&T rises 5% on Q&A"),
        ("<title>Fish & chips &amp; peas</title>", "Fish & chips & peas"),
        ("<title>a&b;c & d</title>", "a&b;c & d"),
        ("<title><![CDATA[Q&A]]></title>", "Q&A"),
        ("<description>first<br/>second</description>", "first second"),
        (
            "<encoded xmlns='http://purl.org/rss/1.0/modules/content/'><![CDATA[<p>All <i>is</i> here</p>]]></encoded>",
            "All is here",
        ),
        ("<description>We <a href='/x'>ship</a> today</description>", "We ship today"),
        ("<title>&#8364; 5</title>", "€ 5"),
    ],
)
def test_an_rss_entry_is_read_with_all_that_its_tags_enclose_and_divide(content: str, shown: str) -> None:
    assert entry(content, RSS) == [shown]


@pytest.mark.parametrize(
    ("content_type", "before"),
    [
        *product(["text/html", "text/html; charset=utf-8", "text/xml", RSS_TYPE], BEFORE),
        *product([""], BEFORE[:-1]),  # without a type, a comment begins HTML
    ],
)
def test_a_feed_is_read_as_one_whatever_type_it_is_sent_as(content_type: str, before: str) -> None:
    body = f"{before}<rss><channel><title>Shop</title><item><title>Pen</title></item></channel></rss>"
    assert Extraction(body.encode(), content_type).text().split("\n") == ["Shop", "Pen"]


@pytest.mark.parametrize(
    ("doctype", "text", "shown"),
    [
        ('[<!ENTITY co "Example Ltd">]', "&co; opens", "Example Ltd opens"),
        ("[<!ENTITY co 'Example Ltd'>]", "&co; opens", "Example Ltd opens"),
        ('[<!ENTITY a "1"> <!ENTITY b "2">]', "&a;&b;", "12"),
        ('[<!ENTITY euro "&#8364;">]', "5 &euro;", "5 €"),
        ('PUBLIC "-//X" "http://x.example/x.dtd" [<!ENTITY co "Us">]', "&co;", "Us"),
        ("[]", "a&nbsp;b", "a b"),
        ('[<!ENTITY a "first"><!ENTITY a "then">]', "&a;", "first"),
    ],
)
def test_entities_that_stand_for_short_texts_are_replaced(doctype: str, text: str, shown: str) -> None:
    body = f"<?xml version='1.0'?><!DOCTYPE rss {doctype}>{RSS[21:].format(f'<title>{text}</title>')}"
    assert Extraction(body.encode(), RSS_TYPE).text().split("\n") == ["Shop", shown]


@pytest.mark.parametrize(
    "doctype",
    [
        '[<!ENTITY x SYSTEM "file:///etc/passwd">]',
        '[<!ENTITY % x SYSTEM "http://x.example/"> %x;]',
        '[<!ENTITY a "b"><!ENTITY b "&a;&a;&a;">]',
        '[<!ENTITY x "<item>injected</item>">]',
        f'[<!ENTITY x "{"long " * 500}">]',
    ],
)
def test_entities_that_stand_for_more_are_left_alone(doctype: str) -> None:
    body = f"<!DOCTYPE rss {doctype}>{RSS[21:].format('<title>&x;&b;</title>')}"
    shown = Extraction(body.encode(), RSS_TYPE).text()
    assert "&x;" in shown, "it is compared as it was sent"


def test_what_was_dropped_is_not_counted_by_other_filters() -> None:
    body = b"<shop><pen>1</pen><pen>2</pen><pen>3</pen><pen>4</pen></shop>"
    drops = [["drop", "xpath:/shop/pen[1]"], ["drop", "xpath:/shop/pen[3]"]]
    assert Extraction(body, "text/xml", drops).text().split("\n") == ["/shop/pen[1]: 2", "/shop/pen[2]: 4"]


def test_what_is_dropped_is_selected_by_no_other_filter() -> None:
    filters = [["select", "xpath://b/text()"], ["select", "xpath://a"], ["drop", "xpath://b"]]
    assert Extraction(b"<r><a>1</a><b>2</b></r>", "text/xml", filters).text().split("\n") == ["/a: 1"]


def test_an_article_about_entities_declares_none() -> None:
    about = '<title><![CDATA[<!DOCTYPE a [<!ENTITY b "c">]>]]></title>'
    assert "ENTITY" not in entry(about, RSS)[0]
    assert entry('<description><![CDATA[&lt;!ENTITY b "c"&gt;]]></description>', RSS) == ['<!ENTITY b "c">']


@pytest.mark.parametrize(
    ("selects", "left"),
    [
        (["//b", "//a"], ["/a: 1", "/b: 2"]),
        (["count(//b)"], ["1"]),
        (["sum(/r/*) div 2"], ["1.5"]),
        (["//b/text()", "//a"], ["/a: 1", "2"]),
        (["//b/text()", "//a/text()"], ["1", "2"]),
        (["//b/text()", "//*/text()"], ["1", "2"]),
        (["//b/text()", "//b"], ["/b: 2"]),
        (["//none", "//b"], ["/b: 2"]),
    ],
)
def test_what_any_of_several_selections_has_is_left(selects: list[str], left: list[str]) -> None:
    filters = [["select", f"xpath:{select}"] for select in selects]
    assert Extraction(b"<r><a>1</a><b>2</b></r>", "text/xml", filters).text().split("\n") == left
