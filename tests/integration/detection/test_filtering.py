from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from sqlalchemy import text

import driftline
from driftline import Plan
from driftline.api import workspace_of
from driftline.errors import FailureKind
from driftline.model.change import Importance
from driftline.model.outcome import Check, Proof, Verdict
from driftline.model.page import Filter, FilterKind, WarningKind
from driftline.store.blobs import digest, pack
from driftline.store.engine import Store
from support.making import settings
from support.papers import pdf
from support.servers import Answer, Request, Server, answer
from support.worlds import WIRINGS

HTML = "text/html; charset=utf-8"
PAGE = (
    "<title>Shop</title><nav>Menu {menu}</nav><main><h1>Pen</h1><p class=price>{price} €</p><p class=ad>{ad}</p></main>"
)


class Shop:
    """One page that a test rewrites, watched through filters."""

    def __init__(self, folder: Path) -> None:
        self.body: str | bytes = ""
        self.content_type = HTML
        self.server = Server(self._answer)
        self.pages = driftline.open(settings=settings(store=str(folder / "pages.db"), worker_deadline=60.0))
        self.url = self.server.url("/")

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(self, *ended: object) -> None:
        self.pages.close()
        self.server.__exit__(None, None, None)

    def _answer(self, _request: Request) -> Answer:
        body = self.body.encode() if isinstance(self.body, str) else self.body
        return answer(body, "200 OK", f"Content-Type: {self.content_type}", 'ETag: "always"')

    def write(self, price: int = 5, ad: str = "Buy it", menu: str = "one") -> None:
        self.body = PAGE.format(price=price, ad=ad, menu=menu)

    def check(self, plan: Plan | None = None) -> Check:
        self.pages.check(plan=plan, fresh=True)
        return self.pages.history.checks(self.url, 1)[0]

    def text(self, number: int | None = None) -> str:
        return self.pages.history.version(self.url, number).text.decode()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with Shop(tmp_path) as shop:
        shop.write()
        yield shop


@pytest.mark.parametrize("plan", WIRINGS)
def test_only_what_filters_leave_is_kept_and_compared(shop: Shop, plan: Plan) -> None:
    shop.pages.add(shop.url, filters=[("select", "main"), ("drop", ".ad"), ("ignore", "/^pen$/i")])
    assert shop.check(plan).verdict is Verdict.NEW
    assert shop.text() == "5 €"
    shop.write(ad="Buy two", menu="two")
    found = shop.check(plan)
    assert (found.verdict, found.proof, found.version) == (Verdict.UNCHANGED, Proof.TEXT, None)
    shop.write(price=6)
    assert shop.check(plan).verdict is Verdict.CHANGED
    assert shop.text() == "6 €"


@pytest.mark.parametrize(
    ("content_type", "body", "select", "left"),
    [
        (HTML, PAGE.format(price=5, ad="x", menu="y"), "xpath://*[@class='price']", "5 €"),
        ("application/json", '{"a": {"b": [1, 2]}, "c": 3}', "json:$.a", "$.a.b[*]: 1\n$.a.b[*]: 2"),
        ("application/xml", "<a><b>1</b><c>2</c></a>", "xpath://b", "/b: 1"),
        ("text/csv", "a,b\n1,2\n", "main", "a | b\na: 1 | b: 2"),
        ("application/pdf", pdf(["Terms", "of use"]), "main", "Terms\nof use"),
    ],
    ids=["html", "json", "xml", "csv", "pdf"],
)
def test_every_format_is_read_through_filters(
    shop: Shop, content_type: str, body: str | bytes, select: str, left: str
) -> None:
    shop.content_type, shop.body = content_type, body
    shop.pages.add(shop.url, filters=[("select", select)])
    assert shop.check().verdict is Verdict.NEW
    assert shop.text() == left


def test_a_selection_that_is_gone_is_a_failed_check_and_no_version(shop: Shop) -> None:
    shop.pages.add(shop.url, filters=[("select", ".price")])
    shop.check()
    shop.body = "<p>Come back later"
    failed = shop.check()
    assert failed.failure is not None
    assert failed.failure.kind is FailureKind.SELECTION
    assert failed.failure.sentence.startswith("The filter 'select .price' matches nothing on this page")
    shop.write(menu="new")
    assert shop.check().verdict is Verdict.UNCHANGED
    assert shop.pages.pages()[0].versions == 1


def test_a_change_without_a_trigger_is_noise_with_that_reason(shop: Shop) -> None:
    shop.pages.add(shop.url, filters=[("trigger", "sold out")])
    shop.check()
    shop.write(price=6)
    found = shop.check()
    assert (found.verdict, found.proof) == (Verdict.UNCHANGED, Proof.NOISE)
    assert found.change is not None
    assert found.change.reason == "Nothing that was added or removed is what the page waits for."
    shop.write(price=6, menu="and: Sold out")
    found = shop.check()
    assert found.verdict is Verdict.CHANGED, "wherever it appears"
    shop.write(price=6)
    assert shop.check().verdict is Verdict.UNCHANGED


