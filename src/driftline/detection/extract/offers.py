"""Find what a page of a shop offers: prices, and whether it is in stock.

Shops declare both for search engines: as JSON-LD, as microdata or RDFa in the elements, or for social networks
(Open Graph). That is read first, in this order; what is missing is taken from the visible text. Other products that a
page recommends, and prices that are crossed out, do not count.
"""

from __future__ import annotations

import json
import re
from html import unescape
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from driftline.detection.extract.formats.base import folded
from driftline.detection.extract.shop_words import (
    BACK_ORDER,
    IN_STOCK,
    OUT_OF_STOCK,
    PRE_ORDER,
    PRICE,
    STOCK,
    Money,
    declared_price,
    declared_stock,
    is_in_stock,
    money_in,
    stock_in,
)
from driftline.detection.extract.visibility import above, is_hidden
from driftline.errors import FailureKind, UnreadableBody

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_OTHER_PRODUCTS = (
    "isRelatedTo",
    "isSimilarTo",
    "isAccessoryOrSparePartFor",
    "isConsumableFor",
    "review",
    "itemListElement",
)
_OFFERED = ("offers", "hasVariant", "model", "mainEntity", "mainEntityOfPage", "@graph", "about", "itemOffered")
_NOT_THE_PRICE = ("listprice", "strikethroughprice", "srp", "msrp", "minimumadvertisedprice", "regularprice")
_DEEPEST = 12
_MOST = 200  # offers of a page
_HIGHEST = 60  # elements above one that are looked at
_CANDIDATES = 300  # elements that may show the price
_LONGEST = 120  # characters of a name, and of a text about stock
_CROSSED_OUT = "del, s, strike"
_OLD = re.compile(
    r"(?:^|[\s_-])(?:old|was|before|original|compare(?:-?at)?|strike\w*|crossed|list-?price|rrp|uvp|msrp|sav(?:e|ing)s?"
    r"|discount|shipping|delivery|versand|instal?lments?|monthly|per-?month|unit-?price|base-?price|grundpreis|from-?price"
    r"|deposit|tax|vat)(?:$|[\s_-])|oldprice|wasprice|listprice|unitprice|previous-?price|line-?through",
    re.IGNORECASE,
)
_ABOUT_OTHER_SUMS = re.compile(
    r"\b(?:shipping|delivery|postage|save|off|discount|per month|monthly|instal?lments?|deposit|gift card|orders? over"
    r"|versand|lieferung|ab einem|sparen|livraison|envío|gastos|spedizione|verzend\w*|frakt)\b|/ ?(?:mo|month)\b",
    re.IGNORECASE,
)
_OTHER_SUM_BEFORE = re.compile(
    r"(?:\b(?:was|rrp|uvp|msrp|statt|instead of|list price|original(?: price)?|before|save|you save|sie sparen"
    r"|au lieu de|antes|prima|van)|\b(?:payments?|instal?lments?) of|\d ?x):?\W*$",
    re.IGNORECASE,
)
_OTHER_SUM_AFTER = re.compile(r"\s*(?:off\b|/ ?(?:mo|month|kg|l|100)\b|per (?:month|kg|litre|unit)\b)", re.IGNORECASE)
_CENTS = re.compile(r"\d\d")
_READ_ALOUD = ".screen-reader-text, .sr-only, .visually-hidden"
_ON_SALE = ".price--on-sale"
_OTHERS = re.compile(
    r"related|recommend|similar|cross-?sell|up-?sell|also-?(?:bought|viewed|like)|recently|carousel|minicart|mini-cart"
    r"|cart-?(?:drawer|total|summary|widget)|mini-?basket|basket-?(?:drawer|total|summary|widget)|bundle|accessor",
    re.IGNORECASE,
)
_PRICE_WORD = r"price|preis|prix|precio|prezzo|prijs|pris\b|cena|preco|amount"
_PRICED = re.compile(_PRICE_WORD, re.IGNORECASE)
_STOCKED = re.compile(r"stock|avail|lager|lieferbar|verfueg|dispo|voorraad|inventory|soldout|sold-out", re.IGNORECASE)
_PLACES = ("nav", "footer", "header", "aside")
_BUY = re.compile(
    r"\b(?:add to (?:cart|bag|basket|trolley)|buy now|in den (?:warenkorb|einkaufswagen)|ajouter au panier|acheter"
    r"|añadir (?:al carrito|a la cesta)|aggiungi al carrello|in winkelwagen|adicionar ao carrinho|lägg i varukorg"
    r"|læg i kurv|legg i handlekurv|do koszyka|do košíku|kosárba|в корзину)\b|カートに入れる|加入购物车",
    re.IGNORECASE,
)


