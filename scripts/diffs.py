"""Renders differences of labelled real pages as `diff --html` does, and takes pictures of them in Chromium.

python scripts/diffs.py CORPUS FOLDER [PAIR...]

CORPUS is a folder as `driftline lab detection` reads it. Without pairs, twenty that matter are taken: of as many hosts,
from the smallest to the largest. Chromium must be on the path; it renders at the width of a desktop and of a phone.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

from driftline.detection.diff.html_diff import render
from driftline.detection.diff.markup import kinds_between
from driftline.detection.diff.tables import cells_between
from driftline.detection.extract.document import Extraction
from driftline.model.outcome import Version

PAIRS = 20
WINDOWS = {"desk": "1100,1400", "phone": "420,900"}


def main(corpus: Path, folder: Path, *wanted: str) -> None:
    """Render the pairs into the folder, with a picture of each."""
    folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("There is no chromium on the path: the package is called 'chromium' on Debian.")
    pairs = [json.loads(line) for line in (corpus / "pairs.jsonl").read_text().splitlines()]
    for pair in [pair for pair in pairs if pair["id"] in wanted] if wanted else chosen(corpus, pairs):
        old, new = (version(corpus, pair, side, number) for number, side in enumerate(("before", "after"), 1))
        page = folder / f"{pair['id']}.html"
        page.write_text(render(old, new, kinds_between(old, new), cells=cells_between(old, new)), encoding="utf-8")
        for name, window in WINDOWS.items():
            photograph(chromium, page, page.with_name(f"{pair['id']}-{name}.png"), window)
        print(f"{pair['id']}  {pair['page']}  {page.stat().st_size:,} bytes")


def chosen(corpus: Path, pairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Pairs that matter, one of a host, evenly from the smallest to the largest."""
    hosts = {pair["host"]: pair for pair in pairs if pair["label"] == "meaningful"}
    ordered = sorted(hosts.values(), key=lambda pair: (corpus / "pairs" / pair["after"]).stat().st_size)
    last = len(ordered) - 1
    return [ordered[last * step // (PAIRS - 1)] for step in range(PAIRS)] if len(ordered) > PAIRS else ordered


def version(corpus: Path, pair: dict[str, Any], side: str, number: int) -> Version:
    """One side of a pair, read as a check would."""
    body = (corpus / "pairs" / pair[side]).read_bytes()
    reading = Extraction(body, "text/html")
    title = reading.title()
    address = pair["page"].split("/", 1)[1]
    at = datetime.fromisoformat(pair[f"time_{side}"]).timestamp()
    return Version(
        url=address, number=number, at=at, size=len(body), title=title, content_type="text/html",
        charset=reading.charset, final_url=address, body=body, text=reading.text().encode("utf-8", "replace"),
    )  # fmt: skip


def photograph(chromium: str, page: Path, picture: Path, window: str) -> None:
    """What the window shows of the page when it is opened."""
    with tempfile.TemporaryDirectory() as profile:
        command = [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
            f"--user-data-dir={profile}", f"--window-size={window}",
            f"--screenshot={picture.resolve()}", page.resolve().as_uri(),
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
