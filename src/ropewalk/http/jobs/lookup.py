"""Finding the job that a request names, as far as its identity reaches."""

from __future__ import annotations

from typing import Any

from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import Instant
from ropewalk.http.call import Call
from ropewalk.http.errors import ErrorCode, HttpError, not_found
from ropewalk.http.jobs.shapes import JobStatus
from ropewalk.http.jobs.status import JobView
from ropewalk.ports.store.reading import StoredHistory


async def find(call: Call[Any, Any], job_id: str | None = None) -> tuple[JobRecord, Instant]:
    """The job of the path, or of this id, and the time at which it was read. Raises HttpError: not found."""
    wanted = call.id if job_id is None else job_id
    read = await call.store.get(call.tenant, [wanted])
    return _within_reach(call, read.jobs.get(wanted)), read.now


async def find_history(call: Call[Any, Any]) -> StoredHistory:
    """The job of the path with everything recorded about it. Raises HttpError: not found."""
    stored = await call.store.history(call.tenant, call.id)
    _within_reach(call, None if stored is None else stored.job)
    assert stored is not None
    return stored


async def status_of(call: Call[Any, Any], job_id: str | None = None) -> JobStatus:
    """The job of the path as it is now."""
    job, now = await find(call, job_id)
    return JobView.of(call.service, call.identity).status(job, now)


def refuse_bounded(call: Call[Any, Any]) -> None:
    """Raises HttpError for an identity that reaches only some types or queues: what is asked for concerns all."""
    if call.identity.bounded:
        message = "this token is limited to some types or queues, and this call concerns all of them"
        raise HttpError(ErrorCode.FORBIDDEN, message)


def _within_reach(call: Call[Any, Any], job: JobRecord | None) -> JobRecord:
    if job is None or not call.identity.reaches(job.type, job.queue):
        raise not_found()
    return job
