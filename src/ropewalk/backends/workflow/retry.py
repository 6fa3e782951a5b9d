"""Starts finished jobs again: the scopes that counted their ends count them as open again, up to the group's root.

A job that never started is put back behind its gate, both by its own retry and by that of a parent with cascade.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ropewalk.backends.workflow.parents import endings_now
from ropewalk.backends.workflow.scopes import chain_head, owned_scope
from ropewalk.backends.workflow.unit_of_work import UnitOfWork
from ropewalk.domain.jobs import operations
from ropewalk.domain.jobs.flags import CHAINED, GROUPED, HAS_DEPENDANTS
from ropewalk.domain.jobs.operations import (
    DEPENDANTS_UNRESOLVED,
    NO_SUCH_STEP,
    UNMET_DEPENDENCIES,
    RetryRequest,
    RetryStatus,
)
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.domain.jobs.transition import Effects
from ropewalk.domain.workflow import gate
from ropewalk.domain.workflow import scope as scopes
from ropewalk.domain.workflow.dependency import Edge, Ending, Opening, ParentKind, opening
from ropewalk.ports.store.operations import RetryAnswer

_DOOMED = frozenset({Move.DOOM, Move.CANCEL})
_PARENT = HAS_DEPENDANTS | CHAINED | GROUPED

Endings: TypeAlias = list[tuple[Edge, Ending | None]]
"""The edges of a job, each with the ending that its parent has now."""


def retry_each(
    unit_of_work: UnitOfWork, jobs: Mapping[str, JobRecord], ids: Sequence[str], asked: RetryRequest
) -> list[RetryAnswer]:
    """Retries these jobs, in any order: a gate that is closed may be able to open after others of them were retried.

    Parents come first, as far as the depth of a job shows that. The depth does not know of jobs that were queued under
    a parent later. So refused jobs are tried again as long as any other one was retried, and at the end the gates are
    checked once more.
    """
    refusals: dict[int, str | None] = {}
    left = sorted((place for place, each in enumerate(ids) if each in jobs), key=lambda place: jobs[ids[place]].depth)
    while left:
        refusals |= {place: _retry_unless_refused(unit_of_work, jobs[ids[place]], asked) for place in left}
        unmet = [place for place in left if refusals[place] == UNMET_DEPENDENCIES]
        if len(unmet) == len(left):
            break
        left = unmet
    for place, refusal in refusals.items():
        if refusal is None:
            _wait_for_the_others(unit_of_work, jobs[ids[place]])
    return [_answer(unit_of_work, jobs.get(each), each, refusals.get(place)) for place, each in enumerate(ids)]


def _answer(unit_of_work: UnitOfWork, job: JobRecord | None, job_id: str, refusal: str | None) -> RetryAnswer:
    if job is None:
        return RetryAnswer(id=job_id, status=RetryStatus.NOT_FOUND)
    status = RetryStatus.QUEUED if refusal is None else RetryStatus.NOT_RETRIABLE
    return RetryAnswer(
        id=job_id, status=status, state=job.state_at(unit_of_work.now), run_at=job.run_at, reason=refusal
    )


def _retry_unless_refused(unit_of_work: UnitOfWork, job: JobRecord, asked: RetryRequest) -> str | None:
    refusal = operations.refusal_to_retry(job, asked)
    if refusal is None:
        endings = _endings(unit_of_work, job) if gate.decides(job) else None
        refusal = _refusal_by_others(unit_of_work, job, asked, endings)
        if refusal is None:
            _retry(unit_of_work, job, asked, endings)
    return refusal


def _wait_for_the_others(unit_of_work: UnitOfWork, job: JobRecord) -> None:
    """Lets a job that was retried and is ready wait for those of its parents that were retried after it."""
    if job.unmet or not gate.decides(job):
        return
    endings = _endings(unit_of_work, job)
    unit_of_work.take(job)
    if _count_again(unit_of_work, job, endings) is Opening.CLOSED:
        gate.block_again(job, unit_of_work.now)


def _refusal_by_others(
    unit_of_work: UnitOfWork, job: JobRecord, asked: RetryRequest, endings: Endings | None
) -> str | None:
    """Returns why the steps of this job, or other jobs, do not permit its retry; None if they do."""
    if asked.from_step is not None and _steps_to_keep(unit_of_work, job, asked.from_step) is None:
        return NO_SUCH_STEP
    if not unit_of_work.may_reopen(job):
        return "key_in_use"
    if endings is not None and gate.keeps_from_starting(job, [ending for _, ending in endings]):
        return UNMET_DEPENDENCIES
    # With cascade, dependants whose edges are not resolved yet simply wait for the new run.
    if not asked.cascade and job.flags & _PARENT and unit_of_work.waiting_edges(_ended_parents(unit_of_work, job), 1):
        return DEPENDANTS_UNRESOLVED
    return None


def _retry(unit_of_work: UnitOfWork, job: JobRecord, asked: RetryRequest, endings: Endings | None) -> None:
    """Retries a job for which there is no refusal. `endings` is None if its parents do not decide about it."""
    was = job.status
    parents = _ended_parents(unit_of_work, job)
    unit_of_work.take(job)
    kept = None if asked.from_step is None else _steps_to_keep(unit_of_work, job, asked.from_step)
    event = operations.retry(job, asked, unit_of_work.now, keeps_steps=kept != [])
    if endings is not None and _count_again(unit_of_work, job, endings) is Opening.CLOSED:
        gate.block_again(job, unit_of_work.now)
    unit_of_work.record(job, Effects(Move.RESTART, event=event, reopened_from=was))
    unit_of_work.reopen_key(job)
    if asked.fresh:
        unit_of_work.forget_steps(job)
    elif kept is not None:
        unit_of_work.forget_steps(job, from_position=kept[-1] + 1 if kept else 0)
    _reopen(unit_of_work, job, was)
    if asked.cascade:
        for edge in unit_of_work.ended_edges(parents):
            _retry_dependant(unit_of_work, edge.seq)


def _steps_to_keep(unit_of_work: UnitOfWork, job: JobRecord, from_step: str) -> list[int] | None:
    """Returns the positions of the steps before the first one of this name; None if there is no such step."""
    kept: list[int] = []
    for position, name in unit_of_work.step_names(job):
        if name == from_step:
            return kept
        kept.append(position)
    return None


def _ended_parents(unit_of_work: UnitOfWork, job: JobRecord) -> list[tuple[ParentKind, int]]:
    """Returns everything that ended with this job and is open again after its retry: the job, its chain, and the trees
    that closed."""
    parents = [(ParentKind.JOB, job.seq), (ParentKind.CHAIN, chain_head(job))]
    own = owned_scope(unit_of_work, job)
    if own is not None and own.closed_at is None:
        return parents
    parents.append((ParentKind.TREE, job.seq))
    above_id = job.scope_id
    while above_id is not None:
        above = unit_of_work.scopes([above_id]).get(above_id)
        if above is None or above.closed_at is None:
            break
        parents.append((ParentKind.TREE, above.id))
        above_id = above.parent
    return parents


def _reopen(unit_of_work: UnitOfWork, job: JobRecord, was: Status) -> None:
    """Counts the job as open again in its own scope and in those above."""
    own = owned_scope(unit_of_work, job)
    broken = was is not Status.COMPLETED
    closed = True
    if own is not None:
        ended_broken = own.broken > 0
        closed = scopes.reopen(own, was_broken=broken)
        broken = ended_broken
    above_id = job.scope_id
    if above_id is not None and (above := unit_of_work.scopes([above_id]).get(above_id)) is not None:
        scopes.uncount(above, was)
    while closed and above_id is not None and (above := unit_of_work.scopes([above_id]).get(above_id)) is not None:
        ended_broken = above.broken > 0
        closed = scopes.reopen(above, was_broken=broken)
        broken = ended_broken
        above_id = above.parent


def _retry_dependant(unit_of_work: UnitOfWork, seq: int) -> None:
    """Lets a job that depends on a retried one wait for it again. A job that the parent's failure had ended is retried.

    If another parent keeps its gate closed, it waits to be retried together with that parent.
    """
    for job in unit_of_work.load([seq]):
        if not gate.decides(job):
            continue
        was_open = gate.is_open(job)
        endings = _endings(unit_of_work, job)
        unit_of_work.take(job)
        if _count_again(unit_of_work, job, endings) is not Opening.CLOSED or was_open:
            continue
        if job.status is Status.WAITING:
            gate.block_again(job, unit_of_work.now)
        elif _was_doomed(job) and unit_of_work.may_reopen(job):
            _retry(unit_of_work, job, RetryRequest(cascade=True, include_cancelled=True, fresh=True), endings)


def _endings(unit_of_work: UnitOfWork, job: JobRecord) -> Endings:
    edges = unit_of_work.edges_of([job.seq])
    return list(zip(edges, endings_now(unit_of_work, job.tenant, edges), strict=True))


def _count_again(unit_of_work: UnitOfWork, job: JobRecord, endings: Endings) -> Opening:
    """Sets the endings of the edges anew, and returns whether the gate is open."""
    for edge, ending in endings:
        if edge.ending is not ending:
            unit_of_work.set_ending([edge], ending)
    job.gate = gate.counted_again(job, [ending for _, ending in endings])
    return opening(job.gate)


def _was_doomed(job: JobRecord) -> bool:
    """Whether a parent ended this job, and not a deadline or a cancellation."""
    return job.last_move in _DOOMED and job.error is not None and job.error.code == gate.DEPENDENCY_FAILED
