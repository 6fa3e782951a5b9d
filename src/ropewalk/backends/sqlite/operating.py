"""What people do to jobs: domain.operator on one record after another, each independent of the others."""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.backends.sqlite import keys, records
from ropewalk.backends.sqlite.changes import Changes
from ropewalk.backends.sqlite.lanes import LaneBook
from ropewalk.backends.sqlite.statements import SQL
from ropewalk.backends.sqlite.tx import Tx
from ropewalk.backends.sqlite.upkeep import remove
from ropewalk.domain import operator
from ropewalk.domain.job import JobRecord
from ropewalk.domain.operator import Amendment, CancelStatus, RetryStatus, Revival
from ropewalk.domain.states import Status
from ropewalk.ports.exchange import AmendAnswer, CancelAnswer, ReviveAnswer


def cancel(
    tx: Tx, lanes: LaneBook, tenant: str, ids: Sequence[str], *, reason: str | None, force: bool
) -> list[CancelAnswer]:
    jobs = {job.id: job for job in records.find_all(tx, tenant, dict.fromkeys(ids))}
    changes = Changes(tx, lanes)
    answers = [_cancel(changes, jobs.get(each), each, reason=reason, force=force, tx=tx) for each in ids]
    changes.write()
    if any(answer.status is CancelStatus.CANCEL_REQUESTED for answer in answers):
        tx.run(SQL.bump_control)
    return answers


def revive(tx: Tx, lanes: LaneBook, tenant: str, ids: Sequence[str], revival: Revival) -> list[ReviveAnswer]:
    return [_revive(tx, lanes, records.find(tx, tenant, each), each, revival) for each in ids]


def amend(tx: Tx, lanes: LaneBook, tenant: str, job_id: str, amendment: Amendment) -> AmendAnswer:
    job = records.find(tx, tenant, job_id)
    if job is None:
        return AmendAnswer(id=job_id)
    if job.status is not Status.WAITING:
        return AmendAnswer(id=job_id, state=job.state_at(tx.now))
    changes = Changes(tx, lanes)
    changes.noted(job, operator.amend(job, amendment, tx.now))
    changes.write()
    return AmendAnswer(id=job_id, job=job, state=job.state_at(tx.now))


def delete(tx: Tx, tenant: str, ids: Sequence[str]) -> dict[str, bool | None]:
    jobs = {job.id: job for job in records.find_all(tx, tenant, dict.fromkeys(ids))}
    remove(tx, [job.seq for job in jobs.values() if job.terminal])
    return {each: jobs[each].terminal if each in jobs else None for each in ids}


def _cancel(
    changes: Changes, job: JobRecord | None, job_id: str, *, reason: str | None, force: bool, tx: Tx
) -> CancelAnswer:
    if job is None:
        return CancelAnswer(id=job_id, status=CancelStatus.NOT_FOUND, previous=None)
    previous = job.state_at(tx.now)
    status, event = operator.cancel(job, reason=reason, force=force, now=tx.now)
    if event is not None:
        changes.noted(job, event)
    return CancelAnswer(id=job_id, status=status, previous=previous)


def _revive(tx: Tx, lanes: LaneBook, job: JobRecord | None, job_id: str, revival: Revival) -> ReviveAnswer:
    if job is None:
        return ReviveAnswer(id=job_id, status=RetryStatus.NOT_FOUND)
    refusal = operator.refusal_to_revive(job, revival)
    if refusal is None and not keys.may_reopen(tx, job):
        refusal = "key_in_use"
    if refusal is not None:
        state = job.state_at(tx.now)
        return ReviveAnswer(id=job_id, status=RetryStatus.NOT_RETRIABLE, state=state, run_at=job.run_at, reason=refusal)
    changes = Changes(tx, lanes)
    changes.noted(job, operator.revive(job, revival, tx.now))
    changes.write()
    keys.reopen(tx, job)
    return ReviveAnswer(id=job_id, status=RetryStatus.QUEUED, state=job.state_at(tx.now), run_at=job.run_at)
