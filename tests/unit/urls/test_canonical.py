"""Canonical URLs, in the manner of the WHATWG URL test data: a row is an input and its canonical form."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import BadURL
from driftline.urls import host_of
from driftline.urls.canonical import LONGEST, canonical, reduced, written
from driftline.urls.tracking import BUILT_IN, Tracking
from support.properties import searched

SITE = "https://example.com/"

SCHEMES = [
    ("https://example.com/", SITE),
    ("https://example.com", SITE),
    ("HTTPS://example.com", SITE),
    ("hTtP://example.com/", "http://example.com/"),
    ("example.com", SITE),
    ("EXAMPLE.com", SITE),
    ("www.example.com/a", "https://www.example.com/a"),
    ("//example.com/x", "https://example.com/x"),
    ("http:example.com", "http://example.com/"),
    ("https:/example.com", SITE),
    ("https:///example.com", SITE),
    ("https:\\\\example.com\\a", "https://example.com/a"),
    ("https:/\\example.com", SITE),
    ("localhost", "https://localhost/"),
    ("localhost:8080", "https://localhost:8080/"),
    ("example.com:8080/path", "https://example.com:8080/path"),
    ("example.com:/path", "https://example.com/path"),
    ("example.com/in?to=https://other.example/", "https://example.com/in?to=https://other.example/"),
    ("127.0.0.1:8000", "https://127.0.0.1:8000/"),
    ("[::1]:8000/x", "https://[::1]:8000/x"),
    ("http://intranet/", "http://intranet/"),
]

AROUND = [
    ("  https://example.com/  ", SITE),
    ("\thttps://example.com/\r\n", SITE),
    ("\u00a0https://example.com/\u3000", SITE),
    ("\ufeffhttps://example.com/", SITE),
    ("https://example.com/\u200b", SITE),
    ("\u200e https://example.com/\u2060 ", SITE),
]

PORTS = [
    ("https://example.com:443/", SITE),
    ("http://example.com:80/", "http://example.com/"),
    ("http://example.com:443/", "http://example.com:443/"),
    ("https://example.com:80/", "https://example.com:80/"),
    ("https://example.com:/", SITE),
    ("https://example.com:00443/", SITE),
    ("https://example.com:08080/", "https://example.com:8080/"),
    ("https://example.com:65535/", "https://example.com:65535/"),
]

HOSTS = [
    ("https://EXAMPLE.COM/", SITE),
    ("https://ex%41mple.com/", SITE),
    ("https://EXAMPLE。com/", SITE),
    ("https://ｅｘａｍｐｌｅ．ｃｏｍ/", SITE),
    ("https://exa\u00admple.com/", SITE),
    ("https://exa_mple.com/", "https://exa_mple.com/"),
    ("https://-example-.com/", "https://-example-.com/"),
    ("https://example.com./", "https://example.com./"),
    ("https://münchen.de/", "https://xn--mnchen-3ya.de/"),
    ("https://MÜNCHEN.de/", "https://xn--mnchen-3ya.de/"),
    ("https://mu\u0308nchen.de/", "https://xn--mnchen-3ya.de/"),
    ("https://m%C3%BCnchen.de/", "https://xn--mnchen-3ya.de/"),
    ("https://xn--mnchen-3ya.de/", "https://xn--mnchen-3ya.de/"),
    ("https://XN--MNCHEN-3YA.de/", "https://xn--mnchen-3ya.de/"),
    ("münchen.de", "https://xn--mnchen-3ya.de/"),
    ("https://faß.de/", "https://xn--fa-hia.de/"),
    ("https://日本.example/", "https://xn--wgv71a.example/"),
    ("https://пример.рф/", "https://xn--e1afmkfd.xn--p1ai/"),
    ("https://مثال.example/", "https://xn--mgbh0fb.example/"),
    ("https://☃.net/", "https://xn--n3h.net/"),
]

ADDRESSES = [
    ("http://127.0.0.1/", "http://127.0.0.1/"),
    ("http://127.1/", "http://127.0.0.1/"),
    ("http://127.0.1/", "http://127.0.0.1/"),
    ("http://2130706433/", "http://127.0.0.1/"),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://0X7F.0x0.0x0.0x1/", "http://127.0.0.1/"),
    ("http://0177.0.0.1/", "http://127.0.0.1/"),
    ("http://127.0.0.1./", "http://127.0.0.1/"),
    ("http://１２７.0.0.1/", "http://127.0.0.1/"),
    ("http://192.168.257/", "http://192.168.1.1/"),
    ("http://0x/", "http://0.0.0.0/"),
    ("http://127.0.0.0x/", "http://127.0.0.0/"),
    ("http://[::1]:8080/", "http://[::1]:8080/"),
    ("http://[0:0:0:0:0:0:0:1]/", "http://[::1]/"),
    ("http://[2001:DB8:0:0:1:0:0:1]/", "http://[2001:db8::1:0:0:1]/"),
    ("http://[2001:0db8::0001]/", "http://[2001:db8::1]/"),
    ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
    ("http://[::127.0.0.1]:80/", "http://[::7f00:1]/"),
    ("http://[1:0:0:2::]/", "http://[1:0:0:2::]/"),
]

CREDENTIALS = [
    ("https://user:word@example.com/", "https://user:word@example.com/"),
    ("https://user@example.com/", "https://user@example.com/"),
    ("https://user:@example.com/", "https://user@example.com/"),
    ("https://:word@example.com/", "https://:word@example.com/"),
    ("https://@example.com/", SITE),
    ("https://us%65r:w%2dd@example.com/", "https://us%65r:w%2dd@example.com/"),
    ("https://a@b@example.com/", "https://a%40b@example.com/"),
    ("https://üser:wörd@example.com/", "https://%C3%BCser:w%C3%B6rd@example.com/"),
]

PATHS = [
    ("https://example.com/Path", "https://example.com/Path"),
    ("https://example.com/a/../b/./c", "https://example.com/b/c"),
    ("https://example.com/a/..", SITE),
    ("https://example.com/a/.", "https://example.com/a/"),
    ("https://example.com/../../a", "https://example.com/a"),
    ("https://example.com/a/%2e%2E/b", "https://example.com/b"),
    ("https://example.com/a/.%2e/b", "https://example.com/b"),
    ("https://example.com/%2e/b", "https://example.com/b"),
    ("https://example.com/a%2eb", "https://example.com/a.b"),
    ("https://example.com/...", "https://example.com/..."),
    ("https://example.com/%2e%2e%2e", "https://example.com/..."),
    ("https://example.com//a//b", "https://example.com//a//b"),
    ("https://example.com/a/", "https://example.com/a/"),
    ("https://example.com\\a\\..\\b", "https://example.com/b"),
    ("https://example.com/a;b=c,d", "https://example.com/a;b=c,d"),
    ("https://example.com/index.html", "https://example.com/index.html"),
]

ESCAPES = [
    ("https://example.com/a%20b", "https://example.com/a%20b"),
    ("https://example.com/ü", "https://example.com/%C3%BC"),
    ("https://example.com/%c3%bc", "https://example.com/%C3%BC"),
    ("https://example.com/u\u0308", "https://example.com/u%CC%88"),
    ("https://example.com/%fc", "https://example.com/%FC"),
    ("https://example.com/%7Esmith", "https://example.com/~smith"),
    ("https://example.com/~smith", "https://example.com/~smith"),
    ("https://example.com/%41%62%30%2D%5F", "https://example.com/Ab0-_"),
    ("https://example.com/a%2fb", "https://example.com/a%2Fb"),
    ("https://example.com/a%3fb%23c", "https://example.com/a%3Fb%23c"),
    ("https://example.com/a%3ab%40c", "https://example.com/a%3Ab%40c"),
    ("https://example.com/a:b@c", "https://example.com/a:b@c"),
    ("https://example.com/%27it'%21!", "https://example.com/%27it'%21!"),
    ("https://example.com/%25%37%45", "https://example.com/%257E"),
    ("https://example.com/100%", "https://example.com/100%"),
    ("https://example.com/%zz", "https://example.com/%zz"),
    ("https://example.com/%%37e", "https://example.com/%%37e"),
    ("https://example.com/%4%31", "https://example.com/%4%31"),
    ("https://example.com/%00", "https://example.com/%00"),
    ('https://example.com/"<>`{}|^', "https://example.com/%22%3C%3E%60%7B%7D|%5E"),
]

QUERIES = [
    ("https://example.com/?", "https://example.com/?"),
    ("https://example.com?", "https://example.com/?"),
    ("https://example.com?a=1", "https://example.com/?a=1"),
    ("example.com/path?x=1", "https://example.com/path?x=1"),
    ("https://example.com/?b=2&a=1", "https://example.com/?b=2&a=1"),
    ("https://example.com/?a=2&a=1", "https://example.com/?a=2&a=1"),
    ("https://example.com/?a", "https://example.com/?a"),
    ("https://example.com/?a=", "https://example.com/?a="),
    ("https://example.com/?&a=1&&", "https://example.com/?&a=1&&"),
    ("https://example.com/?a=1;b=2", "https://example.com/?a=1;b=2"),
    ("https://example.com/?q=a+b", "https://example.com/?q=a+b"),
    ("https://example.com/?q=ü", "https://example.com/?q=%C3%BC"),
    ("https://example.com/?q=%c3%bc%7e", "https://example.com/?q=%c3%bc%7e"),
    ("https://example.com/?q='\"<>", "https://example.com/?q=%27%22%3C%3E"),
    ("https://example.com/?a=b?c/../d\\e", "https://example.com/?a=b?c/../d\\e"),
    ("https://example.com/?session=1&ref=x&source=y", "https://example.com/?session=1&ref=x&source=y"),
]

TRACKED = [
    ("https://example.com/?utm_source=a&utm_medium=b", SITE),
    ("https://example.com/a?id=1&utm_source=x&page=2", "https://example.com/a?id=1&page=2"),
    ("https://example.com/?b=2&fbclid=x&a=1", "https://example.com/?b=2&a=1"),
    ("https://example.com/?gclid=x", SITE),
    ("https://example.com/?msclkid", SITE),
    ("https://example.com/?mc_cid=&mc_eid=1", SITE),
    ("https://example.com/?UTM_Source=a&ScCid=b", SITE),
    ("https://example.com/?utm%5Fsource=a", SITE),
    ("https://example.com/?a=utm_source", "https://example.com/?a=utm_source"),
    ("https://example.com/?utm=1&gclids=2&xgclid=3", "https://example.com/?utm=1&gclids=2&xgclid=3"),
    ("https://example.com/?a=1;utm_source=b", "https://example.com/?a=1;utm_source=b"),
    ("https://example.com/?&gclid=1", SITE),
    ("https://example.com/utm_source=a", "https://example.com/utm_source=a"),
]

FRAGMENTS = [
    ("https://example.com/#", SITE),
    ("https://example.com/page#section", "https://example.com/page"),
    ("https://example.com/?q=a#b?c", "https://example.com/?q=a"),
    ("https://example.com/?#x", "https://example.com/?"),
    ("https://example.com/#:~:text=word", SITE),
    ("https://example.com#top", SITE),
    ("https://example.com/#!inbox", "https://example.com/#!inbox"),
    ("https://example.com/#!/inbox?a=1", "https://example.com/#!/inbox?a=1"),
    ("https://example.com/#/inbox", "https://example.com/#/inbox"),
    ("https://example.com#/inbox", "https://example.com/#/inbox"),
    ("https://example.com/?gclid=1#/a#b", "https://example.com/#/a#b"),
    ("https://example.com/#!", SITE),
    ("https://example.com/#/", SITE),
    ("https://example.com/#!/", SITE),
]

REFUSED = [
    # nothing, or no address
    "", "   ", "\u200b", "hello", "two words", "/path", "?a=1", "#a", ".", ".com", "user@example.com", "@",
    "intranet:8080/x",
    # another scheme, or half of one
    "ftp://example.com/", "file:///etc/passwd", "mailto:me@example.com", "javascript:alert(1)", "data:text/html,hi",
    "about:blank", "tel:123", "tel:+49123", "ws://example.com/", "chrome-extension://abc/x", "view-source:https://a.example/",
    "C:\\a.html", "\\\\server.example\\x", "://example.com", "http//example.com", "http:",
    "https://", "https:/", "https:///", "http:8080",
    "http:hello", "https://https://example.com/", "http://http//example.com/",
    # bad hosts
    "https://exam ple.com/", "https://exa<mple.com/", "https://exa%20mple.com/", "https://example%2ecom%2f/",
    "https://exa|mple.com/", "https://exa%mple.com/", "https://user@/", "https://:443/",
    "https://\u00ad/", "https://a\u200eb.example/",
    # bad ports
    "https://example.com:99999/", "https://example.com:65536/", "https://example.com:port/", "https://example.com:-1/",
    "https://example.com:80:80/", "http://example.com:0/", "https://example.com:00/", "http://[::1]:0/",
    # hosts that no name server can have
    f"http://{'a' * 64}.example/", f"http://{'.'.join(['a' * 60] * 5)}/", "http://a..example/", "http://.example/",
    "http://a.example../", "http://./", f"http://{'a' * 64}/", f"http://a.{'ü' * 60}.example/",
    # no host, and a path that would be taken for one
    "http:///x", "https:////x/y", "http:/x", "http:///", "HTTP:///x", "http:\\\\\\x",
    # bad numbers
    "http://256.1.1.1/", "http://1.2.3.4.5/", "http://1.2.3.09/", "http://4294967296/", "http://a.1/",
    "http://[::1/", "http://::1/", "http://[1::2::3]/", "http://[12345::]/", "http://[fe80::1%25eth0]/", "http://[]/",
    "http://[::1.2.3]/",
    # control characters, halves of characters, too much
    "https://a\x00b.com/", "https://example.com/a\nb", "https://example.com/a\tb", "https://example.com/\x7f", "\x00",
    "https://a/\ud800", "https://example.com/" + "a" * 9_000, "https://example.com/" + "a" * 2_500,
    "https://example.com/" + "ü" * 500,
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "address"),
    [
        *SCHEMES, *AROUND, *PORTS, *HOSTS, *ADDRESSES, *CREDENTIALS, *PATHS, *ESCAPES, *QUERIES, *TRACKED, *FRAGMENTS,
    ],
)  # fmt: skip
def test_an_address_has_one_canonical_form(text: str, address: str) -> None:
    assert canonical(text) == address
    assert canonical(address) == address


@pytest.mark.parametrize("text", REFUSED)
def test_a_text_that_is_no_web_address_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(BadURL) as refused:
        canonical(text)
    assert str(refused.value).endswith(".")
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("hello", "is not the address of a web page: give one such as https://example.com/"),
        ("ftp://example.com/", "only http and https"),
        ("https://a.example/ https://b.example/", "give one address at a time"),
        ("https://https://example.com/", "begins with two schemes"),
        ("http://example.com:0/", "example.com:0 has port 0"),
        (f"http://{'a' * 64}.example/", "is 64 characters long; the most between two dots is 63"),
        (f"http://{'.'.join(['a' * 60] * 5)}/", "is 304 characters long; the most that names have is 253"),
        ("http://a..example/", "has a dot too many"),
        ("http:///x", "is not the address of a web page"),
        ("https://example.com/" + "a" * 3_000, "is 3,020 characters long; the most is 2,500"),
        ("https://example.com/\x1b[2J", "control characters"),
    ],
)
def test_a_refusal_names_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(BadURL, match=words.replace("?", r"\?")) as refused:
        canonical(text)
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http:///example.com/x", "http://example.com/x"),
        ("https:/example.com", "https://example.com/"),
        ("http://////localhost:8080/", "http://localhost:8080/"),
        ("http://x/", "http://x/"),
        (f"http://{'a' * 63}.example./", f"http://{'a' * 63}.example./"),
        (f"http://{'a.' * 126}b:8000/", f"http://{'a.' * 126}b:8000/"),
        ("http://a.example:10/", "http://a.example:10/"),
    ],
)
def test_what_names_a_host_is_taken_however_many_slashes_it_has(text: str, address: str) -> None:
    assert canonical(text) == address


def test_an_address_may_be_too_long_only_by_its_tracking() -> None:
    whole = SITE + "a" * (LONGEST - len(SITE))

    assert canonical(f"{whole}?utm_source={'b' * 3_000}") == whole


def test_what_is_written_keeps_tracking_and_escapes() -> None:
    assert written("Example.com/%7e?utm_source=a#top") == "https://example.com/%7e?utm_source=a"


URLS = st.from_regex(r"https?://[a-zäß0-9.\-]{1,20}(:[0-9]{1,5})?/[^\s#]{0,20}(#[^\s]{0,9})?", fullmatch=True)
ESCAPED = st.from_regex(r"https://a\.example/(%|[0-9A-Fa-f]|\.|/|%[0-9A-Fa-f]{2}){0,12}", fullmatch=True)
NAMES = st.sampled_from(["a", "b", "", "ü", "utm_source", "gclid", "FBCLID", "%67clid", "ref"])
PARAMETERS = st.lists(st.tuples(NAMES, st.text("ab1=+%é", max_size=4)), max_size=8)


@searched
@given(st.text(max_size=60) | URLS | ESCAPED)
def test_the_canonical_form_is_its_own_canonical_form(text: str) -> None:
    try:
        once = canonical(text)
    except BadURL:
        return
    assert canonical(once) == once
    assert canonical(written(text)) == once
    assert once.isascii()
    assert once.startswith(("http://", "https://"))


@searched
@given(st.text())
def test_no_text_makes_anything_but_an_address_or_a_refusal(text: str) -> None:
    for whole in (text, f"https://example.com/{text}", f"https://{text}.example/", f"https://a.example/?{text}"):
        try:
            address = canonical(whole)
        except BadURL:
            continue
        assert address.startswith(("http://", "https://"))


@searched
@given(PARAMETERS)
def test_what_is_left_of_a_query_is_as_it_was_and_in_its_order(parameters: list[tuple[str, str]]) -> None:
    parts = [f"{name}={value}" for name, value in parameters]
    tracked = [name.lower() in ("utm_source", "gclid", "fbclid", "%67clid") for name, _ in parameters]
    kept = [part for part, drop in zip(parts, tracked, strict=True) if not drop]

    left = canonical(f"https://a.example/?{'&'.join(parts)}")

    assert left == written(f"https://a.example/{'?' if kept or not parts else ''}{'&'.join(kept)}")


@searched
@given(ESCAPED)
def test_no_escape_in_a_path_comes_to_stand_for_something_else(url: str) -> None:
    before, after = written(url), canonical(url)

    assert unquote_to_bytes(before) == unquote_to_bytes(after)
    assert before.count("/") == after.count("/")


@pytest.mark.parametrize(
    ("changes", "query", "left"),
    [
        ((), "ref=1&gclid=2", "ref=1"),
        (("ref",), "ref=1&gclid=2", ""),
        (("REF",), "Ref=1", ""),
        (("-gclid",), "gclid=2&fbclid=3", "gclid=2"),
        (("-utm_*",), "utm_source=1&gclid=2", "utm_source=1"),
        (("-utm_source",), "utm_source=1&utm_medium=2", "utm_source=1"),
        (("-*",), "utm_source=1&gclid=2", "utm_source=1&gclid=2"),
        (("-*", "utm_*"), "utm_source=1&gclid=2", "gclid=2"),
        (("-*", "utm_*", "-utm_id"), "utm_source=1&utm_id=2", "utm_id=2"),
        (("x_*",), "x_=1&x_y=2&x=3", "x=3"),
        (("x_*", "-x_y*", "x_yz"), "x_a=1&x_y=2&x_yz=3", "x_y=2"),
        (("-x", "x"), "x=1", ""),
        (("x", "-x"), "x=1", "x=1"),
    ],
)
def test_the_last_change_that_fits_a_name_decides(changes: tuple[str, ...], query: str, left: str) -> None:
    assert reduced(f"{SITE}?{query}", Tracking(changes)) == (f"{SITE}?{left}" if left else SITE)


def test_the_built_in_tracking_names_are_in_lower_case_and_documented() -> None:
    listed = (Path(__file__).parents[3] / "docs" / "urls.md").read_text().partition("## Tracking parameters")[2]

    assert all(name == name.lower() for name in BUILT_IN)
    assert len(set(BUILT_IN)) == len(BUILT_IN)
    assert set(BUILT_IN) == set(re.findall(r"`([^`]+)`", listed.split("\n\n")[2]))


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
