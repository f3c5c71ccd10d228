"""State changes of a run can be followed in the log, and objects with state show it."""

from __future__ import annotations

import logging

import pytest

from driftline.capacity import Capacity
from driftline.fetch.curl import Transfers
from support.making import settings
from support.polite import Run, allowed


def test_robots_txt_redirects_and_busy_hosts_are_logged_without_passwords(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "driftline.fetch"):
        run = Run(["http://me:sesame@a/1", "http://a/2"])
        run.take()
        run.answer("http://a/robots.txt", status=404)
        run.later(1.0)
        run.redirect("http://me:sesame@a/1", "http://b/1")
        run.take()
        run.answer("http://b/robots.txt", status=429, headers="Retry-After: 3600\r\n")
    lines = [record.getMessage() for record in caplog.records]
    assert "robots.txt of http://a: none, status 404" in lines
    assert "http://me:***@a/1 redirects to http://b/1" in lines
    assert any(line.startswith("b asks to slow down: <Host b ") for line in lines)
    assert "pages postponed until their hosts may be contacted: 1" in lines
    assert "sesame" not in caplog.text
    assert {record.name for record in caplog.records} == {"driftline.fetch.politeness", "driftline.fetch.robots_cache"}


def test_objects_with_state_show_it_under_the_names_of_their_fields() -> None:
    run = allowed("http://a/1", "http://a/2")
    run.take()
    assert "waiting=1" in repr(run.links)
    assert "transferring=1" in repr(run.links)
    link = run.taken["http://a/1"]
    assert repr(link.permit) == "<Permit a held=True>"
    transfers = Transfers(settings())
    assert repr(transfers) == "<Transfers transferring=0 refused=0 idle_handles=0>"
    transfers.close()
    reservation = Capacity("bodies", 10).acquire(3)
    assert repr(reservation) == "<Reservation bodies weight=3>"
