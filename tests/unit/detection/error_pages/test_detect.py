from __future__ import annotations

import pytest

from driftline.detection.error_pages.detect import needs_script, why_broken

PAGE = "\n".join(f"Paragraph {number} of terms that go on for quite a while, as terms do." for number in range(40))
BODY = f"<html><body>{PAGE}</body></html>".encode()


@pytest.mark.parametrize(
    ("title", "text", "reason"),
    [
        ("Just a moment...", "Checking your browser before you access example.com", "block page"),
        ("Access Denied", "You don't have permission to access this server. Reference #18.2d", "block page"),
        ("example.com", "Verify you are human by completing the action below.", "block page"),
        ("404 Not Found", "Nothing here. Go home.", "error page"),
        ("Oops", "503 Service Unavailable", "error page"),
        ("Shop", "We are down for maintenance.", "error page"),
        ("Shop", "", "empty shell"),
        ("Shop", "You need to enable JavaScript to run this app.", "empty shell"),
    ],
)
def test_a_response_that_is_not_the_page_is_reported(title: str, text: str, reason: str) -> None:
    sentence = why_broken(title, text, b"<html></html>", PAGE, BODY)
    assert sentence is not None
    assert reason in sentence


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Terms", PAGE + "\nOne paragraph more."),
        ("Cookies", PAGE + "\nYour browser needs JavaScript, and we may verify that you are human."),
        ("Status", "All systems work. " * 40),
        ("Highway 404", "Highway 404 is closed for the winter. Please take another road. " * 3),
    ],
)
def test_a_page_with_other_text_is_not_broken(title: str, text: str) -> None:
    assert why_broken(title, text, b"<html></html>", PAGE, BODY) is None


CONCERT = "\n".join(f"Band {number} plays in the town hall, and everybody may come." for number in range(3))


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("404 Not Found", "Not Found\nThe requested URL was not found on this server."),
        ("Concert", "503 Service Unavailable\nNo server is available to handle this request."),
        ("Concert", "Error establishing a database connection"),
        ("Concert", "We'll be back soon\nThe site is down for maintenance."),
        ("Concert", "This content is not available in your country."),
        ("Concert", "Our site is currently unavailable in most European countries."),
        ("451", "Unavailable due to legal reasons"),
        ("Concert", "Dieses Angebot ist in Ihrem Land leider nicht verfügbar."),
        ("Concert", "Ce contenu n'est pas disponible dans votre pays."),
        ("Concert", "Este contenido no está disponible en tu región."),
        ("Concert", "Questo contenuto non è disponibile nel tuo paese."),
        ("Concert", "Deze inhoud is niet beschikbaar in uw land."),
    ],
)
def test_an_error_in_the_place_of_a_short_page_is_reported(title: str, text: str) -> None:
    sentence = why_broken(title, text, b"<html></html>", CONCERT, b"<html></html>")
    assert sentence == "The response is an error page, although its status says that all is well."


def test_a_page_that_is_still_there_may_speak_of_walls_and_errors() -> None:
    for more in ("We now use a captcha; please verify you are human.", "Sorry for the 503 service unavailable."):
        assert why_broken("Concert", f"{CONCERT}\n{more}", b"", CONCERT, b"") is None
    article = f"{PAGE[:700]}\nPlease verify you are a human. Enable JavaScript and cookies to continue."
    assert why_broken("How sites tell people from robots", article, b"") is None


def test_words_that_a_page_always_had_are_no_error() -> None:
    assert why_broken("", "503 service unavailable", b"", "504 gateway timeout", b"") is None
    assert why_broken("", "You have been blocked 5 times", b"", "You have been blocked 4 times", b"") is None


LOGIN = b"<form><input name=user><input name=word type='password'></form>"


