"""Makes leases, as remote workers see them, of claimed jobs."""

from __future__ import annotations

from typing import assert_never

from msgspec import UNSET, Raw

from ropewalk.domain.ids import TRACEPARENT_LENGTH, traceparent
from ropewalk.domain.jobs.flags import STEPPED
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.time import Instant, Span
from ropewalk.domain.workflow.completion import StepRecord
from ropewalk.http.identity.identity import Payloads
from ropewalk.http.jobs.status import JobView
from ropewalk.http.remote_workers.held import cancellation
from ropewalk.http.remote_workers.lease_shapes import (
    Compensated,
    Lease,
    LeaseDependency,
    LeaseStep,
    StepKind,
)
from ropewalk.http.remote_workers.values import AnyJobType, as_sent, as_sent_or_none
from ropewalk.http.service import Service
from ropewalk.http.wire import JobState, iso_duration, timestamp
from ropewalk.ports.store.capabilities import WORKFLOWS
from ropewalk.ports.store.workflows import Dependency

LEASE_US: Span = 30_000_000
"""The length of a lease whose type names no other."""


def lease_us_of(job_type: AnyJobType) -> Span:
    """Returns the length of the lease of a type."""
    return job_type.options.lease_us or LEASE_US


def timeout_us_of(service: Service, job: JobRecord) -> Span | None:
    """Returns how long one attempt of a job may take: by the job, its type, or the app."""
    return job.timeout_us or _type_of(service, job.type).options.timeout_us or service.app_state.defaults.timeout_us


def lease_us(service: Service, job: JobRecord) -> Span:
    """Returns the length of the lease of a job: its own, or that of its type."""
    return job.lease_us or lease_us_of(_type_of(service, job.type))


async def lease_of(service: Service, job: JobRecord, now: Instant) -> Lease:
    """Makes the lease of a job that was claimed just now, with its stored steps and its dependencies."""
    timeout = timeout_us_of(service, job)
    known = _type_of(service, job.type)
    steps = await WORKFLOWS.of(service.store).steps(job.seq) if job.flags & STEPPED else []
    parents = await WORKFLOWS.of(service.store).dependencies(job.seq) if job.gate is not None else []
    return Lease(
        job_id=job.id,
        fence=str(job.fence),
        type=job.type,
        queue=job.queue,
        tenant=job.tenant,
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        run=job.run,
        payload=as_sent(job.input, known),
        timeout=None if timeout is None else iso_duration(timeout),
        deadline_in=None if job.deadline is None else iso_duration(max(0, job.deadline - now)),
        lease=iso_duration(lease_us(service, job)),
        created_at=timestamp(job.created_at),
        correlation_id=job.correlation_id,
        tags=job.tags,
        workflow_id=job.workflow_id,
        group_id=job.group_id or job.id,
        parent_id=job.parent_id,
        idempotency_key=f"{job.id}:{job.run}",
        last_checkpoint=as_sent_or_none(job.checkpoint),
        steps=[_step(each, now) for each in steps],
        dependencies=[_dependency(service, each, now) for each in parents],
        traceparent=None if job.trace is None or traceparent(job.trace) is None else job.trace[:TRACEPARENT_LENGTH],
        compensates=UNSET if job.origin is None else _compensated(service, job),
        cancel=cancellation(job),
    )


def _type_of(service: Service, name: str) -> AnyJobType:
    return service.registry.get(name)


def _step(step: StepRecord, now: Instant) -> LeaseStep:
    remaining = None if step.until is None else iso_duration(max(0, step.until - now))
    return LeaseStep(
        position=step.position,
        name=step.name,
        kind=_kind(step),
        finished=step.finished,
        value=as_sent_or_none(step.value),
        timed_out=step.finished and step.kind == "signal" and step.until is not None,
        remaining=UNSET if step.finished else remaining,
    )


def _kind(step: StepRecord) -> StepKind:
    match step.kind:
        case "step":
            return StepKind.STEP
        case "sleep":
            return StepKind.SLEEP
        case "signal":
            return StepKind.SIGNAL
        case _:
            assert_never(step.kind)


def _dependency(service: Service, parent: Dependency, now: Instant) -> LeaseDependency:
    job = parent.job
    output: Raw | None = None
    if job is not None:
        output = as_sent_or_none(job.result, _type_of(service, job.type) if job.type in service.registry else None)
    return LeaseDependency(
        job_id=parent.edge.parent_id,
        kind=parent.edge.kind.value.upper(),
        ending=None if parent.edge.ending is None else parent.edge.ending.value.upper(),
        state=None if job is None else JobState.of(job.state_at(now)),
        output=output,
        error=None if job is None else _view(service).error(job.error),
    )


def _compensated(service: Service, job: JobRecord) -> Compensated:
    origin = job.origin
    assert origin is not None
    known = _type_of(service, origin.type) if origin.type in service.registry else None
    return Compensated(
        job_id=origin.id,
        run=origin.run,
        type=origin.type,
        payload=as_sent(origin.input, known),
        error=_view(service).error(origin.error),
        started=origin.started,
    )


def _view(service: Service) -> JobView:
    """A lease shows users' data in full, whatever the payload rights of the token say about other answers."""
    return JobView(service.describe, Payloads.FULL)
