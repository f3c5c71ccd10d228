from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.detection.examine import Side, weigh
from driftline.detection.extract.document import Extraction
from driftline.detection.noise.edits import JudgedDocument, Judgement, ReadOnce
from driftline.detection.noise.judge import judge
from driftline.model.change import Importance
from support.properties import searched

FILLER = "<p>" + "A paragraph that says the same at every check, so that the page is not a small one. " * 6 + "</p>"
MONDAY = datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp()
DAY = 86_400.0
HTML = "text/html; charset=utf-8"


STATES = "<main><table><tr><td>Mon<td>{}<tr><td>Tue<td>{}<tr><td>Wed<td>{}</table></main>"


def read(markup: str, at: float = MONDAY) -> JudgedDocument:
    def reading() -> Extraction:
        return Extraction(f"<title>Page</title><body>{markup}</body>".encode(), "text/html; charset=utf-8")

    return JudgedDocument(text=reading().text(), title="Page", at=at, blocks=ReadOnce(lambda: reading().blocks()))


def judged(old: str, new: str, *, around: str = FILLER, later: float = DAY) -> Judgement:
    return judge(read(around + old), read(around + new, MONDAY + later))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<p>Fees are due within ten days.</p>", "<p>Fees are due within thirty days.</p>"),
        ("<p>Fees are due.</p>", "<p>Fees are due.</p><p>They are not paid back.</p>"),
        ("<p>Fees are due.</p><p>They are paid back.</p>", "<p>Fees are due.</p>"),
        ("<p>The price is 19.99 €</p>", "<p>The price is 24.99 €</p>"),
        ("<p>Last updated: 3 March 2025</p>", "<p>Last updated: 1 May 2026</p>"),
        ("<footer>Last updated: 3 March 2025</footer>", "<footer>Last updated: 1 May 2026</footer>"),
        ("<main><p>Site visit: 3 March 2025</p></main>", "<main><p>Site visit: 1 May 2025</p></main>"),
        ("<p>Dernière mise à jour : 3 mars 2025</p>", "<p>Dernière mise à jour : 1 mai 2026</p>"),
        ("<p>Call us: +46771-392 000</p>", "<p>Call us: +468-52 50 20 20</p>"),
        ("<p>Write to one@example.org with questions.</p>", "<p>Write to two@example.org with questions.</p>"),
        ("<h2>5. Transfers</h2>", "<h2>6. Transfers</h2>"),
        ("<main><p>Seats available: 14</p></main>", "<main><p>Seats available: 2</p></main>"),
        ("<p>In stock: 3</p>", "<p>In stock: 0</p>"),
        ("<p>12.50</p>", "<p>13.50</p>"),
        ("<p>Who came here to live over 5 years ago vote</p>", "<p>Who came here to live over 2 years ago vote</p>"),
        ("<p>See chapter 3</p>", "<p>See chapter</p>"),
        ("<table><tr><td>A<td>$10<tr><td>B<td>$20</table>", "<table><tr><td>A<td>$20<tr><td>B<td>$10</table>"),
        ("<form><p>In stock</p><button>Buy</button></form>", "<form><p>Out of stock</p><button>Buy</button></form>"),
        ("<form><button>Add to cart</button></form>", "<form><button>Sold out</button></form>"),
        ("<p>Opening hours: 9:00-17:00</p>", "<p>Opening hours: 9:00-16:00</p>"),
        ("<p>Departs 14:05</p>", "<p>Departs 14:55</p>"),
        (STATES.format("Open", "Closed", "Open"), STATES.format("Open", "Open", "Open")),
        (STATES.format("Open", "Closed", "Open"), STATES.format("Closed", "Open", "Open")),
        ("<main><p>Pen</p><p>Ink</p><p>Gone</p></main>", "<main><p>Pen</p><p>Gone</p><p>Ink</p><p>Gone</p></main>"),
        ("<main><p role=status>All is well</p></main>", "<main><p role=status>Major outage</p></main>"),
        ("<header><h1>Applications are open</h1></header>", "<header><h1>Applications are closed</h1></header>"),
        ("<footer><p>Phone: 030 1234567</p></footer>", "<footer><p>Phone: 030 7654321</p></footer>"),
        ("<footer><p>Open Mon-Fri 9:00-17:00</p></footer>", "<footer><p>Open Mon-Fri 9:00-15:00</p></footer>"),
        ("<p>Price 19.99 €, updated 3 minutes ago</p>", "<p>Price 29.99 €, updated 1 minute ago</p>"),
        ("<main><p>Water: 3.2 m (3 minutes ago)</p></main>", "<main><p>Water: 7.9 m (3 minutes ago)</p></main>"),
        ("<p>Version 1.2.3 released 3 days ago</p>", "<p>Version 1.2.4 released 1 hour ago</p>"),
        ("<p>Call 030 1234567 (5 minutes ago)</p>", "<p>Call 030 7654321 (1 minute ago)</p>"),
        ("<p>3 seats left, 120 views</p>", "<p>0 seats left, 180 views</p>"),
        ("<main><p>Food hygiene rating: 5</p></main>", "<main><p>Food hygiene rating: 1</p></main>"),
        ("<main><p>You need 100 followers to apply</p></main>", "<main><p>You need 1000 followers to apply</p></main>"),
        ("<p>Today: soup 4.50</p>", "<p>Today: soup 6.50</p>"),
        ("<p>Latest release: 2.5.3</p>", "<p>Latest release: 2.5.4</p>"),
        ("<p>Build 41</p>", "<p>Build 42</p>"),
        ("<p>FooConf 2024, Sep 19-22, 2023, Dublin</p>", "<p>FooConf 2024, Sep 19-22, 2024, Dublin</p>"),
        ("<main><p>Seats</p><p>412</p></main>", "<main><p>Seats</p><p>398</p></main>"),
        ("<p>Send it by 15 March 2027, 23:59:59.</p>", "<p>Send it by 31 March 2027, 23:59:59.</p>"),
        ("<p>Deadline: 2026-12-12 23:59 UTC</p>", "<p>Deadline: 2027-01-12 23:59 UTC</p>"),
        ("<p>Meeting: 12.12.2026 18:00</p>", "<p>Meeting: 19.12.2026 18:00</p>"),
        ("<p>World record: 1:40:12</p>", "<p>World record: 1:38:02</p>"),
        ("<main><p>Level 2 at 10:00</p></main>", "<main><p>Level 9 at 10:05</p></main>"),
        ("<p>Donate: bc1qar0srrr7xfkvy5l643</p>", "<p>Donate: bc1q9zpgru8ehw2m5k7xtp</p>"),
        ("<p>sha256: 9f86d081884c7d65</p>", "<p>sha256: 60303ae22b998861</p>"),
        ("<p>Copyright licence ends in 2026</p>", "<p>Copyright licence ends in 2031</p>"),
        ("<p>Call 555-1234 © 2026 Wells</p>", "<p>Call 555-9876 © 2026 Wells</p>"),
        ("<p>This is about Xbox games.</p>", "<p>This is about XBOX games.</p>"),
        ("<article><header><h1>Old</h1></header></article>", "<article><header><h1>New</h1></header></article>"),
    ],
)  # fmt: skip
def test_what_a_reader_would_care_about_is_important(old: str, new: str) -> None:
    judgement = judged(old, new)
    assert judgement.importance is Importance.IMPORTANT
    assert judgement.score >= 0.5


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("<p>© 2025 Example Ltd</p>", "<p>© 2026 Example Ltd</p>", "Only the copyright year changed."),
        ("<p>updated by Ann 3 minutes ago</p>", "<p>updated by Ann 5 minutes ago</p>", ""),
        ("<p>il y a 3 jours</p>", "<p>il y a 4 jours</p>", "Only an age changed."),
        ("<p>Posted 1 hour ago</p>", "<p>Posted 2 hours ago</p>", "Only an age changed."),
        ("<p>Posted 59 minutes ago</p>", "<p>Posted 1 hour ago</p>", "Only an age changed."),
        ("<p>Posted just now</p>", "<p>Posted yesterday</p>", "Only an age changed."),
        ("<p>an hour ago</p>", "<p>2 days ago</p>", "Only an age changed."),
        ("<p>1,024 views</p>", "<p>1,187 views</p>", "Only a count of views or the like changed."),
        ("<p>Page built 12:04:01 UTC</p>", "<p>Page built 17:30:22 UTC</p>", "Only a clock changed."),
        ("<p>Local time 14:02</p>", "<p>Local time 14:03</p>", "Only a clock changed."),
        ("<p>Today is June 1, 2026</p>", "<p>Today is June 2, 2026</p>", ""),
        ("<p>req 8f3a9c2b77d1</p>", "<p>req 1b2c3d4e5f60</p>", "Only an identifier changed."),
        ("<p>38 / production</p>", "<p>41 / production</p>", "Only a counter changed."),
        ("<p>Posted 5m ago, 12 comments</p>", "<p>Posted 9m ago, 14 comments</p>", ""),
        ("<p>3分前</p>", "<p>7分前</p>", "Only an age changed."),
        ("<p>Updated 17:58</p>", "<p>Updated 18:01</p>", "Only a clock changed."),
        ("<p>5 people are watching</p>", "<p>9 people are watching</p>", ""),
        ("<p>Ref 0b1c2d3e-1111-4222-8333-abcdefabcdef</p>", "<p>Ref 9b1c2d3e-1111-4222-8333-abcdefabcdef</p>", ""),
        ("<nav><a href=/a>Home</a></nav>", "<nav><a href=/a>Start</a></nav>", "Only the navigation changed."),
        ("<footer>Website last updated 3 May 2025</footer>", "<footer>Website last updated 9 May 2025</footer>", ""),
        ("<footer><p>One office</p></footer>", "<footer><p>Two offices</p></footer>", "Only the page footer changed."),
        ("<div class=cookie-banner><p>A</p></div>", "<div class=cookie-banner><p>B</p></div>", ""),
        ("<main><p class='ad-slot'>Buy A</p></main>", "<main><p class='ad-slot'>Buy B</p></main>", ""),
        ("<div id=sideBar-related>Read this</div>", "<div id=sideBar-related>Read that</div>", ""),
        ("<p>one@example.org is ours</p>", "<p>[email&nbsp;protected] is ours</p>", ""),
        ("", "<p>Accept all cookies</p>", "Only a consent banner changed."),
        ("", "<a href=#m>Skip to content</a>", ""),
        ("<p>24 déc. 2021</p><p>25 nov. 2021</p>", "<p>23 déc. 2021</p><p>24 nov. 2021</p>", ""),
        ("<main><p>67 Kommentare</p></main>", "<main><p>72 Kommentare</p></main>", ""),
        ("<main><p>35Kommentare</p></main>", "<main><p>15Kommentare</p></main>", ""),
        ("<main><p>Update 140 commentaires</p></main>", "<main><p>Update 145 commentaires</p></main>", ""),
        ("<main><p>3,217</p></main>", "<main><p>3,218</p></main>", "Only a counter changed."),
        ("<p>Updated: Jun 1, 2026, 11:54 AM</p>", "<p>Updated: Jun 2, 2026, 12:01 PM</p>", ""),
        ("<p>9 jobs · Updated Jun 1, 2026</p>", "<p>9 jobs · Updated Jun 2, 2026</p>", ""),
    ],
)  # fmt: skip
def test_what_changes_by_itself_is_noise_with_a_reason(old: str, new: str, reason: str) -> None:
    judgement = judged(old, new)
    assert judgement.importance is Importance.NOISE, [(edit.old, edit.new, edit.noise) for edit in judgement.edits]
    assert judgement.score < 0.5
    assert judgement.reason.startswith("Only ")
    assert not reason or judgement.reason == reason


