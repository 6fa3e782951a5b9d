"""What people do to jobs: domain.operator on one record after another, each independent of the others."""

from __future__ import annotations

from ropewalk.backends.memory.tables import Tables, copied
from ropewalk.domain import operator
from ropewalk.domain.instants import Instant
from ropewalk.domain.operator import Amendment, CancelStatus, RetryStatus, Revival
from ropewalk.domain.states import Status
from ropewalk.ports.exchange import AmendAnswer, CancelAnswer, ReviveAnswer


def cancel(tables: Tables, tenant: str, job_id: str, *, reason: str | None, force: bool, now: Instant) -> CancelAnswer:
    job = tables.find(tenant, job_id)
    if job is None:
        return CancelAnswer(id=job_id, status=CancelStatus.NOT_FOUND, previous=None)
    previous = job.state_at(now)
    if job.terminal:
        return CancelAnswer(id=job_id, status=CancelStatus.ALREADY_COMPLETE, previous=previous)
    tables.take_up(job)
    status, event = operator.cancel(job, reason=reason, force=force, now=now)
    tables.put_back(job, now)
    if event is not None:
        tables.record(event)
    return CancelAnswer(id=job_id, status=status, previous=previous)


def revive(tables: Tables, tenant: str, job_id: str, revival: Revival, now: Instant) -> ReviveAnswer:
    job = tables.find(tenant, job_id)
    if job is None:
        return ReviveAnswer(id=job_id, status=RetryStatus.NOT_FOUND)
    refusal = operator.refusal_to_revive(job, revival)
    if refusal is None and not tables.keys.may_reopen(job):
        refusal = "key_in_use"
    if refusal is not None:
        return ReviveAnswer(
            id=job_id, status=RetryStatus.NOT_RETRIABLE, state=job.state_at(now), run_at=job.run_at, reason=refusal
        )
    tables.take_up(job)
    event = operator.revive(job, revival, now)
    tables.put_back(job, now)
    tables.keys.reopen(job, now)
    tables.record(event)
    return ReviveAnswer(id=job_id, status=RetryStatus.QUEUED, state=job.state_at(now), run_at=job.run_at)


def amend(tables: Tables, tenant: str, job_id: str, amendment: Amendment, now: Instant) -> AmendAnswer:
    job = tables.find(tenant, job_id)
    if job is None:
        return AmendAnswer(id=job_id)
    if job.status is not Status.WAITING:
        return AmendAnswer(id=job_id, state=job.state_at(now))
    tables.take_up(job)
    event = operator.amend(job, amendment, now)
    tables.put_back(job, now)
    tables.record(event)
    return AmendAnswer(id=job_id, job=copied(job), state=job.state_at(now))


def delete(tables: Tables, tenant: str, job_id: str) -> bool | None:
    job = tables.find(tenant, job_id)
    if job is None:
        return None
    if not job.terminal:
        return False
    tables.remove(job)
    return True
