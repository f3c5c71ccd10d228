"""`driftline lab`: a simulated web, and the programs that measure Driftline on it."""

from __future__ import annotations

import typer

from driftline.cli import lab_accuracy, lab_paper, lab_scheduling, lab_servers, lab_speed

lab_app = typer.Typer(help="Measure Driftline: its speed, its tuning, its judgement, and the paper's experiment.")
lab_app.command()(lab_servers.web)
lab_app.command()(lab_paper.experiment)
lab_app.command()(lab_speed.speed)
lab_app.command()(lab_speed.tuning)
lab_app.command()(lab_speed.scale)
lab_app.command()(lab_accuracy.noise)
lab_app.command()(lab_accuracy.detection)
lab_app.command()(lab_accuracy.storage)
lab_app.command()(lab_scheduling.freshness)
lab_app.command()(lab_scheduling.picking)
lab_app.command()(lab_servers.hostile)
lab_app.command()(lab_servers.polite)
lab_app.command()(lab_servers.crawl)
lab_app.command()(lab_servers.faults)
