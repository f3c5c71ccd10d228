"""Which versions the index of words has; the index itself is made by the first search."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "indexed",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("page_id", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_indexed"),
        sa.UniqueConstraint("page_id", "number", name="uq_indexed_page_id"),
        sa.ForeignKeyConstraint(
            ["page_id", "number"],
            ["versions.page_id", "versions.number"],
            name="fk_indexed_page_id",
            ondelete="CASCADE",
        ),
        sqlite_autoincrement=True,
    )
