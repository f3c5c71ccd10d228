"""What `doctor` says of the browser that renders pages."""

from __future__ import annotations

import pytest

from driftline.cli.main import main_with

pytest.importorskip("playwright")


def test_a_program_that_is_no_browser_is_found_out_by_starting_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("DRIFTLINE_BROWSER", "/bin/true")
    monkeypatch.setenv("DRIFTLINE_STORE", str(tmp_path_factory.mktemp("store") / "pages.db"))
    assert main_with(["doctor"]) == 1
    assert "✗ Browser: /bin/true ended at once" in capsys.readouterr().out
