"""Accepting jobs: plain ones all in one statement; what may repeat, wait or belong to others is in intake.py."""

from __future__ import annotations

from collections.abc import Sequence

from ropewalk.backends.sqlite import records
from ropewalk.backends.sqlite.intake import Intake
from ropewalk.backends.sqlite.lanes import LaneBook
from ropewalk.backends.sqlite.library import sqlite
from ropewalk.backends.sqlite.tx import Tx
from ropewalk.domain.job import new_record
from ropewalk.ports.exchange import Accepted, Submission, SubmitAnswer


def submit(tx: Tx, lanes: LaneBook, submissions: Sequence[Submission]) -> list[SubmitAnswer]:
    if all(_is_plain(submission) for submission in submissions):
        try:
            with tx.savepoint():
                return _submit_plain(tx, lanes, submissions)
        except sqlite.IntegrityError:
            lanes.forget()  # an id is there already: find out whose
    return Intake(tx, lanes).submit(submissions)


def _is_plain(submission: Submission) -> bool:
    return (
        submission.under is None
        and submission.skip_queue is None
        and all(new.key is None and new.spawn_key is None and new.gate is None for new in submission.jobs)
    )


def _submit_plain(tx: Tx, lanes: LaneBook, submissions: Sequence[Submission]) -> list[SubmitAnswer]:
    seqs = iter(records.take_seqs(tx, sum(len(submission.jobs) for submission in submissions)))
    drafted = [[new_record(new, seq=next(seqs), now=tx.now) for new in each.jobs] for each in submissions]
    records.insert(tx, lanes, [job for jobs in drafted for job in jobs])
    return [[Accepted.of(job, tx.now, duplicate=False) for job in jobs] for jobs in drafted]