CALENDAR = "<table><tr>" + "".join(f"<td>{day}</td>" for day in ("Mo", "Tu", "We", *range(1, 32))) + "</tr></table>"
PROSE = "<p>" + "</p><p>".join(
    f"Paragraph {n} of the terms, which go on and on like this for a while, as such terms do." for n in range(99)
)
MENU = "<p>Products</p>" + "".join(f"<a href=/{name}>{name}</a><br>" for name in ("Tables", "Chairs", "Lamps"))
WORDS = "<p>Nobody may enter without a ticket that is valid.</p>"


def test_a_calendar_that_comes_or_goes_is_noise() -> None:
    assert judged(WORDS, WORDS + CALENDAR).reason == "Only a calendar changed."
    assert judged(WORDS + CALENDAR, WORDS).importance is Importance.NOISE
    assert judged(WORDS, WORDS + CALENDAR.replace("<td>17</td>", "")).importance is Importance.IMPORTANT


BANNER = "<div class=cookie-banner>We use cookies to improve your experience. <button>Accept</button></div>"
COLOURS = "<p>The widget is our best seller and comes in many colours.</p>"
RECALL = "<p>Recall: stop using this widget at once, its battery may catch fire.</p>"
DELIVERY = "<p>Delivery takes three days within the country and a week elsewhere.</p>"


