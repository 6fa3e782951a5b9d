"""Searches for jobs. `matches` defines which jobs a filter selects; a store may find them in any way that agrees with
it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from ropewalk.domain.failure import Category
from ropewalk.domain.jobs.record import JobRecord
from ropewalk.domain.jobs.states import State
from ropewalk.domain.time import Instant
from ropewalk.errors import InvalidInput


class Order(StrEnum):
    """The order of the jobs that a search returns."""

    CREATED_ASC = "created_asc"
    CREATED_DESC = "created_desc"
    UPDATED_DESC = "updated_desc"
    """No job is returned twice, but a job that changes between two pages may be missing."""


class Filter(Struct, frozen=True, kw_only=True):
    """Selects the jobs for which every field that is set fits."""

    types: tuple[str, ...] | None = None
    states: tuple[State, ...] | None = None
    queues: tuple[str, ...] | None = None
    priorities: tuple[int, ...] | None = None
    tags: Mapping[str, str] | None = None
    created_after: Instant | None = None
    created_before: Instant | None = None
    updated_after: Instant | None = None
    workflow_id: str | None = None
    group_id: str | None = None
    parent_id: str | None = None
    correlation_id: str | None = None
    error_categories: tuple[Category, ...] | None = None
    error_codes: tuple[str, ...] | None = None
    text: str | None = None
    """The beginning of the id, type, idempotency key or correlation id of a job, or its whole error code."""


Position: TypeAlias = tuple[int, int]
"""The place of the last job of a page: (sort value, seq)."""

STORED_MIN: Final = -(2**63)
STORED_MAX: Final = 2**63 - 1
_Storable: TypeAlias = Annotated[int, Meta(ge=STORED_MIN, le=STORED_MAX)]


def matches(job: JobRecord, wanted: Filter, now: Instant) -> bool:
    """Whether a filter selects this job at the instant `now` of the store's clock."""
    error = job.error
    return (
        (wanted.types is None or job.type in wanted.types)
        and (wanted.states is None or job.state_at(now) in wanted.states)
        and (wanted.queues is None or job.queue in wanted.queues)
        and (wanted.priorities is None or job.priority in wanted.priorities)
        and (wanted.tags is None or all(job.tags.get(name) == value for name, value in wanted.tags.items()))
        and (wanted.created_after is None or job.created_at > wanted.created_after)
        and (wanted.created_before is None or job.created_at < wanted.created_before)
        and (wanted.updated_after is None or job.updated_at > wanted.updated_after)
        and (wanted.workflow_id is None or job.workflow_id == wanted.workflow_id)
        and (wanted.group_id is None or (job.group_id or job.id) == wanted.group_id)
        and (wanted.parent_id is None or job.parent_id == wanted.parent_id)
        and (wanted.correlation_id is None or job.correlation_id == wanted.correlation_id)
        and (wanted.error_categories is None or (error is not None and error.category in wanted.error_categories))
        and (wanted.error_codes is None or (error is not None and error.code in wanted.error_codes))
        and (wanted.text is None or _mentions(job, wanted.text))
    )


def position_of(job: JobRecord, order: Order) -> Position:
    return (job.updated_at if order is Order.UPDATED_DESC else job.seq, job.seq)


def encode_cursor(order: Order, position: Position) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode((order, *position))).decode().rstrip("=")


def decode_cursor(cursor: str, order: Order) -> Position:
    """Returns the position that a cursor means. Raises InvalidInput if the cursor belongs to another order, or is not
    one that a search returned."""
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        made_for, value, seq = msgspec.json.decode(raw, type=tuple[Order, _Storable, _Storable])
    except (ValueError, msgspec.DecodeError) as error:
        raise InvalidInput(f"cursor={cursor!r} is not one that search() returned", field="cursor") from error
    if made_for is not order:
        raise InvalidInput(f"this cursor belongs to order={made_for.value}, not {order.value}", field="cursor")
    return value, seq


def _mentions(job: JobRecord, text: str) -> bool:
    return (
        job.id.startswith(text)
        or job.type.startswith(text)
        or (job.idempotency_key or "").startswith(text)
        or (job.correlation_id or "").startswith(text)
        or (job.error is not None and job.error.code == text)
    )
