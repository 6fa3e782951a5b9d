"""Accepting jobs: plain ones all in one statement; what may repeat, wait or belong to others is in intake.py."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, repeat

from ropewalk.backends._sql import records
from ropewalk.backends._sql.intake import Intake
from ropewalk.backends._sql.lanes import LaneBook
from ropewalk.backends._sql.tx import AlreadyThere, Tx
from ropewalk.domain.job import NewJob, are_alike, new_record
from ropewalk.ports.exchange import Accepted, Submission, SubmitAnswer


def submit(tx: Tx, lanes: LaneBook, submissions: Sequence[Submission]) -> list[SubmitAnswer]:
    if all(_is_plain(submission) for submission in submissions):
        try:
            with tx.savepoint():
                return _submit_plain(tx, lanes, submissions)
        except AlreadyThere:
            lanes.forget()  # an id is there already: find out whose
    return Intake(tx, lanes).submit(submissions)


def _is_plain(submission: Submission) -> bool:
    return (
        submission.under is None
        and submission.skip_queue is None
        and all(new.key is None and new.spawn_key is None and new.gate is None for new in submission.jobs)
    )


def _submit_plain(tx: Tx, lanes: LaneBook, submissions: Sequence[Submission]) -> list[SubmitAnswer]:
    jobs = [new for submission in submissions for new in submission.jobs]
    accepted = iter(_add_alike(tx, lanes, jobs) if jobs and are_alike(jobs) else _add_all(tx, lanes, jobs))
    return [list(islice(accepted, len(submission.jobs))) for submission in submissions]


def _add_alike(tx: Tx, lanes: LaneBook, jobs: Sequence[NewJob]) -> list[Accepted]:
    """One record stands for all of them: most batches are many calls of one job type."""
    first = new_record(jobs[0], seq=0, now=tx.now)
    seqs = repeat(None, len(jobs)) if tx.numbers_inserted else tx.take_seqs(len(jobs))
    records.insert_alike(tx, lanes, first, [(seq, new.id, new.input) for seq, new in zip(seqs, jobs, strict=True)])
    state, run_at, group_id = first.state_at(tx.now), first.run_at, first.group_id
    return [
        Accepted(id=new.id, duplicate=False, state=state, run_at=run_at, group_id=group_id or new.id) for new in jobs
    ]


def _add_all(tx: Tx, lanes: LaneBook, jobs: Sequence[NewJob]) -> list[Accepted]:
    seqs = tx.take_seqs(len(jobs))
    drafted = [new_record(new, seq=seq, now=tx.now) for seq, new in zip(seqs, jobs, strict=True)]
    records.insert(tx, lanes, drafted)
    return [Accepted.of(job, tx.now, duplicate=False) for job in drafted]
