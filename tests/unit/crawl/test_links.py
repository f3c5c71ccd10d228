"""What a page points to, and what it asks of those who crawl."""

from __future__ import annotations

from driftline.crawl.links import Extracted, extract
from driftline.urls.tracking import KNOWN

URL = "https://site.example/a/page.html"


def read(markup: str, robots: str = "", *, obeys: bool = True) -> Extracted:
    return extract(markup, URL, KNOWN, robots=robots, obeys=obeys)


def urls(markup: str, robots: str = "") -> list[str]:
    return [link.url for link in read(markup, robots).links]


def test_links_are_read_as_a_browser_reads_them() -> None:
    """Relative, with dots, without a scheme, with spaces around and in them; each once, in canonical form."""
    markup = """<a href="next.html">n</a><a href="../up">u</a><a href="//other.example/x">o</a><a href=" /abs ">a</a>
    <a href="/with space">s</a><a href="?q=1">q</a><a href="/abs?utm_source=x#part">again</a>"""
    assert urls(markup) == [
        "https://site.example/a/next.html", "https://site.example/up", "https://other.example/x",
        "https://site.example/abs", "https://site.example/with%20space", "https://site.example/a/page.html?q=1",
    ]  # fmt: skip


def test_the_base_of_the_page_counts() -> None:
    """Relative links are relative to it."""
    assert urls('<base href="/library/"><a href="book">b</a>') == ["https://site.example/library/book"]
    assert urls('<base href="http://["><a href="book">b</a>') == ["https://site.example/a/book"]


def test_what_is_not_on_the_web_or_within_the_page_is_no_link() -> None:
    """Mail, scripts, data, fragments and what cannot be read."""
    markup = "".join(
        f'<a href="{one}">x</a>' for one in ("mailto:a@b.c", "javascript:void(0)", "data:,x", "#top", "", "http://[/")
    )
    assert urls(markup) == []


def test_links_to_pages_come_from_more_than_anchors() -> None:
    """Image maps, frames, the next page, other languages, and a refresh."""
    markup = """<link rel="next" href="/2"><link rel="alternate" hreflang="de" href="/de">
    <link rel="stylesheet" href="/x.css">
    <meta http-equiv="Refresh" content="5; URL='/moved'"><map><area href="/area"></map><iframe src="/frame"></iframe>"""
    assert set(urls(markup)) == {f"https://site.example/{one}" for one in ("2", "de", "moved", "area", "frame")}


def test_feeds_and_the_address_of_its_own_are_found() -> None:
    """Neither is a link."""
    found = read(
        '<link rel="alternate" type="application/rss+xml" href="/feed"><link rel="canonical" href="/real">'
        '<link rel="canonical" href="/second">'
    )
    assert found.feeds == ["https://site.example/feed"]
    assert found.canonical == "https://site.example/real"
    assert found.links == []


def test_nofollow_links_are_counted_and_not_followed() -> None:
    """For a single link."""
    found = read('<a href="/a" rel="external NoFollow">a</a><a href="/b">b</a>')
    assert [link.url for link in found.links] == ["https://site.example/b"]
    assert found.held_back == 1


def test_a_page_may_ask_for_all_its_links() -> None:
    """By a meta element or by a header, to everybody or to us."""
    link = '<a href="/b">b</a>'
    for markup, robots in (
        (f'<meta name="ROBOTS" content="noindex, nofollow">{link}', ""),
        (f'<meta name="driftline" content="none">{link}', ""),
        (link, "none"),
    ):
        found = read(markup, robots)
        assert (found.links, found.held_back, found.indexed) == ([], 1, False)
    assert read(f'<meta name="googlebot" content="none">{link}').indexed


def test_who_does_not_obey_follows_all() -> None:
    """For a site of one's own."""
    found = read('<meta name="robots" content="none"><a href="/b" rel="nofollow">b</a>', obeys=False)
    assert [link.url for link in found.links] == ["https://site.example/b"]
    assert found.indexed


def test_anchors_are_kept_for_those_who_look_for_words() -> None:
    """The first that says something."""
    found = read('<a href="/b"><img></a><a href="/b"> Our  privacy\n policy </a>')
    assert found.links[0].anchor == "Our privacy policy"
