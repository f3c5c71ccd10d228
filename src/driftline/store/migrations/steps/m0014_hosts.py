"""What hosts said in their robots.txt, and how long they want to be left alone: nothing is known of it yet."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "robots",
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("body", sa.Text),
        sa.Column("until", sa.Double, nullable=False),
        sa.Column("failure_kind", sa.Text),
        sa.Column("failure", sa.Text),
        sa.Column("since", sa.Double),
        sa.PrimaryKeyConstraint("origin", name="pk_robots"),
    )
    op.create_table(
        "pauses",
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("host", name="pk_pauses"),
    )
