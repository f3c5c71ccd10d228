from __future__ import annotations

from driftline.lab.bench.picking_bench import measure


def test_the_real_scheduler_is_measured_on_a_store_of_its_own(where: str) -> None:
    row = measure(1_000, where if where.startswith("postgresql:") else None)
    assert row.pages == 1_000
    assert 0 < row.first_link_s < row.links_s
    assert min(row.read_s, row.pick_ms, row.learn_ms) > 0
    assert row.peak_mb > 20
