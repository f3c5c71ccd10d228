from __future__ import annotations

import pytest

from driftline.detection.diff.markup import declared_address
from driftline.durations import utc
from driftline.model.outcome import Version

PAGE = "https://example.com/shop/item?id=1&from=mail"


def version(body: str, content_type: str = "text/html", charset: str = "utf-8") -> Version:
    return Version(
        url="https://example.com/", number=1, at=utc(0.0), size=len(body), title="", content_type=content_type,
        charset=charset, final_url=PAGE, body=body.encode(charset), text=b"",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("head", "address"),
    [
        ('<link rel="canonical" href="https://example.com/item">', "https://example.com/item"),
        ("<link rel=' Canonical ' href='/item'>", "https://example.com/item"),
        ('<link rel="canonical" href="?id=1">', "https://example.com/shop/item?id=1"),
        ('<link rel="canonical" href="//other.example/">', "https://other.example/"),
        ('<base href="/b/"><link rel="canonical" href="item">', "https://example.com/b/item"),
        ('<link rel="canonical" href="/ä">', "https://example.com/%C3%A4"),
        ('<link rel="canonical" href="/a"><link rel="canonical" href="/b">', "https://example.com/a"),
        ('<link rel="canonical" href="">', None),
        ('<link rel="canonical">', None),
        ('<link rel="canonical" href="https://[">', None),
        ('<link rel="canonical" href="javascript:alert(1)">', None),
        ('<base href="https://["><link rel="canonical" href="a">', None),
        ('<link rel="alternate" href="/feed">', None),
        ("", None),
    ],
)
def test_a_page_declares_its_canonical_address(head: str, address: str | None) -> None:
    assert declared_address(version(f"<html><head>{head}</head><body>Text</body></html>")) == address


def test_only_html_declares_one_in_whatever_charset() -> None:
    link = '<link rel="canonical" href="/é">'

    assert declared_address(version(link, charset="latin-1")) == "https://example.com/%C3%A9"
    assert declared_address(version(link, content_type="text/plain")) is None
