"""Statistics: how many jobs are in each state now, and what happened in a range of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from ropewalk.domain.jobs.states import State
from ropewalk.domain.statistics.aggregation import By, StatsQuery
from ropewalk.domain.statistics.statistics import Flow, Latency, Slice, Statistics
from ropewalk.domain.time import DAY, HOUR, SECOND, to_instant
from ropewalk.http.call import Call
from ropewalk.http.errors import ErrorCode, invalid
from ropewalk.http.identity.identity import Role
from ropewalk.http.jobs.lookup import refuse_bounded
from ropewalk.http.routing import Routes
from ropewalk.http.wire import JobState, Name, Timestamp, timestamp
from ropewalk.ports.store.capabilities import STATISTICS

routes = Routes("statistics")

RANGE_DAYS_MAX = 366


class Breakdown(StrEnum):
    TYPE = "TYPE"
    PRIORITY = "PRIORITY"
    STATE = "STATE"
    QUEUE = "QUEUE"


class StatsRange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The statistics that are wanted; by default those of the last hour."""

    breakdown_by: Annotated[list[Breakdown], Meta(max_length=4)] | UnsetType = UNSET
    after: Timestamp | UnsetType = UNSET
    """The beginning of the range of time."""
    before: Timestamp | UnsetType = UNSET
    """The end of the range of time; by default now."""
    queue: Name | UnsetType = UNSET
    type: Name | UnsetType = UNSET
    slices: Annotated[int, Meta(ge=1, le=1000)] = 60


class Percentiles(Struct, frozen=True, kw_only=True):
    """In milliseconds."""

    p50: float
    p90: float
    p99: float
    max: float
    count: int


class Counts(Struct, frozen=True, kw_only=True):
    pending: int
    """Everything that waits."""
    running: int
    completed: int
    """In the range of time, like the next one."""
    failed: int


class TimeSlice(Struct, frozen=True, kw_only=True):
    at: datetime
    submitted: int
    completed: int
    failed: int
    dead_letter: int
    cancelled: int
    retried: int
    queue_latency: Percentiles
    execution_time: Percentiles


class QueueStats(Struct, frozen=True, kw_only=True):
    since: datetime
    until: datetime
    pending: int
    """Jobs in this state now, like the next four."""
    scheduled: int
    running: int
    delayed: int
    retrying: int
    completed: int
    """Jobs that ended so in the range of time, like the next three."""
    failed: int
    dead_letter: int
    cancelled: int
    submission_rate: float
    """Per second, like the next two."""
    completion_rate: float
    failure_rate: float
    queue_latency: Percentiles
    execution_time: Percentiles
    line: Sequence[TimeSlice]
    """The slices of the range of time, in order."""
    by_type: Mapping[str, Counts] | UnsetType = UNSET
    by_queue: Mapping[str, Counts] | UnsetType = UNSET
    by_state: Mapping[JobState, int] | UnsetType = UNSET


@routes.get("/stats", role=Role.READ, errors=(ErrorCode.UNSUPPORTED,))
async def get_stats(call: Call[None, StatsRange]) -> QueueStats:
    """Tell how many jobs are in each state now, and what happened in a range of time.

    The cost does not depend on how many jobs there are or were.
    """
    refuse_bounded(call)
    wanted = call.query.breakdown_by or []
    by: By = "both" if {Breakdown.TYPE, Breakdown.QUEUE} <= set(wanted) else "type"
    if Breakdown.QUEUE in wanted and Breakdown.TYPE not in wanted:
        by = "queue"
    now = await call.store.clock()
    until = now if call.query.before is UNSET else min(now, to_instant(call.query.before, "before"))
    since = until - HOUR if call.query.after is UNSET else to_instant(call.query.after, "after")
    if since >= until:
        raise invalid("the range of time is empty: `after` is not before its end", field="after")
    if until - since > RANGE_DAYS_MAX * DAY:
        raise invalid(f"the range of time is longer than {RANGE_DAYS_MAX} days", field="after")
    query = StatsQuery(
        last_us=max(SECOND, until - since),
        until=None if call.query.before is UNSET else until,
        by=by,
        queue=None if call.query.queue is UNSET else call.query.queue,
        type=None if call.query.type is UNSET else call.query.type,
        slices=call.query.slices,
    )
    return _shown(await STATISTICS.of(call.store).stats(call.tenant, query), wanted)


def _shown(found: Statistics, breakdowns: Sequence[Breakdown]) -> QueueStats:
    states, flow = found.states, found.flow
    failures = flow.failed + flow.dead_letter
    return QueueStats(
        since=timestamp(found.since),
        until=timestamp(found.until),
        pending=states.get(State.PENDING, 0),
        scheduled=states.get(State.SCHEDULED, 0),
        running=states.get(State.RUNNING, 0),
        delayed=states.get(State.DELAYED, 0),
        retrying=states.get(State.RETRYING, 0),
        completed=flow.completed,
        failed=flow.failed,
        dead_letter=flow.dead_letter,
        cancelled=flow.cancelled,
        submission_rate=flow.submitted / found.seconds,
        completion_rate=flow.completed / found.seconds,
        failure_rate=failures / found.seconds,
        queue_latency=_percentiles(flow.wait),
        execution_time=_percentiles(flow.run),
        line=[_slice(each) for each in found.line],
        by_type=_counts(found, "type") if Breakdown.TYPE in breakdowns else UNSET,
        by_queue=_counts(found, "queue") if Breakdown.QUEUE in breakdowns else UNSET,
        by_state={JobState.of(state): count for state, count in states.items()}
        if Breakdown.STATE in breakdowns
        else UNSET,
    )


def _counts(found: Statistics, part: str) -> dict[str, Counts]:
    waiting, running, flows = dict[str, int](), dict[str, int](), dict[str, list[Flow]]()
    for standing in found.standing:
        name: str = getattr(standing, part)
        for state, count in standing.states.items():
            if state is State.RUNNING:
                running[name] = running.get(name, 0) + count
            elif state in _WAITING:
                waiting[name] = waiting.get(name, 0) + count
    for share in found.shares:
        flows.setdefault(getattr(share, part), []).append(share.flow)
    return {
        name: Counts(
            pending=waiting.get(name, 0),
            running=running.get(name, 0),
            completed=sum(flow.completed for flow in flows.get(name, ())),
            failed=sum(flow.failed + flow.dead_letter for flow in flows.get(name, ())),
        )
        for name in sorted({*waiting, *running, *flows})
    }


_WAITING = frozenset({State.PENDING, State.DELAYED, State.RETRYING, State.SCHEDULED})


def _slice(given: Slice) -> TimeSlice:
    flow = given.flow
    return TimeSlice(
        at=timestamp(given.at),
        submitted=flow.submitted,
        completed=flow.completed,
        failed=flow.failed,
        dead_letter=flow.dead_letter,
        cancelled=flow.cancelled,
        retried=flow.retried,
        queue_latency=_percentiles(flow.wait),
        execution_time=_percentiles(flow.run),
    )


def _percentiles(measured: Latency) -> Percentiles:
    return Percentiles(
        p50=measured.p50_us / 1000,
        p90=measured.p90_us / 1000,
        p99=measured.p99_us / 1000,
        max=measured.max_us / 1000,
        count=measured.count,
    )