@pytest.mark.parametrize("around", ["<h1>Widget 3000</h1>", FILLER], ids=["short", "long"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (COLOURS, BANNER + RECALL),
        (COLOURS, RECALL + BANNER),
        (BANNER + COLOURS, RECALL),
        ("", BANNER + RECALL),
        ("", RECALL + BANNER),
        (RECALL + BANNER, ""),
        (COLOURS, "<p>We use cookies to improve your experience.</p><p>The price rises to 250 EUR on Monday.</p>"),
        ("", "<p>Accept cookies?</p>" + PROSE + "<p>Cookie settings</p>"),
        (
            "".join(f"<p>Line {n} is about the harbour.</p>" for n in "abcdefgh"),
            "<p>You may manage cookies in the settings.</p>"
            + "".join(f"<p>Word {n} of the new text</p>" for n in "stuv"),
        ),
    ],
)
def test_what_stands_next_to_a_consent_banner_is_no_part_of_it(around: str, old: str, new: str) -> None:
    judgement = judged(old + DELIVERY, new + DELIVERY, around=around)
    assert judgement.importance is Importance.IMPORTANT, judgement.reason


@pytest.mark.parametrize("around", ["<h1>Widget 3000</h1>", FILLER], ids=["short", "long"])
@pytest.mark.parametrize("banner", [BANNER, BANNER.replace("cookie-banner", "x")], ids=["named", "nameless"])
def test_a_consent_banner_alone_is_noise_however_small_the_page(around: str, banner: str) -> None:
    for old, new in (("", banner), (banner, "")):
        assert judged(old + DELIVERY, new + DELIVERY, around=around).reason == "Only a consent banner changed."