def test_what_changes_while_a_page_is_quiet_is_reported_when_it_is_quiet_no_more(shop: Shop) -> None:
    shop.content_type = "text/plain"
    shop.body = "Lamp\nPrice 3"
    shop.pages.add(shop.url, filters=[("quiet-while", "under maintenance")])
    shop.check()
    for body in ("Lamp\nUnder maintenance", "Lamp\nPrice 4\nUnder maintenance", "Lamp\nPrice 4\nUnder maintenance"):
        shop.body = body
        found = shop.check()
        assert (found.verdict, found.proof, found.change) == (Verdict.UNCHANGED, Proof.QUIET, None)
        assert found.reason == "Changes are not reported while the page has what its filter 'quiet-while' names."
    assert shop.pages.pages()[0].versions == 1
    shop.body = "Lamp\nPrice 4"
    found = shop.check()
    assert found.verdict is Verdict.CHANGED
    assert found.change is not None
    assert found.change.headline == "Price 3 → 4"


def test_a_page_is_quiet_by_any_of_its_text_also_where_what_is_watched_is_missing(shop: Shop) -> None:
    page = "<nav>{}</nav><main><p class=price>{}</p><p>{}</main>"
    shop.body = page.format("Home", "Price 3", "A pen that writes for a good while.")
    shop.pages.add(shop.url, filters=[("select", ".price"), ("quiet-while", "closed today")])
    shop.check()
    for body in (page.format("Closed today", "Price 4", "A pen."), "<h1>Closed today</h1>"):
        shop.body = body
        assert shop.check().proof is Proof.QUIET
    shop.body = page.format("Home", "Price 4", "A pen that writes for a good while.")
    assert shop.check().verdict is Verdict.CHANGED


def test_a_hidden_frame_is_warned_of_while_the_page_is_quiet(shop: Shop) -> None:
    shop.body = "<p>Price 3"
    shop.pages.add(shop.url, filters=[("quiet-while", "closed")])
    shop.check()
    shop.body = (
        "<p>Closed<iframe width=1 height=1 src=https://bad.example/x></iframe><p>Some more text, and more of it."
    )
    found = shop.check()
    assert found.proof is Proof.QUIET
    assert [warning.kind for warning in found.warnings] == [WarningKind.HIDDEN_FRAME]


@pytest.mark.parametrize(("kind", "value"), [("keep", "concert"), ("extract", "/concert in \\w+/i")])
def test_a_line_that_is_kept_may_come_and_go(shop: Shop, kind: str, value: str) -> None:
    shop.content_type = "text/plain"
    shop.body = "In stock\nFoo"
    shop.pages.add(shop.url, filters=[(kind, value)])
    assert shop.check().verdict is Verdict.NEW
    for body, headline in (("Concert in Bern\nFoo", "New: Concert in Bern"), ("Foo", "Removed: Concert in Bern")):
        shop.body = body
        found = shop.check()
        assert found.verdict is Verdict.CHANGED
        assert found.change is not None
        assert found.change.headline == headline


@pytest.mark.parametrize(
    "filters", [[Filter(FilterKind.KEEP, "sold out")], [Filter(FilterKind.EXTRACT, "/Sold \\w+/")]]
)
def test_a_line_that_an_edited_filter_waits_for_is_new(shop: Shop, filters: list[Filter]) -> None:
    shop.content_type = "text/plain"
    shop.body = "In stock\nFoo"
    shop.pages.add(shop.url)
    shop.check()
    workspace_of(shop.pages).catalog.edit(shop.url, filters=lambda _: filters)
    shop.body = "Sold out\nFoo"
    assert shop.check().verdict is Verdict.CHANGED


def test_a_page_that_is_quiet_no_more_and_as_before_is_unchanged(shop: Shop) -> None:
    shop.content_type = "text/plain"
    shop.body = "Lamp\nPrice 3"
    shop.pages.add(shop.url, filters=[("quiet-while", "closed")])
    shop.check()
    shop.body = "Closed"
    shop.check()
    shop.body = "Lamp\nPrice 3"
    found = shop.check()
    assert (found.verdict, found.change) == (Verdict.UNCHANGED, None)


@pytest.mark.parametrize(
    ("kind", "value"), [("ignore", "/^(a+)+$/"), ("extract", "/^(a+)+$|Something/"), ("replace", "/^(a+)+$/x/")]
)
def test_an_expression_that_runs_away_costs_one_failed_check(shop: Shop, kind: str, value: str) -> None:
    shop.body = f"<p>{'a' * 60}!"
    shop.pages.add(shop.url, filters=[(kind, value)])
    failed = shop.check()
    assert failed.failure is not None
    assert failed.failure.kind is FailureKind.SELECTION
    assert failed.failure.sentence.startswith(f"The filter '{kind} {value}' takes too long on this page")
    shop.body = "<p>Something else"
    assert shop.check().verdict is Verdict.NEW, "the worker goes on with other pages"


