"""Looking at schedules, and making, editing, pausing, triggering and removing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, cast

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ropewalk.client.views.schedules import ScheduleInfo
from ropewalk.definitions.job import Job
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.definitions.schedule import ScheduleOptions
from ropewalk.domain.time import to_span
from ropewalk.http.answer import Reply
from ropewalk.http.call import Call, NoQuery
from ropewalk.http.errors import ErrorCode, invalid
from ropewalk.http.identity.identity import Payloads, Role
from ropewalk.http.jobs.lookup import refuse_bounded, status_of
from ropewalk.http.jobs.shapes import JobStatus
from ropewalk.http.jobs.status import JobView
from ropewalk.http.jobs.submission import derived_id
from ropewalk.http.revs import etag, expected_rev
from ropewalk.http.routing import Routes
from ropewalk.http.wire import (
    Attempts,
    Duration,
    Json,
    Name,
    Priority,
    iso_duration,
    priority_number,
    seconds,
)
from ropewalk.ports.store.capabilities import SCHEDULES

routes = Routes("schedules")


class MissedFires(StrEnum):
    """What happens to fires that nobody was there for."""

    SKIP = "SKIP"
    ONCE = "ONCE"
    ALL = "ALL"


class JobTemplate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The job that every fire makes."""

    type: Name
    payload: Mapping[str, Json] = {}
    queue: Name | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    timeout: Duration | UnsetType = UNSET
    max_attempts: Attempts | UnsetType = UNSET
    tags: Mapping[str, str] | UnsetType = UNSET


class ScheduleSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A schedule to make: one of cron, every and next says when it fires, one of job and run what it makes."""

    name: Name
    cron: Annotated[str, Meta(min_length=1, max_length=256)] | UnsetType = UNSET
    timezone: Name | UnsetType = UNSET
    every: Duration | UnsetType = UNSET
    next: Name | UnsetType = UNSET
    job: JobTemplate | UnsetType = UNSET
    run: Name | UnsetType = UNSET
    missed: MissedFires | UnsetType = UNSET


class ScheduleEdit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What changes about a schedule. `payload` changes only the arguments that it names."""

    cron: Annotated[str, Meta(min_length=1, max_length=256)] | UnsetType = UNSET
    timezone: Name | UnsetType = UNSET
    every: Duration | UnsetType = UNSET
    next: Name | UnsetType = UNSET
    job: JobTemplate | UnsetType = UNSET
    run: Name | UnsetType = UNSET
    missed: MissedFires | UnsetType = UNSET
    payload: Mapping[str, Json] | UnsetType = UNSET


class ScheduleStatus(Struct, frozen=True, kw_only=True):
    name: str
    cron: str | None
    timezone: str | None
    every: str | None
    next: str | None
    job_type: str | None
    queue: str | None
    run: str | None
    missed: MissedFires
    next_fire: datetime | None
    """None if the schedule has ended."""
    last_fire: datetime | None
    upcoming: Sequence[datetime]
    paused: bool
    overridden: bool
    """Whether it was edited, so that the code that declares it changes nothing."""
    version: int | None
    payload: Raw | UnsetType = UNSET


class Schedules(Struct, frozen=True, kw_only=True):
    schedules: Sequence[ScheduleStatus]


class UpcomingQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    upcoming: Annotated[int, Meta(ge=0, le=1000)] = 5
    """How many of the next fires are told."""


class DryRunQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    dry_run: bool = False


@routes.get("/schedules", role=Role.READ, errors=(ErrorCode.UNSUPPORTED,))
async def list_schedules(call: Call[None, UpcomingQuery]) -> Schedules:
    """List the schedules of the tenant, by name."""
    refuse_bounded(call)
    found = await call.client.schedules(upcoming=call.query.upcoming)
    return Schedules(schedules=[_shown(call, each) for each in found])


@routes.get("/schedules/{name}", role=Role.READ, errors=(ErrorCode.UNSUPPORTED,))
async def get_schedule(call: Call[None, UpcomingQuery]) -> Reply[ScheduleStatus]:
    """Look at a schedule."""
    refuse_bounded(call)
    return _reply(call, await call.client.get_schedule(call.params["name"], upcoming=call.query.upcoming))


@routes.post(
    "/schedules",
    role=Role.OPERATE,
    statuses=(201, 200),
    errors=(ErrorCode.CONFLICT, ErrorCode.UNSUPPORTED),
    example={"name": "nightly", "cron": "30 3 * * *", "job": {"type": "report", "payload": {}}},
)
async def create_schedule(call: Call[ScheduleSpec, DryRunQuery]) -> Reply[ScheduleStatus]:
    """Make a schedule. With `dry_run` nothing is stored, and the answer is the schedule as it would be."""
    refuse_bounded(call)
    options, dry_run = _options(call, call.body), call.query.dry_run
    made = await call.client.create_schedule(call.body.name, dry_run=dry_run, **options)
    return _reply(call, made, 200 if dry_run else 201)


