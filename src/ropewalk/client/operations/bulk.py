"""One action over many jobs: bounded work per transaction, nothing touched twice, a dry run that touches nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from ropewalk.client.filter import Filter, in_domain
from ropewalk.client.views.answers import BulkResult
from ropewalk.domain.search import Order
from ropewalk.ports.store.core import Store

BATCH: Final = 1000

Action: TypeAlias = Callable[[Sequence[str], BulkResult], Awaitable[None]]


async def in_bulk(store: Store, tenant: str, jobs: Sequence[str] | Filter, act: Action, *, dry_run: bool) -> BulkResult:
    result = BulkResult()
    async for ids in _chunks(store, tenant, jobs):
        result.requested += len(ids)
        if not dry_run:
            await act(ids, result)
    return result


async def _chunks(store: Store, tenant: str, jobs: Sequence[str] | Filter) -> AsyncIterator[Sequence[str]]:
    if not isinstance(jobs, Filter):
        for start in range(0, len(jobs), BATCH):
            yield jobs[start : start + BATCH]
        return
    cursor = None
    while True:
        page = await store.search(tenant, in_domain(jobs), order=Order.CREATED_ASC, cursor=cursor, limit=BATCH)
        if page.jobs:
            yield [job.id for job in page.jobs]
        cursor = page.next_cursor
        if cursor is None:
            return
