"""What is kept of rendered pages, on either database."""

from __future__ import annotations

from dataclasses import replace

import pytest

import driftline
from driftline.api import workspace_of
from driftline.errors import UnknownVersion
from driftline.model.page import Render, RenderMode
from driftline.store.engine import Store
from driftline.store.history import RenderedVersions
from driftline.store.ledger import Ledger
from support.making import document, outcome_of, settings

URL = "http://page.example/"


def test_pictures_are_kept_with_versions_and_go_with_them(where: str) -> None:
    with driftline.open(where, settings(store=where)) as watch_list:
        watch_list.add(URL, render=Render(steps=("scroll",), wait_for="#a"))
        page = workspace_of(watch_list).catalog.find(URL)
        store = Store.open(where)
        ledger = Ledger(store)
        run, _ = ledger.begin(None)
        (link,) = ledger.links([page.id])
        assert link.render == Render(steps=("scroll",), wait_for="#a")
        found = replace(document(link), rendered=True, screenshot=b"picture")
        ledger.record(run, [outcome_of(found)])

        rendered = RenderedVersions(store, lambda: 1.0)
        assert watch_list.history.screenshot(URL) == watch_list.history.screenshot(URL, 1) == b"picture"
        assert workspace_of(watch_list).screenshots.numbers(page) == {1}
        assert rendered.was_used(page.id, 1)
        assert not rendered.was_used(page.id, 2)
        with pytest.raises(UnknownVersion, match=r"no picture of version 2 of .*, but of these: 1"):
            watch_list.history.screenshot(URL, 2)
        watch_list.remove(URL)
        assert not rendered.was_used(page.id, 1)
        store.close()


def test_a_version_of_which_no_picture_could_be_taken_is_known_to_be_rendered(where: str) -> None:
    with driftline.open(where, settings(store=where)) as watch_list:
        for url in (URL, f"{URL}plain"):
            watch_list.add(url)
        store = Store.open(where)
        ledger = Ledger(store)
        run, _ = ledger.begin(None)
        drawn, plain = ledger.links([workspace_of(watch_list).catalog.find(url).id for url in (URL, f"{URL}plain")])
        ledger.record(run, [outcome_of(replace(document(drawn), rendered=True)), outcome_of(document(plain))])

        rendered = RenderedVersions(store, lambda: 1.0)
        assert (rendered.was_used(drawn.page_id, 1), rendered.was_used(plain.page_id, 1)) == (True, False)
        assert workspace_of(watch_list).screenshots.numbers(workspace_of(watch_list).catalog.find(URL)) == set()
        store.close()


def test_hosts_that_need_a_browser_are_remembered_from_run_to_run(where: str) -> None:
    store = Store.open(where)
    first = RenderedVersions(store, lambda: 1.0)
    assert not first.needed_at("page.example")
    first.need_at("page.example")
    first.need_at("page.example")
    assert first.needed_at("page.example")
    assert RenderedVersions(store, lambda: 2.0).needed_at("page.example")
    store.close()


def test_how_a_page_is_rendered_can_be_edited(where: str) -> None:
    with driftline.open(where, settings(store=where)) as watch_list:
        watch_list.add(URL)
        catalog = workspace_of(watch_list).catalog
        assert catalog.find(URL).render is None
        auto = Render(mode=RenderMode.AUTO, steps=("click:#more",))
        assert catalog.edit(URL, render=lambda _: auto).render == auto
        assert catalog.edit(URL, every=60.0).render == auto
        assert catalog.edit(URL, render=lambda _: None).render is None
        with pytest.raises(UnknownVersion, match="they are taken of pages with --render"):
            watch_list.history.screenshot(URL)
