"""The tables, for SQLite and PostgreSQL alike. Times are seconds since 1970 in UTC.

Everything that a check records has the key (page, sequence), so that recording it twice changes nothing.

Pages and checks
- `pages`: the watch list. `tags`: settings for all pages that carry a tag.
- `states`: the current state of each page, apart from `pages` so that checks write only small, fixed-size rows. `wire`,
  `body` and `letters` are digests of the last successful check, `kept_body` and `kept_text` those of the current
  version: `body` differs from `kept_body` where the body changed and the visible text did not. `retry_at` is the
  Retry-After time of a check that the server refused. `failing_at` is when the page was reported as failing. `reading`
  names how `kept_text` was extracted: by which extractor and filters. `caught_up` is the reading that all versions of
  the page have, or could not be given (see `rereads`).
- `runs`, `checks`: every run, and every check that one recorded.
- `versions`: the past states of pages. `reading` as in `states`; `unread` is a reading that the version could not be
  given, `reread_at` when another reading changed its text.
- `changes`: two versions that differ. `edits` is a JSON list: before, after, region, kind and heading. `headline` is
  what changed in one line. Edits are null for noise, and mostly the headline, too.
- `feedback`: what the user called changes, with their keys in the memories; a change keeps its own importance.
- `turns`: the checks by which a page began to fail or recovered. `warnings`: dangerous content that checks found.
- `ignored`: the checks since which parts of a page are ignored, with the first part, how many others there are, and
  their keys in the memories; `is_news` is false if the same was reported of several other pages of the host.
- `blobs`: the contents of versions, by page and digest, so that they are removed with their page, and those of a page
  are adjacent in the index. Contents that several pages have are stored once for each. `level` is the level that a blob
  was compacted at, null until then, 0 if it could not be read.
- `screenshots`: a row for each version that a browser fetched, with a screenshot if one could be taken.
- `indexed`: the versions in the search index, which is in tables of its own (see `search_index`).

Events
- `outbox`: checks that found something worth reporting which is not in the event log yet: `changed`, the turn, the
  kind of a warning, or `ignoring`. It is written in the transaction that records the check.
- `events`: the event log: one row for each thing worth reporting, with all that a reader needs in `payload`;
  `event_pages`: the pages of each. `event_readers`: up to which event each reader of the log has come;
  `event_retries`: which events a reader failed at, and when it tries again.

What was learned
- `memories`, `host_memories`: noise on a page, and on the pages of a host.
- `rates`: what the scheduler learned about a page from its checks up to number `sequence`: how often it changes (shape
  and rate parameter of a gamma distribution, per day), when the last successful check was, how many failed, and for how
  long its server promised not to change it. `distrusted`: hosts that broke such a promise, and when.
- `robots`: the robots.txt of an origin and until when it is valid, or why it could not be fetched and since when.
- `pauses`: hosts under Retry-After, when that was received, and until when. `scripted_hosts`: need a browser.

Visits and crawls
- `visits`: the second paper's table: the totals of visits to each address, watched or not. `visit_keys`: a digest of
  each imported visit with its seconds, so that none counts twice, and one that turns out longer counts in full.
- `sites`: crawled sites, each with the number of its current or last `round`. `addresses`: the frontier of a crawl and
  its results: an address is found once in a round, under a key common to all equivalent addresses, and waits until its
  document is fetched. Until then it keeps the results of earlier rounds: `good_round` is the last in which it was a
  page, `gone_round` the one in which it was found gone. `skips`: addresses of a round that were not followed, counted.
- `blocklists`: lists of unsafe hosts and addresses as sorted digests of 8 bytes each; `reports`: unsafe pages reported
  by users (see `safety`).

Processes
- `counters`: one row, `watch_list`, incremented by each transaction that changes the watch list.
- `leases`: which process may check pages. `stalls`: reports of stalled runs.
- `setbacks`: one row, with when they were first seen, while there are times in the future because a clock was set back.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    event,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _page_key() -> Column[int]:
    belongs = ForeignKey("pages.id", ondelete="CASCADE")
    return Column("page_id", Integer, belongs, primary_key=True, autoincrement=False)


def _event_key() -> Column[int]:
    belongs = ForeignKey("events.id", ondelete="CASCADE")
    return Column("event_id", Integer, belongs, primary_key=True, autoincrement=False)


#: eight bytes on both databases; SQLite takes only a key declared as INTEGER for its own row number
Long = BigInteger().with_variant(Integer, "sqlite")

pages = Table(
    "pages",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("url", Text, nullable=False, unique=True),
    Column("every", Double),
    Column("tags", JSON, nullable=False),
    Column("settings", JSON, nullable=False),
    Column("added_at", Double, nullable=False),
    sqlite_autoincrement=True,
)

tags = Table(
    "tags",
    metadata,
    Column("name", Text, primary_key=True),
    Column("settings", JSON, nullable=False),
)

#: the scope of rows that are no runs: they record when a run stopped that was continued later
CONTINUED = "continued"
RUN = "run"  # the scope of a run that goes on and chooses its pages by the schedule

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("scope", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("finished_at", Double),
    Column("ended_at", Double),  # when it sent its last request; null while it runs, and if it was killed
    Column("unreported_since", Double),  # since when it recorded results that are in no report, else null
    sqlite_autoincrement=True,
)

#: times are those of the server; an embedded store has lock files instead
leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("until", Double, nullable=False),
)

stalls = Table(
    "stalls",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Double, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("report", Text, nullable=False),
)

states = Table(
    "states",
    metadata,
    _page_key(),
    Column("run_id", Integer),
    Column("sequence", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("wire", LargeBinary),
    Column("body", LargeBinary),
    Column("letters", LargeBinary),
    Column("kept_body", LargeBinary),
    Column("kept_text", LargeBinary),
    Column("checked_at", Double),
    Column("changed_at", Double),
    Column("verdict", Text),
    Column("failure_kind", Text),
    Column("failure", Text),
    Column("failures", Integer, nullable=False),
    Column("reading", Text),
    Column("caught_up", Text),
    Column("retry_at", Double),
    Column("failing_at", Double),
)


@event.listens_for(states, "after_create")
def _leave_room(_table: Table, connection: Connection, **_options: object) -> None:
    """Leave room beside each state: every check updates one, and where the new row fits, no index has to be written.

    An argument of the table would do the same, and load SQLAlchemy's dialect for PostgreSQL in every command.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("ALTER TABLE states SET (fillfactor = 50)"))


