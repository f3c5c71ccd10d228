"""Adding very many pages while others want to write."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import event

from driftline.errors import BadURL, StoreLocked
from driftline.pages.catalog import Catalog
from driftline.versions.store import Store

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
