from __future__ import annotations

from typing import Any

import pytest

from driftline.errors import BadSetting
from driftline.pipeline.plan import PIPELINES, Plan, parse_count


def test_the_usual_plan_leaves_the_numbers_to_the_run() -> None:
    plan = Plan()
    assert (plan.pipeline, plan.queues) == ("two-section", 1)
    assert plan.producers is plan.slots is plan.consumers is plan.comparers is None


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_pipeline_can_be_planned(pipeline: Any) -> None:
    assert Plan(pipeline=pipeline, producers=1, slots=1, consumers=1, capacity=1).pipeline == pipeline


@pytest.mark.parametrize(
    "given",
    [
        {"pipeline": "four-section"}, {"producers": 0}, {"producers": -1}, {"producers": 513}, {"slots": 0},
        {"slots": 4_097}, {"consumers": 0}, {"consumers": 129}, {"queues": 0}, {"queues": 65}, {"capacity": 0},
        {"capacity": 1_000_001}, {"pipeline": "three-section", "comparers": 0}, {"comparers": 2},
        {"pipeline": "three-section", "queues": 2}, {"pipeline": "sequential", "queues": 2},
    ],
)  # fmt: skip
def test_a_plan_that_makes_no_sense_is_refused_with_a_sentence(given: dict[str, Any]) -> None:
    with pytest.raises(BadSetting) as refused:
        Plan(**given)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(("text", "count"), [("auto", None), ("1", 1), ("64", 64), (" 8 ", 8)])
def test_a_count_is_a_number_or_left_to_the_run(text: str, count: int | None) -> None:
    assert parse_count("slots", text) == count


@pytest.mark.parametrize("text", ["", "many", "1.5", "1x", "AUTO-1"])
def test_a_count_that_is_no_number_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(BadSetting, match="--slots"):
        parse_count("slots", text)
