"""A filter selects jobs to find or to change. People write it with datetimes; the domain has a filter with instants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct, structs

from ropewalk.definitions.job_types.job_type import JobType, type_name
from ropewalk.domain import checks, search
from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.states import State
from ropewalk.domain.time import Instant, to_instant

EXAMPLE: Final = 'Filter(states="failed")'


class Filter(Struct, frozen=True, kw_only=True):
    """A job matches if it matches every field that is set. `text` is a prefix of an id, a type, an idempotency key or a
    correlation id, or an error code.

    A field that takes several values also takes a single one: `Filter(types="mail", states="failed")`. An empty list
    matches no job. Times are datetimes with a time zone.
    """

    types: JobType[..., Any, Any] | str | Iterable[JobType[..., Any, Any] | str] | None = None
    states: Iterable[State | str] | None = None
    queues: Iterable[str] | None = None
    priorities: int | Iterable[int] | None = None
    tags: Mapping[str, str] | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    updated_after: datetime | None = None
    workflow_id: str | None = None
    group_id: str | None = None
    parent_id: str | None = None
    correlation_id: str | None = None
    error_categories: Iterable[Category | str] | None = None
    error_codes: Iterable[str] | None = None
    text: str | None = None

    def __post_init__(self) -> None:
        """Checks every field, and replaces iterators by tuples, so that they can be read several times."""
        for field, check in _CHECKS.items():
            value = getattr(self, field)
            if value is not None:
                structs.force_setattr(self, field, check(value, field))


def _moment(value: datetime, field: str) -> datetime:
    to_instant(value, field)
    return value


def _types(value: object, field: str) -> tuple[str, ...]:
    return checks.several(value, field, type_name)


def _states(value: object, field: str) -> tuple[State, ...]:
    return checks.several(value, field, lambda each, name: checks.member(each, name, State))


def _categories(value: object, field: str) -> tuple[Category, ...]:
    return checks.several(value, field, lambda each, name: checks.member(each, name, Category))


def _priorities(value: object, field: str) -> tuple[int, ...]:
    return checks.several(value, field, checks.integer)


_CHECKS: Final[Mapping[str, checks.Check]] = {
    "types": _types,
    "states": _states,
    "queues": checks.names,
    "priorities": _priorities,
    "tags": checks.tags,
    "created_after": _moment,
    "created_before": _moment,
    "updated_after": _moment,
    "workflow_id": checks.text,
    "group_id": checks.text,
    "parent_id": checks.text,
    "correlation_id": checks.text,
    "error_categories": _categories,
    "error_codes": checks.names,
    "text": checks.text,
}


def failed_ones(wanted: Filter | None) -> Filter:
    """Returns the filter restricted to jobs that failed or wait for a retry, unless it names states itself."""
    wanted = checks.instance_or_none(wanted, "wanted", Filter, EXAMPLE) or Filter()
    if wanted.states is not None:
        return wanted
    return structs.replace(wanted, states=(State.FAILED, State.DEAD_LETTER, State.RETRYING))


def in_domain(wanted: Filter | None) -> search.Filter:
    """Returns the filter of the domain for a filter as people write it; None matches every job."""
    if wanted is None:
        return search.Filter()
    checks.instance(wanted, "wanted", Filter, EXAMPLE)
    fields: dict[str, Any] = structs.asdict(wanted)
    for field in ("created_after", "created_before", "updated_after"):
        fields[field] = _instant(fields[field], field)
    return search.Filter(**fields)


def _instant(at: datetime | None, field: str) -> Instant | None:
    return None if at is None else to_instant(at, field)
