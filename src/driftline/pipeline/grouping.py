"""One event for one cause: the same edit on many pages of a host is one event, with its pages."""

from __future__ import annotations

from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

from driftline.durations import utc
from driftline.model.change import LEAST_SCORES, Change, Importance, change_id, check_of
from driftline.model.event import (
    Danger,
    Event,
    EventKind,
    Ignored,
    Turned,
    ignored_headline,
    ignored_reason,
    turn_reason,
)
from driftline.model.outcome import changes_to_report
from driftline.plurals import count

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from driftline.model.change import Edit
    from driftline.model.outcome import Outcome, ReportableChange

    _Found: TypeAlias = Change | Turned | Danger | Ignored

_LONGEST = 120  # characters of a headline
_SITE_WIDE = 5  # pages: an edit beside the content, noise on one page, is news of the site if so many share it


def events_of(
    changes: Iterable[Change], turned: Iterable[Turned] = (), dangers: Iterable[Danger] = (),
    ignored: Iterable[Ignored] = (),
) -> list[Event]:  # fmt: skip
    """Return the events of these changes, of pages that fail or recovered, of warnings, and of what is ignored.

    Edits are the same if they take away and add the same lines. Noise makes an event only if many pages share it, and
    only where it is noise for where it stands: what changes by itself has no cause. A host that is down fails with all
    of its pages, which is one event too, and so are pages of a host that begin to ignore the same part. Events of one
    page are in the order of its checks, though there may be more of them for that: a page reported as failing after it
    recovered would be taken for failing.
    """
    groups: list[list[_Found]] = []
    open_ones: dict[Hashable, int] = {}  # which group takes what has this cause
    latest: dict[int, int] = {}  # and which is the last that has something of a page
    for page, one in _in_order([*changes, *turned, *dangers, *ignored]):
        cause = _cause(one)
        group = open_ones.get(cause, -1)
        if group < latest.get(page, 0):
            group = open_ones[cause] = len(groups)
            groups.append([])
        groups[group].append(one)
        latest[page] = group
    return [event for event in map(_event, groups) if event is not None]


def _in_order(found: list[_Found]) -> list[tuple[int, _Found]]:
    """Return the same, each after its page, those of one page sorted by their checks: they trade places among them."""
    checks = [check_of(one.id) for one in found]
    by_page: dict[int, list[tuple[int, _Found]]] = defaultdict(list)
    for (page, sequence), one in zip(checks, found, strict=True):
        by_page[page].append((sequence, one))
    ordered = {page: iter(sorted(same, key=itemgetter(0))) for page, same in by_page.items()}
    return [(page, next(ordered[page])[1]) for page, _ in checks]


def _cause(one: _Found) -> Hashable:
    """Return a key that is equal for those that are one event."""
    if isinstance(one, Turned):
        # not by its reason: that counts checks and milliseconds, which differ from page to page
        return one.host, one.turn, one.kind, one.status
    if isinstance(one, Change) and one.cause:
        return one.host, one.cause
    if isinstance(one, Ignored):
        return one.host, one.kind, one.label, one.others
    return one.id, type(one), one.kind


def _event(same: Sequence[_Found]) -> Event | None:
    """Return the event of these, which have one cause; None if they are not worth a report."""
    # what matters on one page may be noise on others, and the event is about what matters
    first = min(same, key=lambda one: one.importance.rank if isinstance(one, Change) else 0)
    score, reason = 1.0, first.reason
    edits: tuple[Edit, ...] = ()
    importance = Importance.IMPORTANT  # also that of noise which many pages share
    if isinstance(first, Change):
        if first.importance is Importance.MINOR:
            importance = Importance.MINOR
        elif first.importance is Importance.NOISE and not (first.cause and len(same) >= _SITE_WIDE):
            return None
        what, headline, edits = EventKind.CHANGED, _headline(first, same), first.edits
        score = max(LEAST_SCORES[importance], *(one.score for one in same if isinstance(one, Change)))
    elif isinstance(first, Turned):
        what = EventKind(first.turn)
        headline = reason = turn_reason([one for one in same if isinstance(one, Turned)])
    elif isinstance(first, Ignored):
        parts = [one for one in same if isinstance(one, Ignored)]
        what, headline, reason = EventKind.IGNORING, ignored_headline(parts), ignored_reason(parts)
    else:
        what, headline = EventKind.WARNING, reason
    return Event(
        event=what, at=max(one.at for one in same), host=first.host, urls=tuple(one.url for one in same),
        kind=first.kind, score=score, headline=headline, reason=reason, ids=tuple(one.id for one in same), edits=edits,
        importance=importance,
    )  # fmt: skip


def _headline(first: Change, same: Sequence[_Found]) -> str:
    """Return the headline of the first of these changes, which says so if those of others differ, by what they name."""
    others = [one for one in same if isinstance(one, Change) and one is not first]
    if all(one.headline == first.headline or one.importance is not first.importance for one in others):
        return first.headline
    also = f" (likewise on {count(len(others), 'more page')})"
    room = _LONGEST - len(also)
    return (first.headline if len(first.headline) <= room else f"{first.headline[: room - 1].rstrip()}…") + also


def changes_of(outcomes: Sequence[Outcome]) -> list[Change]:
    """Return what changed by these outcomes: what matters, and noise with a cause that other pages may share."""
    return [_change(found) for found in changes_to_report(outcomes)]


def _change(found: ReportableChange) -> Change:
    document, version, summary = found
    return Change(
        id=change_id(document.link.page_id, document.link.sequence),
        url=document.link.url,
        at=utc(document.fetched_at),
        from_version=version.number - 1,
        to_version=version.number,
        kind=summary.kind,
        importance=summary.importance,
        score=summary.score,
        headline=summary.headline or summary.reason,
        reason=summary.reason,
        cause=summary.cause,
        edits=summary.decisive_edits,
    )
