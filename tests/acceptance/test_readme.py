"""The README is true: its commands run, and print what it shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from urllib.parse import urlsplit

import driftline as package
from command import Command
from support.servers import Answer, Request, Server, answer, html

README = Path(__file__).parents[2] / "README.md"
LIBRARY = README.parent / "docs" / "reference" / "library.md"
LAMP = """<!doctype html><title>Desk lamp Nova</title><main><h1>Desk lamp Nova</h1>
<p>A lamp of brushed steel with a warm light, for desks and bedside tables.</p><p>Price: {price}</p></main>"""
JOBS = """<!doctype html><title>Jobs</title><main><h1>Open positions</h1><ul><li>Data analyst, Lisbon</li>{more}</ul>"""
FIGURE = re.compile(r"[\d.,]+(?= (?:s|ms|bytes|kB)\b)")


class Shop:
    """The pages of the transcript, before and after they change; it answers as a proxy for any host."""

    def __init__(self) -> None:
        self.changed = False

    def __call__(self, request: Request) -> Answer:
        pages = {
            "/lamp": LAMP.format(price="€29.99" if self.changed else "€39.99"),
            "/jobs": JOBS.format(more="<li>Senior engineer, Berlin</li>" if self.changed else ""),
        }
        page = pages.get(urlsplit(request.path).path)
        kind = "Content-Type: text/html; charset=utf-8"
        return answer(b"", "404 Not Found") if page is None else answer(page.encode(), "200 OK", kind)


def test_the_transcript_is_what_the_commands_print(driftline: Command) -> None:
    """Times and sizes may differ; '# the next day' in the transcript is when the pages change."""
    (transcript,) = re.findall(r"```console\n(.*?)```", README.read_text(), re.DOTALL)
    shop, printed = Shop(), ""
    with Server(shop) as server:
        for line in transcript.splitlines(keepends=True):
            if not line.startswith("$ "):
                continue
            shop.changed = shop.changed or "# the next day" in line
            _, *arguments = shlex.split(line.removeprefix("$ "), comments=True)
            ended = driftline(
                *arguments, DRIFTLINE_PROXY=f"http://127.0.0.1:{server.port}", DRIFTLINE_CHECK_ADDED="true"
            )
            printed += line + ended.out + ended.err
    assert _comparable(printed) == _comparable(transcript), f"the README should say:\n{printed}"


def _comparable(text: str) -> str:
    """Return the text without figures, and with neighbouring changes in order: which page answers first is chance."""
    lines = FIGURE.sub("#", text).splitlines()
    runs = [[*some] for _, some in groupby(lines, key=lambda line: line.startswith("changed "))]
    return "\n".join(line for some in runs for line in (sorted(some) if some[0].startswith("changed ") else some))


def test_the_commands_of_the_examples_exist_with_their_options(driftline: Command) -> None:
    for line in re.findall(r"^driftline (.*)", README.read_text(), re.MULTILINE):
        command, *words = shlex.split(line, comments=True)
        help_text = driftline(*([command] if command not in ("visits", "blocklist") else [command, words[0]]), "--help")
        assert help_text.status == 0, line
        for option in (word for word in words if word.startswith("--")):
            assert option in help_text.out, line


def test_the_library_example_prints_what_changed(tmp_path: Path) -> None:
    """The example is taken from the README and run twice, as it stands but for the address."""
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    words = ["first words", "other words"]
    with Server(lambda _: html(words[0])) as server:
        script = example.replace("https://example.com/", server.url("/"))
        runs = []
        for _ in range(2):
            command = [sys.executable, "-W", "error", "-c", script]
            environment = os.environ | {"HOME": str(tmp_path)}
            ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
            assert ran.returncode == 0, ran.stderr
            runs.append(ran.stdout)
            words[0] = words[1]
    assert runs[0] == ""
    assert "-first words" in runs[1]
    assert "+other words" in runs[1]


def test_the_examples_of_the_library_page_run_one_after_the_other(tmp_path: Path) -> None:
    """As they stand but for the address and the intervals. The page changes after the first check."""
    examples = re.findall(r"```python\n(.*?)```", LIBRARY.read_text(), re.DOTALL)
    fetched: list[str] = []

    def page(request: Request) -> Answer:
        fetched.append(request.path)
        return html(f"<main>{'Something else' if len(fetched) > 1 else 'What'} is written here.</main>")

    with Server(page) as server:
        script = "\n".join(examples).replace("https://example.com/", server.url("/"))
        script = script.replace('"30m"', '"1s"').replace("minutes=10", "seconds=1")
        command = [sys.executable, "-W", "error", "-c", script]
        environment = os.environ | {"HOME": str(tmp_path)}
        ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert " new" in ran.stdout
    assert "changed" in ran.stdout.splitlines()[-1]


def test_the_example_is_the_one_in_the_help_of_the_package() -> None:
    """help(driftline) shows the same lines, or lines as short."""
    assert package.__doc__ is not None
    assert 'with driftline.open("pages.db") as pages:' in package.__doc__


def test_every_command_of_the_table_is_there(driftline: Command) -> None:
    """The table of the README names every command, and no other."""
    rows = re.findall(r"^\| (`.*?) \|", README.read_text(), re.MULTILINE)
    commands = {words for row in rows for words in re.findall(r"`(.*?)`", row)}
    shown = driftline("--help").out
    assert commands == set(re.findall(r"^  ([a-z][a-z-]*)  +[A-Z]", shown, re.MULTILINE))
