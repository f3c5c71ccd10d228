"""A crawl that will take long says so, once."""

from __future__ import annotations

import pytest

from driftline.cli.progress import CrawlProgress, TerminalBar
from driftline.crawl.survey_steps import Surveyed
from driftline.store.crawls import Begun
from support.making import document

BEGUN = Begun(site_id=1, number=1, continued=False, started_at=0.0, tag=None, adopts=False)


def test_a_crawl_that_will_take_long_says_how_long_and_what_to_do(capfd: pytest.CaptureFixture[str]) -> None:
    """From the pace so far; a short one says nothing."""
    now = [0.0]
    with TerminalBar() as bar:
        progress = CrawlProgress(bar, lambda: now[0])
        progress.begun(BEGUN, 1)
        now[0] = 10.0
        progress.recorded([Surveyed(document(), None)] * 10, 50)
        assert capfd.readouterr().err == ""
        now[0] = 20.0
        progress.recorded([Surveyed(document(), None)] * 10, 600)
        progress.recorded([Surveyed(document(), None)] * 10, 6_000)
    said = capfd.readouterr().err
    assert said.startswith("600 URLs left so far, at 1 per second: this takes about 10 minutes. ")
    assert said.count("\n") == 1
