"""Records for the domain tests: a job in any status, in one call, taken there by legal moves only."""

from __future__ import annotations

from typing import Any

from ropewalk.domain.failure import Category, ErrorInfo
from ropewalk.domain.jobs.operations import cancel
from ropewalk.domain.jobs.record import JobRecord, NewJob, new_record
from ropewalk.domain.jobs.states import Move, Status
from ropewalk.domain.jobs.transition import Settlement, claim, settle
from ropewalk.domain.time import SECOND, Instant

NOW: Instant = 1_800_000_000 * SECOND
OOPS = ErrorInfo(category=Category.TEMPORARY, message="oops", code="E42")


def a_new_job(**options: Any) -> NewJob:
    return NewJob(**{"id": "job-1", "type": "email", "input": b'{"to":"ann","copies":2}', **options})


def a_job(**options: Any) -> JobRecord:
    """Just submitted, at NOW."""
    return new_record(a_new_job(**options), seq=7, now=NOW)


def running(**options: Any) -> JobRecord:
    return start(a_job(**options))


def in_status(status: Status, **options: Any) -> JobRecord:
    job = a_job(**options)
    match status:
        case Status.WAITING:
            return job
        case Status.RUNNING:
            return start(job)
        case Status.COMPLETED:
            settle(start(job), asking(job, Move.COMPLETE, result=b"3"), NOW)
        case Status.FAILED:
            settle(start(job), asking(job, Move.FAIL, error=OOPS), NOW)
        case Status.DEAD_LETTER:
            settle(start(job), asking(job, Move.BURY, error=OOPS), NOW)
        case Status.CANCELLED:
            cancel(job, reason=None, force=False, now=NOW)
    return job


def start(job: JobRecord, *, owner: str = "worker-a", epoch: int = 0, now: Instant = NOW) -> JobRecord:
    claim(job, owner=owner, ticket=1, epoch=epoch, lease_us=30 * SECOND, now=now)
    return job


def asking(job: JobRecord, move: Move, **fields: Any) -> Settlement:
    return Settlement(seq=job.seq, fence=job.fence, move=move, **fields)
