"""What was crawled: sites, the addresses that were met there, and what was not followed."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

LONG = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "sites",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.Column("seeds", sa.JSON, nullable=False),
        sa.Column("options", sa.JSON, nullable=False),
        sa.Column("tag", sa.Text),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("finished_at", sa.Double),
        sa.PrimaryKeyConstraint("id", name="pk_sites"),
        sa.UniqueConstraint("key", name="uq_sites_key"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "addresses",
        sa.Column("id", LONG, nullable=False),
        sa.Column("site_id", sa.Integer, nullable=False),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("via", LONG),
        sa.Column("depth", sa.Integer, nullable=False),
        sa.Column("hops", sa.Integer, nullable=False),
        sa.Column("priority", sa.Double, nullable=False),
        sa.Column("lastmod", sa.Text),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("first_round", sa.Integer, nullable=False),
        sa.Column("good_round", sa.Integer, nullable=False),
        sa.Column("gone_round", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("status", sa.Integer),
        sa.Column("target", sa.Text),
        sa.Column("title", sa.Text),
        sa.Column("digest", sa.LargeBinary),
        sa.Column("mark", sa.BigInteger),
        sa.Column("twin", LONG),
        sa.Column("changed", sa.Integer),
        sa.Column("score", sa.Double),
        sa.Column("fetched_at", sa.Double),
        sa.PrimaryKeyConstraint("id", name="pk_addresses"),
        sa.ForeignKeyConstraint(["site_id"], ["sites.id"], name="fk_addresses_site_id", ondelete="CASCADE"),
        sa.UniqueConstraint("site_id", "key", name="uq_addresses_site_id"),
        sqlite_autoincrement=True,
    )
    waiting = sa.text("state = 'waiting'")
    op.create_index("ix_addresses_waiting", "addresses", ["site_id"], sqlite_where=waiting, postgresql_where=waiting)
    op.create_table(
        "skips",
        sa.Column("site_id", sa.Integer, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("many", sa.Integer, nullable=False),
        sa.Column("examples", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("site_id", "reason", name="pk_skips"),
        sa.ForeignKeyConstraint(["site_id"], ["sites.id"], name="fk_skips_site_id", ondelete="CASCADE"),
    )
