"""Check some pages and print what changed since the last time.

    python examples/print_changes.py https://example.com/ https://example.org/

Run it again, by hand or by cron: the first time there is nothing to compare with. The pages and their versions are kept
in the file pages.db of the current folder.
"""

from __future__ import annotations

import sys

import driftline


def main(urls: list[str]) -> None:
    with driftline.open("pages.db") as pages:
        pages.add(*urls)
        report = pages.check()
        for change in report.changes:
            print(f"{change.url}: {change.reason}")
            print(pages.diff(change.url))
        print(f"{report.pages} checked, {report.changed} changed, {report.failed} failed", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
