"""Looking at what failed: one job with its attempts, and searching failures with their counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from ropewalk.domain.failure import ErrorInfo
from ropewalk.domain.jobs.record import AttemptRecord, JobRecord
from ropewalk.domain.jobs.states import Move
from ropewalk.domain.search import Filter, Order
from ropewalk.http.call import Call, NoQuery
from ropewalk.http.errors import not_found
from ropewalk.http.identity.identity import Role
from ropewalk.http.jobs.lookup import find_history
from ropewalk.http.jobs.searching import JobFilter, Names, PageLimit, to_filter
from ropewalk.http.jobs.status import JobView
from ropewalk.http.pages import COUNTED_MAX, seal, unseal
from ropewalk.http.routing import Routes
from ropewalk.http.wire import Cursor, ErrorCategory, JobState, Name, Timestamp, timestamp

routes = Routes("failures")


class AttemptResult(StrEnum):
    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"


class FailureInfo(Struct, frozen=True, kw_only=True):
    """Why one attempt failed."""

    attempt: int
    timestamp: datetime
    duration_ms: int | None
    category: ErrorCategory
    code: str | None
    message: str | None
    stack_trace: str | None
    context: Mapping[str, str]
    worker_id: str | None
    host: str | None


class AttemptInfo(Struct, frozen=True, kw_only=True):
    attempt: int
    run: int
    started_at: datetime
    finished_at: datetime
    result: AttemptResult | None
    """None for an attempt that was given back and did not count."""
    ended: str
    """How it ended, in the words of the history."""
    failure: FailureInfo | None


class FailureDetails(Struct, frozen=True, kw_only=True):
    job_id: str
    type: str
    final_state: JobState
    total_attempts: int
    failure: FailureInfo | None
    attempts: Sequence[AttemptInfo] | UnsetType = UNSET


class FailureQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    include_all_attempts: bool = False


class TimeRange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    after: Timestamp | UnsetType = UNSET
    before: Timestamp | UnsetType = UNSET


class Pagination(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cursor: Cursor | None = None
    limit: PageLimit | Annotated[float, Meta(ge=1, le=1000, multiple_of=1)] = 100


class FailedState(StrEnum):
    FAILED = "FAILED"
    DEAD_LETTER = "DEAD_LETTER"
    RETRYING = "RETRYING"


class FailureSearch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    states: Annotated[list[FailedState], Meta(min_length=1)] | UnsetType = UNSET
    failure_category: ErrorCategory | UnsetType = UNSET
    types: Names | UnsetType = UNSET
    error_code: Name | UnsetType = UNSET
    time_range: TimeRange = TimeRange()
    """When the jobs were created."""
    pagination: Pagination = Pagination()


class FailureListQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of a failure search as query parameters."""

    states: Annotated[list[FailedState], Meta(min_length=1)] | UnsetType = UNSET
    failure_category: ErrorCategory | UnsetType = UNSET
    types: Names | UnsetType = UNSET
    error_code: Name | UnsetType = UNSET
    after: Timestamp | UnsetType = UNSET
    before: Timestamp | UnsetType = UNSET
    cursor: Cursor | None = None
    limit: PageLimit = 100


class FailedJob(Struct, frozen=True, kw_only=True):
    job_id: str
    type: str
    queue: str
    state: JobState
    total_attempts: int
    updated_at: datetime
    failure: FailureInfo | None


class FailureGroup(Struct, frozen=True, kw_only=True):
    """Jobs of one type that failed with one code."""

    type: str
    code: str
    count: int
    newest_job_id: str


class FailureSearchResult(Struct, frozen=True, kw_only=True):
    failures: Sequence[FailedJob]
    total_count: int
    next_cursor: str | None
    by_category: Mapping[str, int]
    by_code: Mapping[str, int]
    by_type: Mapping[str, int]
    groups: Sequence[FailureGroup]
    """The largest first."""
    counted: int
    """How many jobs the counts are made of: the newest."""
    complete: bool
    """False if there are more."""


@routes.get("/jobs/{id}/failure", role=Role.READ)
async def get_failure(call: Call[None, FailureQuery]) -> FailureDetails:
    """Show why a job failed, and if asked how each of its attempts ended."""
    stored, view = await find_history(call), JobView.of(call.service, call.identity)
    job, state = stored.job, stored.job.state_at(stored.now)
    if job.error is None and not stored.attempts:
        raise not_found()
    return FailureDetails(
        job_id=job.id,
        type=job.type,
        final_state=JobState.of(state),
        total_attempts=job.attempt,
        failure=_failure(view, job.error, job.attempt, job.updated_at, job.owner),
        attempts=[_attempt(view, each) for each in stored.attempts] if call.query.include_all_attempts else UNSET,
    )


@routes.get("/failures", role=Role.READ)
async def list_failures(call: Call[None, FailureListQuery]) -> FailureSearchResult:
    """List jobs that failed or are about to be retried, with their counts."""
    query = call.query
    asked = FailureSearch(
        states=query.states,
        failure_category=query.failure_category,
        types=query.types,
        error_code=query.error_code,
        time_range=TimeRange(after=query.after, before=query.before),
        pagination=Pagination(cursor=query.cursor, limit=query.limit),
    )
    return await _found(call, asked)


