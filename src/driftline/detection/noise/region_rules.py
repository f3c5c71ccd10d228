"""Rules that explain an edit by where it stands: in a region beside the content, a link, a consent banner, a calendar.

What stands next to a banner is no part of it, even if both were added at once: a banner must not hide content.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from driftline.detection.error_pages.patterns import ABOUT_CONSENT
from driftline.detection.noise.edits import BESIDE_CONTENT, NOISE_OF_REGION, LineEdit, line_of
from driftline.detection.noise.learning import learned_noise
from driftline.detection.noise.rules import HEAD, SHORT, Wording, rewritten_noise
from driftline.detection.noise.volatile import is_creeping, names_contact, names_money, names_stock
from driftline.model.change import NoiseKind, Region

if TYPE_CHECKING:
    from collections.abc import Sequence

    from driftline.detection.diff.lines import Line, LinePair
    from driftline.detection.noise.edits import JudgedDocument
    from driftline.detection.noise.rules import Context
    from driftline.model.change import Block


_CONSENT = Wording({
    "cookie": r"\bcookies?\b.*\b(?:accept|consent|prefer|settings|agree|refus|manage)",
    "we value your privacy": r"we value your privacy",
    "continue without accepting": r"continue without accepting",
    "we and our": r"\bwe and our (?:\d[\d.,]* )?(?:selected )?(?:third )?part(?:ner|ies)",
    "store and/or access": r"store and/or access information on a device",
    "vie privée": r"respect(?:e|ons) votre vie privée",
    "privatsphäre": r"(?:respektieren|schätzen) (?:ihre|deine) privatsphäre",
    "privacidad": r"(?:respetamos|valoramos|valorizamos) (?:tu|su|a sua) privacidad",
    "tua privacy": r"(?:rispettiamo|rispetta|teniamo al)la tua privacy",
    "uw privacy": r"(?:respecteren|waarderen) (?:uw|jouw) privacy",
    "mes choix": r"(?:personnaliser|paramétrer|gérer) mes (?:choix|préférences)",
    "sans accepter": r"continuer sans accepter",
})  # fmt: skip
#: what a banner lets people do with cookies
_COOKIE_CHOICE = re.compile(
    r"accept|refus|personnalis|paramétr|gérer|gestion|préférences|choix|akzeptier|ablehn|zustimm|einstellung|verwalten"
    r"|acepta|acepto|rechaz|configurar|preferenci|aceit|rejeitar|gerir|definições|accett|rifiut|gestisci|impostazioni"
    r"|preferenze|weiger|instelling|voorkeuren|beheer|godkänn|inställningar|hantera|godkend|afvis|samtyk|godta"
    r"|innstillinger|hyväksy|akceptuj|odrzu|ustawieni|zarządzaj"
)
_CONSENT_BUTTON = re.compile(
    r"(?:tout|tous) (?:accepter|refuser)|(?:accepter|refuser) (?:tout|tous)|j'accepte|je refuse"
    r"|accepter et (?:fermer|continuer)|nur notwendige(?: cookies)?"
    r"|alles? (?:cookies )?(?:akzeptieren|annehmen|ablehnen|zulassen|accepteren|weigeren|toestaan)"
    r"|(?:aceptar|rechazar|aceitar|rejeitar) (?:todo|todas?|tudo|todos)(?: (?:las|os) cookies)?"
    r"|(?:accetta|rifiuta) (?:tutto|tutti|tutti i cookie)|(?:acceptera|godkänn|neka|avvisa) alla(?: cookies)?"
    r"|(?:accepter|afvis|tillad|godta|avvis) alle(?: cookies)?|hyväksy kaikki"
    r"|(?:akceptuj|zaakceptuj|odrzuć) wszystkie(?: pliki cookie)?"
    r"|(?:accept|allow|reject|refuse|decline|deny)(?: all)?(?: cookies)?"
    r"|(?:customi[sz]e|manage|cookie)(?: your| my)? (?:preferences|settings|choices|options)"
    r"|(?:manage )?(?:privacy|cookies?|consent)(?: consent)? (?:management|preferences|settings|choices|manager)",
    re.IGNORECASE,
)
_COOKIES = re.compile(r"\b(?:cookies?|gdpr|your (?:consent|privacy))\b", re.IGNORECASE)
_USES_COOKIES = re.compile(
    r"\b(?:use|uses|utilis(?:e|ons|ent)|verwende[nt]|nutz(?:en|t)|setz(?:en|t)|utiliza(?:mos)?|usamos|utilizziamo"
    r"|utilizza|usiamo|gebruik(?:en|t)|använder|bruger|bruker|käytämme|używamy|wykorzystujemy)\b.{0,40}"
    r"\b(?:cookies?|evästeitä|plik\w* cookie)",
    re.IGNORECASE,
)
_BANNERS = (Region.CONSENT, Region.DIALOG)
_CHOICE = 60  # characters of a button or a link about cookies
_CONSENT_SHARE = 0.05  # of the lines of a consent banner
_MOST = 0.5  # of the characters between the first and the last line of a consent banner
_DAYS = {str(day) for day in range(1, 29)}


def widgets_of(pairs: Sequence[LinePair], old: JudgedDocument, new: JudgedDocument) -> dict[Line, NoiseKind]:
    """Return the lines of consent banners and calendars that were added or removed as a whole."""
    there: dict[bytes, list[tuple[Line, JudgedDocument]]] = defaultdict(list)
    for one, other in pairs:
        if other is None and one is not None:
            there[one.place].append((one, old))
        elif one is None and other is not None:
            there[other.place].append((other, new))
    found: dict[Line, NoiseKind] = {}
    # places where both texts have lines that the other does not have
    gone, come = ({line.place for line in lines if line} for lines in zip(*pairs, strict=True)) if pairs else ((), ())
    rewritten = {*gone} & {*come}
    for place, among in there.items():
        consent = {line for line, _ in among if _is_about_consent(line.folded[:HEAD])}
        if len(consent) >= max(1, _CONSENT_SHARE * len(among)):
            found |= dict.fromkeys(_banner(among, consent, place in rewritten), NoiseKind.CONSENT)
        elif {line.folded for line, _ in among} >= _DAYS:
            found |= {line: NoiseKind.CALENDAR for line, _ in among if len(line.folded) < SHORT}
    return found


def _banner(among: Sequence[tuple[Line, JudgedDocument]], consent: set[Line], rewritten: bool) -> set[Line]:
    """Return the lines of the banner that the lines about `consent` are part of.

    A banner has a region of its own, unless it fills so much of the page that no region is recognised. Then it is the
    lines about cookies and those in between, if they are about little else and the place was not `rewritten`.
    """
    banner = consent.union(line for line, read in among if line not in consent and _is_in_banner(line, read))
    if len(banner) < len(among) and not rewritten:
        first, last = min(line.at for line in banner), max(line.at for line in banner)
        between = [line for line, _ in among if first <= line.at <= last]
        about = sum(len(line.folded) for line in between if line in banner or ABOUT_CONSENT.search(line.folded[:HEAD]))
        if about >= _MOST * sum(len(line.folded) for line in between):
            banner.update(between)
    return banner


def _is_in_banner(line: Line, read: JudgedDocument) -> bool:
    if _COOKIES.search(line.folded[:HEAD]):
        return True
    block = read.block_of(line)
    return block is not None and block.region in _BANNERS


def _is_about_consent(text: str) -> bool:
    if _CONSENT_BUTTON.fullmatch(text) is not None or _CONSENT.occurs_in(text):
        return True
    lower = text.lower()
    return len(lower) <= _CHOICE and "cookie" in lower and _COOKIE_CHOICE.search(lower) is not None


LONG = 400  # characters: so much text matters in every region
LONG_REWRITTEN = 80  # characters of a line of which a part was rewritten: entries of menus are shorter
_FEW_WORDS, _MANY_WORDS = 4, 15  # of a link that is a headline; a line of more is a menu
_MENU = 3  # entries
_ADVERTISING = (Region.ASIDE, Region.ADVERTISEMENT)
_BESIDE = (*_ADVERTISING, Region.NAVIGATION, Region.HEADER, Region.FOOTER)


def is_content(one: Line | None, other: Line | None, old: JudgedDocument, new: JudgedDocument) -> bool:
    """Return whether a line is part of what the document marks as its main content, and no link."""
    block = new.block_of(other) if other else old.block_of(one)
    return block is not None and block.region is Region.MAIN and not block.linked


def region_noise(one: Line | None, other: Line | None, read: JudgedDocument) -> NoiseKind | None:
    """Return what explains the edit by where it stands; None if it matters there.

    Links are noise beside what a document marks as its main content. Where nothing is marked, one of several words may
    be part of the content.
    """
    block = read.block_of(other or one)
    if block is None:
        return None
    if one and other and one.masked == other.masked and names_money(other.text):
        return NOISE_OF_REGION[block.region] if _is_price_of_others(block, other, read) else None
    in_footer = block.region is Region.FOOTER and not block.linked  # links in headers have other numbers by the hour
    if in_footer and one and other and one.masked == other.masked and names_contact(other.text):
        return None
    if block.region is Region.FORM and any(names_stock(line.text) for line in (one, other) if line):
        return None  # in a shop, what can be bought stands in the form that puts it into the cart
    if block.region in _BANNERS and _USES_COOKIES.search(block.text[:HEAD]):
        return NOISE_OF_REGION[block.region]
    link_noise = _link_noise(block, read)
    return link_noise if _is_long(one, other) else NOISE_OF_REGION.get(block.region, link_noise)


def _is_price_of_others(block: Block, line: Line, read: JudgedDocument) -> bool:
    """Return whether a price is not one of the page: in a menu or beside the content it advertises something else.

    Linked in a header it is that of a cart, and alone at the foot of the page a sum of the site, as of donations.
    """
    if block.region is Region.HEADER:
        return block.linked
    if block.region is Region.FOOTER:
        return bool(line.label)
    advertised = block.region in _ADVERTISING or (block.region is Region.NAVIGATION and block.linked)
    return advertised and read.blocks().has_main


def _link_noise(block: Block, read: JudgedDocument) -> NoiseKind | None:
    """Return LINKS for a link outside of the main content."""
    if not block.linked or block.region is Region.MAIN:
        return None
    if block.region is Region.BODY and not read.blocks().has_main and read.blocks().is_list_of_links:
        return None  # where a page consists of links, they are its content
    is_headline = _FEW_WORDS <= len(block.text.split()) <= _MANY_WORDS
    return None if is_headline and not read.blocks().has_main else NoiseKind.LINKS


def _is_long(one: Line | None, other: Line | None) -> bool:
    """Return whether the edit is so long that it matters in every region."""
    if one and other:
        return len(other.text) >= LONG_REWRITTEN
    return max(len(line.text) for line in (one, other) if line) >= LONG


def counter_noise(one: Line | None, other: Line, new: JudgedDocument, context: Context) -> NoiseKind | None:
    """Return COUNTER if only a count changed outside the main content, or one that stands alone rose a little.

    In the main content, any other number may be what the page is about.
    """
    if one is None or context.small:
        return None
    if is_creeping(one.folded, other.folded):
        return NoiseKind.COUNTER
    block = new.block_of(other)
    if block is None or block.region is Region.MAIN:
        return None
    if block.region in _BESIDE and (noise := learned_noise(one, other, context.experience, beside=True)) is not None:
        return noise
    if other.label and block.region is Region.BODY:
        return None  # a number that stands alone may be a cell of a table: what it does by itself is learned
    noise = rewritten_noise(one, other, context)
    return noise if noise is NoiseKind.COUNTER else None


def with_labels(edits: Sequence[LineEdit]) -> list[LineEdit]:
    """Return the edits, headings of a menu that was added or removed explained by that menu."""
    there: dict[bytes, list[LineEdit]] = defaultdict(list)
    for edit in edits:
        there[line_of(edit).place].append(edit)
    menus = {place: menu for place, among in there.items() if (menu := _menu_noise(among)) is not None}
    return [
        replace(edit, noise=menus[place])
        if edit.noise is None and (place := line_of(edit).place) in menus and may_be_label(edit.old, edit.new)
        else edit
        for edit in edits
    ]


def _menu_noise(among: Sequence[LineEdit]) -> NoiseKind | None:
    """Return what explains the edits of one place if a menu was added or removed there."""
    if len(among) < _MENU:
        return None
    others = [edit.noise for edit in among if edit.noise is not None or not may_be_label(edit.old, edit.new)]
    explained = len(others) >= _MENU and set(others) <= BESIDE_CONTENT | {NoiseKind.COPY}
    return Counter(others).most_common(1)[0][0] if explained else None


def may_be_label(one: Line | None, other: Line | None) -> bool:
    """Return whether an added or removed line is so short that it may head a list."""
    if one and other:
        return False
    line = one or other
    return line is not None and len(line.text) < SHORT and len(line.text.split()) < _FEW_WORDS and line.masked != ""
