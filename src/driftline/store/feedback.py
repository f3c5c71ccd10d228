"""Feedback of the user on changes: stored beside the change, and in the noise memories of its page and host.

Also the parts of pages that are ignored since a change, because of what was learned: feedback has them reported again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, delete, insert, select

from driftline.durations import utc
from driftline.errors import UnknownChange, UsageError
from driftline.model.change import Feedback, Importance, NoiseKind, change_id
from driftline.model.event import Ignored
from driftline.model.outcome import Failed
from driftline.noise_memory import Memory
from driftline.store.locks import lock_memories
from driftline.store.schema import changes, feedback, ignored, memories, pages
from driftline.store.statements import host_memories_of
from driftline.urls import host_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from sqlalchemy import Connection, Row, Select

    from driftline.model.outcome import Document, IgnoredParts, Outcome
    from driftline.store.engine import Store

_ID = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_KEY = 8  # bytes


class ChangeKey(NamedTuple):
    """The change with a given id: its page and check, and the versions before and after it."""

    url: str
    page_id: int
    sequence: int
    from_version: int
    to_version: int


def find_change(store: Store, name: str) -> ChangeKey:
    """Return the change of that id; UsageError if it cannot be one, UnknownChange if there is none."""
    parts = _ID.fullmatch(name.strip())
    if parts is None:
        raise UsageError(f"'{name}' is not the id of a change, such as 12-5: 'driftline changes' shows them.")
    query = (
        select(pages.c.url, changes.c.page_id, changes.c.sequence, changes.c.from_version, changes.c.to_version)
        .join(pages, pages.c.id == changes.c.page_id)
        .where(and_(changes.c.page_id == int(parts[1]), changes.c.sequence == int(parts[2])))
    )
    with store.read() as connection:
        row = connection.execute(query).first()
    if row is None:
        raise UnknownChange(
            f"There is no change {name}: 'driftline changes' and 'driftline history URL' show the ids of changes."
        )
    return ChangeKey(*row)


def insert_ignored(connection: Connection, outcomes: Sequence[Outcome]) -> list[Ignored]:
    """Insert which parts of pages are ignored since these checks. Returns those that are to be reported."""
    rows = [
        {
            "page_id": document.link.page_id, "sequence": document.link.sequence, "label": parts.label,
            "example": parts.example, "others": parts.others, "kind": parts.noise.value,
            "page_keys": b"".join(parts.page_keys), "host_keys": b"".join(parts.host_keys),
            "is_news": parts.is_news,
        }
        for document, parts in _with_ignored(outcomes)
    ]  # fmt: skip
    connection.execute(insert(ignored), rows)
    return ignored_by(outcomes)


def ignored_by(outcomes: Sequence[Outcome]) -> list[Ignored]:
    """Return which parts of pages are ignored since these checks and are to be reported."""
    return [
        Ignored(
            id=change_id(document.link.page_id, document.link.sequence), url=document.link.url,
            at=utc(document.fetched_at), label=parts.label, example=parts.example, others=parts.others,
            kind=parts.noise,
        )
        for document, parts in _with_ignored(outcomes)
        if parts.is_news
    ]  # fmt: skip


def _with_ignored(outcomes: Sequence[Outcome]) -> list[tuple[Document, IgnoredParts]]:
    taught = [
        (outcome.document, outcome.examined.lesson) for outcome in outcomes
        if not isinstance(outcome, Failed) and outcome.examined is not None
    ]  # fmt: skip
    return [(document, lesson.ignored) for document, lesson in taught if lesson is not None and lesson.ignored]


def stored_ignored(url: str, row: Row[Any]) -> Ignored:
    """Return the parts of a page that are ignored since a check, from a row that has both."""
    return Ignored(
        id=change_id(row.page_id, row.sequence), url=url, at=utc(row.at), label=row.label, example=row.example,
        others=row.others, kind=NoiseKind(row.ignored_kind),
    )  # fmt: skip


def keys_of_ignored(store: Store, change: ChangeKey) -> tuple[set[bytes], set[bytes]] | None:
    """Return the keys, for page and host, of the parts that are ignored since a change; None if there are none."""
    this = and_(ignored.c.page_id == change.page_id, ignored.c.sequence == change.sequence)
    with store.read() as connection:
        row = connection.execute(select(ignored.c.page_keys, ignored.c.host_keys).where(this)).first()
    return None if row is None else (_split(row.page_keys), _split(row.host_keys))


def remember(
    store: Store,
    change: ChangeKey,
    keys: Collection[bytes],
    host_keys: Collection[bytes],
    importance: Importance,
    at: float,
) -> None:
    """Store feedback on a change, in place of earlier feedback, and pin its keys in the memories."""
    row = {
        "page_id": change.page_id, "sequence": change.sequence, "at": at, "importance": importance.value,
        "page_keys": b"".join(sorted(keys)), "host_keys": b"".join(sorted(host_keys)),
    }  # fmt: skip
    with store.write() as connection:
        _lock(connection, change)
        _withdraw(store, connection, change)
        connection.execute(insert(feedback).values(row))
        _rewrite(store, connection, change, lambda memory: memory.pin(keys, importance))
        _rewrite_host(store, connection, host_of(change.url), lambda memory: memory.pin(host_keys, importance))


def withdraw(store: Store, change: ChangeKey) -> bool:
    """Remove the feedback on a change, but not that on others. Returns whether there was any."""
    with store.write() as connection:
        _lock(connection, change)
        return _withdraw(store, connection, change)


def keys_on_hosts(connection: Connection, page_ids: Sequence[int]) -> dict[str, set[bytes]]:
    """Return by host the keys in its memory that come from feedback on these pages."""
    found: dict[str, set[bytes]] = {}
    for row in connection.execute(_all_feedback().where(feedback.c.page_id.in_(page_ids))):
        found.setdefault(host_of(row.url), set()).update(_split(row.host_keys))
    return found


def forget_on_hosts(store: Store, connection: Connection, keys: Mapping[str, set[bytes]]) -> None:
    """Remove the feedback on removed pages from the memories of their hosts, but not that on other pages."""
    if not keys:
        return
    lock_memories(connection)
    left = connection.execute(_all_feedback().order_by(feedback.c.at)).all()
    for host, gone in keys.items():
        _unpin_on_host(store, connection, host, gone, left)


def all_said(store: Store) -> list[Feedback]:
    """Return all feedback, the latest first."""
    with store.read() as connection:
        rows = connection.execute(
            _all_feedback().order_by(feedback.c.at.desc(), feedback.c.page_id, feedback.c.sequence)
        )
        return [
            Feedback(
                change=change_id(row.page_id, row.sequence), url=row.url, at=utc(row.at),
                importance=Importance(row.importance), found=Importance(row.found), reason=row.reason,
            )
            for row in rows
        ]  # fmt: skip


def _lock(connection: Connection, change: ChangeKey) -> None:
    """Lock the page against removal, and the memories of it and its host against changes by others."""
    this = select(pages.c.id).where(pages.c.id == change.page_id)
    connection.execute(this.with_for_update(read=True, key_share=True))
    lock_memories(connection)


def _withdraw(store: Store, connection: Connection, change: ChangeKey) -> bool:
    this = and_(feedback.c.page_id == change.page_id, feedback.c.sequence == change.sequence)
    columns = feedback.c.page_keys, feedback.c.host_keys
    gone = connection.execute(delete(feedback).where(this).returning(*columns)).first()
    if gone is None:
        return False
    left = connection.execute(_all_feedback().order_by(feedback.c.at)).all()
    same_page = [row for row in left if row.page_id == change.page_id]
    keys, host_keys = map(_split, gone)
    _rewrite(store, connection, change, lambda memory: _unpin(memory, keys, same_page, "page_keys"))
    _unpin_on_host(store, connection, host_of(change.url), host_keys, left)
    return True


def _unpin_on_host(
    store: Store, connection: Connection, host: str, keys: set[bytes], left: Sequence[Row[tuple[str]]]
) -> None:
    same_host = [row for row in left if host_of(row.url) == host]
    _rewrite_host(store, connection, host, lambda memory: _unpin(memory, keys, same_host, "host_keys"))


def _unpin(memory: Memory, keys: set[bytes], left: Sequence[Row[tuple[str]]], column: str) -> None:
    memory.unpin(keys)
    for other in left:
        # there may be the same feedback on another change, or the opposite before
        memory.pin(keys & _split(getattr(other, column)), Importance(other.importance))


def _all_feedback() -> Select[tuple[str]]:
    this_change = and_(changes.c.page_id == feedback.c.page_id, changes.c.sequence == feedback.c.sequence)
    return (
        select(feedback, pages.c.url, changes.c.importance.label("found"), changes.c.reason)
        .join(pages, pages.c.id == feedback.c.page_id)
        .join(changes, this_change)
    )


def _rewrite(store: Store, connection: Connection, change: ChangeKey, edit: Callable[[Memory], None]) -> None:
    data = connection.scalar(select(memories.c.data).where(memories.c.page_id == change.page_id))
    memory = Memory(data or b"")
    edit(memory)
    store.statements.memory.many(connection, [(change.page_id, memory.to_bytes())])


def _rewrite_host(store: Store, connection: Connection, host: str, edit: Callable[[Memory], None]) -> None:
    memory = Memory(host_memories_of(connection, [host]).get(host, b""))
    edit(memory)
    store.statements.host_memory.many(connection, [(host, memory.to_bytes())])


def _split(keys: bytes) -> set[bytes]:
    return {keys[start : start + _KEY] for start in range(0, len(keys), _KEY)}
