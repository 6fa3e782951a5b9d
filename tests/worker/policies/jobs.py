"""Claimed jobs, as much of them as policies look at."""

from __future__ import annotations

from typing import Any, cast

from ropewalk.domain.jobs.record import JobRecord, NewJob, new_record
from ropewalk.domain.time import SECOND
from ropewalk.worker.attempt import Attempt


class Held:
    """As much of an attempt as a buffer looks at."""

    def __init__(self, job: JobRecord) -> None:
        self.job = job


def claimed(seq: int, *, age: int = 0, type: str = "t", **fields: Any) -> JobRecord:  # noqa: A002  the field's name
    """Queued so many seconds before the others; its ticket is its number."""
    job = new_record(NewJob(id=str(seq), type=type, input=b"{}", **fields), seq=seq, now=(10_000 - age) * SECOND)
    job.ticket = seq
    return job


def held(*jobs: JobRecord) -> list[Attempt]:
    return [cast("Attempt", Held(job)) for job in jobs]


def seqs(jobs: list[JobRecord]) -> list[int]:
    return [job.seq for job in jobs]
