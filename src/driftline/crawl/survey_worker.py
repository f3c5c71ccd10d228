"""The process that reads pages for a crawl: `python -m driftline.crawl.survey_worker MEMORY`."""

from __future__ import annotations

import sys

from driftline.crawl.survey import survey_page
from driftline.detection.worker import run

if __name__ == "__main__":
    run(int(sys.argv[1]), survey_page)
