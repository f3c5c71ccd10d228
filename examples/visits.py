"""Count visits to pages, and print the pages ranked by them.

    python examples/visits.py visits.csv

The CSV file has a line for each visit: url, time, seconds, available. A Chrome, Edge or Firefox history works too.
Importing a file again counts only the visits that were added to it since.
"""

from __future__ import annotations

import sys

import driftline


def main(file: str) -> None:
    with driftline.open("visits.db") as pages:
        pages.visits.import_file(file)
        print("visits  seconds  available  page")
        for page in pages.rank(by="intelligent"):
            print(f"{page.frequency:6}  {page.weightage:7.0f}  {page.ttl:9}  {page.url}")


if __name__ == "__main__":
    main(sys.argv[1])
