"""A store that does not exist: commands that only read do not create it, and say so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from driftline.cli.main import main_with
from driftline.settings import default_store, settings_file

PAGE = "https://a.example/"
LOOKING = [
    ("list",), ("history", PAGE), ("show", PAGE), ("diff", PAGE), ("search", "words"), ("rank",), ("schedule",),
    ("rank", "--by", "value"), ("feedback", "--list"), ("feedback", "1-2", "--noise"), ("compact",),
    ("edit", PAGE, "--every", "1h"), ("remove", PAGE, "--yes"), ("run", "--once"), ("check", PAGE),
]  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home in which nothing was ever set or added."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DRIFTLINE_STORE", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("words", LOOKING, ids=" ".join)
def test_one_that_the_option_names_is_not_made(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main_with([*words, "--store", str(tmp_path / "my pages.db")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"There is no store '{tmp_path}/my pages.db': correct its name" in said.err
    assert f"driftline add URL --store '{tmp_path}/my pages.db'" in said.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("by", ["environment", "settings file"])
def test_one_that_is_named_otherwise_is_not_made_either(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mistyped = tmp_path / "mistyped.db"
    if by == "environment":
        monkeypatch.setenv("DRIFTLINE_STORE", str(mistyped))
    else:
        settings_file().parent.mkdir(parents=True)
        settings_file().write_text(f'store = "{mistyped}"\n')
    assert main_with(["list"]) == 2
    assert f"There is no store '{mistyped}': correct its name" in capsys.readouterr().err
    assert main_with(["doctor"]) == 1
    assert f"There is no store '{mistyped}': correct its name" in capsys.readouterr().out
    assert not mistyped.exists()
    assert main_with(["add", PAGE]) == 0
    assert main_with(["list"]) == 0


@pytest.mark.parametrize("words", LOOKING, ids=" ".join)
def test_in_a_new_home_it_is_empty_and_stays_so(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = "1-2" in words or (PAGE in words)
    assert main_with(words) == (1 if named else 0)
    assert not named or "is not watched" in capsys.readouterr().err or "1-2" in words
    assert list(tmp_path.iterdir()) == []


def test_a_new_user_learns_how_to_add_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main_with(["list"]) == 0
    assert capsys.readouterr() == ("", "No pages are watched yet: add one with 'driftline add https://example.com/'.\n")
    assert main_with(["list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_the_doctor_makes_none_either(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main_with(["doctor"]) == 0
    assert f"Store: none yet: 'driftline add URL' creates {default_store()}." in capsys.readouterr().out
    assert main_with(["doctor", "--store", str(tmp_path / "pages.db")]) == 1
    assert f"There is no store '{tmp_path / 'pages.db'}'" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("add", PAGE), ("visit", PAGE)], ids=" ".join)
def test_commands_that_write_create_the_store(words: tuple[str, ...], tmp_path: Path) -> None:
    assert main_with([*words, "--store", str(tmp_path / "pages.db")]) == 0
    assert (tmp_path / "pages.db").exists()
    assert main_with(["list", "--store", str(tmp_path / "pages.db")]) == 0


def test_a_mistyped_file_of_visits_makes_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, visits = tmp_path / "pages.db", tmp_path / "visits.csv"
    assert main_with(["visits", "import", str(visits), "--store", str(store)]) == 1
    assert f"{visits} cannot be read: No such file" in capsys.readouterr().err
    assert main_with(["visits", "import", str(tmp_path), "--store", str(store)]) == 2
    assert list(tmp_path.iterdir()) == []
    visits.write_text(f"url\n{PAGE}\n")
    assert main_with(["visits", "import", str(visits), "--store", str(store)]) == 0
    assert store.exists()