def test_lists_within_a_consent_banner_are_part_of_it_though_it_fills_the_page() -> None:
    lists = "".join(f"<p>Partner {n}</p><p>Your personal data may be shared with partner {n}.</p>" for n in "abcdefgh")
    banner = f"<p>We value your privacy</p>{lists}<p>Manage preferences</p><p>Accept all</p>"
    assert judged(DELIVERY, DELIVERY + banner).reason == "Only a consent banner changed."
    assert judged(DELIVERY, DELIVERY + banner + RECALL).importance is Importance.IMPORTANT


def test_what_stands_next_to_a_calendar_is_no_part_of_it() -> None:
    assert judged(WORDS, WORDS + CALENDAR + RECALL).importance is Importance.IMPORTANT


def test_a_promotion_is_noise_where_the_page_is_there_to_be_read() -> None:
    old, new = "<p>SALE: swimwear from 9.99 €</p>", "<p>Last days: -30% on all coats. Shop now</p>"
    assert judged(old, new, around=PROSE).reason == "Only a promotion changed."
    assert judged("", new, around=PROSE).importance is Importance.NOISE
    assert judged(old, new).importance is Importance.IMPORTANT
    assert judged("", "<p>The terms of sale are void.</p>", around=PROSE).importance is Importance.IMPORTANT
    assert judged("", "<p>A fee of 10-20 % is due.</p>", around=PROSE).importance is Importance.IMPORTANT


def test_a_heading_that_comes_with_a_menu_is_part_of_it() -> None:
    assert judged(WORDS, WORDS + MENU).reason == "Only links changed."
    assert judged(WORDS + MENU, WORDS).reason == "Only links changed."
    assert judged(WORDS, WORDS + "<p>Products</p>").importance is Importance.IMPORTANT
    assert judged(WORDS, WORDS + MENU + "<p>All of them are recalled at once.</p>").importance is Importance.IMPORTANT


