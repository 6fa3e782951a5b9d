"""What it means that a job, a group or a chain ended: one look at the store for many of a kind.

Which groups somebody waits for: known to the store while it lasts, and in this process a little longer.

A group can close between the moment its root was queued and the moment the store hears of the wait. In one process that
is told apart here: whoever waited just now is no reason to call the group an orphan.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

from ropewalk.client.waiter import Seen
from ropewalk.domain.jobs.flags import CONTINUED, REPORT_ORPHAN
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import SECOND, Span
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.messages import GroupRecord

AWAITED_FOR: Final[Span] = 15 * SECOND
REFRESH_SECONDS: Final = 5.0

_Group: TypeAlias = tuple[str, str]


class Awaited:
    """Used from several threads: whole entries come and go, nothing is counted."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._seen: dict[_Group, float] = {}
        self._told: dict[_Group, float] = {}

    def here(self, tenant: str, group_id: str) -> bool:
        """Did somebody of this process wait for it just now?"""
        seen = self._seen.get((tenant, group_id))
        return seen is not None and self._runtime.monotonic() - seen < AWAITED_FOR / SECOND

    def note(self, tenant: str, group_id: str) -> None:
        now = self._runtime.monotonic()
        self._seen = _newer(self._seen, now - AWAITED_FOR / SECOND) | {(tenant, group_id): now}

    async def tell(self, store: Store, tenant: str, group_id: str) -> None:
        """The store, unless it was told a moment ago."""
        self.note(tenant, group_id)
        now = self._runtime.monotonic()
        if (tenant, group_id) in self._told and now - self._told[tenant, group_id] < REFRESH_SECONDS:
            return
        await store.await_group(tenant, group_id, AWAITED_FOR)
        self._told = _newer(self._told, now - REFRESH_SECONDS) | {(tenant, group_id): now}


def _newer(times: dict[_Group, float], than: float) -> dict[_Group, float]:
    return {group: at for group, at in times.items() if at > than}


class JobCompletion:
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


class GroupCompletion:
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


class ChainCompletion:
    """A chain ends with a member that ends without continuing; until then its last member is the one to watch."""

    what = "chain"

    def __init__(self, store: Store) -> None:
        self._store = store

    async def __call__(self, tenant: str, ids: list[str]) -> dict[str, Seen[JobRecord]]:
        seen: dict[str, Seen[JobRecord]] = {}
        for job_id in ids:
            members = await self._store.chain(tenant, job_id, last=1)
            if members:
                seen[job_id] = _end(job_id, members[-1])
        return seen


def _end(job_id: str, last: JobRecord) -> Seen[JobRecord]:
    if last.flags & CONTINUED:
        gone = f"the last job of the chain of {job_id} is gone (deleted, or pruned after its retention), and its result"
        return Seen(gone=gone)
    return Seen(last) if last.terminal else Seen(watch=last.id)


def _closed(root: JobRecord, record: GroupRecord | None) -> ClosedGroupRecord | None:
    if not root.terminal or (record is not None and record.closed_at is None):
        return None
    return ClosedGroupRecord(root, record)
