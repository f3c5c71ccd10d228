"""A user's word on a change: kept with the change, and remembered for its page and its host."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import and_, select, update

from driftline.errors import UnknownChange
from driftline.memory import Memory
from driftline.model import Matter
from driftline.versions.schema import changes, memories, pages
from driftline.versions.statements import host_memories_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from driftline.versions.store import Store

_ID = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_SAID = {Matter.NOISE: "You called it noise.", Matter.MEANINGFUL: "You said that it matters."}


class Named(NamedTuple):
    """The change that an id names: where it was found, and between which versions."""

    url: str
    page_id: int
    sequence: int
    from_version: int
    to_version: int


def find_change(store: Store, name: str) -> Named:
    """The change of that id; UnknownChange if there is none."""
    parts = _ID.fullmatch(name.strip())
    if parts is None:
        raise UnknownChange(f"'{name}' is not the id of a change: 'driftline history URL' shows them, such as 12-5.")
    query = (
        select(pages.c.url, changes.c.page_id, changes.c.sequence, changes.c.from_version, changes.c.to_version)
        .join(pages, pages.c.id == changes.c.page_id)
        .where(and_(changes.c.page_id == int(parts[1]), changes.c.sequence == int(parts[2])))
    )
    with store.read() as connection:
        row = connection.execute(query).first()
    if row is None:
        raise UnknownChange(f"There is no change {name}: 'driftline history URL' shows those of a page.")
    return Named(*row)


def remember(
    store: Store, change: Named, keys: Collection[bytes], by_host: Mapping[str, Collection[bytes]], matter: Matter
) -> None:
    """Keep what the user says of a change, and pin its keys in the memories of its page and its host."""
    this_change = and_(changes.c.page_id == change.page_id, changes.c.sequence == change.sequence)
    with store.write() as connection:
        data = connection.scalar(select(memories.c.data).where(memories.c.page_id == change.page_id))
        memory = Memory(data or b"")
        memory.pin(keys, matter)
        store.statements.memory.many(connection, [(change.page_id, memory.to_bytes())])
        stored = host_memories_of(connection, by_host)
        for host, shared in by_host.items():
            memory = Memory(stored.get(host, b""))
            memory.pin(shared, matter)
            store.statements.host_memory.many(connection, [(host, memory.to_bytes())])
        score = 0.0 if matter is Matter.NOISE else 1.0
        said = update(changes).where(this_change).values(verdict=matter.value, reason=_SAID[matter], score=score)
        connection.execute(said)
