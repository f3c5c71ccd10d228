"""The process that reads pages for a crawl: `python -m driftline.crawling.worker MEMORY`."""

from __future__ import annotations

import sys

from driftline.crawling.surveying import examine
from driftline.detection.worker import run

if __name__ == "__main__":
    run(int(sys.argv[1]), examine)
