"""Headlines: one line that is understood without the diff."""

from __future__ import annotations

import pytest

from driftline.detection.examine import Side, weigh
from driftline.detection.extract.document import Extraction
from driftline.detection.headline_words import LONGEST

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
        ("<p>Departs 14:05 from platform 3</p>", "<p>Departs 14:55 from platform 3</p>",
         "Departs 14:05 → 14:55 from platform 3"),
        ("<h1>Council repairs it</h1>", "<h1>Trains leave later</h1>", "Council repairs it → Trains leave later"),
        ("<p>We do not share data.</p>", "<p>We share data.</p>", "We do not share data. → We share data."),
        ("<ol><li>Ann Archer<li>Bert Bell<li>Carl Cole</ol>", "<ol><li>Carl Cole<li>Ann Archer<li>Bert Bell</ol>",
         "In another order: Carl Cole"),
    ],
)  # fmt: skip
def test_a_headline_says_what_changed(old: str, new: str, expected: str) -> None:
    assert headline(old, new) == expected


HOURS = "<table><tr><th>Monday<td>{}<tr><th>Tuesday<td>10:00 to 19:00<tr><th>Sunday<td>Closed</table>"
RANKS = "<table><tr><th>Rank<th>Club<th>Points<tr><td>1<td>Old Rooks<td>{}<tr><td>2<td>Castle Club<td>9</table>"
SHOW = "<h3>Nora Berg Trio</h3><p>Cellar</p><p>{}</p>"
TERMS = "<h2>3. Your data</h2><p>We store your files in the European Union{}. We do not read them at any time.</p>"
TALL = "<h2>Description</h2><p>A lamp of glass that stands on any table, with a height of {} cm and a switch.</p>"
ROOM = "<h2>Meeting of the council</h2><p>On Monday in the evening in the old town hall, room {}</p>"
ISSUE = "<h1>Crash</h1><p>{} mira opened this issue about empty files {} weeks ago with {} notes</p>"
ASKED = "<h3>Is there a discount?</h3><p>Yes, half the price for schools.</p>"
ROW = "<table><tr><th>Option<th>Default<th>Meaning{}<tr><td>cache<td>on<td>Whether answers are kept</table>"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # numbers are shown with what they count
        ("<p>Leave it at any of our 120 stations.</p>", "<p>Leave it at any of our 145 stations.</p>",
         "Leave it at any of our 120 → 145 stations"),
        ("<main><h2>Ingredients</h2><p>250 g red lentils</p>", "<main><h2>Ingredients</h2><p>300 g red lentils</p>",
         "Ingredients: 250 → 300 g red lentils"),
        ("<p>Gusts of up to 75 km/h from the far west</p>", "<p>Gusts of up to 130 km/h from the far west</p>",
         "Gusts of up to 75 → 130 km/h"),
        ("<p>Single ticket €2.80, day ticket €7.50</p>", "<p>Single ticket €3.00, day ticket €7.50</p>",
         "Single ticket €2.80 → €3.00"),
        (TALL.format(42), TALL.format(45), "Description: 42 → 45 cm"),
        ("<p>Edited on 2 January 2026, and read by 120 of our members.</p>",
         "<p>Edited on 2 January 2026, and read by 145 of our members.</p>", "… and read by 120 → 145 of our members"),
        (ROOM.format(2), ROOM.format(5), "Meeting of the council: … hall, room 2 → 5"),
        ("<main><p>Register until 9 January.</p>", "<main><p>Register until 16 January.</p>",
         "Register until 9 January → 16 January"),
        ("<p>€4.99</p>", "<p>Free</p>", "Price €4.99 → Free"),
        # a line above that is no label
        (SHOW.format("€12"), SHOW.format("€14"), "Nora Berg Trio, Cellar: €12 → €14"),
        ("<p>Reserve reached</p><p>Current bid: €610</p>", "<p>Reserve reached</p><p>Sold for €640</p>",
         "Current bid: €610 → Sold for €640"),
        ("<dl><dt>Assignee<dd>nobody</dl>".replace("<dd>", "</dt><dd>"),
         "<dl><dt>Assignee<dd>jon</dl>".replace("<dd>", "</dt><dd>"), "Assignee: nobody → jon"),
        # a heading that changed is not under the heading above it
        ("<h3>Bank lowers rate</h3><h3>Drivers announce a strike</h3>",
         "<h3>Bank lowers rate</h3><h3>Drivers end their strike</h3>",
         "Drivers announce a strike → Drivers end their strike"),
        ("<h2>Repairs[edit]</h2><p>Repairs are planned soon.</p>", "<h2>Repairs[edit]</h2><p>Repairs are done.</p>",
         "Repairs: Repairs are planned soon. → Repairs are done."),
        # what differs is not cut off, and a whole sentence is shown alone
        (TERMS.format(""), TERMS.format(" and the United States"),
         "3. Your data: … in the European Union. → … in the European Union and the United States."),
        (TERMS.format(""), TERMS.format("").replace("</p>", " Our partners may analyse all of them.</p>"),
         "New in 3. Your data: Our partners may analyse all of them."),
        (ISSUE.format("Open", 2, 7), ISSUE.format("Closed", 3, 9),
         "Crash: Open mira opened this → Closed mira opened this"),
        # cells of tables, also if their old text is still elsewhere
        (HOURS.format("10:00 to 19:00"), HOURS.format("Closed"), "Monday: 10:00 to 19:00 → Closed"),
        (RANKS.format(11), RANKS.format(13), "Old Rooks / Points: 11 → 13"),
        (ROW.format(""), ROW.format("<tr><td>proxy<td>none<td>The proxy for all of the requests"),
         "New: proxy: The proxy for all of the requests"),
        # an added heading with its text is one entry
        ("", ASKED, "New: Is there a discount? Yes, half the price for schools."),
        ("", "<h2>Accidents</h2><p>In 1999 a ship hit the middle pillar.</p>",
         "New: Accidents: In 1999 a ship hit the middle pillar."),
        ("<h3>Water must be boiled</h3><p>In the whole town until Friday.</p><p>x</p>", "<p>x</p>",
         "Removed: Water must be boiled: In the whole town until Friday."),
        ("", "<p>0 likes</p><p>leaf</p><p>Do not buy it, it leaks after a year.</p>",
         "New: leaf: Do not buy it, it leaks after a year."),
        ("", "<p>021: FIX: April 1, 2025 All architectures</p><p>A bug in the kernel can stop the machine.</p>",
         "New: 021: FIX: April 1, 2025 All architectures: A bug in the kernel can stop the machine."),
        ("<p>We are looking for a nurse</p>", "<p>We are looking for a nurse by day and night in the new clinic</p>",
         "New: … for a nurse by day and night in the new clinic"),
        ("<p>Rupture</p>", "<p>Rupture de stock</p>", "Rupture → Rupture de stock"),
        ("<p>En stock</p>", "<p>Rupture de stock</p>", "Rupture de stock"),
    ],
)  # fmt: skip
def test_a_headline_says_what_it_is_about(old: str, new: str, expected: str) -> None:
    assert headline(old, new) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("<main><p>Seats: 14</p><p>The office is open.</p>", "<main><p>Seats: 16</p><p>The office is closed.</p>",
         "The office is open. → The office is closed. (and 1 more)"),
        ("<p>All Terms apply to it.</p><p>We may call you.</p>", "<p>All terms apply to it.</p><p>We may not call.</p>",
         "We may call you. → We may not call. (and 1 more)"),
        ("<main><p>96 orders a day</p><p>x</p><p>It was withdrawn last year</p>",
         "<main><p>99 orders a day</p><p>x</p>",
         "Removed: It was withdrawn last year (and 1 more)"),
        ("<main><p>Unreleased</p><p>x</p><p>96 files</p>", "<main><p>4.3.0, 2 February 2026</p><p>x</p><p>99 files</p>",
         "Unreleased → 4.3.0, 2 February 2026 (and 1 more)"),
        ("<p>It opens in autumn.</p><p>Valid from 1 May 2026 on</p>",
         "<p>It opens on 3 September 2026.</p><p>Valid from 8 May 2026 on</p>",
         "It opens in autumn. → It opens on 3 September 2026. (and 1 more)"),
    ],
)  # fmt: skip
def test_words_come_before_counts_dates_and_capital_letters(old: str, new: str, expected: str) -> None:
    assert headline(old, new) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("<h2>Lamps</h2><li>Nova – in stock</li>", "<h2>Lamps</h2><li>Nova – out of stock</li>", "Out of stock: Nova"),
        ("<h2>Lamps</h2><li>Nova: sold out</li>", "<h2>Lamps</h2><li>Nova: available</li>", "Back in stock: Nova"),
        ("<h2>Lamps</h2><p>x</p>", "<h2>Lamps</h2><p>x</p><li>Luna (sold out)</li>", "Sold out: Luna"),
        # a sentence names nothing
        ("<h2>Nova</h2><p>This is available.</p>", "<h2>Nova</h2><p>This is sold out.</p>", "Sold out: Nova"),
    ],
)
def test_what_is_sold_out_is_named_by_its_own_line(old: str, new: str, expected: str) -> None:
    assert headline(old, new) == expected


