"""What it means that a job, a group or a chain ended: one check asks the store about many of a kind."""

from __future__ import annotations

from msgspec import Struct

from ropewalk.client.awaited_groups import AwaitedGroups
from ropewalk.client.waiter import CheckAnswer
from ropewalk.domain.jobs.flags import CONTINUED
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.workflows import GroupRecord


class JobCompletion:
    what = "job"

    def __init__(self, store: Store) -> None:
        self._store = store

    async def __call__(self, tenant: str, ids: list[str]) -> dict[str, CheckAnswer[JobRecord]]:
        found = (await self._store.get(tenant, ids)).jobs
        return {job_id: CheckAnswer(job if job.terminal else None) for job_id, job in found.items()}


class ClosedGroupRecord(Struct, frozen=True):
    """A group that closed: its root, and what is kept about it where it has more than that."""

    root: JobRecord
    record: GroupRecord | None


class GroupCompletion:
    """A group without a record is only its root. Whoever waits is made known first, so that it is no orphan."""

    what = "group"

    def __init__(self, store: Store, awaited: AwaitedGroups) -> None:
        self._store = store
        self._groups = WORKFLOWS.of(store)
        self._awaited = awaited

    async def __call__(self, tenant: str, ids: list[str]) -> dict[str, CheckAnswer[ClosedGroupRecord]]:
        roots = (await self._store.get(tenant, ids)).jobs
        await self._awaited.tell(self._groups, tenant, list(roots.values()))
        # In this order: a root that had ended has queued by then whatever it will ever queue.
        ended = [job_id for job_id, job in roots.items() if job.terminal]
        records = await self._groups.groups(tenant, ended) if ended else {}
        return {job_id: CheckAnswer(_closed(job, records.get(job_id))) for job_id, job in roots.items()}


class ChainCompletion:
    """A chain ends with a member that ends without continuing; until then its last member is the one to watch."""

    what = "chain"

    def __init__(self, store: Store) -> None:
        self._store = WORKFLOWS.of(store)

    async def __call__(self, tenant: str, ids: list[str]) -> dict[str, CheckAnswer[JobRecord]]:
        seen: dict[str, CheckAnswer[JobRecord]] = {}
        for job_id in ids:
            members = await self._store.chain(tenant, job_id, last=1)
            if members:
                seen[job_id] = _end(job_id, members[-1])
        return seen


def _end(job_id: str, last: JobRecord) -> CheckAnswer[JobRecord]:
    if last.flags & CONTINUED:
        gone = f"the last job of the chain of {job_id} is gone (deleted, or pruned after its retention), and its result"
        return CheckAnswer(gone=gone)
    return CheckAnswer(last) if last.terminal else CheckAnswer(watch=last.id)


def _closed(root: JobRecord, record: GroupRecord | None) -> ClosedGroupRecord | None:
    if not root.terminal or (record is not None and record.closed_at is None):
        return None
    return ClosedGroupRecord(root, record)
