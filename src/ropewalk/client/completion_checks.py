"""What it means that a job, a group or a chain ended: one look at the store for many of a kind.

Which groups somebody waits for: known to the store while it lasts, and in this process a little longer.

A group can close between the moment its root was queued and the moment the store hears of the wait. In one process that
is told apart here: whoever waited just now is no reason to call the group an orphan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Final, TypeAlias

from msgspec import Struct

from ropewalk.client.waiter import Seen
from ropewalk.domain.jobs.flags import CONTINUED, REPORT_ORPHAN
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import SECOND, Span
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.workflows import GroupRecord, WorkflowStore

AWAITED_FOR: Final[Span] = 15 * SECOND
REFRESH_SECONDS: Final = 5.0
"""How often the store is told of a wait, and asked whether anybody wants to hear of groups without one."""

TIDY_MIN: Final = 1024
"""Groups to remember before those of long ago are dropped for the first time."""

_Group: TypeAlias = tuple[str, str]


class RecentGroups:
    """When something last happened to a group, for those to which it happened lately. Used from several threads."""

    def __init__(self, runtime: Runtime, seconds: float) -> None:
        self._runtime = runtime
        self._seconds = seconds
        self._at: dict[_Group, float] = {}
        self._tidy_at = TIDY_MIN
        self._lock = Lock()

    def __contains__(self, group: _Group) -> bool:
        at = self._at.get(group)
        return at is not None and self._runtime.monotonic() - at < self._seconds

    def note(self, groups: Iterable[_Group]) -> None:
        now = self._runtime.monotonic()
        with self._lock:
            self._at.update((group, now) for group in groups)
            if len(self._at) >= self._tidy_at:
                self._at = {group: at for group, at in self._at.items() if now - at < self._seconds}
                self._tidy_at = max(TIDY_MIN, 2 * len(self._at))


class Awaited:
    """Used from several threads: whole entries come and go, nothing is counted."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._seen = RecentGroups(runtime, AWAITED_FOR / SECOND)
        self._told = RecentGroups(runtime, REFRESH_SECONDS)
        self._asked_at: float | None = None
        self._matters = False
        """Whether somebody takes unawaited groups, when the store was asked last."""

    def here(self, tenant: str, group_id: str) -> bool:
        """Did somebody of this process wait for it just now?"""
        return (tenant, group_id) in self._seen

    def told(self, tenant: str, group_id: str) -> bool:
        """Was the store told of a wait for it just now?"""
        return (tenant, group_id) in self._told

    def note(self, tenant: str, group_ids: Iterable[str]) -> None:
        self._seen.note((tenant, group_id) for group_id in group_ids)

    async def tell(self, store: WorkflowStore, tenant: str, roots: Sequence[JobRecord]) -> None:
        """The store, unless it was told a moment ago, of those whose unawaited end somebody would hear of."""
        self.note(tenant, [root.id for root in roots])
        now = self._runtime.monotonic()
        if self._asked_at is None or now - self._asked_at >= REFRESH_SECONDS:
            self._matters, self._asked_at = await store.takes_orphans(), now
        for root in roots:
            if (self._matters or root.flags & REPORT_ORPHAN) and not self.told(tenant, root.id):
                await store.await_group(tenant, root.id, AWAITED_FOR)
                self._told.note([(tenant, root.id)])


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
        self._groups = WORKFLOWS.of(store)
        self._awaited = awaited

    async def __call__(self, tenant: str, ids: list[str]) -> dict[str, Seen[ClosedGroupRecord]]:
        roots = (await self._store.get(tenant, ids)).jobs
        await self._awaited.tell(self._groups, tenant, list(roots.values()))
        # In this order: a root that had ended has queued by then whatever it will ever queue.
        ended = [job_id for job_id, job in roots.items() if job.terminal]
        records = await self._groups.groups(tenant, ended) if ended else {}
        return {job_id: Seen(_closed(job, records.get(job_id))) for job_id, job in roots.items()}


class ChainCompletion:
    """A chain ends with a member that ends without continuing; until then its last member is the one to watch."""

    what = "chain"

    def __init__(self, store: Store) -> None:
        self._store = WORKFLOWS.of(store)

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