def test_a_line_with_other_capitals_comes_last() -> None:
    old = "<main><p>Cloud (Hosting) Service</p><p>x</p><p>y</p>"
    new = "<main><p>x</p><p>y</p><p>Cloud (hosting) service</p><h3>Our partners may read all files</h3>"
    assert headline(old, new).startswith("New: Our partners may read all files (and ")


def test_arrows_of_the_page_are_told_apart_from_ours() -> None:
    assert (
        headline("<p>Route: Ulm → Bonn</p>", "<p>Route: Ulm → Kiel</p>") == "“Route: Ulm → Bonn” → “Route: Ulm → Kiel”"
    )


def test_an_entry_of_another_section_is_named_with_both() -> None:
    page = "<dl><dt>Done</dt><dd>Roof</dd>{}<dt>Open</dt>{}<dd>Door</dd></dl>"
    assert headline(page.format("<dd>Wall</dd>", ""), page.format("", "<dd>Wall</dd>")) == "Wall: Done → Open"
    page = "<h2>Open jobs</h2><p>Nurse</p>{}<h2>Filled jobs</h2>{}<p>Cook</p>"
    assert headline(page.format("<p>Baker</p>", ""), page.format("", "<p>Baker</p>")) == (
        "Baker: Open jobs → Filled jobs"
    )


