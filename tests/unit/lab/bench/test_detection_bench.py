"""Labelled versions of pages are replayed as `run` would check them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from driftline.lab.bench.detection_bench import DetectionRow, Verdicts, cases, judge, rows, worst

FILLER = "".join(f"<p>Paragraph {number} of the page is the same in all versions.</p>" for number in range(20))
BLOCKED = """<title>Access denied</title><h1>Access denied</h1><p>You have been blocked. Ray ID: 8f2a</p>
<p>Please enable cookies. This website is using a security service to protect itself.</p>"""


def page(text: str) -> str:
    return f"<title>Terms</title><main><h1>Terms</h1>{FILLER}<p>{text}</p></main>"


def stream(folder: Path, name: str, versions: Sequence[tuple[str, str, str | None]], **given: str) -> None:
    """Add a page to the streams of a folder: for each version its body, when it came, and its label."""
    (folder / "streams").mkdir(exist_ok=True)
    entries = []
    for body, at, label in versions:
        file = f"{name}-{crc32(body.encode()):x}.html"
        (folder / "streams" / file).write_text(body)
        entries.append({"file": file, "time": f"2026-01-{at}:00Z", "label": label, "kind": None})
    with (folder / "streams.jsonl").open("a") as out:
        out.write(json.dumps({"chain": name, "url": None, "versions": entries, **given}) + "\n")


def judged(folder: Path) -> list[Verdicts]:
    return list(judge(cases(folder), lambda _: None))


def ours(found: Sequence[Verdicts]) -> list[DetectionRow]:
    return [row for row in rows(found) if row.detector == "driftline"]


def test_an_error_page_is_a_failure_and_the_next_version_is_compared_with_the_one_before_it(tmp_path: Path) -> None:
    fees = page("Fees are due in May.")
    stream(tmp_path, "s1", [(fees, "01T10:00", None), (BLOCKED, "02T10:00", "noise"), (fees, "03T10:00", "noise")])
    blocked, back = judged(tmp_path)
    assert (blocked.failed, blocked.level, blocked.alarms["driftline"]) == (True, None, False)
    assert (back.failed, back.level) == (False, None)
    [row] = ours([blocked, back])
    assert (row.failed, row.same, row.false_alarms, row.most_false_alarms) == (1, 1, 0, 0)


def test_a_check_that_found_the_same_bytes_counts_as_noise_that_was_not_reported(tmp_path: Path) -> None:
    before, after = page("Fees are due in May."), page("Nobody pays any fees from now on.")
    stream(
        tmp_path, "s1", [(before, "01T10:00", None), (before, "02T10:00", "noise"), (after, "03T10:00", "meaningful")]
    )
    [row] = ours(judged(tmp_path))
    assert (row.meaningful, row.noise, row.precision, row.recall, row.false_alarm_rate) == (1, 1, 1, 1, 0)
    assert sum(row.levels["noise"].values()) == 0


def test_a_version_that_came_soon_after_stands_for_the_second_fetch(tmp_path: Path) -> None:
    drawn = [page(f"Today we recommend the {name} of our members.") for name in ("songs", "books", "films")]
    first, second, third = drawn
    late = [(first, "01T10:00", None), (second, "02T10:00", "noise"), (third, "03T10:00", "noise")]
    soon = [(first, "01T10:00", None), (second, "02T10:00", "noise"), (third, "02T10:03", "noise")]
    stream(tmp_path, "late", late)
    stream(tmp_path, "soon", soon)
    alarms = {one.case.name.split("-")[0] for one in judged(tmp_path)[:2] if one.alarms["driftline"]}
    assert alarms == {"late"}


def test_an_edit_of_the_page_does_not_stand_for_the_second_fetch_of_the_one_before(tmp_path: Path) -> None:
    texts = ("Fees are due in May.", "Nobody pays any fees from now on.", "Members who left owe twice as much.")
    times = ("01T10:00", "02T10:00", "02T10:03")
    stream(tmp_path, "s1", [(page(text), at, "meaningful") for text, at in zip(texts, times, strict=True)])
    assert [one.alarms["driftline"] for one in judged(tmp_path)] == [True, True]


def test_results_are_counted_by_type_with_levels_and_a_curve_over_the_score(tmp_path: Path) -> None:
    before, after = page("Fees are due in May."), page("Nobody pays any fees from now on.")
    stream(tmp_path, "s1", [(before, "01T10:00", None), (after, "02T10:00", "meaningful")], type="jobs")
    stream(tmp_path, "s2", [(before, "01T10:00", None), (after, "02T10:00", "noise")], type="status")
    found = judged(tmp_path)
    both, jobs, status = ours(found)
    assert [(row.cases, row.type, row.pages) for row in (both, jobs, status)] == [
        ("streams", "", 2), ("streams", "jobs", 1), ("streams", "status", 1),
    ]  # fmt: skip
    assert (both.precision, both.recall, both.false_alarm_rate) == (0.5, 1, 1)
    assert (jobs.precision, jobs.recall, status.precision, status.recall) == (1, 1, 0, None)
    level, *others = both.levels.values()
    assert level == {"meaningful": 1, "noise": 1}
    assert not any(sum(counts.values()) for counts in others)
    assert [(point.recall, point.false_alarm_rate) for point in both.curve if point.threshold == 0.5] == [(1, 1)]
    assert both.best == {"0.002": None, "0.003": None}
    assert [point and point.recall for point in jobs.best.values()] == [1, 1]
    alarms, misses = worst(found, 10)
    assert ([one.case.page for one in alarms], misses) == (["s2"], [])
    assert alarms[0].headline


def test_pages_of_one_host_share_what_is_learned(tmp_path: Path) -> None:
    def forecast(number: int) -> str:
        return page(f"Rain today in the valley: {7 * number % 40 + 3} mm so far")

    days = [f"{day:02d}T10:00" for day in range(1, 8)]
    for name in ("a", "b", "c"):
        learned = [(forecast(number), at, "noise") for number, at in enumerate(days)]
        stream(tmp_path, name, learned, url="https://weather.example/")
    last = [(forecast(30), "20T10:00", None), (forecast(31), "21T10:00", "noise")]
    stream(tmp_path, "d", last, url="https://weather.example/")
    stream(tmp_path, "e", last, url="https://other.example/")
    by_page = {one.case.page: one.alarms["driftline"] for one in judged(tmp_path)}
    assert (by_page["d"], by_page["e"]) == (False, True)
