"""Blobs have the level that they were compacted at: none yet."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("blobs", sa.Column("level", sa.Integer))
    loose = sa.text("level IS NULL")
    op.create_index("ix_blobs_loose", "blobs", ["level"], sqlite_where=loose, postgresql_where=loose)
