"""The bounds of an app, and the checks of submissions against them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ropewalk.domain import checks
from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.limits.fleet_limit import ANY
from ropewalk.errors import InvalidInput, LimitExceeded

NAME_BYTES_MAX: Final = 640
"""A name may have this many bytes in UTF-8, on every store. Four names (a tenant, a queue, a type and a limit key) then
fit into one entry of an index on PostgreSQL, which holds about 2,700 bytes. A name in Greek or Cyrillic, whose letters
take two bytes, can have 256 letters."""


class Bounds(Struct, frozen=True, kw_only=True):
    """The bounds of an app: `App(bounds=Bounds(payload_bytes_max=4 * 1024 * 1024))`. Every bound is a whole number."""

    payload_bytes_max: int = 1024 * 1024
    result_bytes_max: int = 1024 * 1024
    checkpoint_bytes_max: int = 1024 * 1024
    tags_max: int = 32
    tag_chars_max: int = 256
    name_chars_max: int = 256
    """The bound for ids, queues, tenants, types, keys, correlation ids and workflow ids. A name never has more than 640
    bytes in UTF-8."""
    batch_jobs_max: int = 10_000
    attempts_max: int = 100
    priority_max: int = 1000
    """A priority lies between the negative of this number and this number."""
    dependencies_max: int = 1000
    """One job may have this many entries in depends_on."""
    dependency_depth_max: int = 100
    children_max: int = 10_000
    """One completion may queue this many jobs with ctx.queue and .next."""
    cohort_edges_max: int = 100_000
    """The cohorts of one Result may have this many dependencies: every job of a cohort waits for every job of the
    cohort before."""
    steps_max: int = 1000
    """One job may store this many steps. Each value may have result_bytes_max bytes."""

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            highest = NAME_BYTES_MAX if field == "name_chars_max" else None
            checks.between(getattr(self, field), field, 0 if field in _MAY_BE_ZERO else 1, highest)


_MAY_BE_ZERO = frozenset(
    {
        "tags_max",
        "priority_max",
        "dependencies_max",
        "dependency_depth_max",
        "children_max",
        "cohort_edges_max",
        "steps_max",
    }
)
"""These bounds may be 0, for an app that does not use what they bound."""


DEFAULT_BOUNDS = Bounds()


def check(job: NewJob, bounds: Bounds = DEFAULT_BOUNDS) -> None:
    """Raises LimitExceeded or InvalidInput if a job exceeds a bound, before anything is written."""
    check_payload(job.type, job.input, bounds)
    _check_attempts(job, bounds)
    check_priority(job.priority, bounds)
    _check_names(job, bounds)
    _check_tags(job.tags, bounds)


def check_payload(job_type: str, data: bytes, bounds: Bounds) -> None:
    if len(data) > bounds.payload_bytes_max:
        raise LimitExceeded(
            f"the input of {job_type} is {len(data):,} bytes, "
            f"over payload_bytes_max={bounds.payload_bytes_max:,}: "
            "store the data elsewhere and pass a reference, or raise the limit with App(bounds=...)",
            field="input",
        )


def check_priority(priority: int, bounds: Bounds) -> None:
    bound = bounds.priority_max
    checks.integer(priority, "priority")
    if abs(priority) > bound:
        raise LimitExceeded(f"priority={priority} is outside -{bound}...{bound}", field="priority")


def _check_attempts(job: NewJob, bounds: Bounds) -> None:
    if job.max_attempts is not None and not 1 <= job.max_attempts <= bounds.attempts_max:
        raise LimitExceeded(
            f"max_attempts={job.max_attempts} must be between 1 and {bounds.attempts_max}, or None for unlimited",
            field="max_attempts",
        )
    if job.max_crashes < 1:
        raise LimitExceeded(f"max_crashes={job.max_crashes} must be at least 1", field="max_crashes")


def _check_names(job: NewJob, bounds: Bounds) -> None:
    names: Mapping[str, str | None] = {
        "id": job.id,
        "type": job.type,
        "queue": job.queue,
        "tenant": job.tenant,
        "idempotency_key": None if job.key is None else job.key.key,
        "correlation_id": job.correlation_id,
        "workflow_id": job.workflow_id,
        "workflow_type": job.workflow_type,
        "spawn_key": job.spawn_key,
        "limit": job.limit_key,
        "fairness": job.fairness,
    }
    for field, value in names.items():
        if value is not None:
            check_name(value, field, bounds)
    if job.limit_key is not None:
        _check_limit_key(job.limit_key)
    if job.tenant == ANY:
        raise InvalidInput(f"tenant={ANY!r} stands for every tenant, in quotas: a job has one", field="tenant")
    if job.gate is not None:
        for parent in job.gate.parents:
            check_name(parent.id, "depends_on", bounds)


def _check_limit_key(key: str) -> None:
    if key.endswith(ANY):
        raise InvalidInput(
            f"limit={key!r} ends in {ANY!r}, which names a family of keys: a job names one key", field="limit"
        )


def check_name(name: object, field: str, bounds: Bounds = DEFAULT_BOUNDS) -> str:
    """Returns a name that is to be stored, after a check that it is text within the bounds."""
    checked = checks.text(name, field)
    if len(checked) > bounds.name_chars_max:
        bound = f"name_chars_max={bounds.name_chars_max}"
        raise LimitExceeded(f"{field} has {len(checked)} characters, over {bound}: {checked[:40]!r}...", field=field)
    if len(checked) * 4 > NAME_BYTES_MAX and (size := len(checked.encode())) > NAME_BYTES_MAX:
        fits = f"the {NAME_BYTES_MAX} that a name may have"
        raise LimitExceeded(f"{field} has {size} bytes in UTF-8, over {fits}: {checked[:40]!r}...", field=field)
    return checked


def _check_tags(tags: Mapping[str, str], bounds: Bounds) -> None:
    if not tags:
        return
    if len(tags) > bounds.tags_max:
        raise LimitExceeded(f"{len(tags)} tags, over tags_max={bounds.tags_max}", field="tags")
    for name, value in checks.tags(tags, "tags").items():
        if max(len(name), len(value)) > bounds.tag_chars_max:
            raise LimitExceeded(f"tag {name[:40]!r} is over tag_chars_max={bounds.tag_chars_max}", field="tags")
