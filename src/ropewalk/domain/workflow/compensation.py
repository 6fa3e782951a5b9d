"""The follow-up of a job that became failed or dead_letter: built once per run, by any path that led there."""

from __future__ import annotations

from uuid import UUID, uuid5

import msgspec

from ropewalk.domain.failure import WORKER_LOST
from ropewalk.domain.jobs.record import FollowUp, JobRecord, NewJob, Origin

_NAMESPACE = UUID("6f0b3f0e-52c1-5f0a-9c55-0f6c2b7b0d8e")


def compensation(job: JobRecord) -> NewJob | None:
    """The job to insert together with the terminal transition, if the failed job named one.

    Its id follows from (tenant, job, run), so the same failure can never compensate twice.
    """
    follow_up = job.on_failure
    if follow_up is None:
        return None
    error = job.error or WORKER_LOST
    return NewJob(
        id=str(uuid5(_NAMESPACE, f"{job.tenant}/{job.id}/{job.run}")),
        type=follow_up.type,
        input=_arguments(follow_up, job),
        tenant=job.tenant,
        queue=follow_up.queue,
        priority=follow_up.priority,
        max_attempts=follow_up.max_attempts,
        max_crashes=follow_up.max_crashes,
        timeout_us=follow_up.timeout_us,
        backoff=follow_up.backoff,
        correlation_id=job.correlation_id,
        workflow_id=job.workflow_id,
        workflow_type=job.workflow_type,
        group_id=job.group_id or job.id,
        parent_id=job.id,
        on_failure=follow_up.on_failure,
        limit_key=follow_up.limit_key,
        origin=Origin(id=job.id, run=job.run, type=job.type, input=job.input, error=error, started=job.start_rev > 0),
        trace=job.trace,
    )


def _arguments(follow_up: FollowUp, job: JobRecord) -> bytes:
    if follow_up.input is not None:
        return follow_up.input
    if follow_up.accepts is None:
        return job.input
    # Raw keeps each argument's bytes as they are: nothing is decoded here, only chosen by name.
    arguments = msgspec.json.decode(job.input, type=dict[str, msgspec.Raw])
    return msgspec.json.encode({name: arguments[name] for name in follow_up.accepts if name in arguments})
