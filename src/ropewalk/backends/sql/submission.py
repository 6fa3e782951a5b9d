"""Accepting jobs: plain ones all in one statement; what may repeat, wait or belong to others is in
submission.py.

Many children of one kind under a running job: one statement writes them, and the scope counts them once.

That they are new is found out by writing them. Where one is there already, or they are not of one kind, the long way
(submission.py) tells them apart.

Accepting jobs that may repeat others, wait for them, or belong to somebody: each submission judged, then written.

A refusal comes before the first write (backends/workflow/submission.py), so that nothing has to be undone, and all
that is accepted is written together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from operator import attrgetter
from typing import TypeAlias

from ropewalk.backends.sql import quotas, records
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.limits import Flow
from ropewalk.backends.sql.tx import AlreadyThere, Tx
from ropewalk.backends.sql.unit_of_work import SqlLedger
from ropewalk.backends.workflow.propagation import Propagation
from ropewalk.backends.workflow.scopes import owned_scope, root_scope, scope_of
from ropewalk.backends.workflow.submission import Draft
from ropewalk.domain.jobs import transition
from ropewalk.domain.jobs.flags import GROUPED
from ropewalk.domain.jobs.lease import LossReason, loss_reason
from ropewalk.domain.jobs.record import JobRecord, NewJob, are_alike, new_record
from ropewalk.domain.limits.quota import Admission
from ropewalk.domain.workflow.scope import join
from ropewalk.errors import LeaseLost, QuotaExceeded, RopewalkError
from ropewalk.ports.store.leases import Holder
from ropewalk.ports.store.submission import Accepted, SkipQueue, Submission, SubmitAnswer

_OWN = frozenset({"id", "input", "spawn_key"})
_but_own = attrgetter(*(name for name in NewJob.__struct_fields__ if name not in _OWN))


def spawn_alike(
    tx: Tx, lanes: LaneBook, ledger: SqlLedger, owner: JobRecord, jobs: Sequence[NewJob]
) -> list[Accepted] | None:
    """None: nothing was written, this is no case for it."""
    keys = [new.spawn_key for new in jobs if new.spawn_key is not None]
    if not jobs or len(keys) < len(jobs) or not _are_alike(jobs) or _is_cancelled(ledger, owner):
        return None
    ledger.flush()  # what this transaction inserted counts, too
    try:
        with tx.savepoint():
            first = _insert(tx, lanes, owner, jobs, keys)
    except AlreadyThere:
        lanes.forget()
        return None
    join(scope_of(ledger, owner), len(jobs))
    state, run_at, group_id = first.state_at(tx.now), first.run_at, first.group_id or owner.id
    return [Accepted(id=new.id, duplicate=False, state=state, run_at=run_at, group_id=group_id) for new in jobs]


def _are_alike(jobs: Sequence[NewJob]) -> bool:
    first = jobs[0]
    if first.key is not None or first.gate is not None:
        return False
    shared = list(map(_but_own, jobs))
    return shared.count(shared[0]) == len(shared)


def _is_cancelled(ledger: SqlLedger, owner: JobRecord) -> bool:
    scope = owned_scope(ledger, owner) or root_scope(ledger, owner)
    return scope is not None and scope.cancel is not None


def _insert(tx: Tx, lanes: LaneBook, owner: JobRecord, jobs: Sequence[NewJob], keys: Sequence[str]) -> JobRecord:
    """One record stands for all of them."""
    seqs = tx.take_seqs(len(jobs))
    first = new_record(jobs[0], seq=seqs[0], now=tx.now)
    first.scope_id, first.group_id = owner.seq, owner.group_id or owner.id
    first.flags |= GROUPED
    own = [(seq, new.id, new.input) for seq, new in zip(seqs, jobs, strict=True)]
    records.insert_alike(tx, lanes, first, own, keys)
    return first


class Intake:
    """One call's submissions."""

    def __init__(self, tx: Tx, lanes: LaneBook, admission: Admission, *, wait: bool = True) -> None:
        self._tx = tx
        self._lanes = lanes
        self._admission = admission
        self._ledger = SqlLedger(tx, lanes, wait=wait)
        self._rippling = Propagation(self._ledger)

    def submit(self, submissions: Sequence[Submission]) -> list[SubmitAnswer]:
        drafts = [self._accept(submission) for submission in submissions]
        self._rippling.run()
        self._ledger.flush()
        quotas.spend(self._tx, self._admission)
        for submission, draft in zip(submissions, drafts, strict=True):
            if submission.skip_queue is not None and isinstance(draft, Draft):
                self._lease(draft.answers(), submission.skip_queue)
        return [self._answer(*each) for each in zip(submissions, drafts, strict=True)]

    def _accept(self, submission: Submission) -> Draft | SubmitAnswer:
        """Written, or why not."""
        try:
            owner = None if submission.under is None else self._holder(submission.under)
            if owner is not None:
                accepted = spawn_alike(self._tx, self._lanes, self._ledger, owner, submission.jobs)
                if accepted is not None:
                    self._admission.join(submission.jobs)
                    return accepted
            draft = Draft(self._ledger, submission.jobs, owner)
            draft.judge(self._admission)
        except RopewalkError as refusal:
            return refusal.with_traceback(None)
        self._rippling.written(draft)
        return draft

    def _holder(self, under: Holder) -> JobRecord:
        job = next(iter(self._ledger.load([under.seq])), None)
        lost = loss_reason(job, under.fence, under.owner)
        if job is None or lost is not None:
            reason = lost or LossReason.NOT_FOUND
            raise LeaseLost(f"this attempt no longer holds its job ({reason}): nothing was spawned", reason=reason)
        return job

    def _lease(self, answers: Sequence[tuple[JobRecord, bool]], skip: SkipQueue) -> None:
        """Hand the only new job to its submitter at once, unless something stands in the way."""
        if len(answers) != 1:
            return
        [(job, duplicate)] = answers
        tx = self._tx
        in_time = job.deadline is None or job.deadline > tx.now
        if duplicate or not in_time or not job.ready_at(tx.now) or tx.row(tx.sql.is_paused, (job.tenant, job.queue)):
            return
        found = tx.row(tx.sql.epoch)
        assert found is not None
        epoch, control = found
        lane, flow = self._lanes.id_of(tx, job.lane), Flow(tx, self._lanes, self._lanes.rules(tx, control))
        flow.meet([lane])
        if not flow.gauges.admits(lane):
            return
        flow.gauges.give(lane)
        flow.spend()
        transition.claim(job, owner=skip.owner, ticket=skip.ticket, epoch=epoch, lease_us=skip.lease_us, now=tx.now)
        records.lease(tx, [job], owner=skip.owner, epoch=epoch)

    def _answer(self, submission: Submission, draft: Draft | SubmitAnswer) -> SubmitAnswer:
        if not isinstance(draft, Draft):
            return draft
        answers = zip(submission.jobs, draft.answers(), strict=True)
        return [Accepted.of(job, self._tx.now, duplicate=duplicate, new=new) for new, (job, duplicate) in answers]


