"""Which jobs to look for or act on, as people write it: datetimes here, instants in the domain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TypeVar

from msgspec import Struct, structs

from ropewalk.domain import search
from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.states import State
from ropewalk.domain.time import Instant, to_instant

T = TypeVar("T")


class Filter(Struct, frozen=True, kw_only=True):
    """AND of everything set. `text` is a prefix of id, type, idempotency key or correlation id, or an error code."""

    types: Iterable[str] | None = None
    states: Iterable[State] | None = None
    queues: Iterable[str] | None = None
    priorities: Iterable[int] | None = None
    tags: Mapping[str, str] | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    updated_after: datetime | None = None
    workflow_id: str | None = None
    group_id: str | None = None
    parent_id: str | None = None
    correlation_id: str | None = None
    error_categories: Iterable[Category] | None = None
    error_codes: Iterable[str] | None = None
    text: str | None = None


def failed_ones(wanted: Filter | None) -> Filter:
    """Jobs that failed, or are about to be tried again because they did, unless the filter names states itself."""
    wanted = wanted or Filter()
    if wanted.states is not None:
        return wanted
    return structs.replace(wanted, states=(State.FAILED, State.DEAD_LETTER, State.RETRYING))


def in_domain(wanted: Filter | None) -> search.Filter:
    if wanted is None:
        return search.Filter()
    return search.Filter(
        types=_tuple(wanted.types),
        states=_tuple(wanted.states),
        queues=_tuple(wanted.queues),
        priorities=_tuple(wanted.priorities),
        tags=wanted.tags,
        created_after=_instant(wanted.created_after, "created_after"),
        created_before=_instant(wanted.created_before, "created_before"),
        updated_after=_instant(wanted.updated_after, "updated_after"),
        workflow_id=wanted.workflow_id,
        group_id=wanted.group_id,
        parent_id=wanted.parent_id,
        correlation_id=wanted.correlation_id,
        error_categories=_tuple(wanted.error_categories),
        error_codes=_tuple(wanted.error_codes),
        text=wanted.text,
    )


def _tuple(items: Iterable[T] | None) -> tuple[T, ...] | None:
    return None if items is None else tuple(items)


def _instant(at: datetime | None, field: str) -> Instant | None:
    return None if at is None else to_instant(at, field)
