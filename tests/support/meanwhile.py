"""What somebody else does in the middle of a transaction, without a guess at how long it takes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from sqlalchemy import event, text

from driftline.store.engine import Store

_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@contextmanager
def meanwhile(store: Store, statement: str, other: Callable[[], object], *, time: int = 1) -> Iterator[None]:
    """Right before this store runs a statement that begins so, for the first time or a later one, another begins this.

    The statement is run once that is done, or waits for what the transaction holds. At the end both are done; what the
    other raised is raised.
    """
    raised: list[Exception] = []
    times = count(1)

    def do() -> None:
        try:
            other()
        except Exception as error:  # noqa: BLE001 raised by the test's own thread
            raised.append(error)

    thread = threading.Thread(target=do)

    def before(_connection: object, _cursor: object, sql: str, *_rest: object) -> None:
        if not sql.startswith(statement) or next(times) != time:
            return
        thread.start()
        while thread.is_alive() and not _somebody_waits(store):
            thread.join(0.01)

    event.listen(store.engine, "before_cursor_execute", before)
    try:
        yield
    finally:
        event.remove(store.engine, "before_cursor_execute", before)
        if thread.ident is not None:
            thread.join()
    assert thread.ident is not None, f"nothing began with {statement}"
    if raised:
        raise raised[0]


def _somebody_waits(store: Store) -> bool:
    with store.engine.connect() as connection:
        return bool(connection.scalar(text(_WAITING)))