#: without a foreign key, which would cost PostgreSQL half as much again as everything else about an unchanged page:
#: a page that was removed is noticed at its state, and `Catalog.remove` deletes the checks
checks = Table(
    "checks",
    metadata,
    Column("page_id", Integer, primary_key=True, autoincrement=False),
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("run_id", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("bytes", Integer, nullable=False),
    Column("proof", Text),
    Column("failure_kind", Text),
    Column("failure", Text),
    Column("redirected_to", Text),
    sqlite_with_rowid=False,
)

versions = Table(
    "versions",
    metadata,
    _page_key(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("sequence", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("text", LargeBinary, nullable=False),
    Column("size", Integer, nullable=False),
    Column("title", Text, nullable=False),
    Column("content_type", Text, nullable=False),
    Column("charset", Text, nullable=False),
    Column("final_url", Text, nullable=False),
    Column("headers", LargeBinary, nullable=False),
    Column("reading", Text),
    Column("unread", Text),
    Column("reread_at", Double),
    sqlite_with_rowid=False,
)

changes = Table(
    "changes",
    metadata,
    _page_key(),
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("from_version", Integer, nullable=False),
    Column("to_version", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("score", Double, nullable=False),
    Column("reason", Text, nullable=False),
    Column("words_added", Integer, nullable=False),
    Column("words_removed", Integer, nullable=False),
    Column("importance", Text, nullable=False, server_default="important"),
    Column("cause", LargeBinary),
    Column("edits", Text),
    Column("headline", Text),
    Index("ix_changes_at", "at"),
    sqlite_with_rowid=False,
)

turns = Table(
    "turns",
    metadata,
    _page_key(),
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("turn", Text, nullable=False),
    Column("reason", Text, nullable=False),
)

outbox = Table(
    "outbox",
    metadata,
    _page_key(),
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("what", Text, primary_key=True),
)

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("source", Text, nullable=False),
    Column("importance", Text, nullable=False),
    Column("payload", JSON, nullable=False),
    Index("ix_events_at", "at"),
    sqlite_autoincrement=True,
)

event_pages = Table(
    "event_pages",
    metadata,
    _page_key(),
    _event_key(),
    Index("ix_event_pages_event_id", "event_id"),
)

event_readers = Table(
    "event_readers",
    metadata,
    Column("name", Text, primary_key=True),
    Column("position", Integer, nullable=False),
)

event_retries = Table(
    "event_retries",
    metadata,
    Column("reader", Text, primary_key=True),
    _event_key(),
    Column("attempts", Integer, nullable=False),
    Column("since", Double, nullable=False),
    Column("next_at", Double, nullable=False),
    Column("error", Text, nullable=False),
)

feedback = Table(
    "feedback",
    metadata,
    Column("page_id", Integer, primary_key=True, autoincrement=False),
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("importance", Text, nullable=False),
    Column("page_keys", LargeBinary, nullable=False),
    Column("host_keys", LargeBinary, nullable=False),
    ForeignKeyConstraint(["page_id", "sequence"], ["changes.page_id", "changes.sequence"], ondelete="CASCADE"),
)

memories = Table(
    "memories",
    metadata,
    _page_key(),
    Column("data", LargeBinary, nullable=False),
)

host_memories = Table(
    "host_memories",
    metadata,
    Column("host", Text, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

rates = Table(
    "rates",
    metadata,
    _page_key(),
    Column("a", Double, nullable=False),
    Column("b", Double, nullable=False),
    Column("at", Double),
    Column("sequence", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("lifetime", Double, nullable=False),
)

distrusted = Table(
    "distrusted",
    metadata,
    Column("host", Text, primary_key=True),
    Column("at", Double, nullable=False),
)

robots = Table(
    "robots",
    metadata,
    Column("origin", Text, primary_key=True),
    Column("body", Text),
    Column("until", Double, nullable=False),
    Column("failure_kind", Text),
    Column("failure", Text),
    Column("since", Double),
)

pauses = Table(
    "pauses",
    metadata,
    Column("host", Text, primary_key=True),
    Column("until", Double, nullable=False),
    Column("asked_at", Double),
)

setbacks = Table(
    "setbacks",
    metadata,
    Column("seen_at", Double, primary_key=True),
)

counters = Table(
    "counters",
    metadata,
    Column("name", Text, primary_key=True),
    Column("number", BigInteger, nullable=False),
)

visits = Table(
    "visits",
    metadata,
    Column("id", Long, primary_key=True),
    Column("url", Text, nullable=False, unique=True),
    Column("frequency", Integer, nullable=False),
    Column("weightage", Double, nullable=False),
    Column("ttl", Integer, nullable=False),
    Column("first_at", Double, nullable=False),
    Column("last_at", Double, nullable=False),
)

visit_keys = Table(
    "visit_keys",
    metadata,
    Column("key", Long, primary_key=True, autoincrement=False),
    Column("seconds", Double, nullable=False),
)

sites = Table(
    "sites",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", LargeBinary, nullable=False, unique=True),
    Column("seeds", JSON, nullable=False),
    Column("options", JSON, nullable=False),
    Column("tag", Text),
    Column("round", Integer, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("finished_at", Double),
    sqlite_autoincrement=True,
)

addresses = Table(
    "addresses",
    metadata,
    Column("id", Long, primary_key=True),
    Column("site_id", Integer, ForeignKey("sites.id", ondelete="CASCADE"), nullable=False),
    Column("key", LargeBinary, nullable=False),
    Column("url", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("via", Long),
    Column("depth", Integer, nullable=False),
    Column("hops", Integer, nullable=False),
    Column("priority", Double, nullable=False),
    Column("lastmod", Text),
    Column("round", Integer, nullable=False),
    Column("first_round", Integer, nullable=False),
    Column("good_round", Integer, nullable=False),
    Column("gone_round", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("failure", Text),
    Column("skip_reason", Text),
    Column("note", Text),
    Column("status", Integer),
    Column("target", Text),
    Column("title", Text),
    Column("digest", LargeBinary),
    Column("mark", BigInteger),
    Column("twin", Long),
    Column("changed", Integer),
    Column("score", Double),
    Column("fetched_at", Double),
    UniqueConstraint("site_id", "key"),
    sqlite_autoincrement=True,
)

skips = Table(
    "skips",
    metadata,
    Column("site_id", Integer, ForeignKey("sites.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("reason", Text, primary_key=True),
    Column("many", Integer, nullable=False),
    Column("examples", JSON, nullable=False),
)

blocklists = Table(
    "blocklists",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("source", Text, nullable=False),
    Column("format", Text, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("skipped", Integer, nullable=False),
    Column("hosts", LargeBinary, nullable=False),
    Column("exceptions", LargeBinary, nullable=False),
    Column("addresses", LargeBinary, nullable=False),
    sqlite_autoincrement=True,
)

reports = Table(
    "reports",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("url", Text, nullable=False),
    Column("whole_host", Integer, nullable=False),
    Column("votes", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", Double, nullable=False),
    Index("ix_reports_url", "url"),
    sqlite_autoincrement=True,
)

warnings = Table(
    "warnings",
    metadata,
    _page_key(),
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, primary_key=True),
    Column("reason", Text, nullable=False),
    sqlite_with_rowid=False,
)

ignored = Table(
    "ignored",
    metadata,
    Column("page_id", Integer, primary_key=True, autoincrement=False),
    Column("sequence", Integer, primary_key=True, autoincrement=False),
    Column("label", Text, nullable=False),
    Column("example", Text, nullable=False),
    Column("others", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("page_keys", LargeBinary, nullable=False),
    Column("host_keys", LargeBinary, nullable=False),
    Column("is_news", Boolean, nullable=False),
    ForeignKeyConstraint(["page_id", "sequence"], ["changes.page_id", "changes.sequence"], ondelete="CASCADE"),
)

blobs = Table(
    "blobs",
    metadata,
    _page_key(),
    Column("digest", LargeBinary, primary_key=True),
    Column("base", LargeBinary),
    Column("depth", Integer, nullable=False),
    Column("size", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Column("level", Integer),
)

indexed = Table(
    "indexed",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("page_id", Integer, nullable=False),
    Column("number", Integer, nullable=False),
    UniqueConstraint("page_id", "number"),
    ForeignKeyConstraint(["page_id", "number"], ["versions.page_id", "versions.number"], ondelete="CASCADE"),
    sqlite_autoincrement=True,
)

screenshots = Table(
    "screenshots",
    metadata,
    Column("page_id", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
    ForeignKeyConstraint(["page_id", "number"], ["versions.page_id", "versions.number"], ondelete="CASCADE"),
)

scripted_hosts = Table(
    "scripted_hosts",
    metadata,
    Column("host", Text, primary_key=True),
    Column("at", Double, nullable=False),
)

# The migrations give them the same conditions on PostgreSQL; naming these here would make every command load the
# PostgreSQL dialect of SQLAlchemy.
_WAITING = addresses.c.state == "waiting"
#: finds the frontier without reading all addresses
Index("ix_addresses_waiting", addresses.c.site_id, sqlite_where=_WAITING)
_LOOSE = blobs.c.level.is_(None)
#: finds the blobs that are not compacted yet without reading all of them
Index("ix_blobs_loose", blobs.c.level, sqlite_where=_LOOSE)
