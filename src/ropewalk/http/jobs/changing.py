"""Changing one job: cancel, retry, trigger, complete, fail, signal, update, delete."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ropewalk.domain.jobs.operations import CancelStatus, RetryStatus
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.http.answer import Reply
from ropewalk.http.call import Call, NoQuery
from ropewalk.http.errors import ErrorCode, HttpError, invalid
from ropewalk.http.identity.identity import Role
from ropewalk.http.jobs.lookup import find, status_of
from ropewalk.http.jobs.shapes import JobStatus
from ropewalk.http.revs import etag, expected_rev
from ropewalk.http.routing import Routes
from ropewalk.http.wire import Duration, JobState, Json, Name, Priority, Timestamp, priority_number, seconds
from ropewalk.ports.store.workflows import SignalAnswer

routes = Routes("jobs")

Reason = Annotated[str, Meta(max_length=1000)]
Message = Annotated[str, Meta(min_length=1, max_length=10_000)]


class CancellationRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    job_id: Name | UnsetType = UNSET
    """May be given beside the path, and must be equal to it then."""
    reason: Reason | None = None
    force: bool = False
    """Stop a running handler, instead of asking it to stop."""


class CancellationStatus(StrEnum):
    CANCELLED = "CANCELLED"
    ALREADY_COMPLETE = "ALREADY_COMPLETE"
    NOT_FOUND = "NOT_FOUND"
    CANCEL_REQUESTED = "CANCEL_REQUESTED"


class CancellationResult(Struct, frozen=True, kw_only=True):
    job_id: str
    status: CancellationStatus
    previous_state: JobState | None
    message: str
    code: ErrorCode | UnsetType = UNSET
    request_id: str | UnsetType = UNSET


class RetryRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    job_id: Name | UnsetType = UNSET
    """May be given beside the path, and must be equal to it then."""
    reset_attempts: bool = True
    priority: Priority | UnsetType = UNSET
    delay: Duration = 0
    fresh: bool = False
    """Forget checkpoint, steps and the last error."""
    include_cancelled: bool = False
    cascade: bool = False
    """What never started because this job had failed waits for it again."""


class RetriedStatus(StrEnum):
    QUEUED = "QUEUED"
    NOT_RETRIABLE = "NOT_RETRIABLE"
    NOT_FOUND = "NOT_FOUND"


class RetryResult(Struct, frozen=True, kw_only=True):
    job_id: str
    status: RetriedStatus
    new_state: JobState | None
    scheduled_for: datetime | None
    reason: str | None = None
    code: ErrorCode | UnsetType = UNSET
    message: str | UnsetType = UNSET
    request_id: str | UnsetType = UNSET


class Completion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    output: Json = None


class Failure(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    message: Message


class Signal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Name
    value: Json = None
    id: Name | UnsetType = UNSET
    """A signal that is sent again with the same id counts once."""


class SignalStatus(StrEnum):
    DELIVERED = "DELIVERED"
    """The job waited for it."""
    KEPT = "KEPT"
    """The job gets it when it asks for it."""
    DUPLICATE = "DUPLICATE"


class SignalResult(Struct, frozen=True, kw_only=True):
    job_id: str
    status: SignalStatus


class JobUpdate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What changes about a job that waits."""

    payload: Mapping[str, Json] | UnsetType = UNSET
    """Replaces all arguments."""
    priority: Priority | UnsetType = UNSET
    scheduled_at: Timestamp | UnsetType = UNSET


class DeleteQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cascade: bool = False
    """Remove what was queued under it and what waits for it, too."""


@routes.post("/jobs/{id}/cancel", role=Role.OPERATE, statuses=(200, 404), example={"reason": "no longer needed"})
async def cancel_job(call: Call[CancellationRequest, NoQuery]) -> Reply[CancellationResult]:
    """Cancel a job.

    A job that waits is cancelled at once. A running one is asked to stop, and with `force` it is made to stop.
    """
    _check_id(call, call.body.job_id)
    try:
        await find(call)
    except HttpError as error:
        return _nothing_to_cancel(call, error)
    answer = await call.client.cancel(call.id, reason=call.body.reason, force=call.body.force)
    if answer.status is CancelStatus.NOT_FOUND or answer.previous_state is None:
        return _nothing_to_cancel(call, None)
    previous, said = JobState.of(answer.previous_state), CancellationStatus(answer.status.value.upper())
    return Reply(
        CancellationResult(job_id=call.id, status=said, previous_state=previous, message=_CANCEL_MESSAGES[said])
    )


@routes.post(
    "/jobs/{id}/retry",
    role=Role.OPERATE,
    statuses=(200, 404),
    example={"reset_attempts": True},
)
async def retry_job(call: Call[RetryRequest, NoQuery]) -> Reply[RetryResult]:
    """Run a failed or dead-lettered job again, as a new run under the same id."""
    _check_id(call, call.body.job_id)
    try:
        await find(call)
    except HttpError as error:
        return _nothing_to_retry(call, error)
    body = call.body
    result = await call.client.retry(
        call.id,
        reset_attempts=body.reset_attempts,
        priority=None if body.priority is UNSET else priority_number(body.priority),
        delay=seconds(body.delay, "delay"),
        fresh=body.fresh,
        include_cancelled=body.include_cancelled,
        cascade=body.cascade,
    )
    if result.status is RetryStatus.NOT_FOUND:
        return _nothing_to_retry(call, None)
    return Reply(
        RetryResult(
            job_id=call.id,
            status=RetriedStatus(result.status.value.upper()),
            new_state=None if result.new_state is None else JobState.of(result.new_state),
            scheduled_for=result.scheduled_for,
            reason=result.reason,
        )
    )


