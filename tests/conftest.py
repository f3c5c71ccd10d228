from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from command import HURRIED, LOCAL, Command
from driftline.store.engine import Store
from driftline.store.locks import WAITS, Waits
from driftline.store.statements import BATCHES, Batches
from support.names import duplicate_modules, duplicate_types, modules
from support.postgres import postgres, postgres_server
from support.schedules import schedule
from support.servers import Site

__all__ = ["driftline", "postgres", "postgres_server", "schedule", "site", "where"]

# every server of a test is on this machine; a test of the guard gives its own networks, or none
os.environ["DRIFTLINE_ALLOW_NETWORKS"] = LOCAL
# they are asked for many pages at once, and for no robots.txt; a test of politeness says what it wants
os.environ |= HURRIED

settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("fuzz", settings.get_profile("steady"), derandomize=False, max_examples=3_000)
settings.load_profile("steady")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show how many modules there are, and that their names are unique: `tests/unit/test_names.py` fails otherwise."""
    terminalreporter.write_line(
        f"modules: {len(modules())}, duplicate module names: {len(duplicate_modules())}, "
        f"duplicate public class names: {len(duplicate_types())}"
    )


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store, of either kind."""
    if request.param == "sqlite":
        return str(tmp_path / "pages.db")
    url: str = request.getfixturevalue("postgres")
    return url


@pytest.fixture
def store(where: str) -> Iterator[Store]:
    """An empty store, of either kind."""
    made = Store.open(where)
    yield made
    made.close()


@pytest.fixture
def waits() -> Iterator[Waits]:
    """How long the stores of this process wait: a test may set it, and it is as before afterwards."""
    before = asdict(WAITS)
    yield WAITS
    for name, value in before.items():
        setattr(WAITS, name, value)


@pytest.fixture
def batches() -> Iterator[Batches]:
    """How many rows the stores of this process read at once: a test may set it, and it is as before afterwards."""
    before = asdict(BATCHES)
    yield BATCHES
    for name, value in before.items():
        setattr(BATCHES, name, value)


@pytest.fixture
def impatient_store(waits: Waits) -> None:
    """Stores that are opened from now on wait for no other program that has them locked."""
    waits.lock = waits.locked = 0.0


@pytest.fixture
def driftline(tmp_path: Path) -> Command:
    (tmp_path / "pages.db").touch()  # a store that is named has to be there for who only looks: nothing is in it yet
    return Command(tmp_path)
