"""From what a client submits to what the library enqueues, and back to what became of it."""

from __future__ import annotations

from typing import Any, Final, cast
from uuid import UUID, uuid5

import msgspec
from msgspec import UNSET, UnsetType

from ropewalk.definitions.dependency import Chain
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.domain.bounds import check_name
from ropewalk.domain.jobs.record import NewJob, new_record
from ropewalk.domain.jobs.retry import Backoff
from ropewalk.domain.time import Instant, to_span
from ropewalk.errors import Conflict, InvalidInput, NotFound, RopewalkError
from ropewalk.http.errors import DetailCode, ErrorCode, ErrorDetail, HttpError, http_error, invalid
from ropewalk.http.identity.identity import Identity
from ropewalk.http.jobs.shapes import (
    BackoffSpec,
    BackoffStrategy,
    DependencyType,
    JobSubmission,
    SubmissionResult,
    SubmissionStatus,
)
from ropewalk.http.service import Service
from ropewalk.http.wire import JobState, priority_number, seconds, timestamp
from ropewalk.ports.store.submission import Accepted

_IDS: Final = UUID("6f9b2c1e-61f0-5d39-9a44-7c1c4f6d2b10")
"""The namespace of the ids that are derived from idempotency keys."""


def new_job(service: Service, wanted: JobSubmission, tenant: str, *, derived_id: str | None = None) -> NewJob:
    """The job as it would be stored. Raises the library's errors, and HttpError, each naming the field.

    `derived_id` is the id of a job that names none.
    """
    job_type = service.registry.get(wanted.type)
    try:
        payload = job_type.arguments_from_json(msgspec.json.encode(wanted.payload))
        job = service.app_state.named_job(wanted.type, payload)
    except InvalidInput as error:
        raise http_error(error).within("payload") from error
    options = _options(service, wanted)
    if derived_id is not None:
        options.setdefault("id", derived_id)
    return service.app_state.new_job(job, options, tenant)


def check_reach(identity: Identity, new: NewJob) -> None:
    """Raises HttpError if the identity does not reach the type or queue of a new job, or of its compensation."""
    compensation = None if new.on_failure is None else (new.on_failure.type, new.on_failure.queue)
    for job_type, queue in filter(None, ((new.type, new.queue), compensation)):
        if not identity.reaches(job_type, queue):
            message = f"this token may not enqueue jobs of type {job_type!r} in queue {queue!r}"
            raise HttpError(ErrorCode.FORBIDDEN, message)


def derived_id(tenant: str, route: str, key: str, index: int = 0) -> str:
    """The id of a job that was submitted with an Idempotency-Key, so that a repeat is the same job to the store."""
    check_name(key, "Idempotency-Key")
    return str(uuid5(_IDS, msgspec.json.encode([tenant, route, key, index]).decode()))


def submission_result(new: NewJob, accepted: Accepted) -> SubmissionResult:
    return SubmissionResult(
        status=SubmissionStatus.DUPLICATE if accepted.duplicate else SubmissionStatus.ACCEPTED,
        job_id=accepted.id,
        state=JobState.of(accepted.state),
        created_at=timestamp(accepted.created_at),
        scheduled_for=timestamp(accepted.run_at),
        group_id=accepted.group_id,
        existing_job_id=accepted.id if accepted.duplicate else UNSET,
    )


def rejected(error: HttpError, request_id: str, job_id: str | None) -> SubmissionResult:
    """The result of a job of a batch that is not stored."""
    return SubmissionResult(
        status=SubmissionStatus.REJECTED,
        job_id=job_id,
        state=None,
        created_at=None,
        scheduled_for=None,
        group_id=None,
        error=error.body(request_id),
    )


def submission_error(error: RopewalkError) -> HttpError:
    """The answer for a submission that the library refuses. A taken id or key is a duplicate of something else."""
    if isinstance(error, Conflict):
        detail = ErrorDetail("idempotency_key", DetailCode.IDEMPOTENCY_CONFLICT, str(error))
        return HttpError(ErrorCode.DUPLICATE, str(error), details=[detail])
    if isinstance(error, NotFound):
        return invalid(str(error), field="depends_on")  # a parent that does not exist, which the submission names
    return http_error(error)