@pytest.mark.parametrize("filters", [[("trigger", "/^(a+)+$/")], [("select", "p"), ("ignore", "/(a|a)*b/")]])
def test_every_kind_of_expression_that_runs_away_is_named(shop: Shop, filters: list[tuple[str, str]]) -> None:
    shop.pages.add(shop.url, filters=filters)
    shop.body = "<p>As it was"
    shop.check()
    shop.body = f"<p>{'a' * 60}!"
    failed = shop.check()
    assert failed.failure is not None
    assert f"'{' '.join(filters[-1])}'" in failed.failure.sentence


def test_a_page_without_text_is_a_failed_check_unless_it_is_selected_so(shop: Shop) -> None:
    shop.pages.add(shop.url)
    shop.body = "<!doctype html><title>App</title><div id=app></div>"
    failed = shop.check()
    assert failed.failure is not None
    assert failed.failure.kind is FailureKind.BROKEN
    workspace_of(shop.pages).catalog.edit(shop.url, filters=lambda _: [Filter(FilterKind.SELECT, "#app")])
    assert shop.check().verdict is Verdict.NEW


def test_an_edit_of_the_filters_is_no_change_of_the_page(shop: Shop) -> None:
    shop.pages.add(shop.url)
    shop.check()
    changed_at = shop.pages.pages()[0].changed_at
    whole = shop.text()
    workspace_of(shop.pages).catalog.edit(shop.url, filters=lambda _: [Filter(FilterKind.SELECT, ".price")])
    report = shop.pages.check(fresh=True)
    assert (report.changed, report.unchanged, report.noisy) == (0, 1, 0)
    assert "if-none-match" not in shop.server.requests[-1].headers, "'not modified' would leave the old text in force"
    found = shop.pages.history.checks(shop.url, 1)[0]
    assert (found.proof, found.version) == (Proof.REREAD, 2)
    assert found.change is not None
    assert (found.change.kind, found.change.importance) == ("reading", Importance.NOISE)
    assert (shop.text(), shop.text(1)) == ("5 €", whole), "what was stored stays as it was"
    assert shop.pages.pages()[0].changed_at == changed_at
    assert shop.check().proof is Proof.WIRE
    shop.write(price=6)
    assert shop.check().verdict is Verdict.CHANGED
    workspace_of(shop.pages).catalog.edit(shop.url, filters=lambda _: [])
    assert shop.check().proof is Proof.REREAD
    assert shop.text() == whole.replace("5 €", "6 €")
    assert shop.pages.maintenance.doctor() == []


def test_a_change_together_with_an_edit_of_the_filters_is_reported(shop: Shop) -> None:
    shop.pages.add(shop.url)
    shop.check()
    workspace_of(shop.pages).catalog.edit(shop.url, filters=lambda _: [Filter(FilterKind.SELECT, ".price")])
    shop.write(price=7)
    found = shop.check()
    assert found.verdict is Verdict.CHANGED
    assert found.change is not None
    assert found.change.reason == "1 word added and 1 word removed in one place: 5 € → 7 €."


def test_an_edit_decides_by_the_filters_that_are_there(shop: Shop) -> None:
    shop.pages.add(shop.url, filters=[("select", "main")])
    edit = workspace_of(shop.pages).catalog.edit
    drop = Filter(FilterKind.DROP, ".ad")
    assert edit(shop.url, filters=lambda kept: [*kept, drop]).filters == (("select", "main"), ("drop", ".ad"))
    assert edit(shop.url, every=60.0).filters == (("select", "main"), ("drop", ".ad"))
    assert edit(shop.url, filters=lambda _: []).filters == ()


def test_a_page_whose_way_of_reading_is_not_known_raises_no_alarm(shop: Shop) -> None:
    shop.content_type, shop.body = "application/json", '{"price": 5, "note": "x"}'
    shop.pages.add(shop.url)
    shop.check()
    store = Store.open(shop.pages.settings.store)
    with store.write() as connection:
        as_plain_text = pack(shop.body.encode(), digest(shop.body.encode()))
        store.statements.blob.many(
            connection, [(1, as_plain_text.digest, None, 0, as_plain_text.size, as_plain_text.data)]
        )
        forget = "UPDATE states SET reading = NULL, kept_text = :text, wire = x'', etag = NULL"
        connection.execute(text(forget), {"text": as_plain_text.digest})
    store.close()
    found = shop.check()
    assert (found.verdict, found.proof, found.version) == (Verdict.UNCHANGED, Proof.REREAD, 2)
    assert shop.check().proof is Proof.WIRE
    shop.body = '{"price": 6, "note": "x"}'
    assert shop.check().verdict is Verdict.CHANGED
