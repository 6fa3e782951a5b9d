"""Decides which level of options counts: the call, `using`, the type's `options=` function, the type, the app.

Each option is taken from the strongest level that has it; a backoff is merged field by field. Two options that answer
the same question exclude each other: a stronger `delay` also removes a weaker `run_at`, and `deadline` a weaker `ttl`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec import UNSET, Struct, structs

from ropewalk.definitions import enqueue_options
from ropewalk.definitions.job import Job
from ropewalk.definitions.options import AppDefaults, EnqueueOptions, TypeOptions
from ropewalk.domain.jobs.retry import Backoff
from ropewalk.domain.shown_values import shown
from ropewalk.domain.time import Span
from ropewalk.domain.user_calls import guarded
from ropewalk.errors import InvalidInput

ONE_CHOICE: Final = (("delay", "run_at"), ("deadline", "ttl"))
"""Options that answer the same question: when a job starts, and until when it must have ended."""


def options_of(job: Job[Any, Any], call: EnqueueOptions) -> dict[str, Any]:
    """The checked options that the call, `using` and the type's `options=` function give to a job, with times in µs."""
    weaker: Mapping[str, object] = {}
    if job.type.options.options is not None:
        weaker = _computed(guarded(job.type.options.options, job.arguments), job)
    if not (call or job.options or weaker):
        return {}
    options = merge_options(call, merge_options(job.options, weaker))
    return enqueue_options.checked_options(options)


class BaseOptions(Struct, frozen=True):
    """The options of all jobs of a type: those of the type, and otherwise the defaults of the app."""

    queue: str
    priority: int | None
    """None if neither the type nor the app has one."""
    max_attempts: int | None
    max_crashes: int
    ttl_us: Span | None
    limit_key: str | None
    """The limit key of all jobs of the type; None if there is none, or if it is computed for each job."""
    fairness: str | None


def base_options_of(of_type: TypeOptions, defaults: AppDefaults) -> BaseOptions:
    """The options of all jobs of a type in an app with these defaults."""
    key = None if of_type.limit is None else of_type.limit.key
    return BaseOptions(
        defaults.queue if of_type.queue is None else of_type.queue,
        defaults.priority if of_type.priority is None else of_type.priority,
        defaults.max_attempts if of_type.max_attempts is UNSET else of_type.max_attempts,
        defaults.max_crashes if of_type.max_crashes is None else of_type.max_crashes,
        defaults.ttl_us if of_type.ttl_us is None else of_type.ttl_us,
        key if isinstance(key, str) else None,
        of_type.fairness,
    )


def limit_key_of(job: Job[Any, Any], given: Mapping[str, Any]) -> str | None:
    """The limit key of one job: that of its own options, or otherwise that of its type."""
    limit = job.type.options.limit
    if "limit" in given or limit is None:
        return given.get("limit")
    return limit.key_of(job.type.name, job.arguments if limit.computed else {})


def _computed(options: object, job: Job[Any, Any]) -> Mapping[str, object]:
    if not isinstance(options, Mapping):
        raise InvalidInput(
            f"options= of {job.type.name} returned {shown(options)}: return a dict of options", field="options"
        )
    return cast("Mapping[str, object]", options)


def merge_options(stronger: object, weaker: Mapping[str, object]) -> Mapping[str, object]:
    """Merge two levels of options into one, in which the stronger one counts."""
    given = cast("Mapping[str, object]", stronger)
    if not given or not weaker:
        return given or weaker
    remaining = dict(weaker)
    for choice in ONE_CHOICE:
        if any(name in given for name in choice):
            for name in choice:
                remaining.pop(name, None)
    result = {**remaining, **given}
    one, other = given.get("backoff"), weaker.get("backoff")
    if isinstance(one, Backoff) and isinstance(other, Backoff):
        result["backoff"] = Backoff(**{**_set_fields(other), **_set_fields(one)})
    return result


def _set_fields(backoff: Backoff) -> dict[str, Any]:
    return {name: value for name, value in structs.asdict(backoff).items() if value is not UNSET}
