from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import BadURL
from driftline.model import host_of
from driftline.pages.urls import canonical
from support.properties import searched


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://example.com/", "https://example.com/"),
        ("https://example.com", "https://example.com/"),
        ("  https://example.com/  ", "https://example.com/"),
        ("example.com", "https://example.com/"),
        ("example.com/path?x=1", "https://example.com/path?x=1"),
        ("example.com:8080/path", "https://example.com:8080/path"),
        ("localhost", "https://localhost/"),
        ("localhost:8080", "https://localhost:8080/"),
        ("//example.com/x", "https://example.com/x"),
        ("http:example.com", "http://example.com/"),
        ("HTTP://EXAMPLE.COM/Path", "http://example.com/Path"),
        ("https://example.com:443/", "https://example.com/"),
        ("http://example.com:80/", "http://example.com/"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("https://example.com/a/../b/./c", "https://example.com/b/c"),
        ("https://example.com/a%20b", "https://example.com/a%20b"),
        ("https://example.com/#", "https://example.com/"),
        ("https://example.com/page#section", "https://example.com/page"),
        ("https://example.com/?q=a#b?c", "https://example.com/?q=a"),
        ("https://user:word@example.com/", "https://user:word@example.com/"),
        ("https://münchen.de/ü?q=ü", "https://xn--mnchen-3ya.de/%C3%BC?q=%C3%BC"),
        ("https://日本.example/", "https://xn--wgv71a.example/"),
        ("https://EXAMPLE。com/", "https://example.com/"),
        ("http://127.0.0.1/", "http://127.0.0.1/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("http://intranet/", "http://intranet/"),
        ("https://exa_mple.com/", "https://exa_mple.com/"),
        ("https:\\\\example.com\\a", "https://example.com/a"),
    ],
)
def test_an_address_has_one_canonical_form(text: str, address: str) -> None:
    assert canonical(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "hello", "two words", "https://", "https://exam ple.com/", "ftp://example.com/", "file:///etc/passwd",
        "mailto:me@example.com", "javascript:alert(1)", "data:text/html,hi", "about:blank", "tel:123", "://example.com",
        "https://example.com:99999/", "https://example.com:port/", "http://256.1.1.1/", "http://[::1/", "https://a\x00b.com/",
        "https://example.com/a\nb", "https://example.com/a\tb", "https://example.com/\x7f", "https://exa<mple.com/",
        "https://example.com/" + "a" * 9_000, "https://a/\ud800",
    ],
)  # fmt: skip
def test_a_text_that_is_no_web_address_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(BadURL) as refused:
        canonical(text)
    assert str(refused.value).endswith(".")
    assert len(str(refused.value)) < 300


@searched
@given(st.text(max_size=60) | st.from_regex(r"https?://[a-zäß0-9.\-]{1,20}(:[0-9]{1,5})?/[^\s#]{0,20}", fullmatch=True))
def test_the_canonical_form_is_its_own_canonical_form(text: str) -> None:
    try:
        once = canonical(text)
    except BadURL:
        return
    assert canonical(once) == once
    assert once.isascii()
    assert "#" not in once
    assert once.startswith(("http://", "https://"))


@searched
@given(st.text())
def test_no_text_makes_anything_but_an_address_or_a_refusal(text: str) -> None:
    try:
        canonical(text)
        canonical(f"https://example.com/{text}")
        canonical(f"https://{text}.example/")
    except BadURL:
        return


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.com/x", "example.com"),
        ("https://example.com:8443/x", "example.com:8443"),
        ("http://user@example.com/", "example.com"),
    ],
)
def test_the_host_carries_its_port_only_where_that_is_unusual(url: str, host: str) -> None:
    assert host_of(url) == host
