"""Temporary PostgreSQL databases on the server of a given store: benchmarks never write to the store itself."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import create_engine, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError

from driftline.errors import BadSetting, MissingExtra, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def temporary_database(url: str, template: str | None = None) -> Iterator[str]:
    """Create a database on the server of `url` and drop it after the block, which is given the URL of the new one.

    `template` is the URL of a database to copy, to which nobody may be connected. The user needs the right to create
    databases.
    """
    name = f"driftline_lab_{secrets.token_hex(4)}"
    try:
        at = make_url(url)
        if at.get_backend_name() not in ("postgresql", "postgres"):
            raise BadSetting("--store takes a postgresql:// URL: databases are made on its server, and dropped again.")
        engine = create_engine(at.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    except (ArgumentError, NoSuchModuleError, ValueError):
        raise BadSetting("--store takes a postgresql:// URL.") from None
    except ModuleNotFoundError:
        raise MissingExtra("A PostgreSQL store", "postgres") from None
    try:
        with engine.connect() as connection:
            copied = "" if template is None else f" TEMPLATE {make_url(template).database}"
            connection.exec_driver_sql(f"CREATE DATABASE {name}{copied}")
            try:
                yield at.set(database=name).render_as_string(hide_password=False)
            finally:
                connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    except DatabaseError as error:
        raise StoreError(f"A database for the benchmark could not be created or dropped: {error.orig}.") from None
    finally:
        engine.dispose()