@pytest.mark.parametrize(
    ("old", "new", "reason", "headline"),
    [
        ("<ol><li>Ann<li>Bert<li>Carl</ol>", "<ol><li>Carl<li>Ann<li>Bert</ol>",
         "The same words stand in another order.", "In another order: Carl"),
        ("<ul><li><a href=/p>Pen</a> <p>$10<li><a href=/i>Ink</a> <p>$20</ul>",
         "<ul><li><a href=/i>Ink</a> <p>$20<li><a href=/p>Pen</a> <p>$10</ul>",
         "The same words stand in another order.", "In another order: Pen"),
        ("<p>One paragraph that is long enough to be known.</p><p>And another one that is as long as the first.</p>",
         "<p>And another one that is as long as the first.</p><p>One paragraph that is long enough to be known.</p>",
         "The same words stand in another order.",
         "In another order: One paragraph that is long enough to be known."),
        ("<p>It's - fine</p>", "<p>It’s – fine</p>", "Only how quotes, dashes or gaps are written changed.",
         "It's - fine → It’s – fine"),
        ("<p>Powered by Uptime Robot</p>", "<p>Powered by UptimeRobot</p>",
         "Only how quotes, dashes or gaps are written changed.", "Powered by Uptime Robot → Powered by UptimeRobot"),
        ("<p>Login</p>", "<p>Log in</p>", "Only how quotes, dashes or gaps are written changed.", "Login → Log in"),
        ("<p>Soft hyphens</p>", "<p>Soft hy­phens</p>", "Only how quotes, dashes or gaps are written changed.",
         "Characters that cannot be seen: Soft hy­phens"),
        ("<p><a href=/t>Terms</a></p>", "<p><a href=/t>Terms (opens in a new window)</a></p>",
         "Only hints such as 'opens in a new window' changed.", "Terms → Terms (opens in a new window)"),
        ("<p>Mehr dazu</p>", "<p>Mehr dazu (öffnet in neuem Fenster)</p>",
         "Only hints such as 'opens in a new window' changed.", "Mehr dazu → Mehr dazu (öffnet in neuem Fenster)"),
        ("<p><a href=/t>Terms</a></p>", "<p><a href=/t>Terms</a></p><p>Opens in a new tab</p>",
         "Only hints such as 'opens in a new window' changed.", "New: Opens in a new tab"),
        ("<p>Effective date: 11-04-2023</p>", "<p>Effective date: 2023-11-04</p>",
         "Only how dates are written changed.", "Effective date: 11-04-2023 → 2023-11-04"),
        ("<p>Updated on 5 January 2026</p>", "<p>Updated on January 5th, 2026</p>",
         "Only how dates are written changed.", "Updated on 5 January → January 5th"),
        ("<p>Due 2026-03-02</p>", "<p>Due 02/03/2026</p>", "Only how dates are written changed.",
         "Due 2026-03-02 → 02/03/2026"),
    ],
)  # fmt: skip
def test_what_changes_the_form_and_not_the_content_is_minor(old: str, new: str, reason: str, headline: str) -> None:
    sides = [Side(f"<body>{FILLER}{part}".encode(), "", 0.0) for part in (old, new)]
    sides = [side._replace(text=Extraction(side.body, HTML).text()) for side in sides]
    judgement = weigh(sides[0], sides[1], "", HTML)
    assert (judgement.importance, judgement.reason, judgement.headline) == (Importance.MINOR, reason, headline)
    assert 0.4 <= judgement.score < 0.5


@pytest.mark.parametrize(
    ("old", "new", "headline"),
    [
        ("<h2>Gold</h2><p>Ann</p><h2>Silver</h2><p>Bob</p>", "<h2>Gold</h2><p>Bob</p><h2>Silver</h2><p>Ann</p>",
         "Gold: Ann → Bob (and 1 more)"),
        ("<table><tr><td>Pen<td>$10<tr><td>Ink<td>$20</table>", "<table><tr><td>Pen<td>$20<tr><td>Ink<td>$10</table>",
         "Pen: $10 → $20 (and 1 more)"),
        (STATES.format("Open", "Closed", "Open"), STATES.format("Closed", "Open", "Open"),
         "Mon: Open → Closed (and 1 more)"),
    ],
)  # fmt: skip
def test_values_that_two_things_exchanged_are_important_and_said(old: str, new: str, headline: str) -> None:
    sides = [Side(f"<body>{FILLER}{part}".encode(), "", 0.0) for part in (old, new)]
    sides = [side._replace(text=Extraction(side.body, HTML).text()) for side in sides]
    judgement = weigh(sides[0], sides[1], "", HTML)
    assert (judgement.importance, judgement.headline) == (Importance.IMPORTANT, headline)