def test_a_login_in_the_place_of_the_page_is_reported() -> None:
    words = "Welcome to Example, the place for examples of all kinds and sizes. Sign in to go on. Forgot your password?"
    sentence = why_broken("Example", words, LOGIN, PAGE, BODY)
    assert sentence == "The site asks to log in instead of showing the page."
    assert why_broken("Example", words, b"<form></form>", PAGE, BODY) is None, "there is no login"
    assert why_broken("Example", words, LOGIN, PAGE, BODY + LOGIN) is None, "there always was one"
    assert why_broken("Example", PAGE, LOGIN, PAGE, BODY) is None, "the page is still there"
    assert why_broken("Example", words, LOGIN, "A few words.", BODY) is None, "there never was much"
    assert why_broken("Example", words, LOGIN) is None, "a new page may be a login"


def test_a_page_without_any_text_is_reported_unless_it_never_had_any() -> None:
    for old in (None, "A few words."):
        sentence = why_broken("Example", "", b"<div id=app></div>", old)
        assert sentence is not None
        assert sentence.startswith("The page shows no text")
    assert why_broken("Example", "", b"<div id=app></div>", "") is None


@pytest.mark.parametrize("body", [b"", b" \r\n\t"])
def test_an_empty_response_is_reported_and_needs_no_browser(body: bytes) -> None:
    assert why_broken("", "", body) == "The response is empty: the server sent no page."
    assert not needs_script("", "", body)


def test_only_a_page_with_scripts_is_taken_for_one_that_they_draw() -> None:
    assert why_broken("", "", b"<p></p>") == "The page shows no text."
    scripted = why_broken("", "", b"<p></p><SCRIPT src=a.js></SCRIPT>")
    assert scripted is not None
    assert "perhaps it is drawn by JavaScript" in scripted
    assert needs_script("", "", b"<p></p>"), "a browser may show what is in frames"


def test_a_new_page_with_text_is_broken_only_if_it_is_a_block_page() -> None:
    assert why_broken("Just a moment...", "Checking your browser", b"") is not None
    assert why_broken("404", "Not found", b"") is None


def test_a_page_that_breaks_off_in_the_middle_is_reported() -> None:
    assert why_broken("Terms", PAGE[: len(PAGE) // 2], BODY[: len(BODY) // 2], PAGE, BODY) is not None
    shorter = PAGE[: len(PAGE) // 2]
    assert why_broken("Terms", shorter, f"<html>{shorter}</html>".encode(), PAGE, BODY) is None


def shown(*lines: str) -> str:
    return "\n".join(lines)


NEWS = shown(
    "The Harbour Times", "Home", "Sport", "Weather", "Contact",
    *[f"Report {number}: the council met on the pier and spoke at length of ropes, nets and the price of herring."
      for number in range(30)],
)  # fmt: skip
MENU = ("The Harbour Times", "Home", "Sport", "Weather", "Contact")


def judged(title: str, text: str, body: bytes = b"<html></html>", old: str | None = NEWS) -> str:
    return why_broken(title, text, body, old, b"" if old is None else b"<html>news</html>") or ""


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (
            b"<script>window._cf_chl_opt={cvId:'3'};</script><p>example.com needs to review your connection",
            "Cloudflare",
        ),
        (b"<script>var dd={'host':'geo.captcha-delivery.com'}</script><p>Please wait", "DataDome"),
        (b"<div id='px-captcha'></div><p>Before we go on", "HUMAN"),
        (b"<iframe id=main-iframe src='/_Incapsula_Resource?SWUDNSAI=31'></iframe>", "Imperva"),
        (b"<script>window.gokuProps = {}</script>", "AWS"),
        (b"<script id='anubis_challenge' type=application/json>{}</script><p>One moment", "Anubis"),
    ],
)
def test_a_wall_is_known_by_its_markup_and_named(body: bytes, name: str) -> None:
    words = body.rpartition(b"<p>")[2].decode() if b"<p>" in body else ""
    for old in (NEWS, None):
        assert f"a block page of {name} instead of the page" in judged("example.com", words, body, old)
    assert "block page" not in judged("The Harbour Times", NEWS + "\nOne more report.", body), "a guard that lets us in"
    assert "block page" not in (why_broken("x", words, body, "Words that were one before, of some length.", body) or "")


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Vercel Security Checkpoint", "We're verifying your browser\nWebsite owner? Click here to fix"),
        ("Making sure you're not a bot!", "Loading...\nWhy am I seeing this?"),
        ("Robot or human?", "Activate and hold the button to confirm that you're human."),
        ("Request Rejected", "The requested URL was rejected. Please consult with your administrator."),
        ("Ой!", "Подтвердите, что запросы отправляли вы, а не робот\nВы не робот?"),
    ],
)
def test_a_wall_is_known_by_its_words(title: str, text: str) -> None:
    assert "a block page instead of the page" in judged(title, text)
    assert "a block page instead of the page" in judged(title, text, old=None)


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Seite nicht gefunden", shown(*MENU, "Seite nicht gefunden", "Bitte nutzen Sie die Suche.")),
        ("Oops", shown(*MENU, "We can't find that page", "It may have been moved or deleted.")),
        ("Página no encontrada", shown(*MENU, "Lo sentimos.")),
        ("Site not found", "There isn't a GitHub Pages site here."),
        ("Account Suspended", "This Account has been suspended.\nContact your hosting provider for more information."),
        ("お探しのページ", "ページが見つかりません"),
    ],
)
def test_a_soft_404_is_an_error_page(title: str, text: str) -> None:
    assert "an error page" in judged(title, text)
    assert judged(title, text, old=None) == "", "what a page is at first, it may be on purpose"


