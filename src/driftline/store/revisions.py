"""Whether the watch list is still as it was read: a counter that every transaction increments which changes it.

Databases can tell whether anything was written, but during a run something is written several times a second: who read
the watch list would read it again all the time. Checks change what is known of a page too, and whoever makes them
begins a run first: the newest run tells that somebody else may have checked pages. An older run that goes on, and the
end of any run, complete or not, increment the counter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select, update

from driftline.store.schema import CONTINUED, counters, runs

if TYPE_CHECKING:
    from sqlalchemy import Connection

WATCH_LIST = "watch_list"
_THIS = counters.c.name == WATCH_LIST
_INCREMENT = update(counters).where(_THIS).values(number=counters.c.number + 1)
_NUMBER = select(counters.c.number).where(_THIS).scalar_subquery()
_REVISION = select(_NUMBER, runs.c.id, runs.c.finished_at).where(runs.c.scope != CONTINUED)
_REVISION = _REVISION.order_by(runs.c.id.desc()).limit(1)


def count_revision(connection: Connection) -> None:
    """Tell those who have read the watch list that this transaction changes it: pages, their intervals, visits, runs.

    To be called once, after everything else: all who change the watch list wait from here on until this one is done.
    """
    connection.execute(_INCREMENT)


def revision(connection: Connection) -> tuple[object, ...]:
    """Return what differs once the watch list was changed, or a run began, went on or ended."""
    newest = connection.execute(_REVISION).first()
    return tuple(newest) if newest is not None else (connection.scalar(select(_NUMBER)),)