def test_another_day_or_other_words_are_more_than_another_form() -> None:
    assert judged("<p>Due 2026-03-02</p>", "<p>Due 3 April 2026</p>").importance is Importance.IMPORTANT
    old, new = (f"<p>Send it to {name}@pens.example by 5 March 2026</p>" for name in ("jobs", "apply"))
    assert judged(old, new).importance is Importance.IMPORTANT
    assert judged("<p>Due 02/03/2026</p>", "<p>Due 03/02/2026</p>").importance is Importance.IMPORTANT
    assert judged("<p>Due 2026-03-02, 5 €</p>", "<p>Due 2 March 2026, 6 €</p>").importance is Importance.IMPORTANT
    both = judged("<p>It's - fine</p><p>Free of charge</p>", "<p>It’s – fine</p><p>Costs 5 €</p>")
    assert both.importance is Importance.IMPORTANT
    assert [edit.noise for edit in both.edits] == [None, None], "what is minor is no part of what is important"


@pytest.mark.parametrize("region", ["nav", "footer", "aside"])
def test_another_form_beside_the_content_is_noise(region: str) -> None:
    for old, new in (("It's - fine", "It’s – fine"), ("As of 2026-03-02", "As of 2 March 2026"), ("Login", "Log in")):
        found = judged(f"<{region}><p>{old}</p></{region}>", f"<{region}><p>{new}</p></{region}>")
        assert found.importance is Importance.NOISE


def test_a_number_that_stands_below_other_words_is_important_unless_it_changes_there_all_the_time() -> None:
    old, new = ("".join(f"<p>{name}</p><p>{ms} ms</p>" for name, ms in rows) for rows in (
        (("Login", 38), ("Search", 45)), (("Login", 45), ("Search", 38)),
    ))  # fmt: skip
    assert judged(old, new).importance is Importance.IMPORTANT
    counts = ("".join(f"<p>{name}</p><p>{many} comments</p>" for name, many in (("News", one), ("Sport", other)))
              for one, other in ((3, 4), (4, 3)))  # fmt: skip
    assert judged(*counts).importance is Importance.MINOR


def test_the_same_edit_in_many_rows_is_one_edit() -> None:
    def table(*, updated: str, prices: tuple[int, ...] = (5, 6, 7, 8)) -> str:
        rows = (f"<tr><td>Pen {price}<td>{price} €<td>Updated {updated}" for price in prices)
        return f"<main><table>{''.join(rows)}</table></main>"

    found = judged(table(updated="3 March 2026"), table(updated="8 March 2026"))
    assert [edit.noise for edit in found.edits] == [None, "copy", "copy", "copy"]
    assert found.importance is Importance.IMPORTANT
    dearer = "<main><table><tr><td>Pen<td>{} €<tr><td>Ink<td>{} €<tr><td>Nib<td>{} €</table></main>"
    assert [edit.noise for edit in judged(dearer.format(5, 6, 7), dearer.format(8, 9, 10)).edits] == [None] * 3
    assert [edit.noise for edit in judged(dearer.format(5, 6, 7), dearer.format(8, 8, 8)).edits] == [None] * 3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("06:30 Uhr", "06:30 Uhr 1 Kommentare"),
        ("Published today 12 comments", "Published today"),
        ("A la une", "A la une 3 commentaires"),
    ],
)
def test_a_count_of_comments_that_comes_or_goes_is_noise(old: str, new: str) -> None:
    assert judged(f"<main><p>{old}</p></main>", f"<main><p>{new}</p></main>").importance is Importance.NOISE


