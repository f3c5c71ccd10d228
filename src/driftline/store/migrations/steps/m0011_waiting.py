"""When a server wants to be asked again, and which hosts are not believed: nothing is known of it yet."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("states", sa.Column("retry_at", sa.Double))
    op.create_table(
        "distrusted",
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("host", name="pk_distrusted"),
    )
