"""The study's grid and its tables, without running it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from driftline.lab.bench.local_watch_lists import LabError
from driftline.lab.bench.paper_bench import (
    Cell,
    Measured,
    Study,
    conduct,
    draw_up,
    full_study,
    most_consumers,
    per_n,
    quick_study,
)


def measured(
    effective_ms: float, sd: float = 0.0, *, configuration: int, n: int = 1, m: int = 1, k: int = 0
) -> Measured:
    cell = Cell(configuration=configuration, n=n, m=m, k=k)
    return Measured(cell=cell, pages=100, effective_ms=effective_ms, sd=sd)


PAPER = [
    measured(911.05, configuration=1),
    measured(60.05, configuration=2, n=78, m=6, k=6),
    measured(61.00, configuration=2, n=78, m=6, k=7),
    measured(59.19, configuration=3, n=78, m=11),
]


def test_the_papers_own_figures_give_its_tables() -> None:
    findings = draw_up(PAPER)
    assert findings.headline is not None
    assert round(findings.reduction(findings.headline), 1) == 93.5
    assert findings.m_and_k == {"M = K": 100.0}
    assert findings.two_and_three == {"T2 > T3": 100.0}


def test_configurations_are_equal_when_they_differ_by_less_than_their_spread() -> None:
    findings = draw_up([measured(900, configuration=1), measured(60, configuration=2, n=8, m=2, k=2),
                        measured(61, 1.5, configuration=3, n=8, m=2)])  # fmt: skip
    assert findings.two_and_three == {"T2 = T3": 100.0}
    assert findings.matched == (0, 1, 1)


def test_the_minimum_of_every_n_is_a_point_of_the_figure() -> None:
    cells = [measured(time, configuration=3, n=n, m=m) for time, n, m in [(9, 8, 1), (7, 8, 2), (3, 16, 1)]]
    assert [(one.cell.n, one.effective_ms) for one in per_n(cells, 3)] == [(8, 7), (16, 3)]


@pytest.mark.parametrize(("n", "most"), [(1, 1), (4, 1), (8, 2), (40, 10), (60, 15), (100, 15)])
def test_consumers_are_bounded_as_in_the_paper(n: int, most: int) -> None:
    assert most_consumers(n) == most


def test_the_full_study_has_every_m_and_k_of_every_n() -> None:
    study = full_study([8, 12], pages=100, scale=1.0, iterations=5, seconds=1.0)
    plain = [cell for cell in study.cells if not cell.capped and cell.slots == 1]
    assert sum(cell.configuration == 1 for cell in plain) == 1
    assert sum(cell.configuration == 3 for cell in plain) == 2 + 3
    assert sum(cell.configuration == 2 for cell in plain) == 4 + 9


def test_the_quick_study_has_the_cells_that_the_paper_names() -> None:
    cells = quick_study().cells
    assert Cell(configuration=1) in cells
    assert Cell(configuration=3, n=78, m=11) in cells
    assert max(cell.n * cell.slots for cell in cells) == 2_048


def test_cells_that_were_measured_are_not_measured_again(tmp_path: Path) -> None:
    """With every cell in the record, nothing is started."""
    study = Study(cells=(Cell(configuration=1), Cell(configuration=3, n=4, m=1)))
    terms = {name: getattr(study, name) for name in ("scale", "iterations", "seconds", "pages", "change_rate", "seed")}
    rows = [measured(200.0, configuration=1).row(), measured(50.0, configuration=3, n=4, m=1).row()]
    kept = tmp_path / "cells.jsonl"
    kept.write_text("".join(json.dumps(row) + "\n" for row in (terms, *rows)))
    assert [one.effective_ms for one in conduct(study, kept, lambda _: None)] == [200.0, 50.0]


@pytest.mark.parametrize("text", ["", "{}\n", "nonsense\n", '{"scale": 9}\n'])
def test_a_record_of_another_study_is_not_mixed_in(tmp_path: Path, text: str) -> None:
    kept = tmp_path / "cells.jsonl"
    kept.write_text(text)
    with pytest.raises(LabError):
        list(conduct(Study(cells=(Cell(configuration=1),)), kept, lambda _: None))
