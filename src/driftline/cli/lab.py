"""`driftline lab`: measure Driftline."""

from __future__ import annotations

import typer

lab_app = typer.Typer(help="Measure Driftline: speed, freshness, detection, and the paper's experiments.")