def test_of_lines_in_another_order_one_with_words_is_named() -> None:
    table = "<table><tr><th>Rank<th>Club{}{}</table>"
    one, other = "<tr><td>1<td>Old Rooks", "<tr><td>2<td>Castle Club"
    assert headline(table.format(one, other), table.format(other, one)) == "In another order: Old Rooks"
    digits = "<ol><li>11<li>12<li>13</ol>", "<ol><li>13<li>11<li>12</ol>"
    assert headline(*digits) == "The same words stand in another order"


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


def feed(*numbers: int) -> str:
    fruits = ["apples", "pears", "plums", "cherries", "grapes", "lemons", "limes", "melons", "figs", "dates"]
    return FEED.format("".join(
        f"<item><title>Story {number} about {fruits[number]}</title><link>http://a.example/{number}</link>"
        f"<pubDate>Mon, {number:02d} Jan 2024 10:00:00 GMT</pubDate>"
        f"<description>What happened to {fruits[number]} on day {number} in the town.</description></item>"
        for number in numbers
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (feed(3, 2, 1), feed(4, 3, 2, 1),
         "New entry: Story 4 about grapes: What happened to grapes on day 4 in the town."),
        # the oldest ones drop out
        (feed(3, 2, 1), feed(4, 3, 2),
         "New entry: Story 4 about grapes: What happened to grapes on day 4 in the town."),
        (feed(3, 2, 1), feed(6, 5, 4),
         "New entry: Story 6 about limes: What happened to limes on day 6 in the town. (and 2 more)"),
        (feed(4, 3, 2, 1), feed(4, 2, 1),
         "Removed: Story 3 about cherries: What happened to cherries on day 3 in the town."),
    ],
)  # fmt: skip
def test_the_entries_of_a_feed_are_told_apart_by_their_links(old: str, new: str, expected: str) -> None:
    assert headline(old, new, content_type="application/rss+xml") == expected


