from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from command import Command
from servers import Site


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
def driftline(tmp_path: Path) -> Command:
    return Command(tmp_path)
