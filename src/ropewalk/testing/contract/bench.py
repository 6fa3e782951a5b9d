"""A store with short verbs: submit, claim and settle in one line each, for one job or many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ropewalk.domain.jobs.history import HistoryEntry, assemble
from ropewalk.domain.jobs.record import DEFAULT_TENANT, CompensationSpec, JobRecord, NewJob
from ropewalk.domain.jobs.states import Move, State, Status
from ropewalk.domain.jobs.transition import Settlement
from ropewalk.errors import RopewalkError
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.capabilities import LIMITS, WORKFLOWS, DatabaseStore
from ropewalk.ports.store.claims import Claimed
from ropewalk.ports.store.consequences import Moved
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.leases import Holder, Settled
from ropewalk.ports.store.operations import CancelAnswer
from ropewalk.ports.store.reading import StoredHistory
from ropewalk.ports.store.submission import Accepted, Submission, SubmitAnswer
from ropewalk.testing.clock import FakeRuntime
from ropewalk.testing.contract.backend import Backend
from ropewalk.testing.contract.build import claim_request, new_job, settlement


class Bench:
    def __init__(self, store: Store, runtime: FakeRuntime, backend: Backend) -> None:
        self.store = cast("DatabaseStore", store)
        """With the verbs of all capabilities: tests use those of what they are marked to need."""
        self.runtime = runtime
        self.backend = backend
        self.passes_over = False
        """A test that damages records sets this, because the store may pass over records for which the rules raise."""

    async def second(self) -> Bench:
        """Another store on the same data, under the same clock."""
        return Bench(await self.backend.open(self.runtime), self.runtime, self.backend)

    async def opened(self, runtime: Runtime) -> DatabaseStore:
        """Another store on the same data, under another clock. Tests use the verbs that they are marked to need."""
        return cast("DatabaseStore", await self.backend.open(runtime))

    # ── what some stores can take with a job, and others cannot

    @property
    def compensation(self) -> CompensationSpec | None:
        """A compensation; None for a store without workflows, which is never given one."""
        return CompensationSpec(type="undo", accepts=("x",)) if WORKFLOWS in self.store.capabilities else None

    def limit_key(self, key: str | None) -> str | None:
        """The key; None for a store without limits, which is never given one."""
        return key if LIMITS in self.store.capabilities else None

    # ── submitting

    async def submit(self, *jobs: NewJob, **how: Any) -> list[Accepted]:
        """One submission; raises what it was refused with."""
        answer = await self.answer(*jobs, **how)
        if isinstance(answer, RopewalkError):
            raise answer
        return answer

    async def answer(self, *jobs: NewJob, **how: Any) -> SubmitAnswer:
        """One submission; its answer, an error included."""
        answers = await self.store.submit([Submission(jobs=jobs, **how)])
        assert len(answers) == 1
        return answers[0]

    async def add(self, type: str = "t", **fields: Any) -> str:  # noqa: A002  the field's name
        """Submit one job; its id."""
        [accepted] = await self.submit(new_job(type, **fields))
        return accepted.id

    # ── working

    async def claim(self, limit: int = 1, **how: Any) -> list[JobRecord]:
        return (await self.claimed(limit, **how)).jobs

    async def claimed(self, limit: int = 1, **how: Any) -> Claimed:
        claimed = await self.store.claim(claim_request(limit=limit, **how))
        assert len(claimed.jobs) <= limit, "a claim gives no more than was asked for"
        assert self.passes_over or not claimed.passed_over, "the rules raised for a record that is not damaged"
        return claimed

    async def claim_one(self, **how: Any) -> JobRecord:
        [job] = await self.claim(**how)
        return job

    async def running(self, type: str = "t", *, owner: str = "worker", **fields: Any) -> JobRecord:  # noqa: A002
        """Submit one job and claim it; it is the only one ready."""
        job_id = await self.add(type, **fields)
        job = await self.claim_one(owner=owner, types=[type])
        assert job.id == job_id, "another job was ready"
        return job

    async def settle(
        self, job: JobRecord, move: Move = Move.COMPLETE, *, owner: str | None = None, **how: Any
    ) -> Settled:
        """Settle the lease that `job` shows, as its owner."""
        by = owner if owner is not None else job.owner or "worker"
        [settled] = await self.settle_all(by, [settlement(job, move, **how)])
        return settled

    async def settle_all(self, owner: str, settlements: Sequence[Settlement]) -> list[Settled]:
        return (await self.store.settle(owner, settlements)).settled

    async def sweep(self, limit: int = 9) -> list[Moved]:
        swept = await self.store.sweep(limit)
        assert self.passes_over or not swept.passed_over, "the rules raised for a record that is not damaged"
        return swept.moved

    async def cancel(self, *ids: str, reason: str | None = None, force: bool = False) -> list[CancelAnswer]:
        return (await self.store.cancel(DEFAULT_TENANT, ids, reason=reason, force=force)).answers

    async def finished(self, move: Move = Move.COMPLETE, **fields: Any) -> JobRecord:
        """Submit, claim and settle one job; as it is afterwards."""
        job = await self.running(**fields)
        settled = await self.settle(job, move)
        assert settled.lost is None
        return await self.job(job.id, tenant=job.tenant)

    # ── looking

    async def job(self, job_id: str, *, tenant: str = DEFAULT_TENANT) -> JobRecord:
        return (await self.store.get(tenant, [job_id])).jobs[job_id]

    async def find(self, job_id: str, *, tenant: str = DEFAULT_TENANT) -> JobRecord | None:
        return (await self.store.get(tenant, [job_id])).jobs.get(job_id)

    async def status(self, job_id: str, *, tenant: str = DEFAULT_TENANT) -> Status:
        return (await self.job(job_id, tenant=tenant)).status

    async def state(self, job_id: str, *, tenant: str = DEFAULT_TENANT) -> State:
        return (await self.job(job_id, tenant=tenant)).state_at(self.runtime.now())

    async def stored_history(self, job_id: str, *, tenant: str = DEFAULT_TENANT) -> StoredHistory:
        trail = await self.store.history(tenant, job_id)
        assert trail is not None, f"no history of {job_id}"
        return trail

    async def history(self, job_id: str, *, tenant: str = DEFAULT_TENANT) -> list[HistoryEntry]:
        trail = await self.stored_history(job_id, tenant=tenant)
        return assemble(trail.job, trail.attempts, trail.events)


def holder(job: JobRecord) -> Holder:
    """The lease that a claimed job shows."""
    assert job.owner is not None, f"job {job.id} is not held by anybody"
    return Holder(seq=job.seq, fence=job.fence, owner=job.owner)
