"""Blocklists, reports of unsafe pages, and warnings: nothing is known of any yet."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "blocklists",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("format", sa.Text, nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.Column("skipped", sa.Integer, nullable=False),
        sa.Column("hosts", sa.LargeBinary, nullable=False),
        sa.Column("exceptions", sa.LargeBinary, nullable=False),
        sa.Column("addresses", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_blocklists"),
        sa.UniqueConstraint("name", name="uq_blocklists_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "reports",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("whole_host", sa.Integer, nullable=False),
        sa.Column("votes", sa.Integer, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_reports"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_reports_url", "reports", ["url"])
    op.create_table(
        "warnings",
        sa.Column("page_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("sequence", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("page_id", "sequence", "kind", name="pk_warnings"),
        sa.ForeignKeyConstraint(["page_id"], ["pages.id"], name="fk_warnings_page_id", ondelete="CASCADE"),
        sqlite_with_rowid=False,
    )