def test_ages_that_changed_places_are_noise() -> None:
    old, new = (
        "".join(f"<p>{name}</p><p>{days} days ago</p>" for name, days in zip(("Pen", "Ink", "Nib"), ages, strict=True))
        for ages in ((2, 3, 5), (3, 5, 6))
    )
    assert judged(f"<main>{old}</main>", f"<main>{new}</main>").importance is Importance.NOISE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("This page was viewed 9,736 times.", "This page was viewed 9,780 times."),
        ("4 min read · 310 views", "5 min read · 322 views"),
        ("80,210 downloads this week", "80,520 downloads this week"),
        ("412 people said yes.", "415 people said yes."),
    ],
)
def test_counts_of_readers_are_noise_in_the_content_too(old: str, new: str) -> None:
    assert judged(f"<main><p>{old}</p></main>", f"<main><p>{new}</p></main>").importance is Importance.NOISE


def test_another_holder_in_a_copyright_notice_is_minor() -> None:
    old, new = "<main><p>Pens Ltd. All rights reserved.</p></main>", "<main><p>Ink Inc. All rights reserved.</p></main>"
    found = judged(old, new)
    assert (found.importance, found.reason) == (Importance.MINOR, "Only the copyright notice changed.")


def test_links_of_a_menu_may_change_their_order_and_paragraphs_may_not() -> None:
    one, other = "An entry of a menu that says quite a lot", "And another one that says no less than it"
    before, after = (
        f"<a href=/a>{one}</a></li><li><a href=/b>{other}</a>",
        f"<a href=/b>{other}</a><li><a href=/a>{one}</a>",
    )
    assert judged(f"<nav><li>{before}</nav>", f"<nav><li>{after}</nav>").importance is Importance.NOISE
    assert judged(f"<p>{one}<p>{other}", f"<p>{other}<p>{one}").importance is Importance.MINOR


def test_a_price_aside_of_the_content_advertises_something_else() -> None:
    old, new = "<p>Flights from 246 €</p>", "<p>Flights from 249 €</p>"
    for where in ("nav", "aside"):
        aside = f"<main>{WORDS}</main><{where}>"
        assert (judged(aside + old, aside + new).importance is Importance.NOISE) is (where == "aside")
    assert judged(f"<aside>{old}", f"<aside>{new}").importance is Importance.IMPORTANT
    assert judged(f"<main>{old}", f"<main>{new}").importance is Importance.IMPORTANT


def test_where_a_page_consists_of_links_they_are_its_content() -> None:
    names = ["Ann", "Bea", "Cora", "Dan", "Eve", "Fay", "Gus", "Hal", "Ida", "Jo", "Kim"]
    people = [f"<li><a href=/{name}>{name} Smith</a>" for name in names]
    old, new = "".join(people), "".join(people).replace("Dan Smith", "Dan Jones")
    assert judged(old, new, around="").importance is Importance.IMPORTANT
    assert judged(old, new, around=FILLER * 3).importance is Importance.NOISE
    assert judged(f"<nav>{old}</nav>", f"<nav>{new}</nav>").importance is Importance.NOISE


def test_one_edit_that_matters_is_enough() -> None:
    judgement = judged("<p>© 2025</p><p>Fees are due.</p>", "<p>© 2026</p><p>Fees are waived for all members.</p>")
    assert judgement.importance is Importance.IMPORTANT


def test_a_number_on_a_small_page_may_be_what_it_is_watched_for() -> None:
    assert judged("<p>42</p>", "<p>43</p>", around="").importance is Importance.IMPORTANT
    assert judged("<p>42 left</p>", "<p>43 left</p>", around="").importance is Importance.IMPORTANT


def test_a_name_does_not_make_noise_of_what_the_page_is_about() -> None:
    old = f"<div class='cookie-policy'>{FILLER}<p>We set one cookie.</p></div><p>Bye.</p>"
    new = f"<div class='cookie-policy'>{FILLER}<p>We set many of them.</p></div><p>Bye.</p>"
    assert judged(old, new, around="").importance is Importance.IMPORTANT


def test_a_date_that_does_not_follow_the_clock_is_no_clock() -> None:
    old, new = "<p>Valid from June 1, 2025</p>", "<p>Valid from July 1, 2025</p>"
    assert judged(old, new).importance is Importance.IMPORTANT


