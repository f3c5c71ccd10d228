"""What a store has to report."""

from __future__ import annotations

from driftline import Driftline, Stop
from driftline.api import workspace_of
from driftline.pipeline.grouping import events_of


def published_urls(pages: Driftline) -> list[str]:
    """Publish what is in the outbox, and name the page of each change, once for each event that it is in."""
    log = workspace_of(pages).event_log(Stop())  # which waits for a store that is away
    before = {event.id for event in log.list()}
    log.publish(events_of)
    events = [event for event in log.list() if event.id not in before]
    return [url for event in events if event.event == "changed" for url in event.urls]
