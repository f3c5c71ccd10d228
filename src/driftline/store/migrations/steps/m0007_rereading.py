"""Versions know how their texts were read: those from before do not, and are read anew in the background."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("versions", sa.Column("reading", sa.Text))
    op.add_column("versions", sa.Column("unread", sa.Text))
    op.add_column("versions", sa.Column("reread_at", sa.Double))
    op.add_column("states", sa.Column("caught_up", sa.Text))
