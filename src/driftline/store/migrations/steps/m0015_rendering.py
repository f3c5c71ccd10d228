"""Pictures of versions that a browser fetched, and the hosts whose pages need one: there are none yet."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "screenshots",
        sa.Column("page_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("page_id", "number", name="pk_screenshots"),
        sa.ForeignKeyConstraint(
            ["page_id", "number"],
            ["versions.page_id", "versions.number"],
            name="fk_screenshots_page_id",
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "scripted_hosts",
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("host", name="pk_scripted_hosts"),
    )
