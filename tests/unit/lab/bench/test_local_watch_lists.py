from __future__ import annotations

from pathlib import Path

import pytest

from driftline.lab.bench.local_watch_lists import open_local


def test_the_laboratory_may_fetch_from_this_machine_whatever_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTLINE_ALLOW_NETWORKS", "10.0.0.0/8")
    monkeypatch.setenv("DRIFTLINE_PROXY", "http://proxy.example:3128")
    with open_local(str(tmp_path / "pages.db"), confirm=False) as watch_list:
        settings = watch_list.settings
    assert settings.allow_networks == ("127.0.0.0/8", "::1/128")
    assert (settings.proxy, settings.confirm) == (None, False)
