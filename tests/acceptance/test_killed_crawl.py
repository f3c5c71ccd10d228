"""A crawl that is killed at any moment goes on where it was."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path

from command import Command
from driftline.lab.servers.crawl_site import LabSite, served

KILLS = 2


def settled(store: Path) -> int:
    """How many addresses something has come of."""
    connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    try:
        return int(connection.execute("SELECT count(*) FROM addresses WHERE state <> 'waiting'").fetchone()[0])
    except sqlite3.OperationalError:
        return 0  # there are no tables yet
    finally:
        connection.close()


def test_every_page_is_found_although_the_crawl_is_killed_again_and_again(driftline: Command) -> None:
    """Only what was in flight is asked for again, and what is told in the end is told of the whole."""
    store = driftline.folder / "pages.db"
    site = LabSite(250)
    with served(site) as running:
        line = ("crawl", running.url, "--watch", "--json", "--host-connections", "4", "--robots", "obey")
        for kill in range(1, KILLS + 1):
            process = driftline.start(*line)
            while process.poll() is None and (not store.exists() or settled(store) < kill * 60):
                pass
            process.kill()
            process.communicate()
        ended = driftline(*line)
    assert ended.status == 0, ended.err
    report = json.loads(ended.out)
    assert (report["left"], report["number"], report["continued"]) == (0, 1, True)
    asked = Counter(page for target in running.log if (page := site.identity(target)) is not None)
    assert asked.keys() == site.truth
    # in flight, or in a batch that was not committed yet, when it was killed
    assert sum(asked.values()) - len(asked) < KILLS * 120
    watched = {page["url"] for page in driftline.json("list")}
    found = {running.url.rstrip("/") + path for path in site.truth}
    copies = {one["url"] for one in report["duplicates"]} | {one["like"] for one in report["duplicates"]}
    swapped = {url.replace("right=b&left=a", "left=a&right=b") for url in watched | copies}
    assert found - swapped == set()
