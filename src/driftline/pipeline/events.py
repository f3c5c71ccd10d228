"""One event for one cause: the same edit on many pages of a host is told once, with its pages."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftline.model import Change, Danger, Matter, Turn, Turned, Verdict, change_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from driftline.model import Outcome

_WARNING = "warning"
_SITE_WIDE = 5  # pages: an edit beside the content, noise on one page, is news of the site if so many share it


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What is told of a run: a change, that pages began to fail or recovered, or a warning; for all that share it.

    `event` says which of them it is, and `at` when the last of its pages was checked. `ids` name the page and the check
    of each of its `urls`: who hears of an event twice knows it by them.
    """

    event: str
    at: float
    host: str
    urls: tuple[str, ...]
    kind: str
    score: float
    reason: str
    ids: tuple[str, ...]

    @property
    def what(self) -> str:
        """What is told of the checks, as the outbox has it: a check may find several dangers, of a kind each."""
        return self.kind if self.event == _WARNING else self.event


def events_of(
    changes: Iterable[Change], turned: Iterable[Turned] = (), dangers: Iterable[Danger] = ()
) -> list[Event]:  # fmt: skip
    """The events that these changes, turns and dangers make, each in the order of their first page.

    Edits are the same if they take away and add the same lines. Noise makes an event only if many pages share it, and
    only where it is noise for where it stands: what changes by itself has no cause. A host that is down fails with all
    of its pages, which is one event too.
    """
    groups: dict[tuple[str, bytes], list[Change]] = defaultdict(list)
    alone = 0
    for change in changes:
        cause = change.cause
        if not cause:
            alone += 1
            cause = alone.to_bytes(4, "little")  # shorter than any cause, so that it is nobody else's
        groups[change.host, cause].append(change)
    return (
        [
            _event(host, same)
            for (host, _), same in groups.items()
            if same[0].verdict is Matter.MEANINGFUL or (same[0].cause and len(same) >= _SITE_WIDE)
        ]
        + [_turn(host, same) for (host, *_), same in _alike(turned).items()]
        + [*map(_warning, dangers)]
    )


def _event(host: str, same: list[Change]) -> Event:
    first = same[0]
    return Event(
        event=Verdict.CHANGED.value, at=max(change.at for change in same),
        host=host, urls=tuple(change.url for change in same), kind=first.kind,
        score=max(change.score for change in same), reason=first.reason, ids=tuple(change.id for change in same),
    )  # fmt: skip


def _alike(turned: Iterable[Turned]) -> dict[tuple[str, Turn, str], list[Turned]]:
    groups: dict[tuple[str, Turn, str], list[Turned]] = defaultdict(list)
    for one in turned:
        groups[one.host, one.turn, one.reason].append(one)
    return groups


def _turn(host: str, same: list[Turned]) -> Event:
    first = same[0]
    return Event(
        event=first.turn.value, at=max(one.at for one in same), host=host, urls=tuple(one.url for one in same),
        kind=first.kind, score=1.0, reason=first.reason, ids=tuple(one.id for one in same),
    )  # fmt: skip


def _warning(danger: Danger) -> Event:
    return Event(
        event=_WARNING, at=danger.at, host=danger.host, urls=(danger.url,), kind=danger.kind.value, score=1.0,
        reason=danger.reason, ids=(danger.id,),
    )  # fmt: skip


def dangers_by(outcomes: Sequence[Outcome]) -> list[Danger]:
    """What looks dangerous on pages for the first time by these outcomes."""
    return [
        Danger(
            id=change_id(outcome.document.link.page_id, outcome.document.link.sequence), url=outcome.document.link.url,
            at=outcome.document.fetched_at, kind=alarm.kind, reason=alarm.sentence,
        )
        for outcome in outcomes
        for alarm in outcome.alarms
    ]  # fmt: skip


def turned_by(outcomes: Sequence[Outcome]) -> list[Turned]:
    """Which pages began to fail or recovered by these outcomes."""
    return [outcome.turned for outcome in outcomes if outcome.turned is not None]


def changes_of(outcomes: Sequence[Outcome]) -> list[Change]:
    """What changed by these outcomes: what matters, and noise with a cause that other pages may share."""
    return [_change(outcome) for outcome in outcomes if outcome.change is not None and outcome.may_be_news]


def _change(outcome: Outcome) -> Change:
    summary, version = outcome.change, outcome.version
    assert summary is not None
    assert version is not None
    return Change(
        id=change_id(outcome.document.link.page_id, outcome.document.link.sequence),
        url=outcome.document.link.url,
        at=outcome.document.fetched_at,
        from_version=version.number - 1,
        to_version=version.number,
        kind=summary.kind,
        verdict=summary.verdict,
        score=summary.score,
        reason=summary.reason,
        cause=summary.cause,
    )
