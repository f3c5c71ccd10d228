"""The command itself, its settings and its health."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import driftline as package
from command import Command, without_styles
from support.servers import Site


def test_help_and_version_load_nothing_heavy(driftline: Command) -> None:
    assert driftline("--version").out == f"driftline {package.__version__}\n"
    helped = driftline("--help").out
    for name in ("add", "import", "list", "edit", "remove", "check", "run", "history", "show", "diff"):
        assert f"\n  {name} " in helped
    for name in ("visit", "visits", "rank", "compact", "doctor", "settings"):
        assert f"\n  {name} " in helped
    assert loaded_by("--version") & {"sqlalchemy", "rich", "pydantic", "pycurl"} == set()


def test_looking_at_the_list_loads_nothing_that_checks_pages(driftline: Command, tmp_path: Path) -> None:
    """Nor what brings a store up to date, if it is that."""
    driftline("add", "example.com")

    loaded = loaded_by("list", "--json", "--store", str(tmp_path / "pages.db"))

    assert "sqlalchemy" in loaded
    assert loaded & {"selectolax", "lxml", "charset_normalizer", "pycurl", "numpy", "alembic", "psycopg"} == set()


def loaded_by(*arguments: str) -> set[str]:
    """The packages that this command imports."""
    program = (
        "import sys; from driftline.cli import main; main.main_with(sys.argv[1:])\n"
        "print('\\n', *{name.partition('.')[0] for name in sys.modules})"
    )
    ran = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    return set(ran.stdout.splitlines()[-1].split())


def test_without_a_command_the_help_is_shown(driftline: Command) -> None:
    ended = driftline()

    assert ended.status == 2
    assert ended.out.startswith("Usage: driftline")


def test_the_settings_tell_where_each_value_came_from(driftline: Command, tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "driftline"
    folder.mkdir(parents=True)
    (folder / "driftline.toml").write_text("max_redirects = 3\ncapacity = 7\n")
    driftline.environment["DRIFTLINE_CAPACITY"] = "9"

    found = {row["name"]: row for row in driftline.json("settings")}

    assert (found["max_redirects"]["value"], found["max_redirects"]["source"]) == (3, "file")
    assert (found["capacity"]["value"], found["capacity"]["place"]) == (9, "DRIFTLINE_CAPACITY")
    assert found["total_timeout"]["source"] == "default"
    assert found["store"]["source"] == "environment"
    optional = {row["name"]: row for row in driftline.json("settings", "--store", "postgresql://me:secret@host/db")}
    assert (optional["store"]["value"], optional["store"]["source"]) == ("postgresql://me:***@host/db", "option")
    assert "environment" in driftline("settings").out


def test_settings_are_not_cut_on_a_narrow_terminal(driftline: Command) -> None:
    _, shown = driftline.on_terminal("settings", COLUMNS="60")
    text = " ".join(without_styles(shown).split())
    for row in driftline.json("settings"):
        assert f"{row['name']} " in text
        assert row["meaning"] in text
    assert str(driftline.folder / "pages.db") in text
    assert "…" not in text


def test_a_damaged_store_is_not_compacted(driftline: Command, site: Site, tmp_path: Path) -> None:
    page = site.put("/a", "Some words.")
    driftline("add", page)
    driftline("check")
    driftline("compact")
    store = tmp_path / "pages.db"
    with closing(sqlite3.connect(store)) as connection:
        # of all that compacting reads or writes, nothing is on this page
        number, size = connection.execute(
            "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = 'checks'"
        ).fetchone()
    data = bytearray(store.read_bytes())
    data[(number - 1) * size : number * size] = b"\xff" * size
    store.write_bytes(data)

    ended = driftline("compact")

    assert (ended.status, ended.out) == (1, "")
    assert "is damaged (" in ended.err
    assert "restore a backup" in ended.err
    assert ended.err.count("\n") == 1
    assert store.read_bytes() == data, "nothing was made worse"
    assert driftline("doctor").status == 1


def test_compacting_fails_as_long_as_a_content_cannot_be_read(driftline: Command, site: Site, tmp_path: Path) -> None:
    driftline("add", site.put("/a", "Some words."))
    driftline("check")
    with closing(sqlite3.connect(tmp_path / "pages.db")) as connection:
        connection.execute("UPDATE blobs SET data = x'00'")
        connection.commit()

    for _ in range(2):
        ended = driftline("compact")
        assert ended.status == 1
        assert "2 bodies cannot be read" in ended.err
    assert driftline.json("compact", status=1)["unreadable"] == 2


def test_compacting_makes_the_store_smaller_once_and_the_history_stays(driftline: Command, site: Site) -> None:
    words = [" ".join(f"word{number * version % 997}" for number in range(2_000)) for version in (1, 2, 3)]
    page = site.put("/a", words[0])
    driftline("add", page)
    for text in words:
        site.put("/a", text)
        driftline("check")

    ended = driftline("compact")

    assert ended.status == 0, ended.err
    assert ended.out.startswith("Compacted 6 stored texts from ")
    assert driftline("compact").out.startswith("Nothing to compact: the store takes ")
    assert driftline.json("compact")["contents"] == 0
    for version, text in enumerate(words, start=1):
        assert text in driftline("show", page, "--version", str(version)).out


def test_after_an_edit_of_the_filters_all_versions_are_read_anew(driftline: Command, site: Site) -> None:
    page = site.put("/a", "five euros</p><p class=ad>buy it")
    driftline("add", page)
    driftline("check")
    site.put("/a", "six euros</p><p class=ad>buy it")
    driftline("check")
    driftline("edit", page, "--drop", ".ad")

    assert "Texts: 2 versions to extract again" in driftline("doctor").out
    assert "Extracted 2 versions again; the text of 2 is different now." in driftline("compact").out
    assert "the text of every version is up to date" in driftline("doctor").out
    assert driftline("show", page, "--version", "1").out == "five euros\n"
    assert driftline("history", page).out.count("Its text was extracted again") == 2
    assert [bool(check["reread_at"]) for check in driftline.json("history", page)] == [True, True]
    driftline("edit", page, "--no-filters")
    assert driftline("run", "--once").out == "", "nothing is due, and nothing changed"
    assert driftline("show", page, "--version", "1").out == "five euros\nbuy it\n"
    driftline("edit", page, "--select", ".none")
    reread = driftline.json("compact")["reread"]
    assert reread == {"versions": 2, "changed": 0, "unread": 2, "skipped": 0}
    assert "2 versions have nothing that today's filters select" in driftline("doctor").out


def test_the_doctor_finds_a_healthy_installation_well(driftline: Command, site: Site) -> None:
    driftline("add", site.put("/a", "text"))
    driftline("check")

    found = driftline.json("doctor")

    assert found["ok"] is True
    assert {check["what"] for check in found["checks"]} >= {"Python", "libcurl", "Settings", "Worker process", "Store"}
    ended = driftline("doctor")
    assert ended.status == 0
    assert "✓ Store: " in ended.out
    assert "1 page, 1 version" in ended.out


def test_a_quick_doctor_says_that_versions_were_not_read(driftline: Command, site: Site) -> None:
    driftline("add", site.put("/a", "text"))
    driftline("check")
    with sqlite3.connect(driftline.folder / "pages.db") as database:
        database.execute("UPDATE blobs SET data = x'00'")
    database.close()

    quick, whole = driftline("doctor", "--quick"), driftline("doctor")

    assert quick.status == 0
    assert "has 1 page; its versions were not verified" in quick.out
    assert whole.status == 1
    assert "✗ Store: The stored version" in whole.out


def test_the_doctor_tells_what_may_be_fetched_and_how(driftline: Command) -> None:
    proxy = "http://me:sesame@proxy.example:3128"
    plain = driftline("doctor", DRIFTLINE_ALLOW_NETWORKS="10.0.0.0/8", https_proxy=proxy).out
    assert "pages are fetched from public addresses and 10.0.0.0/8." in plain
    assert "The variable https_proxy is ignored: set DRIFTLINE_PROXY" in plain
    through = driftline("doctor", DRIFTLINE_PROXY=proxy).out
    assert "pages are fetched through the proxy http://me:***@proxy.example:3128, which has to protect" in through


def test_the_doctor_tells_what_is_broken_and_looks_at_the_rest(driftline: Command, tmp_path: Path) -> None:
    (tmp_path / "junk.db").write_bytes(b"this is no database" * 500)

    ended = driftline("doctor", "--store", str(tmp_path / "junk.db"))

    assert ended.status == 1
    assert "✗ Store: " in ended.out
    assert "✓ Worker process: " in ended.out
    assert driftline.json("doctor", "--store", str(tmp_path / "junk.db"), status=1)["ok"] is False
    wrong = driftline("doctor", DRIFTLINE_CAPACITY="lots")
    assert wrong.status == 1
    assert "✗ Settings: " in wrong.out