@routes.patch(
    "/schedules/{name}",
    role=Role.OPERATE,
    errors=(ErrorCode.CONFLICT, ErrorCode.PRECONDITION_FAILED, ErrorCode.UNSUPPORTED),
    example={"cron": "0 4 * * *"},
)
async def edit_schedule(call: Call[ScheduleEdit, DryRunQuery]) -> Reply[ScheduleStatus]:
    """Change parts of a schedule. With If-Match only if nobody has changed it since it was read."""
    refuse_bounded(call)
    name = call.params["name"]
    arguments: Any = None
    if call.body.payload is not UNSET:
        job_type = (await call.client.get_schedule(name)).job_type
        if job_type is None:
            raise invalid("a function makes the jobs of this schedule: it has no payload to change", field="payload")
        data = msgspec.json.encode(call.body.payload)
        arguments = call.service.registry.get(job_type).resolve().arguments.part_from_json(data)
    edited = await call.client.edit_schedule(
        name,
        arguments=arguments,
        if_rev=expected_rev(call),
        dry_run=call.query.dry_run,
        **_options(call, call.body),
    )
    return _reply(call, edited)


@routes.delete("/schedules/{name}", role=Role.OPERATE, errors=(ErrorCode.UNSUPPORTED,))
async def delete_schedule(call: Call[None, NoQuery]) -> None:
    """Remove a schedule. Its jobs stay."""
    refuse_bounded(call)
    await call.client.delete_schedule(call.params["name"])


@routes.post("/schedules/{name}/pause", role=Role.OPERATE, errors=(ErrorCode.UNSUPPORTED,))
async def pause_schedule(call: Call[None, NoQuery]) -> Reply[ScheduleStatus]:
    """Let a schedule enqueue nothing until it is resumed."""
    refuse_bounded(call)
    return _reply(call, await call.client.pause_schedule(call.params["name"]))


@routes.post("/schedules/{name}/resume", role=Role.OPERATE, errors=(ErrorCode.UNSUPPORTED,))
async def resume_schedule(call: Call[None, NoQuery]) -> Reply[ScheduleStatus]:
    """Let a schedule fire again, from its next time on."""
    refuse_bounded(call)
    return _reply(call, await call.client.resume_schedule(call.params["name"]))


@routes.post("/schedules/{name}/trigger", role=Role.OPERATE, errors=(ErrorCode.CONFLICT, ErrorCode.UNSUPPORTED))
async def trigger_schedule(call: Call[None, NoQuery]) -> JobStatus:
    """Enqueue the job of a schedule once, now. With an Idempotency-Key a repeat answers the first job."""
    refuse_bounded(call)
    name, key = call.params["name"], call.request.headers.get("idempotency-key")
    own_id = None if key is None else derived_id(call.tenant, f"trigger:{name}", key)
    job = await call.client.trigger_schedule(name, id=own_id)
    return await status_of(call, job.id)


def _options(call: Call[Any, Any], given: ScheduleSpec | ScheduleEdit) -> ScheduleOptions:
    SCHEDULES.of(call.store)
    options: dict[str, Any] = {
        name: getattr(given, name) for name in ("cron", "timezone", "next", "run") if getattr(given, name) is not UNSET
    }
    if given.every is not UNSET:
        options["every"] = seconds(given.every, "every")
    if given.missed is not UNSET:
        options["missed"] = given.missed.value.lower()
    if given.job is not UNSET:
        options["job"] = _job(call, given.job)
    return cast("ScheduleOptions", options)


def _job(call: Call[Any, Any], template: JobTemplate) -> Job[Any, Any]:
    job_type = call.service.registry.get(template.type)
    job = call.service.app_state.named_job(
        template.type, job_type.arguments_from_json(msgspec.json.encode(template.payload))
    )
    using: dict[str, Any] = {}
    if template.queue is not UNSET:
        using["queue"] = template.queue
    if template.priority is not UNSET:
        using["priority"] = priority_number(template.priority)
    if template.timeout is not UNSET:
        using["timeout"] = seconds(template.timeout, "timeout")
    if template.max_attempts is not UNSET:
        using["max_attempts"] = int(template.max_attempts)
    if template.tags is not UNSET:
        using["tags"] = template.tags
    return job.using(**cast("EnqueueOptions", using)) if using else job


def _reply(call: Call[Any, Any], info: ScheduleInfo, status: int = 200) -> Reply[ScheduleStatus]:
    return Reply(_shown(call, info), status, {} if info.version is None else etag(info.version))


def _shown(call: Call[Any, Any], info: ScheduleInfo) -> ScheduleStatus:
    return ScheduleStatus(
        name=info.name,
        cron=info.cron,
        timezone=info.timezone,
        every=None if info.every is None else iso_duration(to_span(info.every, "every")),
        next=info.next,
        job_type=info.job_type,
        queue=info.queue,
        run=info.run,
        missed=MissedFires(info.missed.upper()),
        next_fire=info.next_fire,
        last_fire=info.last_fire,
        upcoming=info.upcoming,
        paused=info.paused,
        overridden=info.overridden,
        version=info.version,
        payload=_payload(call, info),
    )


def _payload(call: Call[Any, Any], info: ScheduleInfo) -> Raw | UnsetType:
    """The arguments of the template, as its type writes them, as far as the identity may see them."""
    if info.arguments is None or info.job_type is None or call.identity.payloads is Payloads.NONE:
        return UNSET
    if info.job_type in call.service.registry:
        data = call.service.registry.get(info.job_type).encode_input(info.arguments)
    else:
        data = call.service.app_state.codec.encode(dict(info.arguments), Any)
    return JobView.of(call.service, call.identity).arguments(info.job_type, data)
