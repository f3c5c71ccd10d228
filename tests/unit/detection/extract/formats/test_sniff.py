from __future__ import annotations

import pytest

from driftline.detection.extract.document import Extraction

PAGE = "<!doctype html><title>Shop</title><p>A <b>pen</b></p><script>x</script>"


@pytest.mark.parametrize(
    "content_type", ["application/octet-stream", "binary/octet-stream", "", "text/html", "Text/HTML"]
)
@pytest.mark.parametrize("before", ["", "\ufeff", "\r\n  "])
def test_html_is_read_as_html_if_its_type_says_nothing(content_type: str, before: str) -> None:
    seen = Extraction(f"{before}{PAGE}".encode(), content_type)
    assert (seen.text(), seen.is_page) == ("A pen", True)


def test_html_sent_as_plain_text_is_shown_with_its_tags_as_a_browser_does() -> None:
    assert "<b>pen</b>" in Extraction(PAGE.encode(), "text/plain").text()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('{"price": 5}', "$.price: 5"),
        (' [{"id": 1, "price": 5}]\n', "$[id=1].id: 1\n$[id=1].price: 5"),
        ('<?xml version="1.0"?><urlset><url><loc>/a</loc></url></urlset>', "/urlset/url/loc: /a"),
        ("<opml><body><outline text='a'/></body></opml>", "/opml/body/outline/@text: a"),
        ("<p>{not json}</p>", "{not json}"),
        ("{{ a template }}", "{{ a template }}"),
        ("[see below] <b>bold</b>", "[see below] bold"),
        ("<?xml version='1.0'?><html><body>A <i>page</i></body></html>", "A page"),
    ],
)
def test_data_that_was_sent_as_html_is_read_as_what_it_is(body: str, text: str) -> None:
    assert Extraction(body.encode(), "text/html").text() == text
