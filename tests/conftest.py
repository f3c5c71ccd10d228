from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from command import Command
from servers import Site
from support.postgres import postgres, postgres_server

__all__ = ["driftline", "postgres", "postgres_server", "site"]


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
def driftline(tmp_path: Path) -> Command:
    return Command(tmp_path)
