"""Price and stock of pages of shops: as the templates of widely used shop systems declare and show them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.detection.extract.document import Extraction
from driftline.detection.extract.offers import offer_lines, offers_of
from driftline.errors import UnreadableBody


def page(body: str, head: str = "", heading: str = "Blue pen") -> str:
    return (
        f"<!doctype html><html><head><title>{heading}</title>{head}</head><body><h1>{heading}</h1>{body}</body></html>"
    )


def json_ld(*documents: Any) -> str:
    return "".join(f'<script type="application/ld+json">{json.dumps(one)}</script>' for one in documents)


def product(offers: Any, **more: Any) -> dict[str, Any]:
    return {"@context": "https://schema.org/", "@type": "Product", "name": "Blue pen", "offers": offers, **more}


def offer(price: Any, currency: str = "EUR", availability: str = "InStock", **more: Any) -> dict[str, Any]:
    address = f"https://schema.org/{availability}"
    return {"@type": "Offer", "price": price, "priceCurrency": currency, "availability": address, **more}


SHOPIFY = page(
    """<div class="price price--on-sale"><div class="price__regular"><span class="price-item
    price-item--regular">$49.00 USD</span></div>
    <div class="price__sale"><s class="price-item price-item--regular">$49.00 USD</s>
    <span class="price-item price-item--sale price-item--last">$39.00 USD</span></div></div>
    <button type="submit" name="add" class="product-form__submit"><span>Add to cart</span></button>
    <section class="related-products"><h2>You may also like</h2><span class="price">$5.00 USD</span></section>""",
    json_ld(product([
        offer("39.00", "USD", sku="BP-1", url="https://shop.example/products/pen?variant=1"),
    ])),
)  # fmt: skip
WOOCOMMERCE = page(
    """<p class="price"><del aria-hidden="true"><span class="woocommerce-Price-amount amount"><bdi>1.499,00&nbsp;
    <span class="woocommerce-Price-currencySymbol">&euro;</span></bdi></span></del> <ins><span
    class="woocommerce-Price-amount amount"><bdi>1.299,00&nbsp;<span
    class="woocommerce-Price-currencySymbol">&euro;</span>
    </bdi></span></ins></p><p class="stock in-stock">Nur noch 3 vorrätig</p>""",
    json_ld({"@context": "https://schema.org/", "@graph": [
        {"@type": "BreadcrumbList", "itemListElement": []},
        {"@type": "Product", "name": "Blue pen", "offers": [{
            "@type": "Offer", "priceSpecification": [
                {"@type": "UnitPriceSpecification", "price": "1299.00", "priceCurrency": "EUR"},
                {"@type": "UnitPriceSpecification", "price": "1499.00", "priceCurrency": "EUR",
                 "priceType": "https://schema.org/ListPrice"},
            ], "availability": "https://schema.org/InStock"}]},
    ]}),
)  # fmt: skip
MAGENTO = page(
    """<div class="product-info-price" itemprop="offers" itemscope itemtype="http://schema.org/Offer"><span
    class="special-price"><span class="price-container"><span class="price-label">Special Price</span><span
    data-price-amount="24.5" data-price-type="finalPrice" class="price-wrapper"><span class="price">£24.50</span></span>
    <meta itemprop="price" content="24.5"/><meta itemprop="priceCurrency" content="GBP"/></span></span><span
    class="old-price"><span class="price-label">Regular Price</span><span class="price">£30.00</span></span></div>
    <div class="stock available" title="Availability"><span>In stock</span></div>"""
)
PRESTASHOP = page(
    """<div itemscope itemtype="https://schema.org/Product"><meta itemprop="name" content="Blue pen"><div
    class="product-prices" itemprop="offers" itemscope itemtype="https://schema.org/Offer"><link itemprop="availability"
    href="https://schema.org/OutOfStock"/><meta itemprop="priceCurrency" content="EUR"><div class="current-price"><span
    itemprop="price" content="28.68">28,68 €</span></div></div></div>"""
)
OPENCART = page(
    """<ul class="list-unstyled"><li>Brand: Pens</li><li>Availability: Out Of Stock</li></ul><ul
    class="list-unstyled"><li>
    <span style="text-decoration: line-through;" class="price-old">$122.00</span></li><li><h2><span
    class="price-new">$110.00</span></h2></li><li>Ex Tax: $90.00</li></ul>"""
)
BIGCOMMERCE = page(
    """<div class="price-section"><span data-product-price-without-tax class="price
    price--withoutTax">A$225.00</span></div>
    <input id="form-action-addToCart" class="button" type="submit" value="Add to Cart">""",
    """<meta property="product:price:amount" content="225"><meta property="product:price:currency" content="AUD">
    <meta property="og:availability" content="instock">""",
)
SQUARESPACE = page(
    """<div class="product-price">SEK 1 250,00</div>""",
    """<meta property="product:price:amount" content="1250.00"><meta property="product:price:currency" content="SEK">
    <meta property="product:availability" content="oos">""",
)
SHOPWARE = page(
    """<div class="product-detail-price-container"><meta itemprop="price" content="499.95"><p
    class="product-detail-price">
    499,95&nbsp;€*</p></div><p class="delivery-information delivery-available"><link itemprop="availability"
    href="https://schema.org/InStock">Sofort verfügbar, Lieferzeit: 2-5 Tage</p>"""
)
AMAZON = page(
    """<div id="corePrice_feature_div"><span class="a-price"><span class="a-offscreen">$1,099.99</span><span
    aria-hidden="true"><span class="a-price-symbol">$</span><span class="a-price-whole">1,099<span
    class="a-price-decimal">.</span></span><span class="a-price-fraction">99</span></span></span><span
    class="a-price a-text-price basisPrice"><span class="a-offscreen">$1,299.00</span></span></div><div
    id="availability">
    <span class="a-size-medium a-color-success">Only 4 left in stock - order soon.</span></div><div
    id="similarities_feature_div" class="a-carousel"><span class="a-price"><span
    class="a-offscreen">$3.99</span></span></div>"""
)
EBAY = page(
    """<div class="x-price-primary"><span class="ux-textspans">US $18.50</span></div><div
    class="x-quantity__availability">
    <span>More than 10 available</span></div>""",
    json_ld(product(offer(18.5, "USD", shippingDetails={"shippingRate": {"value": "4.00"}}))),
)
ETSY = page(
    """<div data-buy-box-region="price"><p>$12.00+</p></div>""",
    json_ld(product({
        "@type": "AggregateOffer", "offerCount": 14, "lowPrice": "12.00", "highPrice": "30.00", "priceCurrency": "USD",
        "availability": "https://schema.org/InStock",
    })),
)  # fmt: skip
SIZES = page(
    """<div data-testid="pdp-price-container"><p><span>29,95 €</span></p></div>""",
    json_ld(product([
        offer("29.95", sku="S", availability="OutOfStock", itemOffered={"name": "Size S"}),
        offer("29.95", sku="M", itemOffered={"name": "Size M"}),
        offer("31.95", sku="L", itemOffered={"name": "Size L"}),
    ])),
)  # fmt: skip
SELLERS = page(
    "<p>2 offers</p>",
    json_ld(product({
        "@type": "AggregateOffer", "lowPrice": 899, "highPrice": 949, "priceCurrency": "CHF", "offers": [
            offer(949, "CHF", seller={"@type": "Organization", "name": "Alpha"}),
            offer(899, "CHF", seller={"@type": "Organization", "name": "Beta"}),
        ],
    })),
)  # fmt: skip
VARIANTS = page(
    "<p>Choose a colour</p>",
    json_ld({
        "@context": "https://schema.org/", "@type": "ProductGroup", "name": "Blue pen", "hasVariant": [
            product(offer("15.00", "GBP"), name="Blue pen, fine"),
            product(offer("17.50", "GBP", "OutOfStock"), name="Blue pen, broad"),
        ],
    }),
)  # fmt: skip
STEAM = page(
    """<div class="game_purchase_action" itemprop="offers" itemscope itemtype="http://schema.org/Offer"><meta
    itemprop="priceCurrency" content="USD"><meta itemprop="price" content="14,99"><div class="discount_block"><div
    class="discount_pct">-25%</div><div class="discount_original_price">$19.99</div><div
    class="discount_final_price">$14.99</div></div></div>"""
)
RAKUTEN = page(
    """<div itemscope itemtype="http://schema.org/Product"><span itemprop="name">Blue pen</span><div itemprop="offers"
    itemscope itemtype="http://schema.org/Offer"><span class="price2" itemprop="price"
    content="12800">12,800円</span><meta
    itemprop="priceCurrency" content="JPY"></div><p class="inventory">在庫あり</p></div>"""
)
SALESFORCE = page(
    """<div class="prices"><div class="price"><span><del><span class="strike-through list"><span class="value"
    content="120.00">CHF 120.00</span></span></del><span class="sales"><span class="value" content="89.90">CHF
    89.90</span>
    </span></span></div></div><div class="availability product-availability"><ul><li><div>Auf
    Lager</div></li></ul></div>"""
)
POLISH = page(
    """<div class="product-price"><strong>1 249,50 zł</strong></div><div class="availability">Produkt
    niedostępny</div>"""
)
INDIAN = page("""<div class="_30jeq3 price">₹1,29,999</div><button class="buy">Buy now</button>""")
BROKEN = page(
    """<span class="price">1'299.–</span>""",
    """<script type="application/ld+json">//<![CDATA[
    {"@type": "Product", "name": "Blue pen", "description": "Two
    lines", "offers": {"@type": "http://schema.org/Offer", "price": "1,299.00", "priceCurrency": "CHF",
    "availability": "http://schema.org/PreOrder",},}
    //]]></script>""",
)
RDFA = page(
    """<div vocab="https://schema.org/" typeof="Product"><span property="name">Blue pen</span><div property="offers"
    typeof="Offer"><span property="priceCurrency" content="DKK">kr.</span><span property="price"
    content="1000.00">1.000</span>
    <link property="availability" href="https://schema.org/SoldOut"></div></div>"""
)
PLAIN = page(
    """<p>Our best pen, since 1999. Free delivery from $50.00.</p><p>Only <b>$4</b><sup>.99</sup> each</p>
    <button disabled>Add to basket</button><aside><p>Ink $2.00</p></aside>"""
)

