"""Makes the NewJob that is submitted of a job that a user built: resolves its options and checks them by the bounds."""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType
from typing import Any

from msgspec import structs

from ropewalk.definitions.compensation import compensation_of
from ropewalk.definitions.dependency import gate_of
from ropewalk.definitions.job import Job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.option_precedence import base_options_of, limit_key_of, options_of
from ropewalk.definitions.options import AppDefaults, EnqueueOptions
from ropewalk.domain.bounds import Bounds, check
from ropewalk.domain.jobs.record import CompensationSpec, IdempotencyKey, NewJob
from ropewalk.domain.shown_values import shown
from ropewalk.domain.time import DAY
from ropewalk.domain.user_calls import guarded
from ropewalk.errors import InvalidInput


def to_new_job(
    job: Job[Any, Any], *, call: EnqueueOptions, defaults: AppDefaults, bounds: Bounds, tenant: str
) -> NewJob:
    """The job as it is submitted. Raises InvalidInput naming the option that does not fit.

    A timeout, backoff or lease is stored only if the job itself has one. Otherwise those of the worker's type and app
    count, so that a change of the code applies to jobs that are queued already.
    """
    if not call and _fits_template(job, bounds):
        return structs.replace(_template(job.type, defaults, bounds, tenant), id=job.id, input=job.input)
    given = options_of(job, call)
    return _resolved(job, given, defaults, bounds, given.get("tenant", tenant))


def skips_queue(job: Job[Any, Any], call: EnqueueOptions) -> bool:
    """Whether the process that enqueues a job may run it at once; the precedence is that of all options."""
    return bool(options_of(job, call).get("skip_queue", job.type.options.skip_queue))


def _fits_template(job: Job[Any, Any], bounds: Bounds) -> bool:
    """Whether a job has nothing of its own but an id and an input within bounds, so that its type's template fits."""
    of_type = job.type.options
    return (
        not job.options
        and of_type.options is None
        and of_type.unique is None
        and (of_type.limit is None or not of_type.limit.computed)
        and len(job.input) <= bounds.payload_bytes_max
        and 0 < len(job.id) <= bounds.name_chars_max
        and job.id.isascii()
        and "\x00" not in job.id
    )


@lru_cache(maxsize=1024)
def _template(job_type: JobType[..., Any, Any], defaults: AppDefaults, bounds: Bounds, tenant: str) -> NewJob:
    """The NewJob of jobs without anything of their own; its options are resolved and checked once for a type."""
    blank: Job[Any, Any] = Job("template", job_type, b"{}", MappingProxyType({}))
    return _resolved(blank, {}, defaults, bounds, tenant)


def _resolved(job: Job[Any, Any], given: dict[str, Any], defaults: AppDefaults, bounds: Bounds, tenant: str) -> NewJob:
    base = base_options_of(job.type.options, defaults)
    new = NewJob(
        id=given.get("id", job.id),
        type=job.type.name,
        input=job.input,
        tenant=tenant,
        queue=given.get("queue", base.queue),
        priority=given.get("priority", base.priority or 0),
        inherits_priority="priority" not in given and base.priority is None,
        strict_order=defaults.strict_order,
        delay_us=given.get("delay", 0),
        run_at=given.get("run_at"),
        max_attempts=given.get("max_attempts", base.max_attempts),
        max_crashes=given.get("max_crashes", base.max_crashes),
        timeout_us=given.get("timeout"),
        backoff=given.get("backoff"),
        lease_us=given.get("lease"),
        deadline=given.get("deadline"),
        ttl_us=given.get("ttl", None if "deadline" in given else base.ttl_us),
        key=_key(job, given),
        correlation_id=given.get("correlation_id"),
        tags=given.get("tags", {}),
        workflow_id=given.get("workflow_id"),
        workflow_type=given.get("workflow_type"),
        on_failure=_on_failure(job, given, defaults),
        limit_key=limit_key_of(job, given),
        fairness=given.get("fairness", base.fairness),
        gate=gate_of(given.get("id", job.id), given, bounds),
    )
    check(new, bounds)
    return new


def _key(job: Job[Any, Any], given: dict[str, Any]) -> IdempotencyKey | None:
    key, unique = given.get("idempotency_key"), job.type.options.unique
    if key is None and unique is not None:
        key = guarded(unique, job.arguments)
        if not isinstance(key, str):
            message = f"unique= of {job.type.name} returned {shown(key)}: return a string"
            raise InvalidInput(message, field="idempotency_key")
    if key is not None:
        scope, window_us = given.get("idempotency_scope", "open"), given.get("idempotency_window", DAY)
        return IdempotencyKey(key=key, scope=scope, window_us=window_us)
    for name in ("idempotency_scope", "idempotency_window"):
        if name in given:
            raise InvalidInput(f"{name} is given without idempotency_key", field=name)
    return None


def _on_failure(job: Job[Any, Any], given: dict[str, Any], defaults: AppDefaults) -> CompensationSpec | None:
    wanted: JobType[..., Any, Any] | Job[Any, Any] | None = given.get("on_failure", job.type.options.on_failure)
    if wanted is None:
        return None
    return compensation_of(job.type, wanted, defaults)
