"""What a remote worker holds. Servers keep nothing about workers, so every call reads this from the store first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from msgspec import UNSET, UnsetType

from ropewalk.domain.jobs.lease import LossReason, loss_reason
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import Instant
from ropewalk.http.call import Call
from ropewalk.http.errors import ErrorCode, HttpError, not_found
from ropewalk.http.identity.identity import Identity
from ropewalk.http.remote_workers.shapes import Cancellation, HandlerCall, Loss
from ropewalk.ports.store.leases import Holder, WorkerCard


@dataclass(frozen=True, slots=True)
class Held:
    """A registered worker of the caller, and the jobs that it holds."""

    now: Instant
    card: WorkerCard
    jobs: Mapping[str, JobRecord]
    """The jobs by id."""

    @property
    def tenant(self) -> str:
        """The tenant of the worker; a remote worker has exactly one."""
        tenants = self.card.tenants
        assert tenants is not None and len(tenants) == 1, "a remote worker is registered for one tenant"
        return tenants[0]

    @property
    def free_slots(self) -> int:
        return max(0, self.card.concurrency - len(self.jobs))

    def job(self, job_id: str, fence: str) -> JobRecord | None:
        """Returns the job if the worker holds its lease with this fence."""
        job = self.jobs.get(job_id)
        return job if job is not None and str(job.fence) == fence else None

    def holder(self, job: JobRecord) -> Holder:
        return Holder(job.seq, job.fence, self.card.id)


def owner_prefix(identity: Identity) -> str:
    """Returns the part before the dot in the ids of the workers of an identity: the id of its token.

    The subject of an identity without a token may be long and is nobody else's business, so its hash is used.
    """
    if identity.token_id is not None:
        return identity.token_id
    return sha256(identity.subject.encode(errors="backslashreplace")).hexdigest()[:24]


async def held_by(call: Call[Any, Any], worker_id: str) -> Held:
    """Reads what a worker holds. Raises HttpError (not found) for a worker of another token, and for one that is not
    registered."""
    if worker_id.rpartition(".")[0] != owner_prefix(call.identity):
        raise not_found()
    read = await call.store.held(worker_id)
    if read.card is None:
        raise not_found()
    return Held(read.now, read.card, {job.id: job for job in read.jobs})


async def held_lease(call: Call[Any, Any], body: HandlerCall) -> tuple[Held, JobRecord]:
    """Reads the lease for which a handler calls. Raises HttpError (LEASE_LOST) if the worker does not hold it."""
    held = await held_by(call, body.worker_id)
    job = held.job(body.job_id, body.fence)
    if job is None:
        losses = await loss_reasons(call, held, [(body.job_id, body.fence)])
        raise lease_lost(losses[body.job_id, body.fence])
    return held, job


async def loss_reasons(
    call: Call[Any, Any], held: Held, leases: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Loss]:
    """Returns why the worker does not hold these leases, each given by job id and fence.

    A job beyond the bounds of the identity is the same as a missing one.
    """
    wanted = list(leases)
    if not wanted:
        return {}
    read = await call.store.get(held.tenant, sorted({job_id for job_id, _ in wanted}))
    reasons: dict[tuple[str, str], Loss] = {}
    for job_id, fence in wanted:
        job = read.jobs.get(job_id)
        if job is not None and not call.identity.reaches(job.type, job.queue):
            job = None
        number = int(fence) if fence.isascii() and fence.isdigit() and len(fence) < 20 else -1
        reasons[job_id, fence] = Loss.of(loss_reason(job, number, held.card.id) or LossReason.NOT_FOUND)
    return reasons


def lease_lost(reason: Loss) -> HttpError:
    """Returns the refusal of a call for a lease that the worker does not hold any more."""
    message = "the worker does not hold this lease any more: stop the handler and say nothing more about the job"
    return HttpError(ErrorCode.LEASE_LOST, message, reason=reason.value)


def cancellation(job: JobRecord) -> Cancellation | UnsetType:
    """Returns the requested cancellation of a job, as an answer shows it."""
    return UNSET if job.cancel is None else Cancellation(reason=job.cancel.reason, force=job.cancel.force)