SHOPS: Mapping[str, tuple[str, Sequence[str]]] = {
    "Shopify": (SHOPIFY, ["Price: $39.00", "Stock: in stock"]),
    "WooCommerce": (WOOCOMMERCE, ["Price: €1,299.00", "Stock: in stock"]),
    "Magento": (MAGENTO, ["Price: £24.50", "Stock: in stock"]),
    "PrestaShop": (PRESTASHOP, ["Price: €28.68", "Stock: out of stock"]),
    "OpenCart": (OPENCART, ["Price: $110.00", "Stock: out of stock"]),
    "BigCommerce": (BIGCOMMERCE, ["Price: 225.00 AUD", "Stock: in stock"]),
    "Squarespace": (SQUARESPACE, ["Price: 1,250.00 SEK", "Stock: out of stock"]),
    "Shopware": (SHOPWARE, ["Price: €499.95", "Stock: in stock"]),
    "Amazon": (AMAZON, ["Price: $1,099.99", "Stock: in stock, few left"]),
    "eBay": (EBAY, ["Price: $18.50", "Stock: in stock"]),
    "Etsy": (ETSY, ["Price: $12.00", "Stock: in stock"]),
    "sizes": (SIZES, [
        "Price: €29.95", "Stock: in stock", "Size S: €29.95, out of stock", "Size M: €29.95, in stock",
        "Size L: €31.95, in stock",
    ]),
    "sellers": (SELLERS, [
        "Price: 899.00 CHF", "Stock: in stock", "Alpha: 949.00 CHF, in stock", "Beta: 899.00 CHF, in stock",
    ]),
    "variants": (VARIANTS, [
        "Price: £15.00", "Stock: in stock", "Blue pen, fine: £15.00, in stock", "Blue pen, broad: £17.50, out of stock",
    ]),
    "Steam": (STEAM, ["Price: $14.99"]),
    "Rakuten": (RAKUTEN, ["Price: ¥12,800", "Stock: in stock"]),
    "Salesforce": (SALESFORCE, ["Price: 89.90 CHF", "Stock: in stock"]),
    "Polish": (POLISH, ["Price: 1,249.50 PLN", "Stock: out of stock"]),
    "Indian": (INDIAN, ["Price: ₹129,999.00", "Stock: in stock"]),
    "broken JSON": (BROKEN, ["Price: 1,299.00 CHF", "Stock: pre-order"]),
    "RDFa": (RDFA, ["Price: 1,000.00 DKK", "Stock: out of stock"]),
    "no markup": (PLAIN, ["Price: $4.99", "Stock: out of stock"]),
}  # fmt: skip


