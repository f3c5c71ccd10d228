"""Print the history of a watched page, and write its newest change as an HTML document.

    python examples/history.py pages.db https://example.com/ change.html

The file pages.db is one that `driftline add URL --store pages.db` or print_changes.py made.
"""

from __future__ import annotations

import sys
from pathlib import Path

import driftline


def main(store: str, url: str, target: Path) -> None:
    with driftline.open(store) as pages:
        for check in pages.history.checks(url):
            when = check.at.astimezone()
            print(f"{when:%Y-%m-%d %H:%M}  {check.verdict}  {check.change.reason if check.change else ''}".rstrip())
        if pages.history.version(url).number > 1:
            target.write_text(pages.history.html_diff(url), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
