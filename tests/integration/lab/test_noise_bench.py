from __future__ import annotations

import pytest

from driftline.lab.bench.detection_bench import SiteWide, edit_footers, watch


@pytest.fixture(autouse=True)
def nothing_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The laboratory allows itself what it serves."""
    monkeypatch.delenv("DRIFTLINE_ALLOW_NETWORKS")


def test_a_footer_edit_on_300_noisy_pages_is_one_event() -> None:
    assert edit_footers(300) == SiteWide(pages=300, events=1, pages_of_events=300)


def test_of_a_web_that_is_all_noise_only_the_real_changes_are_reported() -> None:
    rows = list(watch(pages=40, generations=4, seed=7))
    assert [(row.false, row.missed) for row in rows] == [(0, 0)] * 4
    assert sum(row.real for row in rows) > 0
    assert all(row.noisy == 40 - row.real for row in rows)
