"""The steps that create a store's schema or bring it up to date, run by Alembic on a connection that is already open.

A change of the schema is a change of `schema.py` and a new module in `steps`, named after its revision; a test compares
the two. `engine.NEWEST` names the last revision.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config

if TYPE_CHECKING:
    from sqlalchemy import Connection


def upgrade(connection: Connection, to: str = "head") -> None:
    """Run the missing steps up to the revision `to`, inside the caller's transaction."""
    here = Path(__file__).parent
    config = Config()
    config.set_main_option("script_location", str(here).replace("%", "%%"))
    config.set_main_option("version_locations", str(here / "steps").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, to)
