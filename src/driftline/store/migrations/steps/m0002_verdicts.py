"""Changes have a verdict: those recorded before all meant something."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("changes", sa.Column("verdict", sa.Text, nullable=False, server_default="meaningful"))
