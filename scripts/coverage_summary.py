"""Print how many lines of each package the tests ran, from the file that SlipCover wrote.

python scripts/coverage_summary.py FILE

Only lines that ran inside the test processes count. The command, started as a program by the acceptance tests, and the
worker processes that read pages are tested too, but not counted.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

ROOT = Path("src/driftline")
COLUMNS = 3


def main(report: Path) -> None:
    """Print a percentage for each package, a few to a line, and the total."""
    run: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for name, counts in json.loads(report.read_text())["files"].items():
        parts = Path(name).relative_to(ROOT).parts
        package = parts[0] if len(parts) > 1 else "(top)"
        run[package] += len(counts["executed_lines"])
        lines[package] += len(counts["executed_lines"]) + len(counts["missing_lines"])
    cells = [f"{package:<12}{run[package] / lines[package]:>6.1%}" for package in sorted(lines) if lines[package]]
    print("Coverage: lines run inside the test processes")
    for start in range(0, len(cells), COLUMNS):
        print("  " + "    ".join(cells[start : start + COLUMNS]))
    print(f"  {'total':<12}{run.total() / lines.total():>6.1%} of {lines.total():,} lines")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
