"""Adding very many pages while others write."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import event

from driftline.errors import BadURL, StoreLocked
from driftline.store.engine import Store
from driftline.store.pages import Catalog

MANY = [f"https://a.example/{number}" for number in range(4_500)]


@pytest.fixture
def path(impatient_store: None, tmp_path: Path) -> Path:
    return tmp_path / "pages.db"


def test_others_can_write_while_very_many_pages_are_added(path: Path) -> None:
    """Another program has the store for itself before the third transaction: what was done is done, and is told."""
    store = Store.open(str(path))
    catalog = Catalog(store)
    catalog.add(MANY[:10])
    other = sqlite3.connect(path, isolation_level=None)
    done: list[object] = []

    def lock(connection: object, _record: object) -> None:
        done.append(connection)
        if len(done) == 3:  # one that reads, and two that write
            other.execute("BEGIN IMMEDIATE")

    event.listen(store.engine, "checkin", lock)
    with pytest.raises(StoreLocked, match="3,990 pages were added before: add the same again for the rest"):
        catalog.add(MANY)
    other.close()
    assert [page.url for page in catalog.all()] == MANY[:4_000]
    assert catalog.add(MANY) == MANY[4_000:]
    assert [page.url for page in catalog.all()] == MANY
    store.close()


def test_none_is_added_if_any_is_bad(path: Path) -> None:
    store = Store.open(str(path))
    catalog = Catalog(store)
    with pytest.raises(BadURL):
        catalog.add([*MANY, "mailto:me@a.example"])
    assert catalog.all() == []
    store.close()


def test_pages_are_chosen_by_a_tag_as_it_is_written_and_by_nothing_like_it(store: Store) -> None:
    catalog = Catalog(store)
    tags = ["news", "News", 'x"news', "new", "ünïcode", "100%"]
    for number, tag in enumerate(tags):
        catalog.add([f"https://a.example/{number}"], tags=[tag, "all"])
    catalog.add(["https://a.example/none"])
    for number, tag in enumerate(tags):
        assert [page.url for page in catalog.all(tag)] == [f"https://a.example/{number}"]
    assert len(catalog.all("all")) == len(tags)
    assert catalog.unused_tags(["news", "nothing", "1%"]) == ["nothing", "1%"]


def test_pages_are_given_in_order_from_an_offset_up_to_a_limit(store: Store) -> None:
    catalog = Catalog(store)
    catalog.add(MANY[:2_500])
    catalog.add(["https://a.example/tagged"], tags=["last"])
    assert [page.url for page in catalog.chosen()] == [*MANY[:2_500], "https://a.example/tagged"]
    assert [page.url for page in catalog.chosen(limit=1_500, offset=900)] == MANY[900:2_400]
    assert [page.url for page in catalog.chosen(tag="last", limit=5)] == ["https://a.example/tagged"]
    assert list(catalog.chosen(offset=2_501)) == []
    assert list(catalog.chosen(tag="last", offset=1)) == []