class Offer(NamedTuple):
    """What is offered: a price, whether it is in stock (empty if unknown), and the name of the variant or seller."""

    price: Money | None
    stock: str = ""
    name: str = ""


def offer_lines(markup: str) -> list[str]:
    """Return price and stock of a page as lines of text. Raise UnreadableBody if neither is found."""
    found = [offer for offer in offers_of(markup) if offer.price is not None or offer.stock]
    if not found:
        sentence = "No price and no stock were found on this page: name the part with the price by --select instead."
        raise UnreadableBody(FailureKind.SELECTION, sentence)
    lines = []
    cheapest = _cheapest(found)
    if cheapest is not None:
        lines.append(f"{PRICE}: {cheapest}")
    if stock := _best_stock(found):
        lines.append(f"{STOCK}: {stock}")
    named = [offer for offer in found if offer.name]
    if len(found) > 1:
        for offer in named:
            parts = [str(offer.price)] if offer.price is not None else []
            parts += [offer.stock] if offer.stock else []
            name = f"Offer {offer.name}" if offer.name in (PRICE, STOCK) else offer.name
            lines.append(f"{name}: {', '.join(parts)}")
    return list(dict.fromkeys(lines))


def offers_of(markup: str) -> list[Offer]:
    """Return what a page offers, each variant once."""
    tree = LexborHTMLParser(markup)
    sources = (_json_ld, _in_elements, _for_social_networks)
    declared: list[Offer] = []
    for read in sources:
        more = list(dict.fromkeys(read(tree)))[:_MOST]
        if not declared:
            declared = more
        elif len(more) == 1:  # another source may know what is missing
            declared = [_completed(offer, more[0]) for offer in declared]
        if declared and all(offer.price is not None and offer.stock for offer in declared):
            return declared
    if any(offer.price is not None for offer in declared) and any(offer.stock for offer in declared):
        return declared
    shown = _visible(tree, with_price=not any(offer.price is not None for offer in declared))
    if not declared:
        return [shown] if shown.price is not None or shown.stock else []
    return [_completed(offer, shown) for offer in declared]


def _completed(offer: Offer, other: Offer) -> Offer:
    return Offer(offer.price if offer.price is not None else other.price, offer.stock or other.stock, offer.name)


def _cheapest(offers: Sequence[Offer]) -> Money | None:
    """Return the lowest price, of what can be ordered if anything can."""
    there = [offer for offer in offers if offer.stock.startswith(IN_STOCK)]
    prices = [offer.price for offer in there or offers if offer.price is not None]
    prices = prices or [offer.price for offer in offers if offer.price is not None]
    return min(prices, key=lambda price: price.amount, default=None)


def _best_stock(offers: Sequence[Offer]) -> str:
    """Return whether anything is in stock."""
    states = [offer.stock for offer in offers if offer.stock]
    ranks = (IN_STOCK, "made", PRE_ORDER, BACK_ORDER, "reserved", OUT_OF_STOCK)

    def rank(state: str) -> tuple[int, int]:
        return next((at for at, start in enumerate(ranks) if state.startswith(start)), len(ranks)), len(state)

    return min(states, key=rank, default="")


def _json_ld(tree: LexborHTMLParser) -> Iterator[Offer]:
    documents = [_loads(script.text()) for script in tree.css('script[type*="ld+json" i]')]
    named = {str(node["@id"]): node for document in documents for node in _nodes(document, 0) if len(node) > 1}
    products = [_resolved(product, named) for document in documents for product in _products(document, 0)]
    for product in _main_products(products, _headings(tree)):
        yield from _offers_of_product(product, _name(product) if len(products) > 1 else "", 0)


