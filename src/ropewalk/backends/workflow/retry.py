"""A finished job starts over: the scopes that counted its end count it as open again, up to the group's root."""

from __future__ import annotations

from ropewalk.backends.workflow.scopes import chain_head, owned_scope
from ropewalk.backends.workflow.unit_of_work import UnitOfWork
from ropewalk.domain.jobs import operations
from ropewalk.domain.jobs.operations import RetryRequest
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.domain.jobs.transition import Effects
from ropewalk.domain.workflow import gate
from ropewalk.domain.workflow import scope as scopes
from ropewalk.domain.workflow.dependency import Edge, ParentKind

_DOOMED = frozenset({Move.DOOM, Move.CANCEL})


def retry(unit_of_work: UnitOfWork, job: JobRecord, asked: RetryRequest) -> None:
    """The caller found no reason to refuse it."""
    was = job.status
    unit_of_work.take(job)
    event = operations.retry(job, asked, unit_of_work.now)
    unit_of_work.record(job, Effects(Move.RESTART, event=event, left=was))
    unit_of_work.reopen_key(job)
    if asked.fresh:
        unit_of_work.forget_steps(job)
    trees = _reopen(unit_of_work, job, was)
    if asked.cascade:
        open_again = [(ParentKind.JOB, job.seq), (ParentKind.CHAIN, chain_head(job))]
        open_again += [(ParentKind.TREE, seq) for seq in trees]
        for edge in unit_of_work.ended_edges(open_again):
            _retry_dependant(unit_of_work, edge)


def _reopen(unit_of_work: UnitOfWork, job: JobRecord, was: Status) -> list[int]:
    """The trees that had ended and are open again, by the number of their owner."""
    own = owned_scope(unit_of_work, job)
    broken = was is not Status.COMPLETED
    closed = True
    if own is not None:
        ended_broken = own.broken > 0
        closed = scopes.reopen(own, was_broken=broken)
        broken = ended_broken
    reopened = [job.seq] if closed else []
    above_id = job.scope_id
    if above_id is not None and (above := unit_of_work.scopes([above_id]).get(above_id)) is not None:
        scopes.uncount(above, was)
    while closed and above_id is not None and (above := unit_of_work.scopes([above_id]).get(above_id)) is not None:
        ended_broken = above.broken > 0
        closed = scopes.reopen(above, was_broken=broken)
        broken = ended_broken
        if closed:
            reopened.append(above.id)
        above_id = above.parent
    return reopened


def _retry_dependant(unit_of_work: UnitOfWork, edge: Edge) -> None:
    """What never started waits for this parent again; what its failure had ended is retried for that.

    Unless another parent keeps the gate from opening: then it waits to be retried together with that one.
    """
    for job in unit_of_work.load([edge.seq]):
        if job.start_rev or job.gate is None:
            continue
        unit_of_work.take(job)
        unit_of_work.set_ending([edge], None)
        if not gate.parent_reopened(job):
            continue
        if _was_doomed(job) and unit_of_work.may_reopen(job):
            retry(unit_of_work, job, RetryRequest(cascade=True, include_cancelled=True, fresh=True))
        if job.status is Status.WAITING:
            gate.block_again(job)


def _was_doomed(job: JobRecord) -> bool:
    """By a parent: not given up in time, nor cancelled by somebody."""
    return job.last_move in _DOOMED and job.error is not None and job.error.code == gate.DEPENDENCY_FAILED
