"""Checks the options of jobs, which are given to `Job.using`, to `Result.next` and to the enqueuing calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from ropewalk.definitions import dependency, option_checks
from ropewalk.definitions.limit import check_key
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.domain import checks
from ropewalk.domain.time import to_delay, to_instant

ENQUEUE_OPTIONS: Final = frozenset(EnqueueOptions.__annotations__)


def checked_options(given: Mapping[str, object]) -> dict[str, Any]:
    """The options in the units of the domain, with times in µs. Raises InvalidInput naming the option that is wrong."""
    checks.known_names(given, ENQUEUE_OPTIONS, "option of a job")
    return {name: _CHECKS[name](value, name) if name in _CHECKS else value for name, value in given.items()}


def check(given: EnqueueOptions) -> None:
    """Refuse wrong options where they are given, before the job is enqueued. Raises InvalidInput."""
    checked_options(cast("Mapping[str, object]", given))


def _limit_key(value: object, field: str) -> str | None:
    return None if value is None else check_key(checks.text(value, field), field)


def _on_failure(value: object, field: str) -> object:
    from ropewalk.definitions.job import Job  # a job checks its options here, so this module cannot import it first
    from ropewalk.definitions.job_types.job_type import JobType

    if value is None or isinstance(value, JobType | Job):
        return cast("object", value)
    raise checks.wrong(field, value, "a job type, a job or None")


_CHECKS: Final[Mapping[str, checks.Check]] = {
    "id": checks.text,
    "delay": to_delay,
    "run_at": to_instant,
    "priority": checks.integer,
    "queue": checks.text,
    "max_attempts": checks.positive_or_none,
    "max_crashes": checks.positive,
    "backoff": option_checks.backoff,
    "timeout": checks.positive_span,
    "deadline": to_instant,
    "ttl": checks.positive_span,
    "lease": option_checks.lease,
    "idempotency_key": checks.text,
    "idempotency_scope": checks.key_scope,
    "idempotency_window": checks.positive_span,
    "correlation_id": checks.text,
    "tags": checks.tags,
    "workflow_id": checks.text,
    "workflow_type": checks.text,
    "tenant": checks.text,
    "limit": _limit_key,
    "on_failure": _on_failure,
    "fairness": checks.text_or_none,
    "skip_queue": checks.flag,
    "depends_on": dependency.parents,
    "when": dependency.condition,
    "on_unsatisfied": dependency.policy,
    "gate_timeout": checks.positive_span,
    "allow_missing": checks.flag,
}
