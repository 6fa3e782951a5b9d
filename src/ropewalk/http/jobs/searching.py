"""Searching jobs, and looking at what failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from ropewalk.client.filter import Filter, in_domain
from ropewalk.domain.search import Filter as Wanted
from ropewalk.domain.search import Order
from ropewalk.http.call import Call
from ropewalk.http.identity.identity import Identity, Role
from ropewalk.http.jobs.shapes import JobStatus
from ropewalk.http.jobs.status import JobView
from ropewalk.http.pages import COUNTED_MAX, seal, unseal
from ropewalk.http.routing import Routes
from ropewalk.http.wire import Cursor, ErrorCategory, JobState, Name, Priority, Timestamp, priority_number

routes = Routes("jobs")

Names = Annotated[list[Name], Meta(max_length=100)]
PageLimit = Annotated[int, Meta(ge=1, le=1000)]


class SearchOrder(StrEnum):
    CREATED_ASC = "CREATED_ASC"
    CREATED_DESC = "CREATED_DESC"
    UPDATED_DESC = "UPDATED_DESC"


class JobFilter(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of these must hold."""

    types: Names | UnsetType = UNSET
    states: list[JobState] | UnsetType = UNSET
    priorities: Annotated[list[Priority], Meta(max_length=100)] | UnsetType = UNSET
    tags: Mapping[str, str] | UnsetType = UNSET
    created_after: Timestamp | UnsetType = UNSET
    created_before: Timestamp | UnsetType = UNSET
    updated_after: Timestamp | UnsetType = UNSET
    queues: Names | UnsetType = UNSET
    workflow_id: Name | UnsetType = UNSET
    group_id: Name | UnsetType = UNSET
    parent_id: Name | UnsetType = UNSET
    correlation_id: Name | UnsetType = UNSET
    error_categories: list[ErrorCategory] | UnsetType = UNSET
    error_codes: Names | UnsetType = UNSET
    text: Name | UnsetType = UNSET
    """The beginning of an id, a type, an idempotency key or a correlation id, or an error code."""


class JobSearch(JobFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cursor: Cursor | None = None
    limit: PageLimit | Annotated[float, Meta(ge=1, le=1000, multiple_of=1)] = 100
    order: SearchOrder = SearchOrder.CREATED_DESC


class SearchQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    with_total: bool = True
    """Without it the jobs are not counted, which is faster."""


class ListQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The filter of a search as query parameters. Lists are repeated; a tag is `name:value`."""

    types: Names | UnsetType = UNSET
    states: list[JobState] | UnsetType = UNSET
    priorities: Annotated[list[Priority], Meta(max_length=100)] | UnsetType = UNSET
    tags: Annotated[list[Annotated[str, Meta(pattern=r"^[^:]+:")]], Meta(max_length=32)] | UnsetType = UNSET
    created_after: Timestamp | UnsetType = UNSET
    created_before: Timestamp | UnsetType = UNSET
    updated_after: Timestamp | UnsetType = UNSET
    queues: Names | UnsetType = UNSET
    workflow_id: Name | UnsetType = UNSET
    group_id: Name | UnsetType = UNSET
    parent_id: Name | UnsetType = UNSET
    correlation_id: Name | UnsetType = UNSET
    error_categories: list[ErrorCategory] | UnsetType = UNSET
    error_codes: Names | UnsetType = UNSET
    text: Name | UnsetType = UNSET
    cursor: Cursor | None = None
    limit: PageLimit = 100
    order: SearchOrder = SearchOrder.CREATED_DESC
    with_total: bool = True


class JobSearchResult(Struct, frozen=True, kw_only=True):
    jobs: Sequence[JobStatus]
    total_count: int | None
    """None if it was not asked for."""
    total_is_exact: bool
    next_cursor: str | None
    has_more: bool


@routes.get("/jobs", role=Role.READ)
async def list_jobs(call: Call[None, ListQuery]) -> JobSearchResult:
    """List jobs, newest first, with the filters of a search as query parameters."""
    given = structs.asdict(call.query)
    with_total = given.pop("with_total")
    if call.query.tags is not UNSET:
        given["tags"] = dict(each.split(":", 1) for each in call.query.tags)
    return await _found(call, JobSearch(**given), with_total=with_total)


@routes.post("/jobs/search", role=Role.READ, example={"states": ["FAILED"], "limit": 10}, audited=False)
async def search_jobs(call: Call[JobSearch, SearchQuery]) -> JobSearchResult:
    """Search jobs."""
    return await _found(call, call.body, with_total=call.query.with_total)


def to_filter(given: JobFilter, identity: Identity) -> Wanted:
    """The filter of the library, narrowed to what the identity reaches."""
    fields: dict[str, Any] = {
        name: getattr(given, name) for name in JobFilter.__struct_fields__ if getattr(given, name) is not UNSET
    }
    if given.states is not UNSET:
        fields["states"] = [each.state for each in given.states]
    if given.priorities is not UNSET:
        fields["priorities"] = [priority_number(each) for each in given.priorities]
    if given.error_categories is not UNSET:
        fields["error_categories"] = [each.category for each in given.error_categories]
    for name, reached in (("types", identity.types), ("queues", identity.queues)):
        if reached is not None:
            fields[name] = sorted(reached.intersection(fields[name]) if name in fields else reached)
    return in_domain(Filter(**fields))


async def _found(call: Call[Any, Any], asked: JobSearch, *, with_total: bool) -> JobSearchResult:
    wanted, order = to_filter(asked, call.identity), Order(asked.order.value.lower())
    bound_to = (call.tenant, wanted, order)
    cursor = unseal(asked.cursor, *bound_to)
    page = await call.store.search(call.tenant, wanted, order=order, cursor=cursor, limit=int(asked.limit))
    total = await call.store.count(call.tenant, wanted, limit=COUNTED_MAX + 1) if with_total else None
    view = JobView.of(call.service, call.identity)
    following = seal(page.next_cursor, *bound_to)
    return JobSearchResult(
        jobs=[view.status(job, page.now) for job in page.jobs],
        total_count=None if total is None else min(total, COUNTED_MAX),
        total_is_exact=total is not None and total <= COUNTED_MAX,
        next_cursor=following,
        has_more=following is not None,
    )
