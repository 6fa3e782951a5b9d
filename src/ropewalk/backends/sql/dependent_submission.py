"""Accepting jobs that may repeat others, wait for them, or belong to somebody: each submission judged, then written.

A refusal comes before the first write (backends/workflow/submission.py), so that nothing has to be undone, and all
that is accepted is written together.
"""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.backends.sql import quotas
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.limits import Flow
from ropewalk.backends.sql.spawning import spawn_alike
from ropewalk.backends.sql.tx import Tx
from ropewalk.backends.sql.unit_of_work import SqlLedger
from ropewalk.backends.workflow.propagation import Rippling
from ropewalk.backends.workflow.submission import Draft
from ropewalk.domain.jobs import transition
from ropewalk.domain.jobs.lease import LossReason, loss_reason
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.limits.quota import Admission
from ropewalk.errors import LeaseLost, RopewalkError
from ropewalk.ports.store.messages import Accepted, Holder, SkipQueue, Submission, SubmitAnswer


class Intake:
    """One call's submissions."""

    def __init__(self, tx: Tx, lanes: LaneBook, admission: Admission) -> None:
        self._tx = tx
        self._lanes = lanes
        self._admission = admission
        self._ledger = SqlLedger(tx, lanes)
        self._rippling = Rippling(self._ledger)

    def submit(self, submissions: Sequence[Submission]) -> list[SubmitAnswer]:
        drafts = [self._accept(submission) for submission in submissions]
        self._rippling.run()
        self._ledger.flush()
        quotas.spend(self._tx, self._admission)
        for submission, draft in zip(submissions, drafts, strict=True):
            if submission.skip_queue is not None and isinstance(draft, Draft):
                self._lease(draft.answers(), submission.skip_queue)
        return [self._answer(draft) for draft in drafts]

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
        lease = (job.attempt, job.fence, job.owner, job.ticket, job.lease_expires_at, job.start_rev, job.started_at)
        tx.run(tx.sql.lease_new_job, (job.status.value, job.last_move.value, job.rev, job.updated_at, *lease, job.seq))

    def _answer(self, draft: Draft | SubmitAnswer) -> SubmitAnswer:
        if not isinstance(draft, Draft):
            return draft
        return [Accepted.of(job, self._tx.now, duplicate=duplicate) for job, duplicate in draft.answers()]
