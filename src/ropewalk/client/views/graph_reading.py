"""Reads the jobs that belong together, and the edges between them, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from ropewalk.client.views.workflows import EdgeInfo, edge_info
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import State
from ropewalk.domain.search import Filter, Order
from ropewalk.domain.time import Instant
from ropewalk.ports.store.core import Store

PAGE: Final = 1000
UNFINISHED: Final = (State.PENDING, State.DELAYED, State.RETRYING, State.SCHEDULED, State.RUNNING)


async def jobs_of(
    store: Store, tenant: str, wanted: Filter, limit: int | None = None
) -> AsyncIterator[tuple[JobRecord, Instant]]:
    """In the order they were queued, each with the clock it was read at."""
    cursor, left = None, limit
    while left is None or left > 0:
        size = PAGE if left is None else min(PAGE, left)
        page = await store.search(tenant, wanted, order=Order.CREATED_ASC, cursor=cursor, limit=size)
        for job in page.jobs:
            yield job, page.now
        cursor = page.next_cursor
        left = None if left is None else left - len(page.jobs)
        if cursor is None:
            return


async def edges_of(store: Store, jobs: Sequence[JobRecord]) -> list[EdgeInfo]:
    """What these jobs wait for, or waited for."""
    ids = {job.seq: job.id for job in jobs if job.gate is not None}
    edges: list[EdgeInfo] = []
    seqs = list(ids)
    for start in range(0, len(seqs), PAGE):
        found = await store.edges(seqs[start : start + PAGE])
        edges.extend(edge_info(edge, ids[edge.seq]) for edge in found)
    return edges


async def dependants_of(store: Store, tenant: str, parents: Sequence[JobRecord]) -> list[JobRecord]:
    """Unfinished jobs that depend on these, directly or through others; not among them themselves.

    Looks through everything unfinished: for refusals and deletions, where being complete matters and speed does not.
    """
    waiting = [job async for job, _ in jobs_of(store, tenant, Filter(states=UNFINISHED)) if job.gate is not None]
    by_seq = {job.seq: job for job in waiting}
    seqs = list(by_seq)
    edges = [e for start in range(0, len(seqs), PAGE) for e in await store.edges(seqs[start : start + PAGE])]
    reached = {job.seq for job in parents}
    found: dict[int, JobRecord] = {}
    grown = True
    while grown:
        new = {edge.seq for edge in edges if edge.parent in reached and edge.seq not in reached}
        found.update({seq: by_seq[seq] for seq in new})
        reached |= new
        grown = bool(new)
    return list(found.values())
