"""Which level of options decides: the call, `using`, the type's function of the arguments; then the type, the app.

Each option is taken from the strongest level that gives it; a backoff is merged field by field. Options that answer
one question (`delay` and `run_at`: when; `deadline` and `ttl`: how long) are one choice: a stronger `delay` also
puts away a weaker `run_at`.
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


def options_of(job: Job[Any, Any], call: EnqueueOptions) -> dict[str, Any]:
    """The options of one job, checked and in the domain's terms (spans and instants in µs)."""
    weaker: Mapping[str, object] = {}
    if job.type.options.options is not None:
        weaker = _computed(guarded(job.type.options.options, job.arguments), job)
    if not (call or job.options or weaker):
        return {}
    merged = over(call, over(job.options, weaker))
    return enqueue_options.checked_options(merged)


class Base(Struct, frozen=True):
    """What the type, or else the app, says about every job."""

    queue: str
    priority: int | None
    """None: nobody named one"""
    max_attempts: int | None
    max_crashes: int
    ttl_us: Span | None
    limit_key: str | None
    """the same for all its jobs"""
    fairness: str | None


def base_of(of_type: TypeOptions, defaults: AppDefaults) -> Base:
    key = None if of_type.limit is None else of_type.limit.key
    return Base(
        defaults.queue if of_type.queue is None else of_type.queue,
        defaults.priority if of_type.priority is None else of_type.priority,
        defaults.max_attempts if of_type.max_attempts is UNSET else of_type.max_attempts,
        defaults.max_crashes if of_type.max_crashes is None else of_type.max_crashes,
        defaults.ttl_us if of_type.ttl_us is None else of_type.ttl_us,
        key if isinstance(key, str) else None,
        of_type.fairness,
    )


def limit_key_of(job: Job[Any, Any], given: Mapping[str, Any]) -> str | None:
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


def over(stronger: object, weaker: Mapping[str, object]) -> Mapping[str, object]:
    """Two levels as one."""
    given = cast("Mapping[str, object]", stronger)
    if not given or not weaker:
        return given or weaker
    kept = dict(weaker)
    for choice in ONE_CHOICE:
        if any(name in given for name in choice):
            for name in choice:
                kept.pop(name, None)
    merged = {**kept, **given}
    one, other = given.get("backoff"), weaker.get("backoff")
    if isinstance(one, Backoff) and isinstance(other, Backoff):
        merged["backoff"] = Backoff(**{**_set_fields(other), **_set_fields(one)})
    return merged


def _set_fields(backoff: Backoff) -> dict[str, Any]:
    return {name: value for name, value in structs.asdict(backoff).items() if value is not UNSET}
