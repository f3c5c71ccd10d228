"""The event log, its readers, and what they are to try again."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def _event(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["event_id"], ["events.id"], name=f"fk_{table}_event_id", ondelete="CASCADE")


def upgrade() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_at", "events", ["at"])
    op.create_table(
        "event_pages",
        sa.Column("page_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("event_id", sa.Integer, nullable=False, autoincrement=False),
        sa.PrimaryKeyConstraint("page_id", "event_id", name="pk_event_pages"),
        sa.ForeignKeyConstraint(["page_id"], ["pages.id"], name="fk_event_pages_page_id", ondelete="CASCADE"),
        _event("event_pages"),
    )
    op.create_index("ix_event_pages_event_id", "event_pages", ["event_id"])
    op.create_table(
        "event_readers",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_event_readers"),
    )
    op.create_table(
        "event_retries",
        sa.Column("reader", sa.Text, nullable=False),
        sa.Column("event_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("since", sa.Double, nullable=False),
        sa.Column("next_at", sa.Double, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("reader", "event_id", name="pk_event_retries"),
        _event("event_retries"),
    )
