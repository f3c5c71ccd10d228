"""`--render`, `edit` and `screenshot` as a user meets them; what a browser makes of pages is tested elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from command import Command
from driftline.store.engine import Store
from driftline.store.ledger import Ledger
from support.making import document, outcome_of

URL = "http://page.example/"


def test_a_page_is_added_and_edited_with_what_to_do_in_the_browser(driftline: Command) -> None:
    assert driftline("add", "--render", URL, "--wait-for", "#list", "--step", "click:#more").status == 0
    (page,) = driftline.json("list")
    assert page["render"] == {"mode": "always", "wait_for": "#list", "steps": ["click:#more"]}
    told = driftline("edit", URL, "--render", "auto", "--wait-for", "", "--no-steps", "--step", "wait:2s")
    assert "rendered if it shows no text otherwise, after wait:2s." in told.out
    assert driftline.json("edit", URL, "--render", "never")["render"] is None


def test_what_is_no_step_or_way_is_told_in_a_sentence(driftline: Command) -> None:
    bad = driftline("add", URL, "--step", "jump:#more")
    assert bad.status == 2
    assert "'jump:#more' is not a step: write click:CSS" in bad.err
    bad = driftline("add", URL, "--render=sometimes")
    assert bad.status == 2
    assert "--render does not take 'sometimes'" in bad.err


def test_a_missing_browser_is_told_when_a_page_is_added(driftline: Command) -> None:
    told = driftline("add", URL, "--render", DRIFTLINE_BROWSER="no-such-browser")
    assert told.status == 0
    assert "no-such-browser" in told.err or "driftline[browser]" in told.err


def test_pictures_are_named_in_the_history_and_written_to_files(driftline: Command, tmp_path: Path) -> None:
    driftline("add", URL, "--render")
    store = Store.open(str(tmp_path / "pages.db"))
    ledger = Ledger(store)
    run, _ = ledger.begin(None)
    found = replace(document(next(ledger.remaining(run, None))), rendered=True, screenshot=b"\x89PNG, a picture")
    ledger.record(run, [outcome_of(found)])
    store.close()
    assert driftline.json("history", URL)[0]["screenshot"] is True
    assert "Versions with a picture: 1." in driftline("history", URL).err
    assert driftline("screenshot", URL, "-o", "page.png").status == 0
    assert (tmp_path / "page.png").read_bytes() == driftline.raw("screenshot", URL) == b"\x89PNG, a picture"
    missing = driftline("screenshot", URL, "--version", "7", "-o", "page.png")
    assert missing.status == 1
    assert "no picture of version 7" in missing.err
