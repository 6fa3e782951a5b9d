"""Looking at one job, and at what is recorded about it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, Raw, Struct, structs

from ropewalk.client.views.answers import LogInfo
from ropewalk.domain.jobs.history import assemble
from ropewalk.domain.redaction import redacted
from ropewalk.domain.why import explain
from ropewalk.errors import WaitTimeout
from ropewalk.http.answer import Reply
from ropewalk.http.call import Call, NoQuery
from ropewalk.http.errors import ErrorCode
from ropewalk.http.identity.identity import Payloads, Role
from ropewalk.http.jobs.lookup import find, find_history
from ropewalk.http.jobs.shapes import JobQuery, JobStatus
from ropewalk.http.jobs.status import JobView
from ropewalk.http.revs import etag
from ropewalk.http.routing import Routes
from ropewalk.http.wire import Ids, JobState, timestamp_or_none
from ropewalk.observe.why_inputs import why_inputs
from ropewalk.ports.store.capabilities import LOGS, WORKFLOWS

routes = Routes("jobs")

WAIT_SECONDS_MAX = 30.0


class WaitQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    timeout: Annotated[float, Meta(ge=0, le=WAIT_SECONDS_MAX)] = WAIT_SECONDS_MAX
    """In seconds."""
    include_result: bool = False


class StatesRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    job_ids: Ids


class States(Struct, frozen=True, kw_only=True):
    states: Mapping[str, JobState]
    """By job id. Jobs that do not exist are absent."""


class WhyAnswer(Struct, frozen=True, kw_only=True):
    """The one cause why a job is not running, or where it runs."""

    job_id: str
    state: JobState
    cause: str
    explanation: str


class LogEntry(Struct, frozen=True, kw_only=True):
    timestamp: datetime
    level: str
    message: str
    fields: Mapping[str, Any]
    attempt: int


class Logs(Struct, frozen=True, kw_only=True):
    lines: Sequence[LogEntry]


class StepInfo(Struct, frozen=True, kw_only=True):
    position: int
    name: str
    kind: str
    finished: bool
    value: Raw | None
    until: datetime | None
    """When a sleep or a wait for a signal ends."""


class Steps(Struct, frozen=True, kw_only=True):
    steps: Sequence[StepInfo]


class DependencyKind(StrEnum):
    JOB = "JOB"
    TREE = "TREE"
    CHAIN = "CHAIN"


class DependencyInfo(Struct, frozen=True, kw_only=True):
    job_id: str
    kind: DependencyKind
    """Whether the job alone is waited for, or also what was queued under it, or its continuations."""
    ending: str | None
    """How it ended. None while it has not."""
    state: JobState | None
    """None if the job does not exist any more."""


class Dependencies(Struct, frozen=True, kw_only=True):
    dependencies: Sequence[DependencyInfo]


@routes.get("/jobs/{id}", role=Role.READ)
async def get_job(call: Call[None, JobQuery]) -> Reply[JobStatus]:
    """Look at a job. Its ETag is for If-Match."""
    view = JobView.of(call.service, call.identity)
    if not call.query.include_history:
        job, now = await find(call)
        return Reply(view.status(job, now, with_result=call.query.include_result), headers=etag(job.rev))
    stored = await find_history(call)
    status = view.status(stored.job, stored.now, with_result=call.query.include_result)
    entries = assemble(stored.job, stored.attempts, stored.events)
    return Reply(structs.replace(status, history=view.transitions(entries)), headers=etag(status.rev))


@routes.get("/jobs/{id}/wait", role=Role.READ)
async def wait_for_job(call: Call[None, WaitQuery]) -> JobStatus:
    """Wait until a job has ended, or until the timeout is over; the state in the answer tells which."""
    await find(call)
    with suppress(WaitTimeout, TimeoutError):
        await patiently(call, call.client.wait(call.id, call.query.timeout))
    job, now = await find(call)
    return JobView.of(call.service, call.identity).status(job, now, with_result=call.query.include_result)


@routes.post("/jobs/states", role=Role.READ, example={"job_ids": ["a", "b"]}, audited=False)
async def get_states(call: Call[StatesRequest, NoQuery]) -> States:
    """Tell the states of up to 1,000 jobs."""
    read = await call.store.get(call.tenant, call.body.job_ids)
    reached = {each.id: each for each in read.jobs.values() if call.identity.reaches(each.type, each.queue)}
    return States(states={job_id: JobState.of(job.state_at(read.now)) for job_id, job in reached.items()})


@routes.get("/jobs/{id}/why", role=Role.READ)
async def why_not_running(call: Call[None, NoQuery]) -> WhyAnswer:
    """Tell the one cause why a job is not running, or where it runs."""
    job, now = await find(call)
    why = explain(job, await why_inputs(call.store, job, now), now)
    text = JobView.of(call.service, call.identity).text(why.explanation)
    return WhyAnswer(job_id=job.id, state=JobState.of(why.state), cause=why.cause.upper(), explanation=text or "")


@routes.get("/jobs/{id}/logs", role=Role.READ, errors=(ErrorCode.UNSUPPORTED,))
async def get_logs(call: Call[None, NoQuery]) -> Logs:
    """Show what the handler of a job logged, over all attempts, oldest first: the newest 1,000 lines."""
    store = LOGS.of(call.store)
    await find(call)
    if call.identity.payloads is Payloads.NONE:
        return Logs(lines=[])
    lines = [LogInfo.of(line) for line in await store.log(call.tenant, call.id)]
    return Logs(
        lines=[
            LogEntry(
                timestamp=line.at,
                level=line.level,
                message=line.message,
                fields=redacted(line.fields, tuple(call.service.app_state.secret_keys)),
                attempt=line.attempt,
            )
            for line in lines
        ]
    )


@routes.get("/jobs/{id}/steps", role=Role.READ, errors=(ErrorCode.UNSUPPORTED,))
async def get_steps(call: Call[None, NoQuery]) -> Steps:
    """Show the durable steps of a job, in the order of the program."""
    store, view = WORKFLOWS.of(call.store), JobView.of(call.service, call.identity)
    job, _ = await find(call)
    return Steps(
        steps=[
            StepInfo(
                position=step.position,
                name=step.name,
                kind=step.kind.upper(),
                finished=step.finished,
                value=view.value(job.type, step.value),
                until=timestamp_or_none(step.until),
            )
            for step in await store.steps(job.seq)
        ]
    )


@routes.get("/jobs/{id}/dependencies", role=Role.READ, errors=(ErrorCode.UNSUPPORTED,))
async def get_dependencies(call: Call[None, NoQuery]) -> Dependencies:
    """Show what a job waits for, or waited for, in the order of its `depends_on`."""
    store = WORKFLOWS.of(call.store)
    job, now = await find(call)
    return Dependencies(
        dependencies=[
            DependencyInfo(
                job_id=each.edge.parent_id,
                kind=DependencyKind(each.edge.kind.value.upper()),
                ending=None if each.edge.ending is None else each.edge.ending.value.upper(),
                state=None if each.job is None else JobState.of(each.job.state_at(now)),
            )
            for each in await store.dependencies(job.seq)
        ]
    )


async def patiently(call: Call[Any, Any], work: Awaitable[Any]) -> None:
    """Waits for `work`, and gives up when the server is about to stop or the client has gone. Raises its error."""
    waits = [asyncio.ensure_future(each) for each in (work, call.service.draining.wait(), call.request.disconnected())]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if waits[0].done():
            waits[0].result()
    finally:
        for each in waits:
            each.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