def test_a_soft_404_may_stand_among_long_menus() -> None:
    menu = [f"Department {number} of the shop, with all that belongs to it" for number in range(40)]
    goods = [f"Lamp {number} lights a room of any size, and costs next to nothing in the sale." for number in range(80)]
    before = shown(*menu, *goods)
    missing = shown(*menu, "Sorry, this lamp is not here any more.", "Try the search.")
    assert 1_500 < len(missing) < len(before)
    assert "an error page" in judged("404 - Page not found | Shop", missing, old=before)
    assert judged("Lamps | Shop", missing, old=before) == "", "nothing says that it is an error"
    assert judged("404 - Page not found | Shop", before + "\nA new lamp.", old=before) == "", "the page is still there"
    others = shown(*[line.replace("Lamp", "Chair") for line in goods])
    assert judged("Highway 404 not found on maps", others, old=before) == "", "it says too much for an error"


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("harbour-times.example", "This domain is for sale!\nInquire about this domain."),
        ("harbour-times.example", "harbour-times.example\nRelated searches\nBuy this domain\nFishing boats\nHotels"),
        ("Parked", "This domain has expired. If you are its owner, contact your registrar."),
        ("harbour-times.example", "Diese Domain steht zum Verkauf!"),
        ("harbour-times.example", "The domain name harbour-times.example is for sale"),
    ],
)
def test_a_parked_domain_is_reported(title: str, text: str) -> None:
    assert "parked or for sale" in judged(title, text)
    assert judged(title, text, old=None) == "", "somebody may wait for it to be sold"
    assert judged(title, text, old=f"{text}\nMake an offer of a hundred at the very least.") == ""


def test_a_page_about_domains_is_not_parked() -> None:
    article = shown(*MENU, "This domain is for sale: how the town lost its web site, and what the council says.")
    assert judged("The Harbour Times", article, old=shown(*MENU, "The council met.", "It spoke of ropes.")) == ""


