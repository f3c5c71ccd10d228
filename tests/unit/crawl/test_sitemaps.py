"""Sitemaps, indexes, feeds and robots.txt list pages."""

from __future__ import annotations

import gzip

from driftline.crawl.sitemaps import Listed, read_lists, sitemaps_of

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
LIMIT = 1_000_000


def test_a_sitemap_lists_pages_and_when_they_changed() -> None:
    """White space, namespaces and other elements do not matter; an entry without an address is left out."""
    body = f"""<?xml version="1.0"?><urlset {NAMESPACE} xmlns:i="x"><url><loc>
    https://site.example/a </loc><lastmod>2026-01-02</lastmod><i:image><i:loc>https://x/</i:loc></i:image></url>
    <url><lastmod>2026</lastmod></url><url><loc>https://site.example/b?x=1&amp;y=2</loc></url></urlset>""".encode()
    found = read_lists(body, "application/xml", LIMIT)
    assert found is not None
    assert found.pages == [
        Listed("https://site.example/a", "2026-01-02"), Listed("https://site.example/b?x=1&y=2", ""),
    ]  # fmt: skip
    assert found.sitemaps == []


def test_an_address_that_is_not_whole_is_left_out() -> None:
    """The protocol wants them so; others are most often left over from something broken."""
    body = f"<urlset {NAMESPACE}><url><loc>/a</loc></url><url><loc>//site.example/b</loc></url><url><loc>oops & <b>"
    found = read_lists(body.encode(), "application/xml", LIMIT)
    assert found is not None
    assert found.pages == []


def test_an_index_lists_sitemaps_and_may_be_packed() -> None:
    """As files that end in .gz are."""
    body = f"<sitemapindex {NAMESPACE}><sitemap><loc>https://site.example/1.xml.gz</loc></sitemap></sitemapindex>"
    found = read_lists(gzip.compress(body.encode()), "application/gzip", LIMIT)
    assert found is not None
    assert found.sitemaps == [Listed("https://site.example/1.xml.gz", "")]


def test_feeds_of_every_kind_list_their_entries() -> None:
    """RSS, RDF and Atom, where the link to the page is one of several."""
    rss = b"<rss><channel><link>https://site.example/</link><item><link>https://site.example/1</link></item></channel></rss>"
    rdf = b'<r:RDF xmlns:r="r" xmlns="s"><channel/><item><link>https://site.example/1</link></item></r:RDF>'
    atom = (
        b'<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://site.example/"/><entry>'
        b'<link rel="edit" href="https://site.example/e"/><link href="https://site.example/1"/></entry></feed>'
    )
    for body in (rss, rdf, atom):
        found = read_lists(body, "text/xml", LIMIT)
        assert found is not None
        assert found.pages == [Listed("https://site.example/1", "")]


def test_a_plain_list_of_addresses_is_a_sitemap() -> None:
    """A line each; any other text is not."""
    found = read_lists(b"https://site.example/a\n\nhttps://site.example/b\n", "text/plain", LIMIT)
    assert found is not None
    assert [one.url for one in found.pages] == ["https://site.example/a", "https://site.example/b"]
    assert read_lists(b"Hello\nhttps://site.example/b\n", "text/plain", LIMIT) is None


def test_what_is_no_list_is_none() -> None:
    """Pages, other XML, broken XML, and documents that declare entities."""
    bomb = b'<!DOCTYPE x [<!ENTITY a "b">]><urlset><url><loc>&a;</loc></url></urlset>'
    for body in (b"<!doctype html><title>x</title>", b"<catalog><url/></catalog>", b"<urlset", b"", bomb):
        found = read_lists(body, "text/xml", LIMIT)
        assert found is None or found.pages == []


def test_robots_txt_names_sitemaps() -> None:
    """In whatever case, wherever it stands."""
    text = "Sitemap: https://site.example/a.xml\nUser-agent: *\nDisallow: /x\n"
    text += " sitemap : https://site.example/b.xml # two\n"
    assert sitemaps_of(text) == ["https://site.example/a.xml", "https://site.example/b.xml"]
