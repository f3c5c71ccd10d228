"""Find and watch all pages of a site, and print which are new, gone or changed.

    python examples/whole_site.py https://example.com/

The first crawl finds every page new. Later ones report the differences to the crawl before.
"""

from __future__ import annotations

import sys

import driftline


def main(seed: str) -> None:
    with driftline.open("site.db") as pages:
        report = pages.crawl(seed, watch=True, tag="site", most=500)
        for name, urls in (("new", report.new), ("gone", report.gone), ("changed", report.changed)):
            for url in urls:
                print(name, url)
        print(f"{report.pages} pages, {len(pages.pages(tag='site'))} watched", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
