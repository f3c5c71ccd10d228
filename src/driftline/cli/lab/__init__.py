"""`driftline lab`: a simulated web, and the programs that measure Driftline on it."""

from __future__ import annotations

import typer

from driftline.cli.lab import judging, planning, racing, serving, study, web

lab_app = typer.Typer(help="Measure Driftline: its speed, its tuning, its judgement, and the paper's experiment.")
lab_app.command()(web.web)
lab_app.command()(study.experiment)
lab_app.command()(racing.speed)
lab_app.command()(racing.tuning)
lab_app.command()(racing.scale)
lab_app.command()(judging.noise)
lab_app.command()(judging.detection)
lab_app.command()(judging.storage)
lab_app.command()(planning.freshness)
lab_app.command()(planning.picking)
lab_app.command()(serving.hostile)
lab_app.command()(serving.polite)
lab_app.command()(serving.crawl)
lab_app.command()(serving.faults)
