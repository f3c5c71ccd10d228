"""Searching on both databases: the same words are found, whatever keeps them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event, text

from driftline.detection.compare import compare, recall
from driftline.errors import StoreError, UsageError
from driftline.store.engine import Store
from driftline.store.history import Repository
from driftline.store.ledger import Ledger
from driftline.store.pages import Catalog
from driftline.store.search import Search, SearchScope
from support.making import InThisProcess, document
from support.properties import searched_briefly

SHOP, NEWS, BLOG = "https://shop.example/", "https://news.example/", "https://blog.example/"
SEARCHER = """
import sys
from driftline.store.history import Repository
from driftline.store.search import Search, SearchScope
from driftline.store.engine import Store

store = Store.open(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()

def told(done, total):
    print(done, total, flush=True)
    if sys.argv[2] == "pause":
        sys.stdin.readline()

found = Search(store, Repository(store)).find("page", SearchScope(), None, told)
print(*sorted({mention.url for mention in found}), flush=True)
store.close()
"""


class Past:
    """Pages whose history a test writes, and a clock that moves by a minute with every check."""

    def __init__(self, where: str) -> None:
        self.now = 1_000.0
        self.where = where
        self.store = Store.open(where)
        self.catalog = Catalog(self.store, lambda: self.now)
        self.repository = Repository(self.store)
        self.indexed: list[tuple[int, int]] = []
        self._ledger = Ledger(self.store, lambda: self.now)

    def check(self, **pages: str) -> None:
        """One run over these pages, each with these lines; a page that is not watched yet is added."""
        addresses = {url: pages[name] for name, url in NAMES.items() if name in pages}
        self.catalog.add(addresses)
        self.record(addresses)

    def record(self, pages: dict[str, str]) -> None:
        """The same for pages that are watched, by their addresses."""
        ids = [page.id for page in self.catalog.find_all(pages)]
        run, _ = self._ledger.begin(ids, fresh=True)
        links = list(self._ledger.remaining(run, ids))
        bodies = ["".join(f"<p>{line}</p>" for line in pages[link.url].splitlines()) for link in links]
        fetched = [
            document(link, body.encode(), content_type="text/html; charset=utf-8", at=self.now)
            for link, body in zip(links, bodies, strict=True)
        ]
        self._ledger.record(run, compare(recall(fetched, self.repository), InThisProcess(), self.repository, 10**8))
        self._ledger.finish(run)
        self.now += 60

    def found(self, query: str, limit: int | None = None, **scope: Any) -> list[tuple[str, int, str]]:
        """What a search finds: page, version, and whether the words appeared or disappeared."""
        names = {url: name for name, url in NAMES.items()}
        self.indexed.clear()
        mentions = Search(self.store, self.repository).find(query, SearchScope(**scope), limit, self._told)
        return [(names.get(mention.url, mention.url), mention.version, mention.kind.value) for mention in mentions]

    def seen(self, query: str) -> list[tuple[str, list[str]]]:
        """The excerpts that a search finds, and what is marked in each."""
        mentions = Search(self.store, self.repository).find(query, SearchScope())
        return [(mention.excerpt, [mention.excerpt[start:end] for start, end in mention.marks]) for mention in mentions]

    def _told(self, done: int, total: int) -> None:
        self.indexed.append((done, total))


NAMES = {"shop": SHOP, "news": NEWS, "blog": BLOG}


@pytest.fixture
def past(where: str) -> Iterator[Past]:
    made = Past(where)
    yield made
    made.store.close()


@pytest.fixture
def file_past(tmp_path: Path) -> Iterator[Past]:
    made = Past(str(tmp_path / "pages.db"))
    yield made
    made.store.close()


def test_words_appear_and_disappear_and_come_back(past: Past) -> None:
    past.check(shop="Welcome\nOur refund policy", news="Nothing here")
    past.check(shop="Welcome", news="Nothing here either")
    past.check(shop="Welcome\nRefund policy, new", news="A policy for refund")
    appeared, disappeared = "appeared", "disappeared"
    assert past.found("refund policy") == [
        ("news", 3, appeared),
        ("shop", 3, appeared),
        ("shop", 2, disappeared),
        ("shop", 1, appeared),
    ]
    assert past.found('"refund policy"') == [("shop", 3, appeared), ("shop", 2, disappeared), ("shop", 1, appeared)]
    assert past.found("nobody") == []


def test_an_excerpt_is_the_line_with_its_words_marked(past: Past) -> None:
    past.check(shop="Welcome\nOur Refund-Policy: refunds within 14 days")
    past.check(shop="Welcome")
    line = "Our Refund-Policy: refunds within 14 days"
    assert past.seen("refund* 14") == [(line, ["Refund", "refunds", "14"])] * 2
    assert past.seen('"refund policy"') == [(line, ["Refund-Policy"])] * 2


def test_a_long_line_is_cut_around_its_first_mark(past: Past) -> None:
    past.check(shop=f"{'before ' * 50}needle {'after ' * 50}needle")
    [(excerpt, marked)] = past.seen("needle")
    assert marked == ["needle"]
    assert len(excerpt) <= 170
    assert excerpt.startswith("… before")
    assert excerpt.endswith("after …")


def test_an_edit_around_the_words_and_a_line_that_moved_are_not_found(past: Past) -> None:
    past.check(shop="The refund policy of 2025\nSecond line\nThird line")
    past.check(shop="The refund policy of 2026\nSecond line\nThird line")
    past.check(shop="Second line\nThird line\nThe refund policy of 2026")
    assert past.found("refund policy") == [("shop", 1, "appeared")]
    assert past.found('"refund policy"') == [("shop", 1, "appeared")]
    assert past.found("2025") == [("shop", 2, "disappeared"), ("shop", 1, "appeared")]


def test_one_more_line_with_the_words_is_found(past: Past) -> None:
    past.check(shop="The refund policy")
    past.check(shop="The refund policy\nAnother refund policy")
    past.check(shop="Another refund policy")
    assert past.found("refund policy") == [("shop", 3, "disappeared"), ("shop", 2, "appeared"), ("shop", 1, "appeared")]


def test_words_appear_when_a_page_comes_to_have_them_all(past: Past) -> None:
    past.check(shop="Policy\nOpening hours")
    past.check(shop="Policy\nOpening hours\nA refund takes a week")
    past.check(shop="Policy\nOpening hours\nA refund takes a week\nOur hours are long")
    past.check(shop="Opening hours\nA refund takes a week\nOur hours are long")
    assert past.found("refund policy") == [("shop", 4, "disappeared"), ("shop", 2, "appeared")]
    assert past.found("policy refund hours") == [("shop", 4, "disappeared"), ("shop", 2, "appeared")]


def test_a_phrase_appears_when_its_words_come_together_in_a_line(past: Past) -> None:
    past.check(shop="man bites dog\nand so on")
    past.check(shop="dog bites man\nand so on")
    assert past.found('"dog bites man"') == [("shop", 2, "appeared")]
    assert past.found('"man bites dog"') == [("shop", 2, "disappeared"), ("shop", 1, "appeared")]
    assert past.found('"man and"') == []
    assert past.found("dog man bites") == [("shop", 1, "appeared")]
    assert past.found('"bites m*"') == [("shop", 2, "appeared")]


def test_every_script_is_found_without_case_and_accents(past: Past) -> None:
    past.check(
        shop="Rückgabe in der Hauptstraße, Straße 5\nВозврат товара ещё раз\n1299 euros, 1,299.00 with B2B opt-out\n"
        "我们的退款政策已更新\n返品できます\n환불을 받으세요\nนโยบายการคืนเงินของเรา\nधनवापसी नीति\nWe don't",
        news="Rock Strand возраст 129 9 b2c optout 款退 品返 불환 เงินคืน नीता",
    )
    queries = [
        "ruckgabe", "RÜCKGABE", "strasse", "возврат", "ВОЗВРАТ", "еще", "1299", "b2b", "1,299.00", "opt-out", "opt out",
        "退款", "款政", "策", "返品", "환불", "คืนเงิน", "नीति", "rückg*", "возв*", "don't",
    ]  # fmt: skip
    assert {query: past.found(query) for query in queries} == {query: [("shop", 1, "appeared")] for query in queries}


def test_a_search_can_be_narrowed(past: Past) -> None:
    past.check(shop="the words", news="the words", blog="the words")
    past.check(shop="nothing", news="the words", blog="nothing")
    past.check(shop="the words again", news="the words", blog="nothing")
    past.catalog.edit(NEWS, tag=["daily"])
    everything = past.found("words")
    assert len(everything) == 6
    assert past.found("words", limit=2) == everything[:2]
    assert past.found("words", now=True) == [row for row in everything if row[0] != "blog"]
    assert past.found("words", tag="daily") == [("news", 1, "appeared")]
    assert past.found("words", page_id=past.catalog.find(BLOG).id) == [row for row in everything if row[0] == "blog"]
    assert past.found("words", since=1_120.0) == [("shop", 3, "appeared")]
    assert past.found("words", until=1_060.0) == [row for row in everything if row[1] == 1]


def test_a_search_adds_only_the_versions_that_are_new(past: Past) -> None:
    past.check(shop="one", news="one")
    past.found("one")
    assert past.indexed == [(2, 2)]
    past.found("one")
    assert past.indexed == []
    past.check(shop="two", news="one")
    past.check(shop="three", news="one")
    assert past.found("two") == [("shop", 3, "disappeared"), ("shop", 2, "appeared")]
    assert past.indexed == [(2, 2)]


def test_a_search_of_one_page_indexes_no_other(past: Past) -> None:
    past.check(shop="five euros", news="five dead")
    page = past.catalog.find(SHOP)
    assert past.found("five", page_id=page.id) == [("shop", 1, "appeared")]
    assert past.indexed == [(1, 1)]
    assert sorted(past.found("five")) == [("news", 1, "appeared"), ("shop", 1, "appeared")]
    assert past.indexed == [(1, 1)]


def test_a_page_that_was_removed_is_found_no_more(past: Past) -> None:
    past.check(shop="secret words", news="secret words", blog="other words")
    assert len(past.found("secret")) == 2
    past.catalog.remove([SHOP])
    assert past.found("secret") == [("news", 1, "appeared")]
    past.check(shop="back again")
    assert past.found("secret") == [("news", 1, "appeared")]
    assert past.found("words again") == []
    past.catalog.remove([NEWS, BLOG])
    assert past.found("secret") == []
    assert past.found("again") == [("shop", 1, "appeared")]
    assert past.store.problems() == []


def test_the_words_of_removed_pages_leave_the_file_when_they_are_most_of_the_index(file_past: Past) -> None:
    file_past.check(shop="secret words", news="secret words", blog="other words")
    file_past.found("words")

    def kept() -> Any:
        with file_past.store.read() as connection:
            return connection.scalar(text("SELECT count(*) FROM words WHERE words MATCH 'secret'"))

    file_past.catalog.remove([SHOP])
    file_past.found("words")
    assert kept() == 2
    file_past.catalog.remove([NEWS])
    assert file_past.found("words") == [("blog", 1, "appeared")]
    assert kept() == 0


def test_a_page_of_very_many_words_is_found_by_any_of_them(past: Past) -> None:
    lines = [" ".join(f"word{number}" for number in range(start, start + 100)) for start in range(0, 90_000, 100)]
    past.check(shop="\n".join(lines))
    for number in (0, 45_678, 89_999):
        assert past.found(f"word{number}") == [("shop", 1, "appeared")]
    assert past.found("word0 word89999") == [("shop", 1, "appeared")]


def test_no_query_is_an_error_of_the_database(past: Past) -> None:
    past.check(shop="a b c é 退款 'quoted' \"twice\" AND OR NOT NEAR * ^ : = \\ ½")
    characters = st.characters() | st.sampled_from("ab*\"'()^:=-+{}\\|&!<> é退½⒈ﷺ")

    @searched_briefly
    @given(st.text(characters, max_size=20))
    def ask(query: str) -> None:
        try:
            past.found(query)
        except UsageError as refused:
            assert str(refused).endswith(".")  # noqa: PT017 either is right

    ask()
    for query in ("AND", "a AND", '"a" "b" *', "NEAR(a b)", "=a", "a:b", "^a", "c'", "\\", "½", "{a b}: c"):
        past.found(f"{query} a")


def test_a_version_that_cannot_be_read_does_not_prevent_searching(file_past: Past) -> None:
    file_past.check(shop="good words", news="good words")
    file_past.check(shop="bad words", news="good words")
    file_past.check(shop="better words", news="good words")
    broken = file_past.repository.version(file_past.catalog.find(SHOP), 2)
    with file_past.store.write() as connection:
        connection.execute(
            text(
                "UPDATE blobs SET data = x'00' WHERE digest = "
                "(SELECT text FROM versions WHERE number = 2 AND text NOT IN (SELECT body FROM versions))"
            )
        )
    assert broken.text == b"bad words"
    assert file_past.found("words") == [("shop", 3, "appeared"), ("news", 1, "appeared"), ("shop", 1, "appeared")]
    assert file_past.found("bad") == []


def watch_many(past: Past, count: int) -> list[str]:
    urls = [f"https://many.example/{number}" for number in range(count)]
    past.catalog.add(urls)
    past.record({url: f"page {number}" for number, url in enumerate(urls)})
    return urls


def start_search(where: str, how: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SEARCHER, where, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert read_line(process) == "ready"
    return process


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_indexing_that_was_killed_continues_where_it_was(past: Past) -> None:
    urls = watch_many(past, 150)
    with start_search(past.where, "pause") as process:
        go_on(process)
        done, total = map(int, read_line(process).split())
        assert 0 < done < total == len(urls)
        process.kill()
    assert {url for url, _, _ in past.found("page")} == set(urls)
    assert past.indexed[-1] == (len(urls) - done, len(urls) - done)
    assert len(past.found("page")) == len(urls)


def test_two_searches_at_once_index_every_version_once(past: Past) -> None:
    urls = watch_many(past, 300)
    with start_search(past.where, "on") as one, start_search(past.where, "on") as other:
        go_on(one)
        go_on(other)
        found = [process.communicate()[0].splitlines()[-1].split() for process in (one, other)]
    assert found == [sorted(urls), sorted(urls)]
    assert len(past.found("page")) == len(urls)
    assert past.indexed == []
    with past.store.read() as connection:
        assert connection.scalar(text("SELECT count(*) FROM indexed")) == len(urls)


def test_indexing_and_searching_read_no_table_of_versions_as_a_whole(file_past: Past) -> None:
    file_past.check(shop="old words", news="words")
    seen: list[tuple[str, Any]] = []

    def listen(_c: Any, _cursor: Any, statement: str, values: Any, _context: Any, many: bool) -> None:
        seen.append((statement, values[0] if many else values))

    event.listen(file_past.store.engine, "before_cursor_execute", listen)
    file_past.found('"old words" now', now=True)
    event.remove(file_past.store.engine, "before_cursor_execute", listen)
    with file_past.store.read() as connection:
        plans = {
            statement: [row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)]
            for statement, values in seen
            if statement.startswith(("SELECT", "WITH"))
        }
    steps = [step for plan in plans.values() for step in plan]
    assert any(step.startswith("SEARCH versions") for step in steps)
    assert not [step for step in steps if step.startswith(("SCAN versions", "SCAN previous", "SCAN blobs"))]


def test_a_sqlite_without_fts5_is_reported_in_a_sentence(file_past: Past) -> None:
    file_past.check(shop="words")

    @event.listens_for(file_past.store.engine, "before_cursor_execute", retval=True)
    def as_if_built_without(_c: Any, _cursor: Any, statement: str, values: Any, _x: Any, _many: Any) -> Any:
        return statement.replace("USING fts5", "USING fts_that_is_missing"), values

    with pytest.raises(StoreError, match=r"needs SQLite with FTS5.*\.$"):
        file_past.found("words")
    assert file_past.catalog.find(SHOP).versions == 1
