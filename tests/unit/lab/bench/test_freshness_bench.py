from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from driftline.errors import BadSetting, UsageError
from driftline.lab.bench.freshness_bench import POLICIES, optimal_rates, optimum, race
from driftline.lab.bench.traces import KINDS, TraceWorld, replayed, simulated

SMALL = TraceWorld(pages=600, days=40.0, scored_from=15.0)


def test_chos_example_of_how_often_to_check_five_pages() -> None:
    found = optimal_rates(np.ones(5), np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 5.0)
    assert np.round(found, 2).tolist() == [1.15, 1.36, 1.35, 1.14, 0.0]


def test_the_scheduler_gets_near_the_optimum_and_past_its_rivals() -> None:
    trace = simulated(SMALL)
    rows = {row.policy: row for row in race(trace)}
    best = optimum(trace)
    assert rows["optimum"].fw == best
    assert best - 0.01 < rows["known"].fw < best + 0.01
    assert best - 0.02 < rows["value"].fw < best + 0.005
    assert all(rows["value"].fw > rows[name].fw + 0.03 for name in ("uniform", "nutch", "intelligent", "proportional"))
    assert rows["value"].starved == 0


@pytest.mark.parametrize("kind", KINDS)
def test_every_world_is_the_same_for_the_same_seed_and_every_policy_runs_in_it(kind: str) -> None:
    world = TraceWorld(kind=kind, pages=60, days=12.0, scored_from=4.0, seed=5)  # type: ignore[arg-type]
    one, other = simulated(world), simulated(world)
    assert np.array_equal(one.times, other.times)
    for row in race(one, tuple(POLICIES)):
        assert 0 <= row.fw <= 1, row
    assert list(race(one, ["value"])) == list(race(other, ["value"]))


def test_real_change_times_are_replayed(tmp_path: Path) -> None:
    day, begin = 86_400, 1_704_067_200
    lines = ["document,host,unix,kind", f"late,h,{begin + day},start", f"late,h,{begin + 2 * day},change"]
    for number in range(20):
        lines.append(f"d{number},h{number % 3},{begin - day},start")
        lines += [f"d{number},h{number % 3},{begin + step * (number + 1) * day},change" for step in range(1, 9)]
        lines.append(f"d{number},h{number % 3},{begin + 5 * day},tech")
    plain, packed = tmp_path / "changes.csv", tmp_path / "changes.csv.gz"
    plain.write_text("\n".join(lines))
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    trace = replayed(plain)
    assert trace.pages == 20, "a document that began later is left out"
    assert len(trace.times) == 160, "a change of the extraction is none of the page"
    assert np.array_equal(replayed(packed).times, trace.times)
    assert all(0 < row.fw <= 1 for row in race(trace))


def test_a_file_that_is_no_list_of_changes_gets_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "changes.csv"
    with pytest.raises(UsageError, match="cannot be read"):
        replayed(file)
    file.write_text("document,host,unix,kind\na,b,c,d\n")
    with pytest.raises(UsageError, match="Line 2"):
        replayed(file)
    file.write_text("document,host,unix,kind\n")
    with pytest.raises(UsageError, match="no documents"):
        replayed(file)


def test_a_world_that_cannot_be_is_refused() -> None:
    with pytest.raises(BadSetting):
        TraceWorld(days=10.0, scored_from=10.0)
    with pytest.raises(BadSetting):
        TraceWorld(days=math.inf)
    with pytest.raises(BadSetting):
        TraceWorld(static=math.nan)
    for checks in (0.0, math.nan, math.inf):
        with pytest.raises(BadSetting):
            TraceWorld(checks_per_page=checks)
        with pytest.raises(BadSetting):
            replayed(Path("nowhere.csv"), checks_per_page=checks)
    with pytest.raises(BadSetting):
        list(race(simulated(TraceWorld(pages=5, days=3, scored_from=1)), ["best"]))
