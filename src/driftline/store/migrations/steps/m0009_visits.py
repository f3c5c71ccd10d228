"""Visits are counted for every address, each once."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    long = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "visits",
        sa.Column("id", long, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("frequency", sa.Integer, nullable=False),
        sa.Column("weightage", sa.Double, nullable=False),
        sa.Column("ttl", sa.Integer, nullable=False),
        sa.Column("first_at", sa.Double, nullable=False),
        sa.Column("last_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_visits"),
        sa.UniqueConstraint("url", name="uq_visits_url"),
    )
    op.create_table(
        "visit_keys",
        sa.Column("key", long, nullable=False, autoincrement=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_visit_keys"),
    )
