"""Accepts jobs: each submission is judged before anything of it is written.

Plain jobs are written here directly; all others are judged by backends/workflow/submission.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ropewalk.backends.memory.tables import Tables, copied
from ropewalk.backends.memory.unit_of_work import Change
from ropewalk.backends.workflow.submission import Draft
from ropewalk.domain.jobs import transition
from ropewalk.domain.jobs.idempotency import KeyMatch, id_taken, judge_id
from ropewalk.domain.jobs.lease import LossReason, loss_reason
from ropewalk.domain.jobs.record import JobRecord, NewJob, is_plain, new_record
from ropewalk.domain.jobs.states import Status
from ropewalk.domain.limits.quota import Admission
from ropewalk.domain.time import Instant
from ropewalk.errors import LeaseLost, QuotaExceeded, RopewalkError
from ropewalk.ports.store.leases import Holder
from ropewalk.ports.store.submission import Accepted, SkipQueue, Submission, SubmitAnswer

Written: TypeAlias = list[tuple[JobRecord, bool]]
"""For each submitted job, its record and whether it was there before."""


def submit(tables: Tables, submissions: Sequence[Submission], now: Instant) -> list[SubmitAnswer]:
    admission = tables.quotas.admission(submissions, now)
    submitting = Submitting(tables, admission, now)
    written = [submitting.submit(submission) for submission in submissions]
    submitting.end()
    tables.quotas.keep_charges(admission)
    return [
        each if isinstance(each, RopewalkError) else _accepted(submission.jobs, each, now)
        for submission, each in zip(submissions, written, strict=True)
    ]


class Submitting:
    """The submissions of one call. They are independent of one another, but a later one finds what an earlier one has
    written."""

    def __init__(self, tables: Tables, admission: Admission, now: Instant) -> None:
        self._tables = tables
        self._admission = admission
        self._now = now
        self._change: Change | None = None

    def submit(self, submission: Submission) -> Written | RopewalkError:
        plain = submission.under is None and all(map(is_plain, submission.jobs))
        written = self._submit_plain(submission.jobs) if plain else self._submit_other(submission)
        if submission.skip_queue is not None and not isinstance(written, RopewalkError) and len(written) == 1:
            [(job, duplicate)] = written
            if not duplicate:
                self._lease(job, submission.skip_queue)
        return written

    def end(self) -> None:
        if self._change is not None:
            self._change.end()

    def _submit_plain(self, jobs: Sequence[NewJob]) -> Written | RopewalkError:
        fresh: dict[tuple[str, str], JobRecord] = {}
        written: Written = []
        for new in jobs:
            held = self._tables.find(new.tenant, new.id) or fresh.get((new.tenant, new.id))
            if held is not None and judge_id(held, new) is KeyMatch.CONFLICT:
                return id_taken(held, new)
            job = held or fresh.setdefault((new.tenant, new.id), new_record(new, seq=0, now=self._now))
            written.append((job, held is not None))
        try:
            self._admission.admit([new for new, (_, duplicate) in zip(jobs, written, strict=True) if not duplicate])
        except QuotaExceeded as refusal:
            return refusal.with_traceback(None)
        for job in fresh.values():
            self._write_plain(job)
        return written

    def _write_plain(self, job: JobRecord) -> None:
        self._tables.last_seq = job.seq = self._tables.last_seq + 1
        if job.tags:
            job.tags = dict(job.tags)
        self._tables.register(job)
        self._tables.put_back(job, self._now)

    def _submit_other(self, submission: Submission) -> Written | RopewalkError:
        change = self._begun()
        try:
            owner = None if submission.under is None else self._holder(submission.under)
            draft = Draft(change.unit_of_work, submission.jobs, owner)
            draft.judge(self._admission)
        except RopewalkError as refusal:
            return refusal.with_traceback(None)
        change.propagation.written(draft)
        return draft.answers()

    def _begun(self) -> Change:
        if self._change is None:
            self._change = Change(self._tables, self._now)
        return self._change

    def _holder(self, under: Holder) -> JobRecord:
        job = self._tables.jobs.get(under.seq)
        lost = loss_reason(job, under.fence, under.owner)
        if job is None or lost is not None:
            reason = lost or LossReason.NOT_FOUND
            raise LeaseLost(f"this attempt no longer holds its job ({reason}): nothing was spawned", reason=reason)
        return job

    def _lease(self, job: JobRecord, skip: SkipQueue) -> None:
        """Leases a new job to the worker that submits it, unless a rule forbids that."""
        paused = (job.tenant, job.queue) in self._tables.paused
        in_time = job.deadline is None or job.deadline > self._now
        if job.ready_at(self._now) and in_time and not paused and self._has_room(job):
            self._begun().unit_of_work.take(job)
            transition.claim(
                job,
                owner=skip.owner,
                ticket=skip.ticket,
                epoch=self._tables.epoch,
                lease_us=skip.lease_us,
                now=self._now,
            )
            self._begun().unit_of_work.flush()  # From now on it counts as a running job.

    def _has_room(self, job: JobRecord) -> bool:
        """Whether the limits on a job leave room; if they do, the room is used."""
        headroom = self._tables.limits.headroom([job.lane], self._now)
        if not headroom.admits(job.lane):
            return False
        headroom.give(job.lane)
        self._tables.limits.keep_rates(headroom)
        return True


def _accepted(jobs: Sequence[NewJob], written: Written, now: Instant) -> list[Accepted]:
    answers = zip(jobs, written, strict=True)
    return [Accepted.of(_seen(job), now, duplicate=duplicate, new=new) for new, (job, duplicate) in answers]


def _seen(job: JobRecord) -> JobRecord:
    """Returns the record for the answer. A record that leaves the store is a copy; of a job that was not leased, only
    its facts leave the store."""
    return copied(job) if job.status is Status.RUNNING else job
