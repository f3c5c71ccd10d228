"""History databases as Chromium browsers and Firefox make them, with what a test puts there."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

_CHROME = """
CREATE TABLE meta(key LONGVARCHAR NOT NULL UNIQUE PRIMARY KEY, value LONGVARCHAR);
INSERT INTO meta VALUES ('version', '70'), ('last_compatible_version', '16');
CREATE TABLE urls(
    id INTEGER PRIMARY KEY AUTOINCREMENT, url LONGVARCHAR, title LONGVARCHAR, visit_count INTEGER DEFAULT 0 NOT NULL,
    typed_count INTEGER DEFAULT 0 NOT NULL, last_visit_time INTEGER NOT NULL, hidden INTEGER DEFAULT 0 NOT NULL);
CREATE TABLE visits(
    id INTEGER PRIMARY KEY AUTOINCREMENT, url INTEGER NOT NULL, visit_time INTEGER NOT NULL, from_visit INTEGER,
    external_referrer_url TEXT, transition INTEGER DEFAULT 0 NOT NULL, segment_id INTEGER,
    visit_duration INTEGER DEFAULT 0 NOT NULL, incremented_omnibox_typed_score BOOLEAN DEFAULT FALSE NOT NULL,
    opener_visit INTEGER, originator_cache_guid TEXT, originator_visit_id INTEGER, originator_from_visit INTEGER,
    originator_opener_visit INTEGER, is_known_to_sync BOOLEAN DEFAULT FALSE NOT NULL,
    consider_for_ntp_most_visited BOOLEAN DEFAULT FALSE NOT NULL, visited_link_id INTEGER DEFAULT 0 NOT NULL,
    app_id TEXT);
CREATE TABLE visit_source(id INTEGER PRIMARY KEY, source INTEGER NOT NULL);
CREATE INDEX visits_url_index ON visits (url);
CREATE INDEX visits_time_index ON visits (visit_time);
CREATE INDEX urls_url_index ON urls (url);
"""
_FIREFOX = """
CREATE TABLE moz_origins (
    id INTEGER PRIMARY KEY, prefix TEXT NOT NULL, host TEXT NOT NULL, frecency INTEGER NOT NULL, UNIQUE (prefix, host));
CREATE TABLE moz_places (
    id INTEGER PRIMARY KEY, url LONGVARCHAR, title LONGVARCHAR, rev_host LONGVARCHAR, visit_count INTEGER DEFAULT 0,
    hidden INTEGER DEFAULT 0 NOT NULL, typed INTEGER DEFAULT 0 NOT NULL, frecency INTEGER DEFAULT -1 NOT NULL,
    last_visit_date INTEGER, guid TEXT, foreign_count INTEGER DEFAULT 0 NOT NULL, url_hash INTEGER DEFAULT 0 NOT NULL,
    description TEXT, preview_image_url TEXT, site_name TEXT, origin_id INTEGER REFERENCES moz_origins(id),
    recalc_frecency INTEGER NOT NULL DEFAULT 0, alt_frecency INTEGER, recalc_alt_frecency INTEGER NOT NULL DEFAULT 0);
CREATE TABLE moz_historyvisits (
    id INTEGER PRIMARY KEY, from_visit INTEGER, place_id INTEGER, visit_date INTEGER, visit_type INTEGER,
    session INTEGER, source INTEGER DEFAULT 0 NOT NULL, triggeringPlaceId INTEGER);
CREATE TABLE moz_places_metadata (
    id INTEGER PRIMARY KEY, place_id INTEGER NOT NULL, referrer_place_id INTEGER,
    created_at INTEGER NOT NULL DEFAULT 0, updated_at INTEGER NOT NULL DEFAULT 0,
    total_view_time INTEGER NOT NULL DEFAULT 0, typing_time INTEGER NOT NULL DEFAULT 0,
    key_presses INTEGER NOT NULL DEFAULT 0, scrolling_time INTEGER NOT NULL DEFAULT 0,
    scrolling_distance INTEGER NOT NULL DEFAULT 0, document_type INTEGER NOT NULL DEFAULT 0, search_query_id INTEGER,
    FOREIGN KEY (place_id) REFERENCES moz_places(id) ON DELETE CASCADE);
CREATE INDEX moz_historyvisits_placedateindex ON moz_historyvisits (place_id, visit_date);
CREATE INDEX moz_historyvisits_fromindex ON moz_historyvisits (from_visit);
CREATE INDEX moz_historyvisits_dateindex ON moz_historyvisits (visit_date);
CREATE UNIQUE INDEX moz_places_metadata_placecreated_uniqueindex ON moz_places_metadata (place_id, created_at);
"""
_FROM_1601 = 11_644_473_600
#: a whole navigation by a link: the chain of redirects begins and ends here
LINK = 0x30000000
#: the first of a chain that ends elsewhere, and where a server's redirect led to
REDIRECTED, REDIRECT_TARGET = 0x10000000, 0xA0000000 - (1 << 32)


class Seen(NamedTuple):
    """A visit in a browser: `at` in seconds since 1970, `kind` the browser's own number for how it came to be."""

    url: str | None
    at: float
    seconds: float = 0.0
    kind: int | None = None
    came_from: int = 0


def add_to_chrome(database: sqlite3.Connection, visits: Sequence[Seen]) -> None:
    """Write visits as Chrome does."""
    for visit in visits:
        moment = round((visit.at + _FROM_1601) * 1e6)
        known = database.execute("SELECT id FROM urls WHERE url IS ?", (visit.url,)).fetchone()
        if known is None:
            new = "INSERT INTO urls (url, title, visit_count, last_visit_time) VALUES (?, '', 0, ?)"
            known = (database.execute(new, (visit.url, moment)).lastrowid,)
        database.execute(
            "UPDATE urls SET visit_count = visit_count + 1, last_visit_time = ? WHERE id = ?", (moment, *known)
        )
        kind = LINK if visit.kind is None else visit.kind
        database.execute(
            "INSERT INTO visits (url, visit_time, from_visit, transition, visit_duration) VALUES (?, ?, ?, ?, ?)",
            (*known, moment, visit.came_from, kind, round(visit.seconds * 1e6)),
        )


def make_chrome(path: Path, visits: Sequence[Seen]) -> Path:
    """The `History` of Chrome or Edge."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(_CHROME)
        add_to_chrome(database, visits)
        database.commit()
    return path


def make_firefox(path: Path, visits: Sequence[Seen], *, views: bool = True) -> Path:
    """The `places.sqlite` of Firefox; `views`, whether it is new enough to note how long pages are looked at."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(_FIREFOX)
        if not views:
            database.execute("DROP TABLE moz_places_metadata")
        for visit in visits:
            moment = round(visit.at * 1e6)
            known = database.execute("SELECT id FROM moz_places WHERE url IS ?", (visit.url,)).fetchone()
            if known is None:
                new = "INSERT INTO moz_places (url, last_visit_date) VALUES (?, ?)"
                known = (database.execute(new, (visit.url, moment)).lastrowid,)
            database.execute(
                "INSERT INTO moz_historyvisits (from_visit, place_id, visit_date, visit_type, session) "
                "VALUES (?, ?, ?, ?, 0)",
                (visit.came_from, *known, moment, 1 if visit.kind is None else visit.kind),
            )
            if visit.seconds and views:
                began, looked = round(visit.at * 1e3) - 20, round(visit.seconds * 1e3)
                database.execute(
                    "INSERT INTO moz_places_metadata (place_id, created_at, updated_at, total_view_time) "
                    "VALUES (?, ?, ?, ?)",
                    (*known, began, began + looked, looked),
                )
        database.commit()
    return path
