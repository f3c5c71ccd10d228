"""Headlines: one line that is understood without the diff."""

from __future__ import annotations

import pytest

from driftline.detection.examine import Side, weigh
from driftline.detection.extract.document import Extraction
from driftline.detection.headline import LONGEST

FILLER = "<p>" + "A paragraph that says the same at every check, so that the page is not a small one. " * 6 + "</p>"
HTML = "text/html; charset=utf-8"
RETURNS = "<h2>4.2 Returns</h2><p>You may return every item that you bought from us within {} days of delivery.</p>"
PLANS = "<table><tr><th>Plan<th>month<tr><td>Pro<td>{}<tr><td>Team<td>50</table>"
LAMPS = "<h3>Blue lamp</h3><p>39,99 €</p><h3>Red lamp</h3><p>{}</p>"
FEED = "<rss version='2.0'><channel><title>Blog</title>{}<item><title>First post</title></item></channel></rss>"
ENTRY = (
    "<item><title>Second post about things</title><link>http://a.example/2</link><description>Hi</description></item>"
)
JOBS = "<ul>{}<li><a href=a>Go developer</a><p>Paris</p></li></ul>"
NEW_JOBS = (
    "<li><a href=b>Senior Rust engineer</a><p>Berlin</p></li><li><a href=c>Data analyst for all of Europe</a></li>"
    "<li><a href=d>Office manager for the north</a></li>"
)


def headline(old: str, new: str, *, content_type: str = HTML, title: str = "Page") -> str:
    sides: list[Side] = []
    for number, markup in enumerate((old, new)):
        body = (f"<title>{title}</title><body>{FILLER}{markup}" if content_type == HTML else markup).encode()
        blocks = Extraction(body, content_type).blocks()
        sides.append(Side(body, "\n".join(blocks.lines), number * 86_400.0, blocks))
    before, after = sides
    return weigh(before, after, Extraction(after.body, content_type).title(), content_type).headline


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("<p>Price: €39.99</p>", "<p>Price: €29.99</p>", "Price €39.99 → €29.99"),
        ("<p>€39.99</p>", "<p>€29.99</p>", "Price €39.99 → €29.99"),
        (LAMPS.format("10,00 €"), LAMPS.format("12,00 €"), "Red lamp: 10,00 € → 12,00 €"),
        ("<p>Sold out</p>", "<p>In stock</p>", "Back in stock"),
        ("<p>In stock</p>", "<p>Sold out</p>", "Sold out"),
        ("<h2>Red lamp</h2><p>Ausverkauft</p>", "<h2>Red lamp</h2><p>Auf Lager</p>", "Back in stock: Red lamp"),
        (JOBS.format(""), JOBS.format(NEW_JOBS), "New: Senior Rust engineer, Berlin (and 2 more)"),
        ("<p>Free returns within 30 days</p><p>x</p>", "<p>x</p>", "Removed: Free returns within 30 days"),
        (RETURNS.format(30), RETURNS.format(14), "4.2 Returns: 30 → 14 days"),
        ("<p>Version 2.5.3</p>", "<p>Version 2.5.4</p>", "Version 2.5.3 → 2.5.4"),
        ("<p>Latest release: 2.5.3 (new)</p>", "<p>Latest release: 2.5.4 (new)</p>", "Latest release: 2.5.3 → 2.5.4"),
        (PLANS.format(20), PLANS.format(24), "Pro / month: 20 → 24"),
        ("<dl><dt>Seats<dd>14</dl>", "<dl><dt>Seats<dd>2</dl>", "Seats: 14 → 2"),
        ("<main><p>Latency</p><p>54 ms</p></main>", "<main><p>Latency</p><p>109 ms</p></main>", "Latency: 54 → 109 ms"),
        ("<p>Departs 14:05 from platform 3</p>", "<p>Departs 14:55 from platform 3</p>", "Departs 14:05 → 14:55"),
        ("<h1>Council repairs it</h1>", "<h1>Trains leave later</h1>", "Council repairs it → Trains leave later"),
        ("<p>We do not share data.</p>", "<p>We share data.</p>", "We do not share data. → We share data."),
        ("<ol><li>Ann Archer<li>Bert Bell<li>Carl Cole</ol>", "<ol><li>Carl Cole<li>Ann Archer<li>Bert Bell</ol>",
         "In another order: Carl Cole"),
    ],
)  # fmt: skip
def test_a_headline_says_what_changed(old: str, new: str, expected: str) -> None:
    assert headline(old, new) == expected


def test_what_the_title_says_already_is_no_label() -> None:
    page = "<h1>Blue lamp</h1><p>{}</p>"
    assert headline(page.format("€39.99"), page.format("€29.99"), title="Blue lamp - Shop") == "Price €39.99 → €29.99"


def test_documents_of_other_kinds_have_headlines_in_their_own_terms() -> None:
    assert headline('{"status": "ok"}', '{"status": "degraded"}', content_type="application/json") == (
        "$.status: ok → degraded"
    )
    assert headline(FEED.format(""), FEED.format(ENTRY), content_type="application/rss+xml") == (
        "New entry: Second post about things"
    )


def test_noise_has_no_headline_and_is_not_counted() -> None:
    assert headline("<p>Updated 3 minutes ago</p>", "<p>Updated 5 minutes ago</p>") == ""
    clock = "<p>Price: €39.99</p><p>Updated {} minutes ago</p>"
    assert headline(clock.format(3), clock.format(5).replace("39.99", "29.99")) == "Price €39.99 → €29.99"


@pytest.mark.parametrize("words", [1, 5, 40, 400])
def test_a_headline_is_never_too_long(words: int) -> None:
    text = " ".join(f"word{number}" for number in range(words))
    long = "x" * 500
    for old, new in (
        ("", f"<p>{text} comes now</p>"), (f"<p>{text} was here once</p>", ""), ("", f"<p>{long} {long}</p>"),
        (f"<h2>{text}</h2><p>{text} 5 € {text}</p>", f"<h2>{text}</h2><p>{text} 6 € {text}</p>"),
        ("", "".join(f"<p>Sentence {number} of many is new here</p>" for number in range(3_000))),
    ):  # fmt: skip
        assert 0 < len(headline(old, new)) <= LONGEST
