"""What a command loads before it does anything: everybody waits for it, every time."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = "import sys; import {module}; print(*(name for name in {unwanted!r} if name in sys.modules))"


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("driftline.cli.main", ("sqlalchemy", "numpy", "pycurl", "rich", "selectolax")),
        ("driftline.api", ("numpy", "pycurl", "selectolax", "sqlalchemy.dialects.postgresql", "alembic")),
        # pages are read by worker processes
        ("driftline.pipeline.check_run", ("selectolax", "driftline.detection.examine", "numpy")),
    ],
)
def test_no_command_loads_what_others_need(module: str, unwanted: tuple[str, ...]) -> None:
    program = LOADED.format(module=module, unwanted=unwanted)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ran.stdout.split() == []