Admit: TypeAlias = Callable[[Tx, int, Sequence[Submission]], Admission]
"""how quotas are asked: quotas.admission, or quotas.passing in a transaction of somebody else's"""


class ControlChanged(Exception):
    """Somebody changed a limit or a quota since this connection last looked."""


def submit(
    tx: Tx,
    lanes: LaneBook,
    submissions: Sequence[Submission],
    admit: Admit = quotas.admission,
    *,
    wait: bool = True,
) -> list[SubmitAnswer]:
    """Without `wait`, what needs a key that another transaction holds is answered with MustWait."""
    if all(_is_plain(submission) for submission in submissions):
        try:
            with tx.savepoint():
                return _submit_plain(tx, lanes, submissions, admit)
        except AlreadyThere:
            lanes.forget()  # an id is there already: find out whose
        except ControlChanged:
            lanes.forget()  # a lane that was written is undone: whoever waits for a quota holds nothing
        except QuotaExceeded:
            pass  # some may fit, and those that are there already use nothing up
    return Intake(tx, lanes, _admission(tx, submissions, admit), wait=wait).submit(submissions)


def _admission(tx: Tx, submissions: Sequence[Submission], admit: Admit) -> Admission:
    if not quotas.outside(submissions):
        return Admission()
    found = tx.row(tx.sql.epoch)
    assert found is not None
    return admit(tx, found[1], submissions)


def _is_plain(submission: Submission) -> bool:
    return (
        submission.under is None
        and submission.skip_queue is None
        and all(new.key is None and new.spawn_key is None and new.gate is None for new in submission.jobs)
    )


def _submit_plain(tx: Tx, lanes: LaneBook, submissions: Sequence[Submission], admit: Admit) -> list[SubmitAnswer]:
    jobs = [new for submission in submissions for new in submission.jobs]
    if not jobs:
        return [[] for _ in submissions]
    alike = are_alike(jobs)
    if alike and tx.numbers_inserted and (control := tx.lanes.quotas.free(quotas.outside(submissions))) is not None:
        accepted = iter(_add_under(tx, lanes, jobs, control))
    else:
        seqs, control = tx.take_numbers(len(jobs))
        admission = admit(tx, control, submissions)
        admission.admit(jobs)
        accepted = iter(_add_alike(tx, lanes, jobs, seqs) if alike else _add_all(tx, lanes, jobs, seqs))
        quotas.spend(tx, admission)
    return [list(islice(accepted, len(submission.jobs))) for submission in submissions]


def _add_under(tx: Tx, lanes: LaneBook, jobs: Sequence[NewJob], control: int) -> list[Accepted]:
    """Where nobody has a quota: the insert looks itself whether that is still so, and takes the numbers, too."""
    first = new_record(jobs[0], seq=0, now=tx.now)
    if not records.insert_under(tx, lanes, first, [(new.id, new.input) for new in jobs], control=control):
        raise ControlChanged
    return _accepted(tx, first, jobs)


def _add_alike(tx: Tx, lanes: LaneBook, jobs: Sequence[NewJob], seqs: Sequence[int]) -> list[Accepted]:
    """One record stands for all of them: most batches are many calls of one job type."""
    first = new_record(jobs[0], seq=seqs[0], now=tx.now)
    records.insert_alike(tx, lanes, first, [(seq, new.id, new.input) for seq, new in zip(seqs, jobs, strict=True)])
    return _accepted(tx, first, jobs)


def _accepted(tx: Tx, first: JobRecord, jobs: Sequence[NewJob]) -> list[Accepted]:
    state, run_at, group_id = first.state_at(tx.now), first.run_at, first.group_id
    return [
        Accepted(id=new.id, duplicate=False, state=state, run_at=run_at, group_id=group_id or new.id) for new in jobs
    ]


def _add_all(tx: Tx, lanes: LaneBook, jobs: Sequence[NewJob], seqs: Sequence[int]) -> list[Accepted]:
    drafted = [new_record(new, seq=seq, now=tx.now) for seq, new in zip(seqs, jobs, strict=True)]
    records.insert(tx, lanes, drafted)
    return [Accepted.of(job, tx.now, duplicate=False) for job in drafted]