def _loads(text: str) -> Any:
    text = text.strip()
    for start in ("//<![CDATA[", "// <![CDATA[", "<![CDATA[", "<!--"):
        text = text.removeprefix(start)
    for end in (";", "-->", "]]>", "//"):
        text = text.rstrip().removesuffix(end)
    for candidate in (text, re.sub(r",(\s{0,99}[}\]])", r"\1", text)):
        try:
            return json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def _products(node: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    """Yield the things with offers, the outermost of each branch."""
    if depth > _DEEPEST:
        return
    if isinstance(node, list):
        for one in node[:_MOST]:
            yield from _products(one, depth + 1)
    elif isinstance(node, dict):
        if "offers" in node or "hasVariant" in node or _is_offer(node):
            yield node
            return
        for key, value in node.items():
            if key in _OFFERED or (key not in _OTHER_PRODUCTS and isinstance(value, dict)):
                yield from _products(value, depth + 1)


def _nodes(node: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    """Yield the nodes of a document that have an id, to which others may refer."""
    if depth > _DEEPEST:
        return
    inner: Iterable[Any] = ()
    if isinstance(node, list):
        inner = node[:_MOST]
    elif isinstance(node, dict):
        if "@id" in node:
            yield node
        inner = node.values()
    for one in inner:
        if isinstance(one, list | dict):
            yield from _nodes(one, depth + 1)


def _resolved(product: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return a product with the offers that it only refers to by their ids."""
    offers = [
        named.get(str(one["@id"]), one) if isinstance(one, dict) and one.keys() == {"@id"} else one
        for one in _list(product.get("offers"))
    ]
    return {**product, "offers": offers} if offers else product


def _is_offer(node: Mapping[str, Any]) -> bool:
    return any(kind in ("Offer", "AggregateOffer", "Demand") for kind in _types(node)) and bool(
        {"price", "lowPrice", "priceSpecification", "availability"} & node.keys()
    )


def _types(node: Mapping[str, Any]) -> list[str]:
    return [str(one).rpartition("/")[2] for one in _list(node.get("@type"))]


def _main_products(products: Sequence[Mapping[str, Any]], headings: set[str]) -> Sequence[Mapping[str, Any]]:
    """Return the product that the heading of the page names, or all of them if it names none."""
    if len(products) < 2:
        return products
    alike = [(_likeness(_name(product).lower(), headings), -at) for at, product in enumerate(products)]
    best, at = max(alike)
    return [products[-at]] if best else products


def _likeness(name: str, headings: set[str]) -> int:
    """Return how many characters of a name a heading has, or the other way round; 0 if neither has the other."""
    return max(
        (min(len(name), len(one)) for one in headings if name and one and (name in one or one in name)), default=0
    )


def _headings(tree: LexborHTMLParser) -> set[str]:
    return {folded(node.text()).lower() for node in tree.css("h1")} - {""}


def _offers_of_product(node: Mapping[str, Any], name: str, depth: int) -> Iterator[Offer]:
    if depth > _DEEPEST:
        return
    if _is_offer(node):
        yield from _offers_in(node, name)
    offers = [one for one in _list(node.get("offers")) if isinstance(one, dict)]
    for offer, own in zip(offers, _own_names(offers), strict=True):
        yield from _offers_in(offer, own or name)
    for variant in _list(node.get("hasVariant")):
        if isinstance(variant, dict):
            yield from _offers_of_product(variant, _variant_name(variant) or name, depth + 1)


def _offers_in(offer: Mapping[str, Any], name: str, depth: int = 0) -> Iterator[Offer]:
    inner = [one for one in _list(offer.get("offers")) if isinstance(one, dict)]
    if inner and depth < _DEEPEST:
        for one, own in zip(inner, _own_names(inner), strict=True):
            yield from _offers_in(one, own or name, depth + 1)
        return
    stock, price = declared_stock(_first(offer.get("availability")) or ""), _price_of(offer)
    if price is not None and not price.amount and stock and not is_in_stock(stock):
        price = None  # what cannot be bought is not free
    yield Offer(price, stock, name[:_LONGEST])


def _own_names(offers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a name for each of several offers, by the first property in which all of them differ."""
    if len(offers) < 2:
        return ["" for _ in offers]
    for key in ("name", "itemOffered", "seller", "offeredBy", "sku", "url"):
        values = [offer.get(key) for offer in offers]
        names = [_variant_name(one) if isinstance(one, dict) else folded(unescape(str(one or ""))) for one in values]
        if all(names) and len({*names}) == len(names):
            return names
    return [f"Offer {number}" for number in range(1, len(offers) + 1)]


def _variant_name(node: Mapping[str, Any]) -> str:
    given = [folded(str(node[key])) for key in ("color", "size") if isinstance(node.get(key), str)]
    return _name(node) or ", ".join(given) or str(node.get("sku") or "")


def _name(node: Mapping[str, Any]) -> str:
    name = _first(node.get("name"))
    return folded(unescape(name)) if isinstance(name, str) else ""


def _price_of(offer: Mapping[str, Any]) -> Money | None:
    currency = str(offer.get("priceCurrency") or "")
    for key in ("price", "lowPrice"):
        if (price := declared_price(_first(offer.get(key)), currency)) is not None:
            return price
    for one in _list(offer.get("priceSpecification")):
        if isinstance(one, dict) and _is_the_price(one):
            found = declared_price(_first(one.get("price")), str(one.get("priceCurrency") or currency))
            if found is not None:
                return found
    return declared_price(_first(offer.get("highPrice")), currency)


def _is_the_price(specification: Mapping[str, Any]) -> bool:
    """Return whether this is what has to be paid: neither a list price, nor that of a unit such as a litre."""
    kind = str(specification.get("priceType") or "").rpartition("/")[2].lower()
    return kind not in _NOT_THE_PRICE and "referenceQuantity" not in specification


def _list(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def _first(value: Any) -> Any:
    return next(iter(_list(value)), None)


class _Item(NamedTuple):
    """An element with offers in the markup, and what was read of it."""

    scope: LexborNode | None
    product: LexborNode | None


def _in_elements(tree: LexborHTMLParser) -> Iterator[Offer]:
    """Yield what microdata and RDFa say."""
    read: dict[tuple[int, int], dict[str, LexborNode]] = {}
    items: dict[tuple[int, int], _Item] = {}
    for node in tree.css("[itemprop], [property]"):
        prop = _property(node)
        if prop not in ("price", "lowprice", "availability", "pricecurrency") or _is_crossed_out(node):
            continue
        item = _item_of(node)
        if item is None or (item.scope is None and node.tag == "meta"):
            continue
        key = (item.product.mem_id if item.product else 0, item.scope.mem_id if item.scope else 0)
        items[key] = item
        read.setdefault(key, {}).setdefault(prop, node)
    products = {key[0] for key in read}
    headings = _headings(tree)
    named = {key: _name_in(items[key].product) for key in read}
    of_page = [key for key in read if named[key].lower() in headings]
    chosen = [key for key in read if key[0] == of_page[0][0]] if of_page and len(products) > 1 else [*read]
    for key in chosen:
        values = read[key]
        currency = _value(values.get("pricecurrency"))
        price = declared_price(_value(values.get("price") or values.get("lowprice")) or None, currency)
        stock = declared_stock(_value(values.get("availability")))
        if price is not None or stock:
            yield Offer(price, stock, named[key][:_LONGEST] if len(products) > 1 and len(chosen) > 1 else "")


def _is_crossed_out(node: LexborNode) -> bool:
    at: LexborNode | None = node
    for _ in range(_HIGHEST):
        if at is None or at.tag == "body":
            break
        if at.tag in _CROSSED_OUT.split(", "):
            return True
        at = at.parent
    return False


def _property(node: LexborNode) -> str:
    attributes = node.attributes
    return (attributes.get("itemprop") or attributes.get("property") or "").rpartition(":")[2].strip().lower()


def _item_of(node: LexborNode) -> _Item | None:
    """Return the offer and the product that an element belongs to; None if it is about another product."""
    scope = product = None
    parent = node.parent
    for _ in range(_HIGHEST):
        if parent is None or parent.tag in ("-undef", "html"):
            break
        attributes = parent.attributes
        kind = (attributes.get("itemtype") or attributes.get("typeof") or "").lower()
        if "offer" in kind or "pricespecification" in kind:
            scope = parent  # the outermost: a price specification is inside its offer
        elif kind and product is None and not kind.endswith(("webpage", "itempage", "organization", "brand")):
            product = parent
        if _property(parent) in ("isrelatedto", "issimilarto", "isaccessoryorsparepartfor"):
            return None
        parent = parent.parent
    return _Item(scope, product)


def _name_in(product: LexborNode | None) -> str:
    if product is None:
        return ""
    node = product.css_first("[itemprop=name], [property=name], [property='schema:name']")
    return folded(_value(node))


def _value(node: LexborNode | None) -> str:
    if node is None:
        return ""
    attributes = node.attributes
    for name in ("content", "value", "href"):
        if attributes.get(name):
            return str(attributes[name])
    return folded(node.text())


def _for_social_networks(tree: LexborHTMLParser) -> Iterator[Offer]:
    """Yield what Open Graph and similar tags in the head say."""
    found: dict[str, str] = {}
    for node in tree.css("meta[property], meta[name]"):
        name = (node.attributes.get("property") or node.attributes.get("name") or "").lower()
        found.setdefault(name.removeprefix("og:").removeprefix("product:"), node.attributes.get("content") or "")
    currency = found.get("sale_price:currency") or found.get("price:currency") or ""
    for name in ("sale_price:amount", "price:amount", "price"):
        price = declared_price(found.get(name) or None, currency)
        if price is not None:
            break
    stock = declared_stock(found.get("availability") or "")
    if price is not None or stock:
        yield Offer(price, stock)


def _visible(tree: LexborHTMLParser, *, with_price: bool) -> Offer:
    """Return what the text of the page shows; the document is changed."""
    buttons = [
        node
        for node in tree.css("button, input[type=submit], [role=button], a[class*=cart i]")
        if not _is_elsewhere(node)
    ]
    button = next((node for node in buttons if _BUY.search(_text(node))), None)
    state = "" if button is None else OUT_OF_STOCK if _is_disabled(button) else IN_STOCK
    tree.strip_tags(["script", "style", "noscript", "template", "svg", "option"])
    price = _visible_price(tree) if with_price else None
    return Offer(price, _visible_stock(tree) or state)


def _is_disabled(node: LexborNode) -> bool:
    attributes = node.attributes
    return (
        "disabled" in attributes
        or attributes.get("aria-disabled") == "true"
        or "disabled" in (attributes.get("class") or "").split()
    )


def _text(node: LexborNode) -> str:
    return folded(
        f"{node.text(separator=' ')} {node.attributes.get('value') or ''} {node.attributes.get('aria-label') or ''}"
    )


def _visible_price(tree: LexborHTMLParser) -> Money | None:
    body = tree.body
    if body is None:
        return None
    _drop_old_prices(tree)
    after = _after_heading(tree)
    marked = tree.css("[class], [id], [data-price], [data-testid], [data-qa]")
    named = list(islice((node for node in marked if _PRICED.search(_names(node))), _CANDIDATES))
    best: Money | None = None
    for node in named:
        if _OLD.search(_names(node)) or _is_elsewhere(node) or any(_OLD.search(_names(one)) for one in _nearest(node)):
            continue
        money = _money_of(node)
        if money is None:
            continue
        if node.mem_id in after:
            return money
        best = best or money
    if best is not None:
        return best
    for node in _texts(body, after):
        if _ABOUT_OTHER_SUMS.search(node.text()) or _OLD.search(_names(node)):
            continue
        money = _money_of(node)
        if money is not None and not _is_elsewhere(node):
            return money
    return None


def _drop_old_prices(tree: LexborHTMLParser) -> None:
    """Remove prices that are crossed out, those before a sale, and what is only read aloud."""
    old = list(tree.css(f"{_CROSSED_OUT}, {_READ_ALOUD}, [style*='line-through']"))
    old += [node for node in tree.css("[class], [id]") if _OLD.search(_names(node)) and len(node.text()) <= _LONGEST]
    if tree.css_matches(_ON_SALE):
        old += tree.css(f"{_ON_SALE} .price__regular")
    for node in _outermost_of(old):
        node.decompose()


def _outermost_of(nodes: Iterable[LexborNode]) -> list[LexborNode]:
    found = {node.mem_id: node for node in nodes if node.tag not in ("html", "body")}
    return [node for node in found.values() if found.keys().isdisjoint(islice(above(node), _HIGHEST))]


def _money_of(node: LexborNode) -> Money | None:
    """Return the price that an element shows, and none of the other sums in it."""
    if len(node.text()) > 20 * _LONGEST:
        return None
    text = folded(node.text(separator=" "))
    if len(text) > 5 * _LONGEST:
        return None
    text = re.sub(r"(\d) ([.,]\d\d)(?!\d)", r"\1\2", text)
    small = [folded(one.text()) for one in node.css("sup, small, span, i, b")]
    for cents in {one for one in small if _CENTS.fullmatch(one)}:  # shops draw them smaller, without a point
        text = re.sub(rf"(\d) {cents}(?!\d)", rf"\1.{cents}", text)
    for candidate in (text, folded(node.text())):
        for money, start, end in money_in(candidate):
            if not _OTHER_SUM_BEFORE.search(candidate[:start]) and not _OTHER_SUM_AFTER.match(candidate[end:]):
                return money
    return None


def _visible_stock(tree: LexborHTMLParser) -> str:
    for node in tree.css("[class], [id], [data-stock], [data-availability]"):
        if _STOCKED.search(_names(node)) and not _is_elsewhere(node):
            text = folded(node.text(separator=" "))
            if 0 < len(text) <= _LONGEST and (state := stock_in(text)):
                return state
    body = tree.body
    if body is None:
        return ""
    for node in _texts(body, _after_heading(tree)):
        text = folded(node.text(separator=" "))
        if len(text) <= _LONGEST / 2 and not _is_elsewhere(node) and (state := stock_in(text, alone=True)):
            return state
    return ""


def _names(node: LexborNode) -> str:
    attributes = node.attributes
    return " ".join(attributes.get(name) or "" for name in ("class", "id", "data-testid", "data-qa", "itemprop")) + (
        " price" if "data-price" in attributes else ""
    )


def _nearest(node: LexborNode) -> Iterator[LexborNode]:
    parent = node.parent
    for _ in range(3):
        if parent is None or parent.tag in ("body", "main", "html"):
            return
        yield parent
        parent = parent.parent


def _is_elsewhere(node: LexborNode) -> bool:
    """Return whether an element is hidden, in a menu, or among other products."""
    at: LexborNode | None = node
    for _ in range(_HIGHEST):
        if at is None or at.tag == "body":
            return False
        if is_hidden(at.attributes) or _OTHERS.search(_names(at)):
            return True
        if at.tag in _PLACES and at.css_first("h1") is None:
            return True
        at = at.parent
    return True


def _after_heading(tree: LexborHTMLParser) -> set[int]:
    """Return the elements that come after the first heading of the page; all if it has none."""
    body, heading = tree.body, tree.css_first("h1")
    if body is None:
        return set()
    nodes = list(body.css("*"))
    if heading is not None:
        at = next((place for place, node in enumerate(nodes) if node.mem_id == heading.mem_id), 0)
        nodes = nodes[at:]
    return {node.mem_id for node in nodes}


def _texts(body: LexborNode, within: set[int]) -> Iterator[LexborNode]:
    """Yield the elements that have a text of their own, those `within` a set first."""
    owners = [node for node in body.css("*") if folded(node.text(deep=False))]
    yield from (node for node in owners if node.mem_id in within)
    yield from (node for node in owners if node.mem_id not in within)
