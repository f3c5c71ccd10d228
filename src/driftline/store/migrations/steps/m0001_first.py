"""The first schema: pages, runs, states, checks, versions, changes and blobs."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _page_key() -> sa.Column[int]:
    return sa.Column("page_id", sa.Integer, nullable=False, autoincrement=False)


def _belongs_to_page(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["page_id"], ["pages.id"], name=f"fk_{table}_page_id", ondelete="CASCADE")


def upgrade() -> None:
    op.create_table(
        "pages",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("every", sa.Double),
        sa.Column("tags", sa.JSON, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("added_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_pages"),
        sa.UniqueConstraint("url", name="uq_pages_url"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("finished_at", sa.Double),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "states",
        _page_key(),
        sa.Column("run_id", sa.Integer),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("etag", sa.Text),
        sa.Column("last_modified", sa.Text),
        sa.Column("wire", sa.LargeBinary),
        sa.Column("body", sa.LargeBinary),
        sa.Column("letters", sa.LargeBinary),
        sa.Column("kept_body", sa.LargeBinary),
        sa.Column("kept_text", sa.LargeBinary),
        sa.Column("checked_at", sa.Double),
        sa.Column("changed_at", sa.Double),
        sa.Column("verdict", sa.Text),
        sa.Column("failure_kind", sa.Text),
        sa.Column("failure", sa.Text),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("page_id", name="pk_states"),
        _belongs_to_page("states"),
    )
    op.create_table(
        "checks",
        _page_key(),
        sa.Column("sequence", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("bytes", sa.Integer, nullable=False),
        sa.Column("proof", sa.Text),
        sa.Column("failure_kind", sa.Text),
        sa.Column("failure", sa.Text),
        sa.Column("redirected_to", sa.Text),
        sa.PrimaryKeyConstraint("page_id", "sequence", name="pk_checks"),
        _belongs_to_page("checks"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "versions",
        _page_key(),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("text", sa.LargeBinary, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("content_type", sa.Text, nullable=False),
        sa.Column("charset", sa.Text, nullable=False),
        sa.Column("final_url", sa.Text, nullable=False),
        sa.Column("headers", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("page_id", "number", name="pk_versions"),
        _belongs_to_page("versions"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "changes",
        _page_key(),
        sa.Column("sequence", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("from_version", sa.Integer, nullable=False),
        sa.Column("to_version", sa.Integer, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("score", sa.Double, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("words_added", sa.Integer, nullable=False),
        sa.Column("words_removed", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("page_id", "sequence", name="pk_changes"),
        _belongs_to_page("changes"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_changes_at", "changes", ["at"])
    op.create_table(
        "blobs",
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("base", sa.LargeBinary),
        sa.Column("depth", sa.Integer, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_blobs"),
    )