CONSENT_PAGES = [
    (
        "Before you continue to Videos",
        shown(
            "Before you continue to Videos", "We use cookies and data to deliver and maintain our services.",
            "If you choose to accept all, we will also use cookies and data to develop new services.",
            "Reject all", "Accept all", "More options", "Privacy", "Terms",
        ),
    ),
    (
        "News",
        shown("We value your privacy", "We and our 812 partners store and access personal data, like browsing data.",
              "Our partners use it for personalised advertising.", "I agree", "Manage preferences"),
    ),
    (
        "Mit Werbung weiterlesen",
        shown("Bevor Sie fortfahren", "Wir und unsere Partner verwenden Cookies und Daten für Werbung.",
              "Alle akzeptieren", "Einstellungen"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("title", "text"), CONSENT_PAGES)
def test_a_consent_page_in_the_place_of_the_page_is_reported(title: str, text: str) -> None:
    assert "asks for consent" in judged(title, text)
    lengthy = shown(text, *[f"Purpose {n}: to measure what is read, cookies store your data." for n in range(40)])
    assert len(lengthy) > 1_500
    assert "asks for consent" in judged(title, lengthy)
    assert judged(title, text, old=None) == ""
    assert judged(title, text, old=f"{text}\nAnd more.") == "", "it always did"


def test_a_page_with_a_banner_is_the_page_even_if_all_of_it_is_new() -> None:
    banner = shown("We value your privacy", "We use cookies to improve this site.", "Accept all", "Reject all")
    few = shown(
        banner, *[f"The new ferry number {n} leaves at noon, and takes all who wait on the pier." for n in range(6)]
    )
    many = shown(banner, *[f"The new ferry number {n} leaves at noon, and takes all who wait." for n in range(60)])
    for text in (few, many):
        assert judged("Ferries", text) == ""


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Sign in - Example", "Sign in\nto continue to your account\nEmail\nNext\nCreate account"),
        ("Example | Log in", "Welcome back\nE-mail address\nContinue"),
        ("Anmelden", "Anmelden\nE-Mail-Adresse\nWeiter"),
    ],
)
def test_a_login_without_a_password_is_reported_too(title: str, text: str) -> None:
    form = b"<form><input name=user type='email'></form>"
    assert "asks to log in" in judged(title, text, form)
    assert "asks to log in" not in judged(title, text, b"<p>no form")
    assert judged(title, text, form, None) == "", "the first version decides"
    changed = f"{text}\nWe moved: please log in with your new address from now on, as we wrote to you."
    assert judged(title, changed, form, text) == "", "a login that is watched may change"


def test_an_article_about_walls_and_logins_is_an_article() -> None:
    lines = [
        "Sites ask whether you are human in many ways.", "Cloudflare shows a page that says 'Just a moment'.",
        "DataDome and others show a captcha.", "Some ask to sign in, some for consent to cookies: Accept all.",
        *[f"Example {n} is explained at length, with what readers of this site think of it." for n in range(20)],
    ]  # fmt: skip
    for old in (None, NEWS):
        assert judged("How walls work", shown(*lines), old=old) == ""


FRAME = ("Home About", "Copyright")


def framed(*lines: str) -> str:
    return shown(FRAME[0], *lines, FRAME[1])


ARTICLE = framed("Widget", *[f"Sentence {n} of what the maker says of the widget, which is much." for n in range(12)])
SCRIPTED = b"<html><body><p>words</p><script src=/all.js></script></body></html>"


@pytest.mark.parametrize(
    ("title", "lines"),
    [
        ("Widget", ["A wholly new text: the bridge is closed from Monday on."]),
        ("Widget", ["Widget", "Sold out"]),
        ("Widget", ["Widget", "The council has decided to remove this text."]),
        ("Widget", ["Widget", "Nobody works here any more."]),
    ],
)
@pytest.mark.parametrize("body", [b"<html></html>", SCRIPTED], ids=["plain", "scripted"])
def test_a_page_with_new_text_is_no_shell_however_short(title: str, lines: list[str], body: bytes) -> None:
    for text in (shown(*lines), framed(*lines)):
        assert why_broken(title, text, body, ARTICLE, BODY) is None


def test_a_page_without_text_and_with_scripts_is_a_shell() -> None:
    for text in (framed(), framed("Widget"), framed("Loading…"), "Please wait..."):
        assert "empty shell" in (why_broken("Widget", text, SCRIPTED, ARTICLE, BODY) or "")
        assert why_broken("Widget", text, b"<html></html>", ARTICLE, BODY) is None, "it is the page, and was emptied"
    mount = b"<body><h1>Shop</h1>Cart (0)<div class=x id='root'></div><script src=/all.js></script></body>"
    assert "empty shell" in (why_broken("Widget", framed("Cart (0)"), mount, ARTICLE, BODY) or "")