@pytest.mark.parametrize(
    ("old", "new", "added", "removed", "reason"),
    [
        ("a b c", "a b c d", 1, 0, "1 word added in one place: a b c → a b c d."),
        ("a b c", "a", 0, 2, "2 words removed in one place: a b c → a."),
        ("a<p>b<p>c", "x<p>b<p>y", 2, 2, "2 words added and 2 words removed in 2 places."),
        ("a b", "b a", 0, 0, "The same words stand in another order in one place: a b → b a."),
        ("", "a", 1, 0, "1 word added in one place: a."),
        ("a", "", 0, 1, "1 word removed in one place: a."),
    ],
)
def test_a_change_is_described_in_a_sentence(old: str, new: str, added: int, removed: int, reason: str) -> None:
    judgement = judged(old, new)
    assert (judgement.words_added, judgement.words_removed, judgement.reason) == (added, removed, reason)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("<p>It costs $20.</p>", "<p>It costs $25.</p>", "price"),
        ("<p>Due in 10 days at the latest, we say.</p>", "<p>Due in 20 days at the latest, we say.</p>", "number"),
        ("<p>It costs $20.</p>", "<p>It costs $25 or less.</p>", "text"),
        ("<p>In stock</p>", "<p>Sold out</p>", "availability"),
        ("<p>Use it, as far as it is allowed.</p>", "<p>Use it as far as it is allowed.</p>", "text"),
        ("<p>It costs $20.</p>", "<p>It costs $25.</p><p>Only now.</p>", "text"),
        ("<p>© 2025 Ann</p><p>It costs $20.</p>", "<p>© 2026 Ann</p><p>It costs $25.</p>", "price"),
    ],
)
def test_a_change_of_prices_or_numbers_is_distinguished_from_one_of_text(old: str, new: str, kind: str) -> None:
    assert judged(old, new).kind == kind


TEXTS = st.lists(st.sampled_from(["one", "two 2", "© 2025", "3 days ago", "x", "a longer text that says something"]))


@searched
@given(TEXTS, TEXTS)
def test_every_judgement_has_a_score_and_noise_a_reason(old: list[str], new: list[str]) -> None:
    before, after = (read("".join(f"<p>{text}</p>" for text in texts)) for texts in (old, new))
    judgement = judge(before, after)
    assert 0 <= judgement.score <= 1
    assert judgement.reason.endswith(".")
    assert judgement.words_added - judgement.words_removed == len(after.text.split()) - len(before.text.split())


@searched
@given(TEXTS)
def test_a_page_does_not_differ_from_itself(texts: list[str]) -> None:
    page = read("".join(f"<p>{text}</p>" for text in texts))
    judgement = judge(page, page)
    assert (judgement.importance, list(judgement.edits)) == (Importance.NOISE, [])


def test_other_quotes_in_very_many_lines_are_minor_too() -> None:
    old, new = ("".join(f"<p>Clause {n}: the seller{quote}s duty number {n}</p>" for n in range(600)) for quote in "'’")
    assert judged(old, new).importance is Importance.MINOR


@pytest.mark.parametrize(("old", "new"), [("Home 2 11 Away", "Home 21 1 Away"), ("Rooms 1 12", "Rooms 11 2")])
def test_a_gap_between_digits_is_more_than_a_gap(old: str, new: str) -> None:
    assert judged(f"<main><p>{old}</p></main>", f"<main><p>{new}</p></main>").importance is Importance.IMPORTANT


def test_an_entry_that_moved_to_another_section_is_important() -> None:
    lists = "<main><h2>Open positions</h2><p>Cook</p>{}<h2>Filled positions</h2><p>Driver</p>{}</main>"
    old, new = lists.format("<p>Waiter</p>", ""), lists.format("", "<p>Waiter</p>")
    assert judged(old, new).importance is Importance.IMPORTANT
    other = lists.replace("<p>Cook</p>{}", "{}<p>Cook</p>")
    assert judged(old, other.format("<p>Waiter</p>", "")).importance is Importance.MINOR


def test_what_stands_beside_a_copyright_phrase_is_content() -> None:
    old, new = (f"<main><p>All rights reserved. Tickets {say}.</p></main>" for say in ("on sale Monday", "sold out"))
    assert judged(old, new).importance is Importance.IMPORTANT
