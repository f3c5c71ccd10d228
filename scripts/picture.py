"""Draws docs/at-work.svg: a real session with the command, on the simulated web.

python scripts/picture.py docs/at-work.svg
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

import driftline
from driftline.lab.simweb.simweb_client import serve
from driftline.lab.simweb.world import World

WIDTH = 108
WORLD = World(pages=2_000, hosts=200, change_rate=0.002, error_rate=0.0005, seed=4)


def main(target: Path) -> None:
    """Run the session and draw what it printed."""
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    with tempfile.TemporaryDirectory() as folder, serve(WORLD) as web:
        listed = Path(folder) / "pages.txt"
        listed.write_text("".join(f"{url}\n" for url in web.urls()))
        show(console, folder, "import", "pages.txt", "--tag", "lab")
        show(console, folder, "check")
        web.generation(1)
        show(console, folder, "check")
        with driftline.open(f"{folder}/pages.db") as pages:
            changed = [page.url for page in pages.pages() if page.versions > 1]
            shortest = min(changed, key=lambda url: len(pages.diff(url)))
        show(console, folder, "diff", shortest, "--words")
    console.save_svg(str(target), title="driftline")


def show(console: Console, folder: str, *words: str) -> None:
    """One command with its output, colours and all."""
    console.print(Text.assemble(("$ ", "bold green"), ("driftline " + " ".join(words), "bold")))
    environment = os.environ | {
        "FORCE_COLOR": "1",
        "COLUMNS": str(WIDTH),
        "DRIFTLINE_STORE": "pages.db",
        "HOME": folder,
    }
    command = [sys.executable, "-m", "driftline", *words]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=True)
    console.print(Text.from_ansi(ran.stdout))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