@routes.post("/jobs/{id}/trigger", role=Role.OPERATE, errors=(ErrorCode.CONFLICT,))
async def trigger_job(call: Call[None, NoQuery]) -> JobStatus:
    """Let a job that waits for its time run now."""
    await find(call)
    await call.client.trigger(call.id)
    return await status_of(call)


@routes.post("/jobs/{id}/complete", role=Role.OPERATE, errors=(ErrorCode.CONFLICT,), example={"output": 3})
async def complete_job(call: Call[Completion, NoQuery]) -> JobStatus:
    """End a job from outside as completed, with this result. A worker that runs it is told to stop."""
    job, _ = await find(call)
    await call.client.complete(call.id, _decoded_output(call, job))
    return await status_of(call)


@routes.post("/jobs/{id}/fail", role=Role.OPERATE, errors=(ErrorCode.CONFLICT,), example={"message": "rejected"})
async def fail_job(call: Call[Failure, NoQuery]) -> JobStatus:
    """End a job from outside as failed, for this reason."""
    await find(call)
    await call.client.fail(call.id, call.body.message)
    return await status_of(call)


@routes.post(
    "/jobs/{id}/signals", role=Role.OPERATE, errors=(ErrorCode.CONFLICT,), example={"name": "paid", "value": 12.5}
)
async def send_signal(call: Call[Signal, NoQuery]) -> SignalResult:
    """Send a signal to a job that waits for it, or will."""
    await find(call)
    value = call.service.app_state.codec.decode(msgspec.json.encode(call.body.value), Any)
    signal_id = None if call.body.id is UNSET else call.body.id
    answer = await call.client.signal(call.id, call.body.name, value, id=signal_id)
    status = SignalStatus.KEPT if answer is SignalAnswer.KEPT else SignalStatus(answer.value.upper())
    return SignalResult(job_id=call.id, status=status)


@routes.patch(
    "/jobs/{id}",
    role=Role.OPERATE,
    errors=(ErrorCode.CONFLICT, ErrorCode.PRECONDITION_FAILED),
    example={"priority": "HIGH"},
)
async def update_job(call: Call[JobUpdate, NoQuery]) -> Reply[JobStatus]:
    """Change a job that waits. With If-Match only if nobody has changed it since it was read."""
    job, _ = await find(call)
    body = call.body
    arguments = None
    if body.payload is not UNSET:
        arguments = call.service.registry.get(job.type).arguments_from_json(msgspec.json.encode(body.payload))
    await call.client.update(
        call.id,
        arguments=arguments,
        priority=None if body.priority is UNSET else priority_number(body.priority),
        run_at=None if body.scheduled_at is UNSET else body.scheduled_at,
        if_rev=expected_rev(call),
    )
    status = await status_of(call)
    return Reply(status, headers=etag(status.rev))


@routes.delete("/jobs/{id}", role=Role.OPERATE, errors=(ErrorCode.CONFLICT,))
async def delete_job(call: Call[None, DeleteQuery]) -> None:
    """Remove a job that has ended, with everything recorded about it."""
    await find(call)
    await call.client.delete(call.id, cascade=call.query.cascade)


_CANCEL_MESSAGES = {
    CancellationStatus.CANCELLED: "the job is cancelled",
    CancellationStatus.ALREADY_COMPLETE: "the job had ended already",
    CancellationStatus.CANCEL_REQUESTED: "the job is running and was asked to stop",
    CancellationStatus.NOT_FOUND: "there is no such job here",
}


def _check_id(call: Call[Any, Any], given: str | UnsetType) -> None:
    if given is not UNSET and given != call.id:
        raise invalid(f"job_id={given!r} is not the job of the path, {call.id!r}", field="job_id")


def _nothing_to_cancel(call: Call[Any, Any], error: HttpError | None) -> Reply[CancellationResult]:
    _raise_others(error)
    missing = CancellationResult(
        job_id=call.id,
        status=CancellationStatus.NOT_FOUND,
        previous_state=None,
        message=_CANCEL_MESSAGES[CancellationStatus.NOT_FOUND],
        code=ErrorCode.NOT_FOUND,
        request_id=call.request.id,
    )
    return Reply(missing, 404)


def _nothing_to_retry(call: Call[Any, Any], error: HttpError | None) -> Reply[RetryResult]:
    _raise_others(error)
    missing = RetryResult(
        job_id=call.id,
        status=RetriedStatus.NOT_FOUND,
        new_state=None,
        scheduled_for=None,
        code=ErrorCode.NOT_FOUND,
        message=_CANCEL_MESSAGES[CancellationStatus.NOT_FOUND],
        request_id=call.request.id,
    )
    return Reply(missing, 404)


def _raise_others(error: HttpError | None) -> None:
    if error is not None and error.code is not ErrorCode.NOT_FOUND:
        raise error


def _decoded_output(call: Call[Completion, Any], job: JobRecord) -> object:
    data = msgspec.json.encode(call.body.output)
    registry = call.service.registry
    if call.body.output is not None and job.type in registry:
        return registry.get(job.type).decode_result(data)
    return call.service.app_state.codec.decode(data, Any)
