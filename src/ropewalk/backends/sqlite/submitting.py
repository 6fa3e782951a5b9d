"""Accepting jobs: plain ones all in one statement, the others one by one with what they may repeat."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from msgspec import structs

from ropewalk.backends.sqlite import keys, records
from ropewalk.backends.sqlite.lanes import LaneBook
from ropewalk.backends.sqlite.library import sqlite
from ropewalk.backends.sqlite.rows import load
from ropewalk.backends.sqlite.statements import SQL
from ropewalk.backends.sqlite.tx import Tx
from ropewalk.domain import transition
from ropewalk.domain.idempotency import (
    Verdict,
    id_taken,
    input_hash,
    judge_id,
    judge_key,
    key_taken,
    opened,
    spawn_key_taken,
)
from ropewalk.domain.job import JobRecord, NewJob, are_alike, new_record
from ropewalk.domain.lease import loss_reason
from ropewalk.errors import LeaseLost, RopewalkError
from ropewalk.ports.exchange import Accepted, Holder, SkipQueue, Submission, SubmitAnswer


def submit(tx: Tx, lanes: LaneBook, submissions: Sequence[Submission]) -> list[SubmitAnswer]:
    if all(_is_plain(submission) for submission in submissions):
        try:
            with tx.savepoint():
                return _submit_plain(tx, lanes, submissions)
        except sqlite.IntegrityError:
            lanes.forget()  # an id is there already: find out whose
    return [_submit_one(tx, lanes, submission) for submission in submissions]


def _is_plain(submission: Submission) -> bool:
    return (
        submission.under is None
        and submission.skip_queue is None
        and all(new.key is None and new.spawn_key is None for new in submission.jobs)
    )


def _submit_plain(tx: Tx, lanes: LaneBook, submissions: Sequence[Submission]) -> list[SubmitAnswer]:
    jobs = [new for submission in submissions for new in submission.jobs]
    seqs = records.take_seqs(tx, len(jobs))
    accepted = iter(_add_alike(tx, lanes, jobs, seqs) if jobs and are_alike(jobs) else _add_all(tx, lanes, jobs, seqs))
    return [list(islice(accepted, len(submission.jobs))) for submission in submissions]


def _add_alike(tx: Tx, lanes: LaneBook, jobs: Sequence[NewJob], seqs: range) -> list[Accepted]:
    """One record stands for all of them: most batches are many calls of one job type."""
    first = new_record(jobs[0], seq=seqs[0], now=tx.now)
    records.insert_alike(tx, lanes, first, [(seq, new.id, new.input) for seq, new in zip(seqs, jobs, strict=True)])
    state, run_at, group_id = first.state_at(tx.now), first.run_at, first.group_id
    return [
        Accepted(id=new.id, duplicate=False, state=state, run_at=run_at, group_id=group_id or new.id) for new in jobs
    ]


def _add_all(tx: Tx, lanes: LaneBook, jobs: Sequence[NewJob], seqs: range) -> list[Accepted]:
    drafted = [new_record(new, seq=seq, now=tx.now) for seq, new in zip(seqs, jobs, strict=True)]
    records.insert(tx, lanes, drafted)
    return [Accepted.of(job, tx.now, duplicate=False) for job in drafted]


def _submit_one(tx: Tx, lanes: LaneBook, submission: Submission) -> SubmitAnswer:
    try:
        with tx.savepoint():
            if submission.under is not None:
                _check_holder(tx, submission.under)
            answers = [_add(tx, lanes, new) for new in submission.jobs]
    except RopewalkError as refusal:
        lanes.forget()
        return refusal
    if submission.skip_queue is not None and len(answers) == 1:
        _lease(tx, answers[0], submission.skip_queue)
    return [Accepted.of(job, tx.now, duplicate=duplicate) for job, duplicate in answers]


def _add(tx: Tx, lanes: LaneBook, new: NewJob) -> tuple[JobRecord, bool]:
    """The job and whether it was there before. What was added earlier in the same submission is there, too."""
    held = _same_id(tx, new) or _same_spawn(tx, new) or _same_key(tx, new)
    if held is not None:
        return held, True
    [seq] = records.take_seqs(tx, 1)
    job = new_record(new, seq=seq, now=tx.now)
    records.insert(tx, lanes, [job])
    return job, False


def _same_id(tx: Tx, new: NewJob) -> JobRecord | None:
    held = records.find(tx, new.tenant, new.id)
    if held is not None and judge_id(held, new) is Verdict.CONFLICT:
        raise id_taken(held, new)
    return held


def _same_spawn(tx: Tx, new: NewJob) -> JobRecord | None:
    if new.parent_id is None or new.spawn_key is None:
        return None
    seq = tx.value(SQL.seq_of_spawn, (new.parent_id, new.spawn_key, new.tenant))
    if seq is None:
        return None
    [held] = load(tx, [seq])
    if judge_id(held, new) is Verdict.CONFLICT:
        raise spawn_key_taken(held, new)
    return held


def _same_key(tx: Tx, new: NewJob) -> JobRecord | None:
    if new.key is None:
        return None
    hashed = input_hash(new.input)
    held = keys.find(tx, new.tenant, new.type, new.key.key)
    match judge_key(held, new.key, hashed, tx.now):
        case Verdict.FREE:
            keys.put(tx, opened(new, new.key, hashed, tx.now))
            return None
        case Verdict.DUPLICATE:
            assert held is not None
            keys.put(tx, structs.replace(held, keep_us=max(held.keep_us, new.key.window_us)))
            return records.find(tx, new.tenant, held.job_id)
        case Verdict.CONFLICT:
            assert held is not None
            raise key_taken(held)


def _check_holder(tx: Tx, under: Holder) -> None:
    held = next(iter(load(tx, [under.seq])), None)
    lost = loss_reason(held, under.fence, under.owner)
    if lost is not None:
        raise LeaseLost(f"this attempt no longer holds its job ({lost}): nothing was spawned", reason=lost)


def _lease(tx: Tx, answer: tuple[JobRecord, bool], skip: SkipQueue) -> None:
    """Hand a new job to its submitter at once, unless something stands in the way."""
    job, duplicate = answer
    in_time = job.deadline is None or job.deadline > tx.now
    if duplicate or not in_time or not job.ready_at(tx.now) or tx.row(SQL.is_paused, (job.tenant, job.queue)):
        return
    epoch = tx.value(SQL.epoch)
    transition.claim(job, owner=skip.owner, ticket=skip.ticket, epoch=epoch, lease_us=skip.lease_us, now=tx.now)
    lease = (job.attempt, job.fence, job.owner, job.ticket, job.lease_expires_at, job.start_rev, job.started_at)
    tx.run(SQL.lease_new_job, (job.status.value, job.last_move.value, job.rev, job.updated_at, *lease, job.seq))
