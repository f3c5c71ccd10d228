"""Watch one element of a page, such as a price, and print its old and its new text.

    python examples/price.py https://example.com/product .price

The element is named by a CSS selector. What changes elsewhere on the page is ignored.
"""

from __future__ import annotations

import sys

import driftline


def main(url: str, selector: str) -> None:
    with driftline.open("prices.db") as pages:
        pages.add(url, filters=[("select", selector)])
        for change in pages.check().changes:
            before, after = (pages.history.version(url, number) for number in (change.from_version, change.to_version))
            print(f"{before.words.strip()} → {after.words.strip()}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
