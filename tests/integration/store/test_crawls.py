"""Rounds of a crawl in the store, begun and interrupted."""

from __future__ import annotations

from driftline.store.crawls import Begun, Sites
from driftline.store.engine import Store


def begun(sites: Sites, tag: str | None) -> Begun:
    return sites.begin(b"key", ["http://page.example/"], {"every": None}, tag, 1_000.0, fresh=False)


def test_a_crawl_that_is_killed_before_it_adopted_pages_adopts_them_later(store: Store) -> None:
    sites = Sites(store)
    first = begun(sites, None)
    sites.finish(first.site_id, first.number, 1_001.0)
    assert not first.adopts
    assert begun(sites, "site").adopts
    assert begun(sites, "site").adopts, "the crawl was killed, and is begun again"
    sites.note_adopted(first.site_id)
    assert not begun(sites, "site").adopts
    assert [site.options for site in sites.kept()] == [{"every": None}]