def as_if_accepted(new: NewJob, now: Instant) -> SubmissionResult:
    """What the answer would be if the job were written now and nothing stood in its way."""
    return submission_result(new, Accepted.of(new_record(new, seq=0, now=now), now, duplicate=False))


def _options(service: Service, wanted: JobSubmission) -> EnqueueOptions:
    """The options of an enqueue, as the library names them."""
    given = {name: getattr(wanted, name) for name in wanted.__struct_fields__ if getattr(wanted, name) is not UNSET}
    options: dict[str, Any] = {}
    for name, value in given.items():
        if name in _AS_THEY_ARE:
            options[name] = value
        elif name in _SPANS:
            options[name] = seconds(value, name)
        elif name in _WORDS:
            options[name] = value.value.lower()
    if wanted.priority is not UNSET:
        options["priority"] = priority_number(wanted.priority)
    if wanted.scheduled_at is not UNSET:
        options["run_at"] = wanted.scheduled_at
    if wanted.max_attempts is not UNSET:
        options["max_attempts"] = int(wanted.max_attempts)
    if wanted.backoff is not UNSET and wanted.backoff.strategy is not BackoffStrategy.CUSTOM:
        options["backoff"] = _backoff(wanted.backoff)
    if wanted.on_failure is not UNSET:
        options["on_failure"] = _compensation(service, wanted.on_failure)
    options.update(_dependencies(wanted))
    return cast("EnqueueOptions", options)


_AS_THEY_ARE: Final = frozenset(
    {
        *("idempotency_key", "correlation_id", "tags", "callback_url", "id", "queue", "deadline", "workflow_id"),
        *("workflow_type", "limit", "fairness", "allow_missing"),
    }
)
_SPANS: Final = frozenset({"delay", "timeout", "ttl", "idempotency_window", "gate_timeout"})
_WORDS: Final = frozenset({"idempotency_scope", "on_unsatisfied"})


def _dependencies(wanted: JobSubmission) -> dict[str, Any]:
    kind = wanted.dependency_type
    if wanted.depends_on is UNSET:
        given = [name for name in ("dependency_type", "when") if getattr(wanted, name) is not UNSET]
        if given:
            raise invalid(f"{given[0]} is given without depends_on", field=given[0])
        return {}
    if kind is not UNSET and wanted.when is not UNSET:
        raise invalid("dependency_type and when are two ways to say the same: give one of them", field="when")
    match kind:
        case DependencyType.CHAIN:
            return {"depends_on": [Chain(each) for each in wanted.depends_on], "on_unsatisfied": "cancel"}
        case DependencyType.AFTER_ANY:
            return {"depends_on": wanted.depends_on, "when": "all_done"}
        case DependencyType.AFTER:
            return {"depends_on": wanted.depends_on, "when": "all_success"}
        case UnsetType():
            when = {} if wanted.when is UNSET else {"when": wanted.when.value.lower()}
            return {"depends_on": wanted.depends_on, **when}


def _backoff(wanted: BackoffSpec) -> Backoff:
    fields: dict[str, Any] = {}
    if wanted.strategy is not UNSET:
        fields["strategy"] = wanted.strategy.value.lower()
    for theirs, ours in (("initial_delay", "initial_us"), ("max_delay", "max_us")):
        value = getattr(wanted, theirs)
        if value is not UNSET:
            fields[ours] = to_span(seconds(value, f"backoff.{theirs}"), f"backoff.{theirs}")
    for name in ("multiplier", "jitter"):
        if getattr(wanted, name) is not UNSET:
            fields[name] = getattr(wanted, name)
    return Backoff(**fields)


def _compensation(service: Service, name: str) -> JobType[..., Any, Any]:
    if name not in service.registry:
        told = service.registry.unknown(name)
        raise invalid(told, field="on_failure", code=DetailCode.UNKNOWN_TYPE)
    return service.registry.get(name)