@routes.post("/failures/search", role=Role.READ, example={"states": ["DEAD_LETTER"]}, audited=False)
async def search_failures(call: Call[FailureSearch, NoQuery]) -> FailureSearchResult:
    """Search jobs that failed or are about to be retried, with their counts."""
    return await _found(call, call.body)


async def _found(call: Call[Any, Any], asked: FailureSearch) -> FailureSearchResult:
    states = list(FailedState) if asked.states is UNSET else asked.states
    wanted = to_filter(
        JobFilter(
            states=[JobState(each.value) for each in states],
            types=asked.types,
            error_categories=UNSET if asked.failure_category is UNSET else [asked.failure_category],
            error_codes=UNSET if asked.error_code is UNSET else [asked.error_code],
            created_after=asked.time_range.after,
            created_before=asked.time_range.before,
        ),
        call.identity,
    )
    bound_to = (call.tenant, wanted, "failures")
    cursor, order = unseal(asked.pagination.cursor, *bound_to), Order.UPDATED_DESC
    limit = int(asked.pagination.limit)
    page = await call.store.search(call.tenant, wanted, order=order, cursor=cursor, limit=limit)
    counts = await _counted(call, wanted)
    view = JobView.of(call.service, call.identity)
    return FailureSearchResult(
        failures=[
            FailedJob(
                job_id=job.id,
                type=job.type,
                queue=job.queue,
                state=JobState.of(job.state_at(page.now)),
                total_attempts=job.attempt,
                updated_at=timestamp(job.updated_at),
                failure=_failure(view, job.error, job.attempt, job.updated_at, job.owner),
            )
            for job in page.jobs
        ],
        next_cursor=seal(page.next_cursor, *bound_to),
        total_count=counts.counted,
        by_category=counts.by_category,
        by_code=counts.by_code,
        by_type=counts.by_type,
        groups=sorted(counts.groups.values(), key=lambda group: -group.count)[:GROUPS_MAX],
        counted=counts.counted,
        complete=counts.complete,
    )


class _Counts:
    """What went wrong, counted over the newest jobs."""

    def __init__(self) -> None:
        self.counted = 0
        self.complete = True
        self.by_category: dict[str, int] = {}
        self.by_code: dict[str, int] = {}
        self.by_type: dict[str, int] = {}
        self.groups: dict[tuple[str, str], FailureGroup] = {}

    def add(self, job: JobRecord) -> None:
        self.counted += 1
        self.by_type[job.type] = self.by_type.get(job.type, 0) + 1
        if job.error is None:
            return
        category, code = job.error.category.value.upper(), job.error.code or job.error.type or "unknown"
        self.by_category[category] = self.by_category.get(category, 0) + 1
        self.by_code[code] = self.by_code.get(code, 0) + 1
        group = self.groups.get((job.type, code))
        self.groups[job.type, code] = (
            FailureGroup(type=job.type, code=code, count=1, newest_job_id=job.id)
            if group is None
            else structs.replace(group, count=group.count + 1)
        )


GROUPS_MAX: Final = 100
_PAGE: Final = 1000


async def _counted(call: Call[Any, Any], wanted: Filter) -> _Counts:
    counts, cursor = _Counts(), None
    while counts.counted < COUNTED_MAX:
        page = await call.store.search(call.tenant, wanted, order=Order.CREATED_DESC, cursor=cursor, limit=_PAGE)
        for job in page.jobs:
            counts.add(job)
        cursor = page.next_cursor
        if cursor is None:
            return counts
    counts.complete = False
    return counts


def _failure(view: JobView, error: ErrorInfo | None, attempt: int, at: int, worker: str | None) -> FailureInfo | None:
    shown = view.error(error)
    if error is None or shown is None:
        return None
    return FailureInfo(
        attempt=attempt,
        timestamp=timestamp(at),
        duration_ms=None if error.duration_us is None else error.duration_us // 1000,
        category=shown.category,
        code=shown.code,
        message=shown.message,
        stack_trace=shown.stack_trace,
        context=error.context if view.text("") is not None else {},
        worker_id=error.worker or worker,
        host=error.host,
    )


def _attempt(view: JobView, record: AttemptRecord) -> AttemptInfo:
    return AttemptInfo(
        attempt=record.attempt,
        run=record.run,
        started_at=timestamp(record.started_at),
        finished_at=timestamp(record.ended_at),
        result=_result(record),
        ended=record.move.value.upper(),
        failure=_failure(view, record.error, record.attempt, record.ended_at, record.owner),
    )


def _result(record: AttemptRecord) -> AttemptResult | None:
    if record.move in _GIVEN_BACK:
        return None
    if record.move is Move.CANCEL:
        return AttemptResult.CANCELLED
    if record.error is None:
        return AttemptResult.SUCCESS
    return AttemptResult.TIMEOUT if record.error.category.value == "timeout" else AttemptResult.FAILURE


_GIVEN_BACK: Final = frozenset({Move.DEFER, Move.SUSPEND, Move.RELEASE})
