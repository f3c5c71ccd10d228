"""`driftline lab`: a simulated web, and the programs that measure Driftline on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from driftline.cli import lab_accuracy, lab_servers, lab_speed
from driftline.cli.help_panels import PanelCommand, PanelGroup

if TYPE_CHECKING:
    from collections.abc import Callable

lab_app = typer.Typer(help="Measure speed, accuracy and politeness on test sites.", cls=PanelGroup)
_COMMANDS: tuple[Callable[..., None], ...] = (
    lab_servers.web,
    lab_speed.experiment,
    lab_speed.speed,
    lab_speed.tuning,
    lab_speed.scale,
    lab_accuracy.noise,
    lab_accuracy.detection,
    lab_accuracy.storage,
    lab_accuracy.freshness,
    lab_accuracy.picking,
    lab_servers.hostile,
    lab_servers.polite,
    lab_servers.crawl,
    lab_servers.faults,
)
for _function in _COMMANDS:
    lab_app.command(cls=PanelCommand)(_function)
