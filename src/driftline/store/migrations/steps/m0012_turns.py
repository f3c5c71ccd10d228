"""When pages began to fail and recovered: nothing was told of it in this way yet."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("states", sa.Column("failing_at", sa.Double))
    op.create_table(
        "turns",
        sa.Column(
            "page_id",
            sa.Integer,
            sa.ForeignKey("pages.id", ondelete="CASCADE", name="fk_turns_page_id"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("turn", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
