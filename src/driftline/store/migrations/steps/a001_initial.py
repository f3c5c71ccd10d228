"""The first schema: everything that `schema.py` describes."""

import sqlalchemy as sa
from alembic import op

revision = "a001"
down_revision = None
branch_labels = None
depends_on = None

#: SQLite takes only a key declared as INTEGER, which has eight bytes there, for its own row number
LONG = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _page_key() -> sa.Column[int]:
    return sa.Column("page_id", sa.Integer, nullable=False, autoincrement=False)


def _belongs_to_page(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["page_id"], ["pages.id"], name=f"fk_{table}_page_id", ondelete="CASCADE")


def _belongs_to_event(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["event_id"], ["events.id"], name=f"fk_{table}_event_id", ondelete="CASCADE")


def _create_partial_index(name: str, table: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)


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
    counters = op.create_table(
        "counters",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_counters"),
    )
    op.bulk_insert(counters, [{"name": "watch_list", "number": 0}])
    op.create_table(
        "distrusted",
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("host", name="pk_distrusted"),
    )
    op.create_table(
        "host_memories",
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("host", name="pk_host_memories"),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )
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
        "pauses",
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
        sa.Column("asked_at", sa.Double),
        sa.PrimaryKeyConstraint("host", name="pk_pauses"),
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
        "runs",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("finished_at", sa.Double),
        sa.Column("ended_at", sa.Double),
        sa.Column("unreported_since", sa.Double),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "scripted_hosts",
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("host", name="pk_scripted_hosts"),
    )
    op.create_table(
        "setbacks",
        sa.Column("seen_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("seen_at", name="pk_setbacks"),
    )
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
        "stalls",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("report", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_stalls"),
    )
    op.create_table(
        "tags",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_tags"),
    )
    op.create_table(
        "visit_keys",
        sa.Column("key", LONG, nullable=False, autoincrement=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_visit_keys"),
    )
    op.create_table(
        "visits",
        sa.Column("id", LONG, nullable=False),
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
        sa.Column("failure", sa.Text),
        sa.Column("skip_reason", sa.Text),
        sa.Column("note", sa.Text),
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
        sa.UniqueConstraint("site_id", "key", name="uq_addresses_site_id"),
        sa.ForeignKeyConstraint(["site_id"], ["sites.id"], name="fk_addresses_site_id", ondelete="CASCADE"),
        sqlite_autoincrement=True,
    )
    _create_partial_index("ix_addresses_waiting", "addresses", ["site_id"], "state = 'waiting'")
    op.create_table(
        "blobs",
        _page_key(),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("base", sa.LargeBinary),
        sa.Column("depth", sa.Integer, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column("level", sa.Integer),
        sa.PrimaryKeyConstraint("page_id", "digest", name="pk_blobs"),
        _belongs_to_page("blobs"),
    )
    _create_partial_index("ix_blobs_loose", "blobs", ["level"], "level IS NULL")
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
        sa.Column("importance", sa.Text, nullable=False, server_default="important"),
        sa.Column("cause", sa.LargeBinary),
        sa.Column("edits", sa.Text),
        sa.Column("headline", sa.Text),
        sa.PrimaryKeyConstraint("page_id", "sequence", name="pk_changes"),
        _belongs_to_page("changes"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_changes_at", "changes", ["at"])
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
        sqlite_with_rowid=False,
    )
    op.create_table(
        "memories",
        _page_key(),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("page_id", name="pk_memories"),
        _belongs_to_page("memories"),
    )
    op.create_table(
        "outbox",
        _page_key(),
        sa.Column("sequence", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("page_id", "sequence", "what", name="pk_outbox"),
        _belongs_to_page("outbox"),
    )
    op.create_table(
        "rates",
        _page_key(),
        sa.Column("a", sa.Double, nullable=False),
        sa.Column("b", sa.Double, nullable=False),
        sa.Column("at", sa.Double),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("failed", sa.Integer, nullable=False),
        sa.Column("lifetime", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("page_id", name="pk_rates"),
        _belongs_to_page("rates"),
    )
    op.create_table(
        "skips",
        sa.Column("site_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("many", sa.Integer, nullable=False),
        sa.Column("examples", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("site_id", "reason", name="pk_skips"),
        sa.ForeignKeyConstraint(["site_id"], ["sites.id"], name="fk_skips_site_id", ondelete="CASCADE"),
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
        sa.Column("reading", sa.Text),
        sa.Column("caught_up", sa.Text),
        sa.Column("retry_at", sa.Double),
        sa.Column("failing_at", sa.Double),
        sa.PrimaryKeyConstraint("page_id", name="pk_states"),
        _belongs_to_page("states"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE states SET (fillfactor = 50)")
    op.create_table(
        "turns",
        _page_key(),
        sa.Column("sequence", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("turn", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("page_id", "sequence", name="pk_turns"),
        _belongs_to_page("turns"),
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
        sa.Column("reading", sa.Text),
        sa.Column("unread", sa.Text),
        sa.Column("reread_at", sa.Double),
        sa.PrimaryKeyConstraint("page_id", "number", name="pk_versions"),
        _belongs_to_page("versions"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "warnings",
        _page_key(),
        sa.Column("sequence", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("page_id", "sequence", "kind", name="pk_warnings"),
        _belongs_to_page("warnings"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "ignored",
        sa.Column("page_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("sequence", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("example", sa.Text, nullable=False),
        sa.Column("others", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("page_keys", sa.LargeBinary, nullable=False),
        sa.Column("host_keys", sa.LargeBinary, nullable=False),
        sa.Column("is_news", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("page_id", "sequence", name="pk_ignored"),
        sa.ForeignKeyConstraint(
            ["page_id", "sequence"],
            ["changes.page_id", "changes.sequence"],
            name="fk_ignored_page_id",
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "feedback",
        sa.Column("page_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("sequence", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("importance", sa.Text, nullable=False),
        sa.Column("page_keys", sa.LargeBinary, nullable=False),
        sa.Column("host_keys", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("page_id", "sequence", name="pk_feedback"),
        sa.ForeignKeyConstraint(
            ["page_id", "sequence"],
            ["changes.page_id", "changes.sequence"],
            name="fk_feedback_page_id",
            ondelete="CASCADE",
        ),
    )
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
        "events",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("importance", sa.Text, nullable=False),
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
        _belongs_to_event("event_pages"),
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
        _belongs_to_event("event_retries"),
    )
