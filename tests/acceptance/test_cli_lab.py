"""The programs of the laboratory, on worlds small enough to wait for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import Command
from driftline.lab.bench.speed_bench import nginx_installed


@pytest.fixture(autouse=True)
def nothing_allowed(driftline: Command) -> None:
    """The laboratory allows itself what it serves."""
    driftline.environment["DRIFTLINE_ALLOW_NETWORKS"] = ""


@pytest.mark.skipif(nginx_installed() is None, reason="nginx is not installed")
def test_the_race_behind_nginx_has_a_row_for_every_pass(driftline: Command) -> None:
    ran = driftline("lab", "speed", "--pages", "40", "--repeats", "1", "--json")
    assert ran.status == 0, ran.err
    rows = json.loads(ran.out)
    assert [row["pass"] for row in rows] == ["new", "same", "not-modified", "noisy", "changed"]
    assert all(row["pages_per_s"] > 0 and row["ratio"] > 0 and row["peak_mb"] > 0 for row in rows)


def test_the_race_runs_on_the_simulated_web_where_there_is_no_nginx(driftline: Command) -> None:
    ran = driftline("lab", "speed", "--pages", "40", "--repeats", "1", "--pass", "noisy", "--server", "lab")
    assert ran.status == 0, ran.err
    assert "the simulated web" in ran.out


def test_the_race_on_postgresql_is_compared_with_that_on_sqlite(driftline: Command, postgres: str) -> None:
    words = ("--pages", "40", "--repeats", "1", "--pass", "changed", "--server", "lab", "--store", postgres)
    ran = driftline("lab", "speed", *words, "--json")
    assert ran.status == 0, ran.err
    (row,) = json.loads(ran.out)
    assert row["postgresql"] > 0
    assert row["to_sqlite"] == pytest.approx(row["postgresql"] / row["pages_per_s"])
    assert "/SQLite" in driftline("lab", "speed", *words).out


def test_a_small_study_prints_its_tables_draws_its_figures_and_is_resumed(driftline: Command, tmp_path: Path) -> None:
    words = ("experiment", "--n", "4,8", "--pages", "40", "--iterations", "1", "--seconds", "0.1", "--scale", "0.01")
    first = driftline("lab", *words)
    assert first.status == 0, first.err
    assert all(table in first.out for table in ("Table I:", "Table II:", "Table III:", "911.05 ms"))
    figures = [tmp_path / "experiment" / f"figure-{n}.{form}" for n in (5, 6) for form in ("svg", "png")]
    assert all(figure.stat().st_size > 1_000 for figure in figures)
    again = driftline("lab", *words, "--json")
    cells = json.loads(again.out)
    assert {"configuration", "n", "m", "k", "slots", "pages", "effective_ms", "sd"} <= set(cells[0])
    record = (tmp_path / "experiment" / "cells.jsonl").read_text().splitlines()
    assert len(record) == 1 + len(cells), "nothing was measured twice"


@pytest.mark.parametrize(
    "words", [("experiment", "--n", "x"), ("experiment", "--scale", "0"), ("speed", "--pass", "x"),
              ("speed", "--store", "x.db"), ("picking", "--store", "sqlite:///x.db"),
              ("tuning", "--world", "x"), ("web", "--pages", "0"), ("web", "--noise", "loud"),
              ("freshness", "--checks", "inf"),
              ("freshness", "--checks", "0"), ("freshness", "--checks", "nan"), ("freshness", "--days", "inf"),
              ("freshness", "--static", "nan"), ("freshness", "--plot", "x.pdf")],
)  # fmt: skip
def test_bad_options_get_a_sentence(driftline: Command, words: tuple[str, ...]) -> None:
    ran = driftline("lab", *words)
    assert ran.status == 2
    assert "Traceback" not in ran.err
    assert len(ran.err.strip().splitlines()) <= 3


def test_the_detector_is_judged_on_labelled_pairs_and_chains(driftline: Command, tmp_path: Path) -> None:
    filler = "<p>A paragraph of the page that is the same in all of its versions.</p>" * 9
    pages = {"a": "<p>Fees are due.</p>", "b": "<p>Fees are waived.</p>", "c": "<p>Fees are due.</p><footer>x</footer>"}
    for kind in ("pairs", "chains"):
        (tmp_path / kind).mkdir()
        for name, body in pages.items():
            (tmp_path / kind / f"{name}.html").write_text(f"<body>{filler}{body}</body>")
    times = {"time_before": "2026-01-01T00:00:00Z", "time_after": "2026-01-02T00:00:00Z"}
    pairs = [("p1", "b", "meaningful"), ("p2", "c", "noise")]
    rows = [
        {"id": name, "before": "a.html", "after": f"{to}.html", "label": label, **times} for name, to, label in pairs
    ]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    versions = [{"file": f"{name}.html", "time": times["time_after"], "label": label}
                for name, label in (("a", None), ("c", "noise"), ("b", "meaningful"))]  # fmt: skip
    (tmp_path / "chains.jsonl").write_text(json.dumps({"chain": "c1", "versions": versions}))
    ran = driftline("lab", "detection", str(tmp_path), "--json")
    assert ran.status == 0, ran.err
    ours = [row for row in json.loads(ran.out) if row["detector"] == "driftline"]
    groups = ("pairs", "chains", "second halves")
    assert [(row["cases"], row["precision"], row["recall"]) for row in ours] == [(group, 1, 1) for group in groups]
    assert all(row["ms_99"] >= row["ms"] > 0 for row in ours)
    assert "has no labelled pages" in driftline("lab", "detection", str(tmp_path / "pairs")).err


def test_the_reports_on_synthetic_pages_are_listed_with_their_headlines(driftline: Command) -> None:
    ran = driftline("lab", "reports", "--page", "shop", "--interval", "1 d", "--verbose")
    assert ran.status == 0, ran.err
    assert "10 of 10" in ran.out
    assert "Price €39.99 → €29.99" in ran.out
    rows = json.loads(driftline("lab", "reports", "--page", "shop", "--interval", "1 d", "--json").out)
    assert [(row["page"], row["interval"], row["found"], len(row["edits"])) for row in rows] == [
        ("shop", "1 d", 10, 20)
    ]
    assert "takes one of 1 h, 1 d, 14 d" in driftline("lab", "reports", "--interval", "2 d").err


def test_versions_are_kept_small_and_read_back_whether_every_body_counts_or_what_shows(
    driftline: Command, tmp_path: Path
) -> None:
    (tmp_path / "chains").mkdir()
    filler = "".join(f"<p>Paragraph {number} of the page.</p>" for number in range(200))
    bodies = [f"<body>{filler}<p>Fees are {fee}.</p><!-- {turn} --></body>"
              for turn, fee in enumerate(("due", "due", "waived"))]  # fmt: skip
    versions = []
    for turn, body in enumerate(bodies):
        (tmp_path / "chains" / f"{turn}.html").write_text(body)
        versions.append({"file": f"{turn}.html", "time": f"2026-01-0{turn + 1}T00:00:00Z"})
    (tmp_path / "chains.jsonl").write_text(json.dumps({"chain": "c1", "versions": versions}))
    ran = driftline("lab", "storage", str(tmp_path), "--json")
    assert ran.status == 0, ran.err
    rows = json.loads(ran.out)
    kept = [(row["kept"], row["state"], row["versions"]) for row in rows]
    assert kept == [("every body", "at once", 3), ("every body", "compacted", 3),
                    ("what shows", "at once", 2), ("what shows", "compacted", 2)]  # fmt: skip
    assert all(row["stored_mb"] > 0 and row["read_ms_longest"] >= row["read_ms"] > 0 for row in rows)
    assert "has no versions of pages" in driftline("lab", "storage", str(tmp_path / "chains")).err


def test_a_figure_of_freshness_makes_no_folders(driftline: Command, tmp_path: Path) -> None:
    ran = driftline("lab", "freshness", "--pages", "20", "--seeds", "1", "--plot", str(tmp_path / "no" / "x.svg"))
    assert (ran.status, ran.out) == (1, "")
    assert "cannot be written" in ran.err
    assert not (tmp_path / "no").exists()


def test_the_table_of_hostile_servers_is_printed_with_its_bounds(driftline: Command) -> None:
    ran = driftline("lab", "hostile", "--row", "gzip that is none", "--row", "redirect to file:")
    assert ran.status == 0, ran.err
    head, ordinary, *rows, end = ran.out.splitlines()
    assert head.split() == ["row", "seconds", "at", "most", "peak", "MB", "at", "most", "outcome", "reason"]
    assert ordinary.startswith("ordinary page")
    assert [row.split("  ")[0] for row in rows] == ["gzip that is none", "redirect to file:"]
    assert end == "3 of 3 rows are within their limits."


def test_a_row_of_no_hostile_server_gets_a_sentence(driftline: Command) -> None:
    ran = driftline("lab", "hostile", "--row", "kindness")
    assert ran.status == 2
    assert "There is no such row" in ran.err


def test_every_command_is_measured_on_a_store_of_the_wanted_size(driftline: Command) -> None:
    rows = driftline.json("lab", "scale", "--pages", "100", "--command", "list --limit", "--command", "remove U")

    assert [(row["command"], row["pages"], row["status"]) for row in rows] == [
        ("(building the store)", 100, 0),
        ("remove URL", 100, 0),
        ("list --limit 20", 100, 0),
        ("list --limit 20 --offset", 100, 0),
    ]
    assert all(row["seconds"] > 0 and row["peak_mb"] > 0 for row in rows)


def test_a_command_that_is_killed_loses_nothing_and_the_table_says_so(driftline: Command) -> None:
    (row,) = driftline.json("lab", "faults", "--row", "sqlite kill check", "--kills", "1")
    assert (row["times"], row["changes"], row["holds"]) == (1, 32, True)
    assert (row["lost"], row["duplicated"], row["unreported"], row["at_once"]) == (0, 0, 0, 1)
    assert row["shortest"] >= row["delay"] - 0.01


def test_a_row_of_faults_that_is_not_there_gets_a_sentence(driftline: Command) -> None:
    ran = driftline("lab", "faults", "--row", "sqlite restart")
    assert ran.status == 2
    assert "There is no such row" in ran.err


@pytest.mark.parametrize("command", ["check", "run"])
def test_every_change_of_every_generation_is_recorded_and_reported_once(driftline: Command, command: str) -> None:
    line = ["lab", "soak", "--pages", "60", "--size", "3000", "--generations", "2", "--command", command]
    row = driftline.json(*line)
    assert (row["changes"], row["recorded"], row["reported"], row["repeated"]) == (120, 120, 120, 0)
    assert row["holds"]
    assert bool(row["resources"]) == (command == "check")
    assert bool(row["resident_mb"]) == (command == "run")
