"""Rounds of a crawl in the store, begun and interrupted."""

from __future__ import annotations

from driftline.model.page import AddressKind, AddressSource, AddressState, PageNote, SkipReason
from driftline.store.crawls import Begun, Met, Result, Sites
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


def met(path: str, lastmod: str = "") -> Met:
    url = f"http://page.example/{path}"
    return Met(url.encode(), url, AddressKind.PAGE, AddressSource.LINK, None, 1, 0, 1.0, lastmod)


def test_failures_notes_and_reasons_to_skip_are_kept_apart(store: Store) -> None:
    """A sentence is never taken for a decision: not that of a failure which reads like one either."""
    sites = Sites(store)
    first = begun(sites, None)
    failed, same, skipped = sorted(sites.record(first, [], [met("a"), met("b"), met("c")], {}), key=lambda one: one.id)
    sites.record(
        first,
        [
            Result(failed.id, AddressState.FAILED, "lastmod"),
            Result(same.id, AddressState.PAGE, status=200, good=True, note=PageNote.SAME),
            Result(skipped.id, AddressState.SKIPPED, skip_reason=SkipReason.ROBOTS),
        ],
        [], {SkipReason.ROBOTS: ["http://page.example/c"]},
    )  # fmt: skip
    rows = sites.rows(first, [AddressState.FAILED, AddressState.PAGE, AddressState.SKIPPED])
    assert [(row.failure, row.note) for row in rows] == [("lastmod", None), ("", PageNote.SAME), ("", None)]
    assert sites.skipped(first) == {SkipReason.ROBOTS: (1, ["http://page.example/c"])}
    with store.read() as connection:
        stored = connection.exec_driver_sql("SELECT skip_reason FROM addresses ORDER BY id").scalars().all()
    assert stored == [None, None, "robots"]


def test_a_page_that_is_fetched_again_has_no_note_of_the_last_round(store: Store) -> None:
    """One that its sitemap gives the same date gets the note instead, and does not count as requested."""
    sites = Sites(store)
    first = begun(sites, None)
    places = sites.record(first, [], [met("a", "2026"), met("b", "2026")], {})
    good = [Result(one.id, AddressState.PAGE, status=200, good=True, note=PageNote.NEAR) for one in places]
    sites.record(first, good, [], {})
    sites.finish(first.site_id, first.number, 1_001.0)
    second = begun(sites, None)
    assert [row.note for row in sites.rows(second, [AddressState.WAITING])] == [None, None]
    sites.record(second, [], [], {}, [met("a", "2026"), met("b", "2027")])
    assert [row.note for row in sites.rows(second, [AddressState.PAGE])] == [PageNote.LASTMOD]
    assert sites.asked(second) == 0