@pytest.mark.parametrize("shop", SHOPS)
def test_price_and_stock_are_found_as_shops_declare_or_show_them(shop: str) -> None:
    markup, lines = SHOPS[shop]
    assert offer_lines(markup) == lines


@pytest.mark.parametrize(
    ("markup", "lines"),
    [
        pytest.param(
            page("<p>x", json_ld(product(offer(5), name="Red pen"), product(offer(7), name="Blue pen"))),
            ["Price: €7.00", "Stock: in stock"], id="the product that the heading names",
        ),
        pytest.param(
            page("<p>x", json_ld(product(offer(5), name="Red pen"), product(offer(7), name="Green pen"))),
            ["Price: €5.00", "Stock: in stock", "Red pen: €5.00, in stock", "Green pen: €7.00, in stock"],
            id="a list of products",
        ),
        pytest.param(
            page("<p>x", json_ld(product(offer(7), isRelatedTo=[product(offer(1), name="Ink")]))),
            ["Price: €7.00", "Stock: in stock"], id="related products in JSON-LD",
        ),
        pytest.param(
            page('<div class="related"><span class="price">1 €</span></div><span class="price">7 €</span>'),
            ["Price: €7.00"], id="related products in the text",
        ),
        pytest.param(page('<p class="price" hidden>1 €</p><p class="price">7 €'), ["Price: €7.00"], id="hidden prices"),
        pytest.param(page("<p>Ships within 2 days. 7,50 € incl. VAT"), ["Price: €7.50", "Stock: in stock"], id="text"),
        pytest.param(page("<p>Currently unavailable."), ["Stock: out of stock"], id="stock alone"),
        pytest.param(
            page('<p class=price><del>$50.00</del><span class="screen-reader-text">Original price was: $50.00.</span>'
                 "<ins>$40.00</ins></p>"), ["Price: $40.00"], id="a sale of WooCommerce",
        ),
        pytest.param(
            page('<div class=price-box><p class=old-price>$50</p><p class=special-price>$40</p></div>'),
            ["Price: $40.00"], id="a sale of Magento 1",
        ),
        pytest.param(page('<p class=price>Was €50 Now €40</p>'), ["Price: €40.00"], id="a sale in words"),
        pytest.param(page('<p class=price>Save $2.00! $8.00</p>'), ["Price: $8.00"], id="what is saved"),
        pytest.param(page('<p class=price>4 payments of $10.00 or $40.00</p>'), ["Price: $40.00"], id="instalments"),
        pytest.param(page("<p class=price>€<span>12</span><sup>99</sup></p>"), ["Price: €12.99"], id="small cents"),
        pytest.param(page("<p class=price>$29<sup>95</sup></p>"), ["Price: $29.95"], id="small cents after dollars"),
        pytest.param(
            page('<form class="add-to-basket"><span class=price>£12</span><button>Add to basket</button></form>'),
            ["Price: £12.00", "Stock: in stock"], id="within a form for the basket",
        ),
        pytest.param(
            page("<p>x", json_ld({"@graph": [
                {"@type": "Product", "name": "Blue pen", "offers": {"@id": "#o"}}, offer(3) | {"@id": "#o"},
            ]})), ["Price: €3.00", "Stock: in stock"], id="offers by their id",
        ),
        pytest.param(
            page("<p>x", json_ld(product(offer(30), name="Pen Deluxe"), product(offer(5), name="Ink")),
                 heading="Pen Deluxe 2026"), ["Price: €30.00", "Stock: in stock"], id="a heading that says more",
        ),
        pytest.param(
            page("<p>x", json_ld(product(offer(0, availability="OutOfStock")))), ["Stock: out of stock"],
            id="nothing to pay for nothing",
        ),
        pytest.param(
            page("<p>7 €", '<script type="application/ld+json">{"@type": "Offer", "price": 1e999}</script>'),
            ["Price: €7.00"], id="an endless price",
        ),
        pytest.param(page("<p>x", json_ld(product(offer("0.00")))), ["Price: €0.00", "Stock: in stock"], id="free"),
        pytest.param(
            page('<span class="price">7 €</span>', json_ld(product({"@type": "Offer", "availability": "InStock"}))),
            ["Price: €7.00", "Stock: in stock"], id="what one source lacks another has",
        ),
    ],
)  # fmt: skip
def test_what_belongs_to_the_page_is_told_from_other_products_and_other_sums(markup: str, lines: list[str]) -> None:
    assert offer_lines(markup) == lines


