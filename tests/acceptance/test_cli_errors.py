"""Whatever is asked in a wrong way is answered with one sentence, the right exit status and no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from command import Command, Ended
from support.servers import Site


def assert_one_sentence(ended: Ended, status: int, *words: str) -> None:
    assert ended.status == status, ended
    assert ended.out == ""
    assert ended.err.count("\n") == 1, ended.err
    assert ended.err.startswith("driftline: ")
    assert ended.err.endswith(".\n")
    assert "Traceback" not in ended.err
    for word in words:
        assert word in ended.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add",), ("URL", "driftline add --help")),
        (("add", "nonsense"), ("nonsense", "https://example.com/")),
        (("add", "http://"), ("http://",)),
        (("add", "http://exa mple.com"), ("space",)),
        (("add", "http://example.com:99999/"), ("99999",)),
        (("add", "mailto:a@example.com"), ("only http and https",)),
        (("add", "example.com", "--every", "soon"), ("soon", "15m")),
        (("add", "example.com", "--every", "0s"), ("0s", "too short")),
        (("add", "example.com", "--tag", "two words"), ("two words", "tag")),
        (("add", "example.com", "--select", "div["), ("'select div['", "CSS selector", "from '[' on")),
        (("add", "example.com", "--select", "xpath://a["), ("XPath expression", "from '[' on")),
        (("add", "example.com", "--select", "json:$["), ("JSONPath expression",)),
        (("add", "example.com", "--drop", "xpath:"), ("XPath expression",)),
        (("add", "example.com", "--ignore", "/a(b/"), ("regular expression", "character 2")),
        (("add", "example.com", "--trigger", ""), ("'trigger'", "is empty")),
        (("check", "--pipeline", "magic"), ("magic", "two-section")),
        (("check", "--producers", "many"), ("--producers", "auto")),
        (("check", "--slots", "-1"), ("--slots", "between")),
        (("check", "--queues", "x"), ("--queues", "'x' is not a whole number", "driftline check --help")),
        (("check", "--host-delay", "x"), ("--host-delay", "'x' is not a number")),
        (("check", "--host-delay", "-1"), ("a number from 0 to 3600", "the option --host-delay has -1")),
        (("check", "--robots", "never"), ("obey or ignore", "the option --robots has 'never'")),
        (("check", "--comparers", "2"), ("three-section",)),
        (("check", "--capacity", "0"), ("--capacity",)),
        (("check", "example.com", "--tag", "x"), ("not both",)),
        (("check", "--nonsense"), ("--nonsense", "driftline check --help")),
        (("check", "--tag", "nobody"), ("nobody",)),
        (("run", "--every", "never"), ("never",)),
        (("history", "example.com", "--limit", "0"), ("--limit", "'0' is not 1 or more")),
        (("show", "example.com", "--version", "x"), ("--version",)),
        (("search",), ("WORDS", "driftline search --help")),
        (("search", ""), ("letter or digit",)),
        (("search", "&", '"*'), ("letter or digit",)),
        (("search", "x", "--limit", "0"), ("--limit",)),
        (("search", "x", "--since", "soon"), ("soon", "12h")),
        (("search", "x", "--tag", "nobody"), ("nobody",)),
        (("diff", "example.com", "--html", "x.html", "--json"), ("--html", "--json")),
        (("edit", "example.com"), ("--every", "--select")),
        (("edit", "example.com", "--select", "p["), ("CSS selector",)),
        (("remove",), ("--tag",)),
        (("remove", "--tag", "nobody", "--yes"), ("nobody",)),
        (("nonsense",), ("nonsense", "driftline --help")),
    ],
)
def test_wrong_usage(driftline: Command, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert_one_sentence(driftline(*arguments), 2, *words)


@pytest.mark.parametrize(
    "arguments",
    [("check",), ("history",), ("show",), ("diff",), ("edit", "--every", "1h"), ("remove", "--yes")],
    ids=lambda arguments: arguments[0],
)
def test_a_page_that_is_not_watched(driftline: Command, arguments: tuple[str, ...]) -> None:
    ended = driftline(arguments[0], "example.com/x", *arguments[1:])

    assert_one_sentence(ended, 1, "https://example.com/x is not watched", "driftline add")


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "example.com", "--tag"), ("list", "--tag"), ("check", "--tag"), ("changes", "--tag"),
        ("access", "--bearer", "x", "--tag"), ("report-unsafe", "example.com", "--reason"), ("blocklist", "add"),
        ("search",), ("edit", "a.example", "--tag"), ("crawl", "a.example", "--tag"),
    ],
)  # fmt: skip
def test_an_argument_that_is_not_utf_8_is_refused(driftline: Command, arguments: tuple[str, ...], site: Site) -> None:
    driftline("add", "a.example", "--tag", "known")
    (driftline.folder / "\udcff").write_text("0.0.0.0 bad.example\n")
    ended = driftline(*arguments, "\udcff")
    assert_one_sentence(ended, 2)
    assert "Unexpected" not in ended.err


def test_a_store_whose_name_is_too_long_or_whose_folder_is_gone(driftline: Command, tmp_path: Path) -> None:
    for command in ("add", "list"):
        more = ("example.com",) if command == "add" else ()
        assert_one_sentence(driftline(command, *more, "--store", "x" * 300), 1, "File name too long")
    gone = tmp_path / "gone"
    line = f"mkdir {gone} && cd {gone} && rmdir {gone} && {sys.executable} -m driftline list --store pages.db"
    environment = os.environ | {"PYTHONSAFEPATH": "1", "HOME": str(tmp_path)}
    ran = subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=environment, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "the current folder was removed: change to another one." in ran.stderr


def test_nothing_is_watched(driftline: Command) -> None:
    assert_one_sentence(driftline("check"), 1, "driftline add https://")
    assert_one_sentence(driftline("check", "--json"), 1, "driftline add https://")


def test_a_version_that_there_is_not(driftline: Command, site: Site) -> None:
    url = site.put("/a", "text")
    driftline("add", url)
    assert_one_sentence(driftline("show", url), 1, "no version yet", "driftline check")
    driftline("check")
    assert_one_sentence(driftline("show", url, "--version", "7"), 1, "version 7")
    assert_one_sentence(driftline("diff", url, "1", "7"), 1, "version 7")
    assert_one_sentence(driftline("diff", url, "0", "1"), 2, "Version 1")


def test_a_list_that_cannot_be_read(driftline: Command, tmp_path: Path) -> None:
    assert_one_sentence(driftline("import", str(tmp_path / "none.txt")), 1, "none.txt", "No such file")
    assert_one_sentence(driftline("import", str(tmp_path)), 1, "directory")
    assert_one_sentence(driftline("import", "-", given=b"\x89PNG\r\n\xff\xfe"), 1, "UTF-8")
    assert_one_sentence(driftline("import", "-", given=b"a\0b"), 1, "not a text")
    assert_one_sentence(driftline("import", "-", given=b"# nothing\n"), 1, "no URL")


def test_a_store_that_cannot_be_used(driftline: Command, tmp_path: Path) -> None:
    (tmp_path / "junk.db").write_bytes(b"this is no database" * 500)
    (tmp_path / "file").touch()

    assert_one_sentence(driftline("list", "--store", str(tmp_path)), 1, "folder")
    assert_one_sentence(driftline("list", "--store", str(tmp_path / "junk.db")), 1, "junk.db")
    assert_one_sentence(driftline("add", "a.example", "--store", str(tmp_path / "file" / "x.db")), 1, "x.db")
    assert_one_sentence(driftline("list", "--store", "mysql://localhost/x"), 1, "mysql")


def test_a_store_that_is_damaged_inside(driftline: Command, tmp_path: Path) -> None:
    driftline("add", "example.com")
    store = tmp_path / "pages.db"
    data = bytearray(store.read_bytes())
    for start in range(8192, len(data), 4096):
        data[start : start + 200] = b"\xff" * 200
    store.write_bytes(data)

    assert_one_sentence(driftline("list"), 1, "malformed")
    assert_one_sentence(driftline("check"), 1, "malformed")


def test_a_setting_that_means_nothing(driftline: Command, tmp_path: Path) -> None:
    assert_one_sentence(
        driftline("list", DRIFTLINE_CAPACITY="lots"), 2, "whole number", "DRIFTLINE_CAPACITY has 'lots'"
    )
    folder = tmp_path / ".config" / "driftline"
    folder.mkdir(parents=True)
    (folder / "driftline.toml").write_text("capacity = ")
    assert_one_sentence(driftline("list"), 2, "driftline.toml")
    (folder / "driftline.toml").write_text("capcity = 3")
    assert_one_sentence(driftline("list"), 2, str(folder / "driftline.toml"), "'capcity'", "'capacity'")


def test_a_misspelled_variable_is_warned_of_once(driftline: Command) -> None:
    told = "driftline: The variable DRIFTLINE_HOST_DELY is not a setting: did you mean DRIFTLINE_HOST_DELAY?\n"

    ended = driftline("import", "-", given="example.com\n", DRIFTLINE_HOST_DELY="3", DRIFTLINE_SHOP_TOKEN="secret")

    assert (ended.status, ended.err) == (0, told)
    assert driftline("doctor", DRIFTLINE_HOST_DELY="3").err == told
    told_by_doctor = driftline("doctor", DRIFTLINE_SHOP_TOKEN="secret", DRIFTLINE_DEBUG="0")
    assert "Ignored in the environment, because there is no such setting: DRIFTLINE_SHOP_TOKEN." in told_by_doctor.out
    assert told_by_doctor.err == ""


def test_a_reader_that_goes_away_is_no_error(driftline: Command) -> None:
    driftline("import", "-", given="".join(f"example.com/{number}\n" for number in range(3000)))

    with driftline.start("list") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""


@pytest.mark.parametrize("pages", [1, 3000])  # fewer bytes than are written at once, and more
@pytest.mark.parametrize("arguments", [("list",), ("list", "--json"), ("settings",), ("--version",), ("--help",)])
def test_a_full_disk_under_the_output_is_said_once(
    driftline: Command, pages: int, arguments: tuple[str, ...]
) -> None:  # fmt: skip
    driftline("import", "-", given="".join(f"example.com/{number}\n" for number in range(pages)))

    with Path("/dev/full").open("w") as full, driftline.start(*arguments, out=full) as process:
        _, err = process.communicate()

    assert (process.returncode, err) == (
        1, "driftline: The output could not be written completely: No space left on device.\n",
    )  # fmt: skip


@pytest.mark.parametrize(("arguments", "status"), [(("add", "nonsense"), 2), (("check", "example.com"), 1)])
def test_a_full_disk_under_the_error_output_leaves_the_exit_status_as_it_is(
    driftline: Command, arguments: tuple[str, ...], status: int
) -> None:
    with Path("/dev/full").open("w") as full, driftline.start(*arguments, err=full) as process:
        out, _ = process.communicate()

    assert (process.returncode, out) == (status, "")


def test_something_unexpected_is_a_sentence_too() -> None:
    program = (
        "from driftline.cli import main\n"
        "@main.app.command('explode')\n"
        "def explode() -> None: raise ZeroDivisionError('a detail')\n"
        "raise SystemExit(main.main_with(['explode']))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert_one_sentence(
        Ended(ended.returncode, ended.stdout, ended.stderr), 1, "ZeroDivisionError", "DRIFTLINE_DEBUG=1"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env={"DRIFTLINE_DEBUG": "1"}
    )
    assert told.returncode == 1
    assert "Traceback" in told.stderr


@pytest.mark.parametrize("how", ["module", "script"])
def test_ctrl_c_while_it_is_still_being_imported_ends_it_without_a_word(tmp_path: Path, how: str) -> None:
    """A library that it needs is one that is interrupted."""
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, name = project["scripts"]["driftline"].partition(":")
    line = ["-m", "driftline"] if how == "module" else ["-c", f"from {module} import {name}; {name}()"]
    heard = "import signal, sys, os; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", heard, sys.executable, *line, "list"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
