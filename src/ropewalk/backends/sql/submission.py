"""Accepting jobs: plain ones all in one statement; what may repeat, wait or belong to others is in
dependent_submission.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TypeAlias

from ropewalk.backends.sql import quotas, records
from ropewalk.backends.sql.dependent_submission import Intake
from ropewalk.backends.sql.lanes import LaneBook
from ropewalk.backends.sql.tx import AlreadyThere, Tx
from ropewalk.domain.jobs.record import JobRecord, NewJob, are_alike, new_record
from ropewalk.domain.limits.quota import Admission
from ropewalk.errors import QuotaExceeded
from ropewalk.ports.store.messages import Accepted, Submission, SubmitAnswer

Admit: TypeAlias = Callable[[Tx, int, Sequence[Submission]], Admission]
"""how quotas are asked: quotas.admission, or quotas.passing in a transaction of somebody else's"""


class ControlChanged(Exception):
    """Somebody changed a limit or a quota since this connection last looked."""


def submit(
    tx: Tx, lanes: LaneBook, submissions: Sequence[Submission], admit: Admit = quotas.admission
) -> list[SubmitAnswer]:
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
    return Intake(tx, lanes, _admission(tx, submissions, admit)).submit(submissions)


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
