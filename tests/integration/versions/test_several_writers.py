"""Several processes write into one PostgreSQL store at once, and none undoes what another did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from driftline.detection.comparison import compare, recall
from driftline.detection.examination import Finding, Job, examine
from driftline.model import Outcome
from driftline.pages.catalog import Catalog
from driftline.versions.ledger import Ledger
from driftline.versions.repository import Repository
from driftline.versions.store import Store
from support.making import document
from support.meanwhile import meanwhile

ONE, TWO = "https://a.example/one", "https://a.example/two"


class InThisProcess:
    def examine(self, jobs: Sequence[Job]) -> list[Finding]:
        return [examine(job) for job in jobs]


class Process:
    """One of those who have the store open."""

    def __init__(self, where: str) -> None:
        self.store = Store.open(where)
        self.catalog = Catalog(self.store)
        self.ledger = Ledger(self.store)
        self.repository = Repository(self.store)
        self.run = 0

    def found(self, url: str, body: str) -> Outcome:
        """What a check of the page finds that is not recorded yet."""
        ids = [self.catalog.find(url).id]
        self.run, _ = self.ledger.begin(ids, fresh=True)
        (link,) = self.ledger.remaining(self.run, ids)
        return compare(recall([document(link, body.encode())], self.repository), InThisProcess(), 10**8)[0]

    def check(self, url: str, *bodies: str) -> None:
        for body in bodies:
            found = self.found(url, body)
            self.ledger.record(self.run, [found])


@pytest.fixture
def checker(postgres: str) -> Iterator[Process]:
    process = Process(postgres)
    yield process
    process.store.close()


@pytest.fixture
def other(checker: Process, postgres: str) -> Iterator[Process]:
    process = Process(postgres)
    yield process
    process.store.close()


def test_contents_that_a_check_is_about_to_refer_to_outlive_the_page_that_had_them(
    checker: Process, other: Process
) -> None:
    checker.catalog.add([ONE, TWO])
    checker.check(ONE, "<p>What both say</p>")
    found = checker.found(TWO, "<p>What both say</p>")
    with meanwhile(checker.store, "INSERT INTO versions", lambda: other.catalog.remove([ONE])):
        checker.ledger.record(checker.run, [found])
    assert other.repository.version(other.catalog.find(TWO)).text == b"What both say"
