"""What looks dangerous on watched pages, as they stand: warnings, which block nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, select

from driftline.model import FailureKind, Warned, WarningKind, host_of
from driftline.safety.lookalikes import look_alikes, shown
from driftline.versions.batches import in_batches
from driftline.versions.schema import states, versions, warnings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from driftline.model import Page
    from driftline.versions.store import Store


def warnings_of(
    store: Store, listed: Sequence[Page], hosts: Callable[[], set[str]]
) -> dict[int, list[Warned]]:  # fmt: skip
    """What looks dangerous on these pages, by page: what was found since the version in force, and what they are.

    `hosts` gives the hosts of all pages.
    """
    found: dict[int, list[Warned]] = {}
    for page, warned in [*_stored(store, listed), *_by_certificate(listed), *_by_name(listed, hosts)]:
        found.setdefault(page, []).append(warned)
    return found


def _stored(store: Store, listed: Sequence[Page]) -> list[tuple[int, Warned]]:
    in_force = and_(versions.c.page_id == states.c.page_id, versions.c.number == states.c.version)
    query = (
        select(warnings.c.page_id, warnings.c.kind, warnings.c.reason)
        .join(states, states.c.page_id == warnings.c.page_id)
        .join(versions, in_force)
        .where(warnings.c.sequence >= versions.c.sequence)
        .order_by(warnings.c.page_id, warnings.c.sequence, warnings.c.kind)
    )
    with store.read() as connection:
        return [
            (row.page_id, Warned(WarningKind(row.kind), row.reason))
            for some in in_batches(page.id for page in listed)
            for row in connection.execute(query.where(warnings.c.page_id.in_(some)))
        ]


def _by_certificate(listed: Sequence[Page]) -> list[tuple[int, Warned]]:
    return [
        (page.id, Warned(WarningKind.CERTIFICATE, page.failure.sentence))
        for page in listed
        if page.failure is not None and page.failure.kind is FailureKind.TLS and "certificate" in page.failure.sentence
    ]


def _by_name(listed: Sequence[Page], hosts: Callable[[], set[str]]) -> list[tuple[int, Warned]]:
    """The pages of hosts that look like another host that is watched."""
    suspects = [(page, host_of(page.url)) for page in listed if "xn--" in page.url]
    if not suspects:
        return []
    alike = look_alikes(hosts() | {host for _, host in suspects})
    return [
        (page.id, Warned(WarningKind.LOOK_ALIKE, f"The host {shown(host)} ({host}) looks like {alike[host]}."))
        for page, host in suspects
        if host in alike
    ]
