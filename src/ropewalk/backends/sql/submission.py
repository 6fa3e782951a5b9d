"""Accepts jobs. All submissions of one call take the first of these ways that fits all of them:

    plain and alike        one record stands for all    `_add_alike`    most batches: many calls of one job type
    plain                  a record for each            `_add_all`      one INSERT for all of them
    anything else          judged one by one            `Intake`        keys, gates, children, jobs that are there

A plain job has no idempotency key, waits for no other job, and is no child of one. Alike jobs differ only in id and
input. The first two ways notice only by the failing INSERT that a job exists already; this is undone, and the third way
finds the answer. On PostgreSQL the INSERT numbers alike jobs itself if their tenants have no quota, which saves a round
trip.

On the third way, children that one attempt spawns are written like alike jobs if they are alike (`spawn_alike`): their
scope counts them once. A refusal comes before the first write (backends/workflow/submission.py), so that nothing has to
be undone, and all accepted jobs are written together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TypeAlias

from ropewalk.backends.sql import quotas, records
from ropewalk.backends.sql.lanes import LaneBook, epoch_and_control
from ropewalk.backends.sql.limits import ClaimLimits
from ropewalk.backends.sql.tx import AlreadyThere, SqlValue, Tx
from ropewalk.backends.sql.unit_of_work import SqlUnitOfWork
from ropewalk.backends.workflow.propagation import Propagation
from ropewalk.backends.workflow.scopes import owned_scope, root_scope, scope_of
from ropewalk.backends.workflow.submission import Draft
from ropewalk.domain.jobs import transition
from ropewalk.domain.jobs.flags import GROUPED
from ropewalk.domain.jobs.lease import LossReason, loss_reason
from ropewalk.domain.jobs.record import JobRecord, NewJob, are_alike, is_plain, new_record
from ropewalk.domain.limits.quota import Admission
from ropewalk.domain.workflow.scope import join
from ropewalk.errors import LeaseLost, QuotaExceeded, RopewalkError
from ropewalk.ports.store.leases import Holder
from ropewalk.ports.store.submission import Accepted, SkipQueue, Submission, SubmitAnswer


def spawn_alike(
    tx: Tx, lanes: LaneBook, unit_of_work: SqlUnitOfWork, owner: JobRecord, jobs: Sequence[NewJob]
) -> list[Accepted] | None:
    """Writes children that are alike and returns their answers. Returns None and writes nothing if they are not alike,
    or if another rule makes this way impossible: the caller then decides them one by one."""
    if not jobs or any(new.spawn_key is None for new in jobs) or not are_alike(jobs):
        return None
    if jobs[0].key is not None or jobs[0].gate is not None or _is_cancelled(unit_of_work, owner):
        return None
    unit_of_work.flush()  # The statements below must find what this transaction has inserted.
    try:
        with tx.savepoint():
            accepted = _add_alike(tx, lanes, jobs, tx.take_seqs(len(jobs)), owner=owner)
    except AlreadyThere:
        lanes.forget()
        return None
    join(scope_of(unit_of_work, owner), len(jobs))
    return accepted


def _is_cancelled(unit_of_work: SqlUnitOfWork, owner: JobRecord) -> bool:
    scope = owned_scope(unit_of_work, owner) or root_scope(unit_of_work, owner)
    return scope is not None and scope.cancel is not None


class Intake:
    """The submissions of one call that are decided one by one."""

    def __init__(self, tx: Tx, lanes: LaneBook, admission: Admission, *, wait: bool = True) -> None:
        self._tx = tx
        self._lanes = lanes
        self._admission = admission
        self._unit_of_work = SqlUnitOfWork(tx, lanes, wait=wait)
        self._propagation = Propagation(self._unit_of_work)

    def submit(self, submissions: Sequence[Submission]) -> list[SubmitAnswer]:
        drafts = [self._accept(submission) for submission in submissions]
        self._propagation.run()
        self._unit_of_work.flush()
        quotas.write_charges(self._tx, self._admission)
        for submission, draft in zip(submissions, drafts, strict=True):
            if submission.skip_queue is not None and isinstance(draft, Draft):
                self._lease(draft.answers(), submission.skip_queue)
        return [self._answer(*each) for each in zip(submissions, drafts, strict=True)]

    def _accept(self, submission: Submission) -> Draft | SubmitAnswer:
        """Accepts one submission. Returns a draft that is still to be written, the jobs that were written as alike, or
        the error that refuses it."""
        try:
            owner = None if submission.under is None else self._holder(submission.under)
            if owner is not None:
                accepted = spawn_alike(self._tx, self._lanes, self._unit_of_work, owner, submission.jobs)
                if accepted is not None:
                    self._admission.join(submission.jobs)
                    return accepted
            draft = Draft(self._unit_of_work, submission.jobs, owner)
            draft.judge(self._admission)
        except RopewalkError as refusal:
            return refusal.with_traceback(None)
        self._propagation.written(draft)
        return draft

    def _holder(self, under: Holder) -> JobRecord:
        job = next(iter(self._unit_of_work.load([under.seq])), None)
        lost = loss_reason(job, under.fence, under.owner)
        if job is None or lost is not None:
            reason = lost or LossReason.NOT_FOUND
            raise LeaseLost(f"this attempt no longer holds its job ({reason}): nothing was spawned", reason=reason)
        return job

    def _lease(self, answers: Sequence[tuple[JobRecord, bool]], skip: SkipQueue) -> None:
        """Leases the only new job to the worker that submits it, unless a rule forbids that."""
        if len(answers) != 1:
            return
        [(job, duplicate)] = answers
        tx = self._tx
        in_time = job.deadline is None or job.deadline > tx.now
        if duplicate or not in_time or not job.ready_at(tx.now) or tx.row(tx.sql.is_paused, (job.tenant, job.queue)):
            return
        epoch, control = epoch_and_control(tx)
        lane, limits = self._lanes.id_of(tx, job.lane), ClaimLimits(tx, self._lanes, self._lanes.rules(tx, control))
        limits.measure([lane])
        if not limits.headroom.admits(lane):
            return
        limits.headroom.give(lane)
        limits.write_rates()
        transition.claim(job, owner=skip.owner, ticket=skip.ticket, epoch=epoch, lease_us=skip.lease_us, now=tx.now)
        records.lease(tx, [job], owner=skip.owner, epoch=epoch)

    def _answer(self, submission: Submission, draft: Draft | SubmitAnswer) -> SubmitAnswer:
        if not isinstance(draft, Draft):
            return draft
        answers = zip(submission.jobs, draft.answers(), strict=True)
        return [Accepted.of(job, self._tx.now, duplicate=duplicate, new=new) for new, (job, duplicate) in answers]


Admit: TypeAlias = Callable[[Tx, int, Sequence[Submission]], Admission]
"""Such a function measures quotas: quotas.admission, or quotas.admission_in_user_transaction in a user's
transaction."""


class ControlChanged(Exception):
    """A limit or a quota has changed since this connection last read them."""


def submit(
    tx: Tx,
    lanes: LaneBook,
    submissions: Sequence[Submission],
    admit: Admit = quotas.admission,
    *,
    wait: bool = True,
) -> list[SubmitAnswer]:
    """Submits jobs. With `wait=False`, a job whose idempotency key another transaction has locked is answered by
    MustWait."""
    if all(_is_plain(submission) for submission in submissions):
        try:
            with tx.savepoint():
                return _submit_plain(tx, lanes, submissions, admit)
        except AlreadyThere:
            lanes.forget()  # An id exists already. Intake finds out which job has it.
        except ControlChanged:
            # The new lanes are undone, so that this transaction has locked nothing when it waits for a quota.
            lanes.forget()
        except QuotaExceeded:
            pass  # Some of the jobs may fit, and those that exist already use up nothing.
    return Intake(tx, lanes, _admission(tx, submissions, admit), wait=wait).submit(submissions)


def _admission(tx: Tx, submissions: Sequence[Submission], admit: Admit) -> Admission:
    """Measures the quotas, unless a running job makes all of the submissions."""
    if not quotas.tenants_outside(submissions):
        return Admission()
    return admit(tx, epoch_and_control(tx)[1], submissions)


def _is_plain(submission: Submission) -> bool:
    """Whether this submission can be written without looking for each of its jobs first."""
    return submission.under is None and submission.skip_queue is None and all(map(is_plain, submission.jobs))


def _submit_plain(tx: Tx, lanes: LaneBook, submissions: Sequence[Submission], admit: Admit) -> list[SubmitAnswer]:
    jobs = [new for submission in submissions for new in submission.jobs]
    if not jobs:
        return [[] for _ in submissions]
    alike = are_alike(jobs)
    if (
        alike
        and tx.numbers_inserted
        and (control := tx.lanes.quotas.control_without(quotas.tenants_outside(submissions))) is not None
    ):
        accepted = iter(_add_alike(tx, lanes, jobs, control=control))
    else:
        seqs, control = tx.take_numbers(len(jobs))
        admission = admit(tx, control, submissions) if tx.lanes.quotas.at(tx, control).by_tenant else None
        if admission is not None:
            admission.admit(jobs)
        accepted = iter(_add_alike(tx, lanes, jobs, seqs) if alike else _add_all(tx, lanes, jobs, seqs))
        if admission is not None:
            quotas.write_charges(tx, admission)
    return [list(islice(accepted, len(submission.jobs))) for submission in submissions]


def _add_alike(
    tx: Tx,
    lanes: LaneBook,
    jobs: Sequence[NewJob],
    seqs: Sequence[int] | None = None,
    *,
    control: int | None = None,
    owner: JobRecord | None = None,
) -> list[Accepted]:
    """Inserts alike jobs from one record that stands for all of them. `owner` is the job that spawns them.

    Without `seqs` the INSERT numbers them, and checks that the control counter still has the value `control`, at which
    none of the tenants had a quota.
    """
    first = new_record(jobs[0], seq=0, now=tx.now)
    own: dict[str, Sequence[SqlValue]] = {"id": [new.id for new in jobs], "input": [tx.blob(new.input) for new in jobs]}
    if seqs is not None:
        own["seq"] = seqs
    if owner is not None:
        first.scope_id, first.group_id = owner.seq, owner.group_id or owner.id
        first.flags |= GROUPED
        own["spawn_key"] = [new.spawn_key for new in jobs]
    if not records.insert_alike(tx, lanes, first, own, control=control):
        raise ControlChanged
    state, created_at, run_at, group_id = first.state_at(tx.now), first.created_at, first.run_at, first.group_id
    return [
        Accepted(
            id=new.id,
            duplicate=False,
            state=state,
            created_at=created_at,
            run_at=run_at,
            group_id=group_id or new.id,
        )
        for new in jobs
    ]


def _add_all(tx: Tx, lanes: LaneBook, jobs: Sequence[NewJob], seqs: Sequence[int]) -> list[Accepted]:
    drafted = [new_record(new, seq=seq, now=tx.now) for seq, new in zip(seqs, jobs, strict=True)]
    records.insert(tx, lanes, drafted)
    return [Accepted.of(job, tx.now, duplicate=False) for job in drafted]
