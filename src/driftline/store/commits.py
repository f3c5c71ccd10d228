"""Transactions that are made exactly once, although a server may be lost before it says whether it made them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from sqlalchemy import text

from driftline.errors import StoreLocked
from driftline.store.locks import patiently

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from driftline.store.engine import Store

_Result = TypeVar("_Result")

_NUMBER = text("SELECT txid_current()")
_STATUS = text("SELECT txid_status(:number)")


def write_once(
    store: Store, do: Callable[[Connection], _Result], stopped: Callable[[], bool] = lambda: True
) -> _Result:
    """Return what `do` returned in a transaction that was committed once, trying again as `patiently` does.

    If the connection is lost at the commit, PostgreSQL is asked what became of the transaction: what was committed is
    not done again. SQLite always says whether it committed.
    """
    attempt = _Attempt(store, do)
    return patiently(attempt.make, stopped)


class _Attempt(Generic[_Result]):
    """One transaction, made until it is known to be committed."""

    def __init__(self, store: Store, do: Callable[[Connection], _Result]) -> None:
        self._store = store
        self._do = do
        self._unsure: tuple[int, _Result] | None = None  # the number of a transaction, and what was done in it

    def make(self) -> _Result:
        if self._unsure is not None:
            number, result = self._unsure
            if _was_committed(self._store, number):
                return result
            self._unsure = None
        with self._store.write() as connection:
            on_server = self._store.path is None
            number = connection.scalar(_NUMBER) if on_server else 0
            result = self._do(connection)
            if on_server:
                self._unsure = number, result
        return result


def _was_committed(store: Store, number: int) -> bool:
    """Whether this transaction was committed; StoreLocked while the server is still at it."""
    with store.read() as connection:
        status = connection.scalar(_STATUS, {"number": number})
    if status == "in progress":
        raise StoreLocked(f"The store '{store.where}' is still busy with a commit of a connection that was lost.")
    return bool(status == "committed")
