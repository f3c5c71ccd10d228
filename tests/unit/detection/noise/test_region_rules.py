"""What stands beside the content in words of several languages: consent, prices of the site, announcements."""

from __future__ import annotations

import pytest

from driftline.detection.extract.document import Extraction
from driftline.detection.noise.edits import JudgedDocument, Judgement, ReadOnce
from driftline.detection.noise.judge import judge
from driftline.model.change import Importance

FILLER = "<p>" + "A paragraph that says the same at every check, so that the page is not a small one. " * 6 + "</p>"
BANNER = (
    "Chez nous, les cookies servent à rendre votre visite plus agréable, et nous utilisons des cookies avec nos "
    "partenaires pour mesurer combien de personnes lisent nos pages, {} mois durant."
)


def read(markup: str) -> JudgedDocument:
    def reading() -> Extraction:
        return Extraction(f"<title>Page</title><body>{markup}</body>".encode(), "text/html; charset=utf-8")

    return JudgedDocument(text=reading().text(), title="Page", at=0.0, blocks=ReadOnce(lambda: reading().blocks()))


def judged(old: str, new: str) -> Judgement:
    return judge(read(FILLER + old), read(FILLER + new))


@pytest.mark.parametrize(
    "banner",
    [
        "<p>Nous respectons votre vie privée</p><p>Tout accepter</p><p>Continuer sans accepter</p>",
        "<p>Gérer mes cookies</p><p>Je refuse</p><p>J'accepte</p>",
        "<p>Alle Cookies akzeptieren</p><p>Nur notwendige Cookies</p><p>Cookie-Einstellungen</p>",
        "<p>Aceptar todas las cookies</p><p>Configurar cookies</p>",
        "<p>Accetta tutti i cookie</p><p>Rifiuta tutto</p>",
        "<p>Alles accepteren</p><p>Cookievoorkeuren beheren</p>",
        "<p>Akceptuj wszystkie pliki cookie</p><p>Zarządzaj plikami cookie</p>",
    ],
)
def test_a_consent_banner_is_noise_in_every_language(banner: str) -> None:
    assert judged("", banner).importance is Importance.NOISE
    assert judged(banner, "").importance is Importance.NOISE
    assert judged("", banner + "<p>All pens are recalled at once, because of their caps.</p>").importance is (
        Importance.IMPORTANT
    )


def test_a_long_text_about_cookies_is_noise_in_a_banner_and_content_elsewhere() -> None:
    old, new = (BANNER.format(months) for months in ("six", "treize"))
    assert judged(f"<div class=cookie-banner>{old}</div>", f"<div class=cookie-banner>{new}</div>").importance is (
        Importance.NOISE
    )
    assert judged(f"<p>{old}</p>", f"<p>{new}</p>").importance is Importance.IMPORTANT


def test_a_linked_price_in_a_header_is_that_of_a_cart() -> None:
    cart = "<header><a href=/cart>{}</a></header>"
    assert judged(cart.format("12,50 €"), cart.format("19,00 €")).importance is Importance.NOISE
    product = "<header><h1>Pen</h1><p>{}</p></header>"
    assert judged(product.format("12,50 €"), product.format("19,00 €")).importance is Importance.IMPORTANT


def test_a_sum_that_stands_alone_at_the_foot_of_a_page_is_one_of_the_site() -> None:
    sums = "<footer><p>Donated so far</p><p>{}</p></footer>"
    assert judged(sums.format("4 980 398 €"), sums.format("4 983 142 €")).importance is Importance.NOISE
    fee = "<footer><p>Delivery costs {}</p></footer>"
    assert judged(fee.format("5 €"), fee.format("6 €")).importance is Importance.IMPORTANT


@pytest.mark.parametrize("name", ["announcement-bar", "site-notice-bar", "notification-bar", "top-banner", "usp-bar"])
def test_an_announcement_bar_is_beside_the_content(name: str) -> None:
    bar = f"<div class={name}><p>{{}}</p></div>"
    found = judged(bar.format("Free delivery until Sunday"), bar.format("Our summer catalogue is out"))
    assert found.importance is Importance.NOISE
