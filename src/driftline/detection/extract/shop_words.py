"""Read numbers, sums of money and states of stock as people and shops write them: `1.299,00 €`, `$1,299`, `Sold out`.

A point or a comma divides thousands or decimals, by the language of the page, which is often unknown. The rules: of two
different ones the last divides decimals; one that stands several times divides thousands; a single one followed by
exactly three digits does so, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_SPACES = " \u00a0\u2009\u202f"
_THOUSANDS = f"{_SPACES}'’"
# at most so many groups and digits: a table of numbers must not take long. The first way is that of India
_GROUPED = rf"\d{{1,2}}(?:,\d\d(?=,)){{1,5}}+,\d{{3}}(?!\d)|\d{{1,3}}(?:[.,{_THOUSANDS}]\d{{3}}(?!\d)){{1,5}}+"
_NUMBER = rf"(?:{_GROUPED}|\d{{1,18}}+)(?:[.,]\d{{1,18}}+)?"
_SYMBOLS = {
    "€": "EUR", "£": "GBP", "¥": "JPY", "￥": "JPY", "₹": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY", "₴": "UAH",
    "₫": "VND", "฿": "THB", "₪": "ILS", "₱": "PHP", "₦": "NGN", "₡": "CRC", "₲": "PYG", "₸": "KZT", "zł": "PLN",
    "Kč": "CZK", "Ft": "HUF", "лв": "BGN", "руб": "RUB", "R$": "BRL", "S/": "PEN", "RM": "MYR", "Rp": "IDR",
    "Rs": "INR", "lei": "RON", "元": "CNY", "円": "JPY", "원": "KRW",
    "US$": "USD", "CA$": "CAD", "C$": "CAD", "AU$": "AUD", "A$": "AUD", "NZ$": "NZD", "HK$": "HKD", "S$": "SGD",
    "NT$": "TWD", "MX$": "MXN", "$": "$", "kr": "kr",
}  # fmt: skip
_CODES = (
    "EUR", "USD", "GBP", "CHF", "SEK", "NOK", "DKK", "ISK", "PLN", "CZK", "HUF", "RON", "BGN", "TRY", "RUB", "UAH",
    "JPY", "CNY", "RMB", "KRW", "INR", "AUD", "NZD", "CAD", "MXN", "BRL", "ARS", "CLP", "COP", "PEN", "ZAR", "NGN",
    "KES", "EGP", "AED", "SAR", "QAR", "KWD", "BHD", "OMR", "JOD", "TND", "ILS", "SGD", "HKD", "TWD", "MYR", "THB",
    "IDR", "PHP", "VND", "PKR", "BDT", "LKR", "KZT", "GEL",
)  # fmt: skip
_WORDS = {"euro": "EUR", "euros": "EUR", "dollar": "$", "dollars": "$", "pound": "GBP", "pounds": "GBP"}
_ALIASES = {"RMB": "CNY"}
#: currencies whose symbol is shown, before the number; others are shown by their code, after it
_SHOWN = {"EUR": "€", "GBP": "£", "USD": "$", "$": "$", "JPY": "¥", "INR": "₹", "KRW": "₩", "BRL": "R$", "ILS": "₪"}
_WITHOUT_DECIMALS = ("JPY", "KRW", "VND", "CLP", "ISK", "PYG", "IDR", "HUF")
_THREE_DECIMALS = ("KWD", "BHD", "OMR", "JOD", "TND")
_NAMES = {name.lower(): code for name, code in [*_SYMBOLS.items(), *_WORDS.items(), *((one, one) for one in _CODES)]}
# the longest first, so that 'US$' is not read as '$'; letters must not be a part of a word
_NAMED = "|".join(
    rf"(?<![^\W\d_]){re.escape(name)}(?![^\W\d_])" if name[0].isalpha() and name[-1].isalpha()
    else rf"(?<![^\W\d_]){re.escape(name)}" if name[0].isalpha() else re.escape(name)
    for name in sorted(_NAMES, key=len, reverse=True)
)  # fmt: skip
_NOTHING_AFTER = r"(?:[.,][-–—]+)?"  # as in '1299,-'
_MONEY = re.compile(
    rf"(?P<before>{_NAMED})(?:(?<=[^\W\d_])\.)?[{_SPACES}]?(?P<first>-?{_NUMBER}){_NOTHING_AFTER}"
    rf"|(?<![\w.,])(?P<second>-?{_NUMBER}){_NOTHING_AFTER}[{_SPACES}]?(?P<after>{_NAMED})(?P<cents>\d\d(?!\d))?",
    re.IGNORECASE,
)
_ANY = re.compile(rf"(?<![\w.,])[-−+]?{_NUMBER}|(?<![\w])[-−+]?[.,]\d+")
PRICE, STOCK = "Price", "Stock"
IN_STOCK, OUT_OF_STOCK = "in stock", "out of stock"
_LIMITED, PRE_ORDER, BACK_ORDER = "in stock, few left", "pre-order", "back-order"
_STATES = {
    "instock": IN_STOCK, "onlineonly": "in stock, online only", "instoreonly": "in stock, in store only",
    "limitedavailability": _LIMITED, "madetoorder": "made to order", "preorder": PRE_ORDER, "presale": PRE_ORDER,
    "backorder": BACK_ORDER, "reserved": "reserved", "outofstock": OUT_OF_STOCK, "soldout": OUT_OF_STOCK,
    "discontinued": "discontinued",
    # as Open Graph and careless templates write it
    "available": IN_STOCK, "true": IN_STOCK, "yes": IN_STOCK, "unavailable": OUT_OF_STOCK, "false": OUT_OF_STOCK,
    "oos": OUT_OF_STOCK, "pending": PRE_ORDER, "availablefororder": BACK_ORDER, "notavailable": OUT_OF_STOCK,
}  # fmt: skip
_GONE = re.compile(
    r"\b(?:out[ -]of[ -]stock|no stock|0 in stock|(?:in )?stock: ?0|sold[ -]?out|unavailable|discontinued|coming soon"
    r"|(?:not|no longer|isn.t|aren.t|never)(?: yet| currently| now| longer)? (?:in stock|available)"
    r"|(?:e?mail|notify|tell|alert|let) me\b|(?:expected|will be|soon) (?:back|available|in stock)"
    r"|(?:in stock|available|lieferbar|verfügbar|disponible) (?:soon|bald|(?:from|on|ab|by|dès le|à partir du) ?\d+)"
    r"|(?:only|nur noch) 0\b|bald (?:wieder )?(?:verfügbar|lieferbar)"
    r"|épuisé\w*|rupture(?: de stock)?|indisponible|plus disponible|ausverkauft|vergriffen"
    r"|nicht (?:mehr |sofort |derzeit |mehr sofort )?(?:verfügbar|lieferbar|auf lager|vorrätig)"
    r"|agotad[oa]|sin existencias|no (?:está )?disponible|esaurit[oa]|non (?:è )?(?:più )?disponibil[ei]"
    r"|esgotad[oa]|indisponível|uitverkocht|niet (?:op voorraad|leverbaar|beschikbaar)"
    r"|slutsåld|slut i lager|ej i lager|udsolgt|ikke på lager|utsolgt|loppuunmyyty|vyprodáno|není skladem|wyprzedan[ey]"
    r"|niedostępn[ey]|elfogyott|нет в наличии|распродано)\b|在庫切れ|在庫なし|売り切れ|缺货|缺貨|售罄|품절",
    re.IGNORECASE,
)
_ORDERED = re.compile(r"\bpre-?order|\bvorbestell|\bprécommand|\bpreventa|予約", re.IGNORECASE)
_ORDERED_BACK = re.compile(r"\bback-?order|\bon backorder", re.IGNORECASE)
_FEW = re.compile(
    r"\bonly \d+ (?:left|in stock|remaining|available)|\blow stock\b|\bfew left\b|\bnur noch \d+|\bplus que \d+"
    r"|\b(?:last|letzte) (?:items?|stück)\b|\b\d+ left in stock\b|\bwenige verfügbar",
    re.IGNORECASE,
)
_THERE = re.compile(
    r"\bin[ -]stock\b|\bstock: ?[1-9]|\bavailable\b(?! (?:in|as|for|at|with|only|sizes|colou?rs|options)\b)"
    r"|\bready to ship\b|\bships (?:today|within|in)\b|\ben stock\b|\bdisponible\b|\blagernd\b|\bauf lager\b"
    r"|\b(?:sofort )?(?:lieferbar|verfügbar)\b|\bvorrätig\b|\ben existencia|\bhay existencias\b"
    r"|\bdisponibile\b|\bdisponível\b|\bem estoque\b|\bop voorraad\b|\bleverbaar\b|\bi lager\b|\bpå lager\b"
    r"|\bvarastossa\b|\bskladem\b|\bna skladě\b|\bdostępn[ey]\b|\braktáron\b|\bв наличии\b"
    r"|在庫あり|有货|有庫存|재고 있음",
    re.IGNORECASE,
)
_WORDS_BEFORE = re.compile(r"[^\W\d_]{3,}")
_FILLERS = frozenset(["currently", "now", "this", "item", "product", "the", "immediately", "online", "jetzt", "sofort"])
_MOST = 1e15  # a price
_CENTS = 2
_LONGEST = 40  # characters of a declared price
_GROUP = 3


class Money(NamedTuple):
    """A sum of money; the currency is a code, `$` or `kr` if it is not known which, or empty."""

    amount: float
    currency: str = ""

    def __str__(self) -> str:
        amount = f"{abs(self.amount):,.2f}"
        if self.currency in _THREE_DECIMALS or round(self.amount, _CENTS) != self.amount:
            amount = f"{abs(self.amount):,.3f}"
        elif self.currency in _WITHOUT_DECIMALS and self.amount == int(self.amount):
            amount = f"{abs(self.amount):,.0f}"
        sign = "-" if self.amount < 0 else ""
        symbol = _SHOWN.get(self.currency)
        if symbol is not None:
            return f"{sign}{symbol}{amount}"
        return f"{sign}{amount} {self.currency}".rstrip()


def currency_named(text: str) -> str:
    """Return the code of a currency that a symbol, code or word names; empty if it is none."""
    name = _NAMES.get(text.strip().rstrip(".").lower(), "")
    return _ALIASES.get(name, name)


def number_in(text: str) -> float | None:
    """Return the first number of a text; None if it has none."""
    found = _ANY.search(text)
    return None if found is None else parse_number(found[0])


def parse_number(text: str) -> float:
    """Return the number that digits with signs between them stand for; ValueError if there is no digit."""
    sign = -1.0 if text.lstrip().startswith(("-", "−")) else 1.0
    digits = re.sub(r"[^\d.,]", "", text).strip(",")
    last = max(digits.rfind("."), digits.rfind(","))
    if last < 0:
        return sign * float(digits)
    mark, other = digits[last], "," if digits[last] == "." else "."
    behind = len(digits) - last - 1
    decimal = digits.count(mark) == 1 and (other in digits or behind != _GROUP or digits[:last] in ("", "0"))
    if not decimal:
        return sign * float(digits.replace(".", "").replace(",", ""))
    whole = digits[:last].replace(".", "").replace(",", "") or "0"
    return sign * float(f"{whole}.{digits[last + 1 :] or '0'}")


def money_in(text: str) -> Iterator[tuple[Money, int, int]]:
    """Yield the sums of money in a text, each with where it begins and ends."""
    for found in _MONEY.finditer(text):
        number = found["first"] or found["second"]
        if found["cents"] and number.isdigit():  # as in 39€99
            number = f"{number}.{found['cents']}"
        code = currency_named(found["before"] or found["after"])
        try:
            yield Money(parse_number(number), code), found.start(), found.end()
        except ValueError:
            continue


def declared_price(value: object, currency: str = "") -> Money | None:
    """Return a price that is declared for programs, such as `1299.00` with a currency beside it; None if it is none."""
    code = currency_named(currency)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return Money(float(value), code) if abs(value) < _MOST else None
    text = str(value).strip()[:_LONGEST]
    try:
        return Money(float(text), code) if re.fullmatch(r"\d+(?:\.\d{1,2}|\.\d{4,})?", text) else _written(text, code)
    except ValueError:
        return None


def _written(text: str, code: str) -> Money | None:
    for money, _, _ in money_in(text):
        return money if not code else Money(money.amount, code)
    if code in _THREE_DECIMALS and re.fullmatch(r"\d+\.\d{3}", text):
        return Money(float(text), code)
    amount = number_in(text)
    return None if amount is None else Money(amount, code)


def stock_in(text: str, *, alone: bool = False) -> str:
    """Return the state of stock that a text is about; empty if it is about none.

    Of a text that stands `alone`, without a name that says what it is about, the first words must be about stock.
    """
    for pattern, state in (
        (_GONE, OUT_OF_STOCK), (_ORDERED, PRE_ORDER), (_ORDERED_BACK, BACK_ORDER), (_FEW, _LIMITED), (_THERE, IN_STOCK),
    ):  # fmt: skip
        found = pattern.search(text)
        if found is not None and (not alone or _begins(text[: found.start()])):
            return state
    return ""


def _begins(before: str) -> bool:
    """Return whether what follows is what a text is about: nothing else stands before it, but for a label."""
    words = _WORDS_BEFORE.findall(before.lower())
    return before.rstrip().endswith(":") or _FILLERS.issuperset(words)


def is_in_stock(state: str) -> bool:
    """Return whether a state of stock means that it can be bought now."""
    return state.startswith(IN_STOCK)


def declared_stock(value: object) -> str:
    """Return the state of stock that a shop declares, as a URL of schema.org or in a word or two."""
    words = str(value).rstrip("/").rpartition("/")[2].rpartition("#")[2]
    return _STATES.get(re.sub(r"[^a-z]", "", words.lower()), "") or (stock_in(words) if " " in words else "")
