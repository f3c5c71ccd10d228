"""What the scheduler learned of each page: nothing yet."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rates",
        sa.Column(
            "page_id",
            sa.Integer,
            sa.ForeignKey("pages.id", ondelete="CASCADE", name="fk_rates_page_id"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("a", sa.Double, nullable=False),
        sa.Column("b", sa.Double, nullable=False),
        sa.Column("at", sa.Double),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("failed", sa.Integer, nullable=False),
        sa.Column("lifetime", sa.Double, nullable=False),
    )