@pytest.mark.parametrize(
    ("title", "lines", "body", "reason"),
    [
        ("Log in", ["Log in", "Email Password", "Log in"], LOGIN, "asks to log in"),
        ("Log in", ["Log in", "Email"], b"<form><input name=email></form>", "asks to log in"),
        (
            "Sign in to your account",
            ["Sign in to your account", "Enter your email to continue", "Next"],
            b"<input type=email name=loginfmt>",
            "asks to log in",
        ),
        ("Too many requests", ["Too many requests", "You have been rate limited. Slow down."], b"", "too many"),
        ("Shop", ["429 Too Many Requests"], b"", "too many"),
        ("404", ["404", "Oops! Nothing to see here."], b"", "an error page"),
        ("Shop", ["503 Service Temporarily Unavailable", "nginx"], b"", "an error page"),
    ],
)
def test_what_stands_under_the_usual_header_is_named_for_what_it_is(
    title: str, lines: list[str], body: bytes, reason: str
) -> None:
    assert reason in (why_broken(title, framed(*lines), body, ARTICLE, b"<title>Widget</title>") or "")


def test_a_crash_is_reported_whatever_else_the_page_has() -> None:
    sidebar = [f"Another story {n} that is told beside what is missing, at some length." for n in range(8)]
    wordpress = "That page can’t be found. It looks like nothing was found at this location. Maybe try a search?"
    crash = (
        "Fatal error: Uncaught Error: Call to undefined function foo() in /var/www/index.php:3 Stack trace: #0 {main} "
        "thrown in /var/www/index.php on line 3"
    )
    for line in (wordpress, crash):
        text = framed("Oops", line, *sidebar)
        assert len(text) > len(ARTICLE) / 2
        assert "an error page" in (why_broken("Oops", text, b"", ARTICLE, BODY) or "")
        assert why_broken("Oops", text, b"") is None, "a new page may be about that"
        assert why_broken("Oops", f"{ARTICLE}\n{line}", b"", ARTICLE, BODY) is None, "the page is still there"


@pytest.mark.parametrize(
    ("title", "lines"),
    [
        ("Songs", ["Access denied is the new song of the band."]),
        (
            "Robots",
            [
                "Please verify you are human, said the website. Checking your browser. Our article on captchas.",
                *[f"Reader {n} has seen as much of them as anybody else in this town." for n in range(6)],
            ],
        ),
        ("Robots", ['"Please verify you are human": so it says.', "It says so on every second page of the web today."]),
        ("Visitors", ["Visitors of today", "404"]),
        ("How to fix a 502 Bad Gateway of your own server", ["Restart it.", "If that is of no use, call your host."]),
    ],
)
def test_words_of_walls_and_errors_that_are_only_mentioned_make_none(title: str, lines: list[str]) -> None:
    assert why_broken(title, framed(*lines), b"<html></html>", ARTICLE, BODY) is None
    assert why_broken(title, shown(*lines), b"<html></html>") is None


def test_a_title_that_the_page_always_had_is_no_error() -> None:
    old_body = b"<html><title>Page not found &amp; other\n errors</title></html>"
    text = framed("Widget", "They are all gone by now.")
    assert "an error page" in (why_broken("Page not found & others", text, b"", ARTICLE, old_body) or "")
    assert why_broken("Page not found & other errors", text, b"", ARTICLE, old_body) is None


SAYS_ERROR = ("Page not found", "Seite nicht gefunden", "Oops! Something went wrong", "Your session has expired")


@pytest.mark.parametrize("said", SAYS_ERROR)
def test_an_error_in_the_layout_of_the_site_is_reported(said: str) -> None:
    menu = [f"Entry {number}" for number in range(12)]
    before = shown(*menu, *NEWS.split("\n")[5:13], "Imprint")
    assert judged(said, shown(*menu, said, "Imprint"), old=before)
    assert not judged("News", shown(*menu, "A word", "Imprint"), old=before)
