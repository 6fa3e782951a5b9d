"""The operations of people on jobs: cancel, retry, update, delete and purge. Most of them apply a rule of
domain.jobs.operations to one record after another, each independently of the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ropewalk.backends.sql import records
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.maintenance import remove
from ropewalk.backends.sql.tx import Tx
from ropewalk.backends.sql.unit_of_work import SqlUnitOfWork
from ropewalk.backends.workflow.propagation import Propagation
from ropewalk.backends.workflow.retry import retry_each
from ropewalk.domain.jobs import operations
from ropewalk.domain.jobs.operations import PURGED, CancelStatus, RetryRequest, UpdateRequest
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.domain.jobs.transition import Effects
from ropewalk.ports.store.operations import CancelAnswer, Cancellations, Deletion, Purged, RetryAnswer, UpdateAnswer

_ints = msgspec.json.Decoder(list[int])


def cancel(
    tx: Tx, lanes: LaneBook, tenant: str, ids: Sequence[str], *, reason: str | None, force: bool
) -> Cancellations:
    unit_of_work = SqlUnitOfWork(tx, lanes)
    propagation = Propagation(unit_of_work)
    jobs = unit_of_work.find(tenant, ids)
    answers = [_cancel(unit_of_work, propagation, jobs.get(each), each, reason=reason, force=force) for each in ids]
    consequences = propagation.run()
    unit_of_work.flush()
    if any(answer.status is CancelStatus.CANCEL_REQUESTED for answer in answers):
        tx.run(tx.sql.bump_control)
    return Cancellations(answers=answers, consequences=consequences)


def retry(tx: Tx, lanes: LaneBook, tenant: str, ids: Sequence[str], request: RetryRequest) -> list[RetryAnswer]:
    unit_of_work = SqlUnitOfWork(tx, lanes)
    answers = retry_each(unit_of_work, unit_of_work.find(tenant, ids), ids, request)
    unit_of_work.flush()
    return answers


def update(tx: Tx, lanes: LaneBook, tenant: str, job_id: str, request: UpdateRequest) -> UpdateAnswer:
    unit_of_work = SqlUnitOfWork(tx, lanes)
    job = unit_of_work.find(tenant, [job_id]).get(job_id)
    if job is None:
        return UpdateAnswer(id=job_id)
    if job.status is not Status.WAITING:
        return UpdateAnswer(id=job_id, state=job.state_at(tx.now))
    if operations.has_other_rev(job, request):
        return UpdateAnswer(id=job_id, state=job.state_at(tx.now), rev=job.rev)
    event = operations.update(job, request, tx.now)
    if event is not None:
        unit_of_work.note(job, event)
        if request.input is not None:
            unit_of_work.move_key(job)
        unit_of_work.flush()
    return UpdateAnswer(id=job_id, job=job, state=job.state_at(tx.now))


def delete(tx: Tx, tenant: str, ids: Sequence[str]) -> dict[str, Deletion]:
    jobs = {job.id: job for job in records.find_all(tx, tenant, dict.fromkeys(ids))}
    ended = [job.seq for job in jobs.values() if job.terminal]
    named = msgspec.json.encode([job.seq for job in jobs.values()]).decode()
    in_use = set(_ints.decode(tx.value(tx.sql.in_use, (named,)))) if ended else set[int]()
    remove(tx, [seq for seq in ended if seq not in in_use])
    return {each: _deletion(jobs.get(each), in_use) for each in ids}


def purge(tx: Tx, lanes: LaneBook, tenant: str, ids: Sequence[str], *, together: bool) -> Purged:
    unit_of_work = SqlUnitOfWork(tx, lanes)
    propagation = Propagation(unit_of_work)
    jobs = unit_of_work.find(tenant, ids)
    running = {each: Deletion.NOT_TERMINAL for each, job in jobs.items() if job.status is Status.RUNNING}
    if together and running:
        return Purged(answers=running)
    waiting = [job for job in jobs.values() if job.status is Status.WAITING]
    for job in waiting:
        _cancel(unit_of_work, propagation, job, job.id, reason=PURGED, force=False)
    consequences = propagation.run()
    unit_of_work.flush()
    return Purged(answers=delete(tx, tenant, ids), cancelled=waiting, consequences=consequences)


def _deletion(job: JobRecord | None, in_use: set[int]) -> Deletion:
    """Returns what became of the request to delete this job."""
    if job is None:
        return Deletion.NOT_FOUND
    if not job.terminal:
        return Deletion.NOT_TERMINAL
    return Deletion.IN_USE if job.seq in in_use else Deletion.DELETED


def _cancel(
    unit_of_work: SqlUnitOfWork,
    propagation: Propagation,
    job: JobRecord | None,
    job_id: str,
    *,
    reason: str | None,
    force: bool,
) -> CancelAnswer:
    if job is None:
        return CancelAnswer(id=job_id, status=CancelStatus.NOT_FOUND, previous=None)
    previous = job.state_at(unit_of_work.now)
    status, event = operations.cancel(job, reason=reason, force=force, now=unit_of_work.now)
    if status is CancelStatus.CANCELLED:
        propagation.ended(job, Effects(Move.CANCEL, event=event))
    elif event is not None:
        unit_of_work.note(job, event)
    return CancelAnswer(id=job_id, status=status, previous=previous)
