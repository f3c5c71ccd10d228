"""An output that cannot be written: a full disk, or a closed pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from driftline.cli.main import main_with
from support.servers import Site


@pytest.fixture
def page(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A watched page of two versions."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRIFTLINE_STORE", str(tmp_path / "pages.db"))
    url = site.put("/", "Words of a page, as they were at first.")
    main_with(["add", url])
    main_with(["check"])
    site.put("/", "Words of a page, and they are others now.")
    main_with(["check"])
    return url


def on_a_full_disk(words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """The status of the command whose output goes to a disk that is full."""
    full = Path("/dev/full").open("w", encoding="utf-8")  # noqa: SIM115 to close it fails, as it should
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", full)
        status = main_with(words.split())
    with suppress(OSError):
        full.close()
    return status


@pytest.mark.parametrize(
    "words",
    ["list", "list --json", "history PAGE", "diff PAGE", "diff PAGE --json", "show PAGE --raw", "check", "--help"],
)
def test_a_full_disk_gets_a_sentence(
    words: str, page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert on_a_full_disk(words.replace("PAGE", page), monkeypatch) == 1
    said = capsys.readouterr()
    assert said.err == "driftline: The output could not be written completely: No space left on device.\n"


def test_what_a_run_could_not_print_is_printed_by_the_next(
    page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRIFTLINE_FAIL_AFTER", "1")
    main_with(["add", f"{page}missing"])
    capsys.readouterr()
    assert on_a_full_disk("run --once", monkeypatch) == 1
    assert "The output could not be written completely: No space left" in capsys.readouterr().err
    assert main_with(["run", "--once"]) == 0
    assert f"failing           {page}missing" in capsys.readouterr().out


@pytest.mark.parametrize("words", [("run", "--once", "-v"), ("-v", "run", "--once")])
def test_a_full_disk_under_the_log_does_not_end_a_run(
    words: tuple[str, ...], page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTLINE_FAIL_AFTER", "1")
    main_with(["add", f"{page}missing"])
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "driftline", *words]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, text=True, timeout=60, check=False)
    assert ended.returncode == 0
    assert f"failing           {page}missing" in ended.stdout


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_run_whose_output_is_closed_ends_and_the_next_one_prints_the_event(
    stream: str, page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRIFTLINE_FAIL_AFTER", "1")
    main_with(["add", f"{page}missing"])
    reader, writer = os.pipe()
    os.close(reader)
    out, err = (writer if stream == one else subprocess.PIPE for one in ("stdout", "stderr"))
    command = [sys.executable, "-m", "driftline", "run", "-v"]
    ended = subprocess.run(command, stdout=out, stderr=err, timeout=60, check=False)
    os.close(writer)
    assert ended.returncode == 1, "it ends by itself"
    capsys.readouterr()
    main_with(["run", "--once"])
    assert f"failing           {page}missing" in capsys.readouterr().out


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_closed_output_does_not_change_the_exit_status(
    stream: str, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys, stream, None)
        assert main_with(["history", page]) == 0
        assert main_with(["list", "--store", str(tmp_path / "mistyped.db")]) == 2
        getattr(sys, stream).close()
