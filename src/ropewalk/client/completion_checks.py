"""What it means that a job, a group or a chain ended: one look at the store for many of a kind."""

from __future__ import annotations

from msgspec import Struct

from ropewalk.client.awaited_groups import Awaited
from ropewalk.client.waiter import Seen
from ropewalk.domain.jobs.flags import REPORT_ORPHAN
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.messages import GroupRecord


class JobLook:
    what = "job"

    def __init__(self, store: Store) -> None:
        self._store = store

    async def __call__(self, tenant: str, ids: list[str]) -> dict[str, Seen[JobRecord]]:
        found = (await self._store.get(tenant, ids)).jobs
        return {job_id: Seen(job if job.terminal else None) for job_id, job in found.items()}


class ClosedGroupRecord(Struct, frozen=True):
    """A group that closed: its root, and what is kept about it where it has more than that."""

    root: JobRecord
    record: GroupRecord | None


class GroupLook:
    """A group without a record is only its root. Whoever waits is made known first, so that it is no orphan."""

    what = "group"

    def __init__(self, store: Store, awaited: Awaited) -> None:
        self._store = store
        self._awaited = awaited

    async def __call__(self, tenant: str, ids: list[str]) -> dict[str, Seen[ClosedGroupRecord]]:
        roots = (await self._store.get(tenant, ids)).jobs
        for root in roots.values():
            if root.flags & REPORT_ORPHAN:
                await self._awaited.tell(self._store, tenant, root.id)
        # In this order: a root that had ended has queued by then whatever it will ever queue.
        ended = [job_id for job_id, job in roots.items() if job.terminal]
        records = await self._store.groups(tenant, ended) if ended else {}
        return {job_id: Seen(_closed(job, records.get(job_id))) for job_id, job in roots.items()}


class ChainLook:
    """A chain ends with a member that ends without continuing; until then its last member is the one to watch."""

    what = "chain"

    def __init__(self, store: Store) -> None:
        self._store = store

    async def __call__(self, tenant: str, ids: list[str]) -> dict[str, Seen[JobRecord]]:
        seen: dict[str, Seen[JobRecord]] = {}
        for job_id in ids:
            members = await self._store.chain(tenant, job_id, last=1)
            if members:
                last = members[-1]
                seen[job_id] = Seen(last) if last.terminal else Seen(watch=last.id)
        return seen


def _closed(root: JobRecord, record: GroupRecord | None) -> ClosedGroupRecord | None:
    if not root.terminal or (record is not None and record.closed_at is None):
        return None
    return ClosedGroupRecord(root, record)
