"""The bench of a test: its store, and short methods that submit, claim, settle and read in one line each."""

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
from ropewalk.testing.contract.builders import claim_request, new_job, settlement


class Bench:
    """A bench wraps the store under test in short methods whose defaults suit most tests.

    Methods named after a verb of the store (`claim`, `sweep`, `cancel`) return only the part of its answer that most
    tests need, and raise if the store did something that no test expects.
    """

    def __init__(self, store: Store, runtime: FakeRuntime, backend: Backend) -> None:
        self.store = cast("DatabaseStore", store)
        """The store, typed with the verbs of all capabilities; a test uses only those that it is marked to need."""
        self.runtime = runtime
        self.backend = backend
        self.passes_over = False
        """Whether the store may pass over records for which the rules raise; tests that damage records set it."""

    async def second(self) -> Bench:
        """Open another store on the same data, under the same clock."""
        return Bench(await self.backend.open(self.runtime), self.runtime, self.backend)

    async def opened(self, runtime: Runtime) -> DatabaseStore:
        """Open another store on the same data, under the clock of `runtime`."""
        return cast("DatabaseStore", await self.backend.open(runtime))

    # ── options of a job that not every store supports

    @property
    def compensation(self) -> CompensationSpec | None:
        """A compensation for a new job, or None if the store has no workflows."""
        return CompensationSpec(type="undo", accepts=("x",)) if WORKFLOWS in self.store.capabilities else None

    def limit_key(self, key: str | None) -> str | None:
        """Return the key for a new job, or None if the store has no limits."""
        return key if LIMITS in self.store.capabilities else None

    # ── submitting

    async def submit(self, *jobs: NewJob, **how: Any) -> list[Accepted]:
        """Submit these jobs in one submission, and raise the error if the store refuses it."""
        answer = await self.answer(*jobs, **how)
        if isinstance(answer, RopewalkError):
            raise answer
        return answer

    async def answer(self, *jobs: NewJob, **how: Any) -> SubmitAnswer:
        """Submit these jobs in one submission, and return its answer, which may be an error."""
        answers = await self.store.submit([Submission(jobs=jobs, **how)])
        assert len(answers) == 1
        return answers[0]

    async def add(self, type: str = "t", **fields: Any) -> str:  # noqa: A002  the field's name
        """Submit one job and return its id."""
        [accepted] = await self.submit(new_job(type, **fields))
        return accepted.id

    # ── working

    async def claim(self, limit: int = 1, **how: Any) -> list[JobRecord]:
        """Claim up to `limit` jobs and return them; `how` are fields of the ClaimRequest."""
        return (await self.claimed(limit, **how)).jobs

    async def claimed(self, limit: int = 1, **how: Any) -> Claimed:
        """Claim up to `limit` jobs and return the whole answer."""
        claimed = await self.store.claim(claim_request(limit=limit, **how))
        assert len(claimed.jobs) <= limit, "a claim gives no more than was asked for"
        assert self.passes_over or not claimed.passed_over, "the rules raised for a record that is not damaged"
        return claimed

    async def claim_one(self, **how: Any) -> JobRecord:
        """Claim one job, which must be ready."""
        [job] = await self.claim(**how)
        return job

    async def running(self, type: str = "t", *, owner: str = "worker", **fields: Any) -> JobRecord:  # noqa: A002
        """Submit one job and claim it; no other job of its type may be ready."""
        job_id = await self.add(type, **fields)
        job = await self.claim_one(owner=owner, types=[type])
        assert job.id == job_id, "another job was ready"
        return job

    async def settle(
        self, job: JobRecord, move: Move = Move.COMPLETE, *, owner: str | None = None, **how: Any
    ) -> Settled:
        """Settle the lease that the record `job` names, as its owner unless another one is given."""
        by = owner if owner is not None else job.owner or "worker"
        [settled] = await self.settle_all(by, [settlement(job, move, **how)])
        return settled

    async def settle_all(self, owner: str, settlements: Sequence[Settlement]) -> list[Settled]:
        """Settle several attempts of one worker in one call."""
        return (await self.store.settle(owner, settlements)).settled

    async def sweep(self, limit: int = 9) -> list[Moved]:
        """Sweep the store and return the jobs that the sweep moved."""
        swept = await self.store.sweep(limit)
        assert self.passes_over or not swept.passed_over, "the rules raised for a record that is not damaged"
        return swept.moved

    async def cancel(self, *ids: str, reason: str | None = None, force: bool = False) -> list[CancelAnswer]:
        """Cancel these jobs of the default tenant."""
        return (await self.store.cancel(DEFAULT_TENANT, ids, reason=reason, force=force)).answers

    async def finished(self, move: Move = Move.COMPLETE, **fields: Any) -> JobRecord:
        """Submit, claim and settle one job, and return its record afterwards."""
        job = await self.running(**fields)
        settled = await self.settle(job, move)
        assert settled.lost is None
        return await self.job(job.id, tenant=job.tenant)

    # ── reading

    async def job(self, job_id: str, *, tenant: str = DEFAULT_TENANT) -> JobRecord:
        """Return the stored record of a job that must exist."""
        return (await self.store.get(tenant, [job_id])).jobs[job_id]

    async def find(self, job_id: str, *, tenant: str = DEFAULT_TENANT) -> JobRecord | None:
        """Return the stored record of a job, or None if there is none."""
        return (await self.store.get(tenant, [job_id])).jobs.get(job_id)

    async def status(self, job_id: str, *, tenant: str = DEFAULT_TENANT) -> Status:
        """Return the stored status of a job."""
        return (await self.job(job_id, tenant=tenant)).status

    async def state(self, job_id: str, *, tenant: str = DEFAULT_TENANT) -> State:
        """Return the state of a job at the present instant of the fake clock."""
        return (await self.job(job_id, tenant=tenant)).state_at(self.runtime.now())

    async def stored_history(self, job_id: str, *, tenant: str = DEFAULT_TENANT) -> StoredHistory:
        """Return the record, attempts and events from which the history of a job is assembled."""
        stored = await self.store.history(tenant, job_id)
        assert stored is not None, f"no history of {job_id}"
        return stored

    async def history(self, job_id: str, *, tenant: str = DEFAULT_TENANT) -> list[HistoryEntry]:
        """Return the history of a job as users see it."""
        stored = await self.stored_history(job_id, tenant=tenant)
        return assemble(stored.job, stored.attempts, stored.events)


def holder(job: JobRecord) -> Holder:
    """Return the lease that the record of a claimed job names."""
    assert job.owner is not None, f"job {job.id} is not held by anybody"
    return Holder(seq=job.seq, fence=job.fence, owner=job.owner)
