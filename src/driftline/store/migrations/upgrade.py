"""Running Alembic from inside the package, on a connection that is already open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config

if TYPE_CHECKING:
    from sqlalchemy import Connection


def upgrade(connection: Connection, to: str = "head") -> None:
    """Bring the schema up to `to` inside the caller's transaction."""
    here = Path(__file__).parent
    config = Config()
    config.set_main_option("script_location", str(here).replace("%", "%%"))
    config.set_main_option("version_locations", str(here / "steps").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, to)
