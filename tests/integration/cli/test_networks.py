"""Private networks on the command line: refused as a failed check, allowed by the option, the environment or nobody."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from driftline.cli.main import main_with
from support.servers import Server, Site, html, redirect

REASON = "127.0.0.1 is a loopback address: allow it with --allow-network 127.0.0.0/8."


@pytest.fixture(autouse=True)
def nothing_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRIFTLINE_STORE", str(tmp_path / "pages.db"))
    monkeypatch.delenv("DRIFTLINE_ALLOW_NETWORKS")


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs the command in this process; what it prints with --json."""

    def tell(*words: str) -> Any:
        capsys.readouterr()
        assert main_with([*words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return tell


def test_a_page_in_a_private_network_is_a_failed_check_that_says_what_to_do(
    site: Site, told: Callable[..., Any]
) -> None:
    page = site.put("/", "inside")
    main_with(["add", page])
    report = told("check")
    assert report["failures"] == [{"url": page, "kind": "not-allowed", "reason": REASON}]
    assert not site.asked.is_set()
    (listed,) = told("list")
    assert (listed["verdict"], listed["failure"]["kind"], listed["versions"]) == ("failed", "not-allowed", 0)


def test_it_is_tried_once_and_not_again_at_once(site: Site, told: Callable[..., Any]) -> None:
    page = site.put("/", "inside")
    main_with(["add", page])
    assert main_with(["run", "--once"]) == 0
    assert main_with(["run", "--once"]) == 0
    assert told("list")[0]["checks"] == 1


def test_the_option_allows_networks_for_a_check(site: Site, told: Callable[..., Any]) -> None:
    main_with(["add", site.put("/", "inside")])
    assert told("check", "--allow-network", "10.0.0.0/8")["failed"] == 1
    assert told("check", "--allow-network", "10.0.0.0/8", "--allow-network", "127.0.0.1")["new"] == 1


def test_the_option_allows_networks_for_a_run(site: Site, told: Callable[..., Any]) -> None:
    main_with(["add", site.put("/", "inside")])
    assert main_with(["run", "--once", "--allow-network", "127.0.0.0/8"]) == 0
    assert told("list")[0]["verdict"] == "new"


def test_the_environment_allows_networks(site: Site, told: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    main_with(["add", site.put("/", "inside")])
    monkeypatch.setenv("DRIFTLINE_ALLOW_NETWORKS", "10.0.0.0/8,127.0.0.0/8")
    assert told("check")["new"] == 1
    (row,) = [row for row in told("settings") if row["name"] == "allow_networks"]
    assert row["value"] == ["10.0.0.0/8", "127.0.0.0/8"]
    assert (row["source"], row["place"]) == ("environment", "DRIFTLINE_ALLOW_NETWORKS")


def test_a_page_that_leads_inside_one_day_keeps_its_version(site: Site, told: Callable[..., Any]) -> None:
    answers = [html("outside")]
    with Server(lambda _: answers[0], address="127.0.0.2") as server:
        main_with(["add", server.url()])
        assert told("check", "--allow-network", "127.0.0.2")["new"] == 1
        answers[0] = redirect(site.put("/", "inside"))
        (failure,) = told("check", "--allow-network", "127.0.0.2")["failures"]
    assert failure["reason"] == f"The page redirects, and {REASON}"
    assert not site.asked.is_set()
    (listed,) = told("list")
    assert (listed["verdict"], listed["versions"]) == ("failed", 1)


@pytest.mark.parametrize("words", [["check"], ["run", "--once"]])
def test_what_is_no_network_is_refused_in_a_sentence(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main_with([*words, "--allow-network", "intranet"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("driftline: --allow-network: 'intranet' is not a network: write 192.168.0.0/16")
    assert len(said.splitlines()) == 1


def test_adding_a_page_in_a_private_network_is_done_with_a_word_of_warning(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    listed = tmp_path / "list.txt"
    listed.write_text("http://example.com/\nhttp://[fd00::1]:8080/\nhttp://10.0.0.7/\n")
    allowed = "check with --allow-network 10.0.0.0/8, or set DRIFTLINE_ALLOW_NETWORKS=10.0.0.0/8."
    warned = f"http://me:***@10.0.0.5/ is not fetched by default, because 10.0.0.5 is a private address: {allowed}\n"
    assert main_with(["add", "http://me:pw@0xa000005/"]) == 0
    assert capsys.readouterr().err == warned
    assert main_with(["import", str(listed)]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "http://[fd00::1]:8080/ is not fetched by default, because fd00::1 is a private address: "
        + allowed.replace("10.0.0.0/8", "fc00::/7"),
        f"http://10.0.0.7/ is not fetched by default, because 10.0.0.7 is a private address: {allowed}",
    ]
    assert main_with(["add", "http://10.0.0.7/", "http://10.0.0.6/", "http://a.example/"]) == 0
    several = "2 pages such as http://10.0.0.7/ are not fetched by default, because 10.0.0.7 is a private address"
    assert capsys.readouterr().err == f"{several}: {allowed}\n"
    monkeypatch.setenv("DRIFTLINE_ALLOW_NETWORKS", "10.0.0.0/8")
    assert main_with(["add", "http://10.0.0.8/", "https://example.org/"]) == 0
    assert capsys.readouterr().err == ""


def test_the_settings_show_no_password_of_a_proxy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTLINE_PROXY", "http://me:sesame@proxy.example:3128")
    main_with(["settings"])
    main_with(["settings", "--json"])
    monkeypatch.setenv("DRIFTLINE_PROXY", "nttp://me:sesame@proxy.example:3128")
    main_with(["settings"])
    said = capsys.readouterr()
    assert "sesame" not in said.out + said.err
    assert "http://me:***@proxy.example:3128" in said.out
