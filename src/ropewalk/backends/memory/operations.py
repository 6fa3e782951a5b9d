"""The operations of people on jobs: cancel, purge, end, retry and update. Each applies a rule of domain.jobs.operations
to one record after another."""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.backends.memory import maintenance
from ropewalk.backends.memory.tables import Tables, copied
from ropewalk.backends.memory.unit_of_work import Change, MemoryUnitOfWork
from ropewalk.backends.workflow.completion import end_from_outside
from ropewalk.backends.workflow.retry import retry_each
from ropewalk.domain.jobs import operations
from ropewalk.domain.jobs.operations import PURGED, CancelStatus, EndRequest, RetryRequest, UpdateRequest
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.domain.jobs.transition import Effects
from ropewalk.domain.time import Instant
from ropewalk.ports.store.operations import CancelAnswer, Cancellations, Deletion, Purged, RetryAnswer, UpdateAnswer
from ropewalk.ports.store.workflows import EndAnswer


def cancel(
    tables: Tables, tenant: str, ids: Sequence[str], *, reason: str | None, force: bool, now: Instant
) -> Cancellations:
    change = Change(tables, now)
    answers: list[CancelAnswer] = []
    for each in ids:
        job = tables.find(tenant, each)
        if job is None:
            answers.append(CancelAnswer(id=each, status=CancelStatus.NOT_FOUND, previous=None))
            continue
        previous = job.state_at(now)
        change.unit_of_work.take(job)
        status, event = operations.cancel(job, reason=reason, force=force, now=now)
        if status is CancelStatus.CANCELLED:
            change.propagation.ended(job, Effects(Move.CANCEL, event=event))
        elif event is not None:
            tables.record(event)
        answers.append(CancelAnswer(id=each, status=status, previous=previous))
    return Cancellations(answers=answers, consequences=change.end())


def purge(tables: Tables, tenant: str, ids: Sequence[str], now: Instant, *, together: bool) -> Purged:
    jobs = {each: job for each in ids if (job := tables.find(tenant, each)) is not None}
    running = {each: Deletion.NOT_TERMINAL for each, job in jobs.items() if job.status is Status.RUNNING}
    if together and running:
        return Purged(answers=running)
    change = Change(tables, now)
    waiting = [job for job in jobs.values() if job.status is Status.WAITING]
    for job in waiting:
        change.unit_of_work.take(job)
        _, event = operations.cancel(job, reason=PURGED, force=False, now=now)
        change.propagation.ended(job, Effects(Move.CANCEL, event=event))
    consequences = change.end()
    cancelled = [copied(job) for job in waiting]
    return Purged(answers=maintenance.delete(tables, tenant, ids), cancelled=cancelled, consequences=consequences)


def end(tables: Tables, tenant: str, job_id: str, asked: EndRequest, now: Instant) -> EndAnswer:
    job = tables.find(tenant, job_id)
    if job is None:
        return EndAnswer(id=job_id)
    if job.terminal:
        return EndAnswer(id=job_id, state=job.state_at(now))
    change = Change(tables, now)
    end_from_outside(change.unit_of_work, change.propagation, job, asked)
    consequences = change.end()
    return EndAnswer(id=job_id, job=copied(job), state=job.state_at(now), consequences=consequences)


def retry(tables: Tables, tenant: str, ids: Sequence[str], asked: RetryRequest, now: Instant) -> list[RetryAnswer]:
    unit_of_work = MemoryUnitOfWork(tables, now)
    answers = retry_each(unit_of_work, unit_of_work.find(tenant, ids), ids, asked)
    unit_of_work.flush()
    return answers


def update(tables: Tables, tenant: str, job_id: str, request: UpdateRequest, now: Instant) -> UpdateAnswer:
    job = tables.find(tenant, job_id)
    if job is None:
        return UpdateAnswer(id=job_id)
    if job.status is not Status.WAITING:
        return UpdateAnswer(id=job_id, state=job.state_at(now))
    if operations.has_other_rev(job, request):
        return UpdateAnswer(id=job_id, state=job.state_at(now), rev=job.rev)
    tables.take_up(job)
    event = operations.update(job, request, now)
    tables.put_back(job, now)
    if event is not None:
        tables.record(event)
        tables.keys.move(job)
    return UpdateAnswer(id=job_id, job=copied(job), state=job.state_at(now))