def test_a_page_without_price_and_stock_is_refused_with_what_to_do() -> None:
    with pytest.raises(UnreadableBody, match="No price and no stock were found on this page: name the part"):
        offer_lines(page("<p>Words about pens."))
    filters = [["read", "offers"]]
    with pytest.raises(UnreadableBody, match="No price and no stock"):
        Extraction(b'{"price": 3}', "application/json", filters)


def test_a_page_of_thousands_of_nested_prices_is_read() -> None:
    for part in ('<div class="price">', '<div itemprop="offers" itemscope>', '<div class="old-price">'):
        offers_of(page(part * 5_000 + '<i itemprop="price">7</i>' * 2_000))


def test_deep_and_odd_documents_are_survived() -> None:
    deep: Any = product(offer(3))
    for _ in range(200):
        deep = {"mainEntity": deep}
    odd = product([None, 3, "x", {"price": [1, 2]}, offer({"a": 1}), offer(True)])
    endless = f'<script type="application/ld+json">{"[" * 99_999}</script>'
    for head in (json_ld(deep, odd), endless):
        assert offer_lines(page("<p>7 €", head))[0].startswith("Price: ")


def test_offers_are_the_lines_of_a_page_that_reads_them() -> None:
    seen = Extraction(SHOPIFY.encode(), "text/html; charset=utf-8", [["read", "offers"]])
    assert seen.text() == "Price: $39.00\nStock: in stock"
    assert seen.title() == "Blue pen"


@given(body=st.text(alphabet='<>/="divspanclasspriceprop itemoffer 1.,€$', max_size=300))
def test_no_markup_is_too_odd(body: str) -> None:
    offers_of(page(body))
