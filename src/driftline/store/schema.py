"""The tables, for SQLite and PostgreSQL alike.

`pages` is what the user asked for and `states` where each page stands: checks touch only the small, fixed-size rows
of the latter. There, `wire`, `body` and `letters` are the digests of the last good check, `kept_body` and `kept_text`
those of the version in force: `body` differs from `kept_body` where a body changed and what can be seen did not.
`memories` and `host_memories` are what was learned of a page, and of the pages of a host.
`rates` is what the scheduler learned of a page from its checks up to the one of that number: how often it changes (the
shape and scale of a gamma distribution, per day), when the last good check was, how many failed, and how long its
server says that it lasts. `distrusted` names the hosts that changed a page before its time, and when.
`robots` is what the robots.txt of an origin said and until when that is believed, or why it could not be had and since
when; `pauses` names the hosts that asked to be left alone, when that was, and until when.
`counters` has one row, `watch_list`, whose number is another one after each transaction that changed the watch list.
`setbacks` has one row while there are times in the future, for a clock was set back: when they were first seen.
`retry_at` is until when a server asked for no other check when it refused one.
`turns` are the checks by which a page began to fail or recovered; `failing_at` is when it was told that it fails.
The `edits` of a change that matters are a JSON list: before, after, region, kind.
`outbox` names the checks that found something worth reporting which is not in the event log yet: `changed`, the turn,
or the kind of a warning. It is written in the transaction that records the check.
`events` is the event log: one row for each thing worth reporting, with all that a reader needs in `payload`, and
`event_pages` the pages of each. `event_readers` says up to which event each reader of the log has come, and
`event_retries` which events a reader failed at and when it tries again.
`reading` says how `kept_text` was read, by which extractor and through which filters, and that of a version the same of
its text. `unread` is the reading that a version could not be given, `reread_at` when its text changed by another one;
`caught_up` is the reading that all versions of a page have, or could not be given: see `readings`.
`feedback` is what the user said of a change, with the keys under which the memories have it; a change keeps the verdict
that it had by itself.
Everything that a check leaves behind has the key (page, sequence), so that recording it twice changes nothing.
`visits` is the second paper's table: what the visits to each address, watched or not, add up to.
`visit_keys` has a digest of every visit that came from a file, and the seconds it was counted with, so that none counts
twice and one that turns out longer counts in full.
`screenshots` has a row for each version that a browser fetched, with its picture if one could be taken, and
`scripted_hosts` one for each host whose pages need a browser.
`sites` are what was crawled, each with the number of the `round` that it is in, or was last. `addresses` is both the
frontier of a crawl and what it found: an address is met once in a round, under the key of all that means the same, and
waits until its document is in. What it was in earlier rounds stays until then: `good_round` is the last in which it was
a page, `gone_round` the one in which it was found gone. `skips` counts the addresses of a round that were not followed.
`blocklists` are lists of unsafe hosts and addresses as sorted digests of 8 bytes each, `reports` what users said of
unsafe pages, and `warnings` what a check found on a page that looks dangerous: see `safety`.
`indexed` names the versions that the index of words has; that index is no table of ours, see `index`.
`blobs` are the contents of versions, each under the page that has it: they are removed with their page, and those of a
page are neighbours in the index, where digests alone would be spread all over it. Contents that several pages have are
kept once for each. The `level` of a blob is the one that it was compacted at, and null until then; 0 means that it
could not be read.
Times are seconds since 1970 in UTC.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
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


#: eight bytes on either database; SQLite has one kind of integer, and takes a key of that kind for its own row number
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

#: the scope of rows that are no runs: they only say when a run stopped that went on later
CONTINUED = "continued"
RUN = "run"  # the scope of a run that goes on and chooses its pages by the schedule

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("scope", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("finished_at", Double),
    Column("ended_at", Double),  # since when it sends no more requests; none while it does, and if it was killed
    Column("unreported_since", Double),  # since when a check recorded what no report named; none if there is nothing
    sqlite_autoincrement=True,
)

#: who may check pages, by the clock of the server; an embedded store has files for that
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

checks = Table(
    "checks",
    metadata,
    _page_key(),
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
    Column("verdict", Text, nullable=False, server_default="meaningful"),
    Column("cause", LargeBinary),
    Column("edits", Text),
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
    Column("verdict", Text, nullable=False),
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
    Column("reason", Text),
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

# on PostgreSQL they have the same conditions, by the migrations: if these were named here, every command would load all
# that SQLAlchemy has for PostgreSQL
_WAITING = addresses.c.state == "waiting"
#: the frontier, found without a walk through all that was met
Index("ix_addresses_waiting", addresses.c.site_id, sqlite_where=_WAITING)
_LOOSE = blobs.c.level.is_(None)
#: a few bytes for every blob that is not compacted yet, which are found without a walk through all that is stored
Index("ix_blobs_loose", blobs.c.level, sqlite_where=_LOOSE)