def test_the_values_of_data_are_named_by_what_they_belong_to() -> None:
    rows = "stop,line,state\nHarbour,14,{}\nCastle,7,on time"
    assert headline(rows.format("on time"), rows.format("cancelled"), content_type="text/csv") == (
        "Harbour, 14: state on time → cancelled"
    )
    entry = "<item><title>Bridge closed</title><link>http://a.example/2</link><description>{}</description></item>"
    before, after = (FEED.format(entry.format(text)) for text in ("Until the end of May.", "Until the end of June."))
    assert headline(before, after, content_type="application/rss+xml") == (
        "Bridge closed: Until the end of May. → Until the end of June."
    )
    site = (
        "<urlset><url><loc>https://a.example/</loc></url><url><loc>https://a.example/terms</loc><lastmod>{}</lastmod></url>"
        "{}</urlset>"
    )
    new = "<url><loc>https://a.example/jobs</loc></url>"
    assert headline(site.format("2025-06-01", ""), site.format("2026-01-06", ""), content_type="text/xml") == (
        "https://a.example/terms / lastmod: 2025-06-01 → 2026-01-06"
    )
    assert headline(site.format("2025", ""), site.format("2025", new), content_type="text/xml") == (
        "New: https://a.example/jobs"
    )
    plans = '{{"made": "{}", "state": "{}", "plans": [{{"name": "Pro", "price": 1}}{}]}}'
    old = plans.format("2026-01-05T10:00:00Z", "ok", "")
    team = ', {"name": "Team", "price": 9}'
    assert headline(old, plans.format("2026-02-07T10:20:00Z", "down", ""), content_type="application/json").startswith(
        "$.state: ok → down"
    )
    assert headline(old, plans.format("2026-01-05T10:00:00Z", "ok", team), content_type="application/json").startswith(
        "New: $.plans[name=Team]"
    )


def test_a_few_edits_beside_the_content_have_a_headline_in_case_many_pages_share_them() -> None:
    page = "<main><h1>Page</h1></main><nav><li><a href=a>Home</a>{}</nav><footer><p>Open all {}</p>{}</footer>"
    footer = page.format("", "week", ""), page.format("", "week", "<p>We have moved.</p>")
    assert headline(*footer) == "In the page footer: New: We have moved."
    assert headline(page.format("", "week", ""), page.format("", "year", "")) == (
        "In the page footer: Open all week → Open all year"
    )
    assert headline(page.format("", "week", ""), page.format("<li><a href=j>Jobs</a>", "week", "")) == (
        "In the navigation: New: Jobs"
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


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("<p>Temperature -5 degrees</p>", "<p>Temperature 5 degrees</p>", "Temperature -5 → 5 degrees"),
        ("<p>Interest rate 3.5 %</p>", "<p>Interest rate 4.25 %</p>", "Interest rate 3.5 → 4.25 %"),
        ("<main><p>Costs $10 plus $5 shipping fee, returns free</p>",
         "<main><p>Costs $12 plus $7 shipping fee, returns paid</p>",
         "… shipping fee, returns free → … shipping fee, returns paid"),
    ],
)  # fmt: skip
def test_a_headline_says_nothing_that_neither_version_says(old: str, new: str, expected: str) -> None:
    assert headline(old, new) == expected


def test_a_headline_has_no_control_characters() -> None:
    assert headline("<main><p>x</p>", "<main><p>Now &#27;[31m open&#2; on Sundays too</p><p>x</p>").isprintable()
