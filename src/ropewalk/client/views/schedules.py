"""A schedule as people see it: datetimes, what it does in words, the fires to come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ropewalk.client.views.jobs import Describer
from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.redaction import Hide, shown_fields
from ropewalk.domain.schedules.due import upcoming
from ropewalk.domain.schedules.schedule import ByCron, ByFunction, Every, Functions, Missed, Schedule, Timing
from ropewalk.domain.time import SECOND, Instant, to_datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleInfo:
    name: str
    tenant: str
    cron: str | None
    timezone: str | None
    """of `cron`"""
    every: timedelta | None
    next: str | None
    """the function that tells its times"""
    job_type: str | None
    """of its template; None where a function makes its jobs"""
    queue: str | None
    arguments: Mapping[str, object] | None = field(repr=False)
    """of its template, decoded by the type where it is registered here"""
    run: str | None
    """the function that makes its jobs"""
    missed: Missed
    next_fire: datetime | None
    """None: it has ended"""
    last_fire: datetime | None
    upcoming: tuple[datetime, ...]
    """from next_fire on, as many as were asked for and can be told here"""
    paused: bool
    overridden: bool
    """edited at run time: declaring it in code changes nothing"""
    generation: int
    """1, +1 for every edit"""
    version: int | None
    """The store's number of this state of it, for `edit_schedule(if_rev=...)`: a new one after every change, fires
    included. None for a preview of one that is not stored."""
    options: Mapping[str, object] = field(default_factory=dict[str, object])
    """What its template says beside its queue, in the words of `Job.using`; spans in seconds."""
    secrets: tuple[str, ...] = ()
    """Names of arguments and fields of its template that are to be hidden from people, as in JobInfo."""

    @property
    def when(self) -> str:
        """In words."""
        if self.cron is not None:
            return f"{self.cron} ({self.timezone})"
        if self.every is not None:
            return f"every {_span(self.every)}"
        return f"at the times of {self.next}"

    @property
    def ended(self) -> bool:
        return self.next_fire is None

    def __redacted__(self, hide: Hide) -> object:
        return shown_fields(self, hide, self.secrets, ("arguments",))


def info_of(
    schedule: Schedule, version: int | None, describe: Describer, functions: Functions, fires: int
) -> ScheduleInfo:
    timing, work = schedule.plan.timing, schedule.plan.work
    cron, timezone, every, following = _timing_fields(timing)
    template = None if isinstance(work, str) else work
    return ScheduleInfo(
        name=schedule.name,
        tenant=schedule.tenant,
        cron=cron,
        timezone=timezone,
        every=every,
        next=following,
        job_type=None if template is None else template.type,
        queue=None if template is None else template.queue,
        arguments=None if template is None else describe.arguments(template.type, template.input),
        run=work if isinstance(work, str) else None,
        missed=schedule.plan.missed,
        next_fire=_datetime(schedule.next_fire),
        last_fire=_datetime(schedule.last_fire),
        upcoming=tuple(map(to_datetime, _fires(schedule, functions, fires))),
        paused=schedule.paused,
        overridden=schedule.overridden,
        generation=schedule.generation,
        version=version,
        options={} if template is None else _options(template),
        secrets=() if template is None else describe.secrets(template.type),
    )


def _options(template: NewJob) -> dict[str, object]:
    """Those that are not what a job has without being told."""
    plain = NewJob(id="", type="", input=b"")
    said: dict[str, object] = {
        name: getattr(template, name)
        for name in ("priority", "max_attempts", "max_crashes", "tags", "correlation_id", "workflow_id", "fairness")
        if getattr(template, name) != getattr(plain, name)
    }
    for name, span in (
        ("delay", template.delay_us or None),
        ("timeout", template.timeout_us),
        ("ttl", template.ttl_us),
        ("lease", template.lease_us),
    ):
        if span is not None:
            said[name] = span / SECOND
    if template.limit_key is not None:
        said["limit"] = template.limit_key
    if template.key is not None:
        said["idempotency_key"] = template.key.key
    return said


def _timing_fields(timing: Timing) -> tuple[str | None, str | None, timedelta | None, str | None]:
    match timing:
        case ByCron(expression=expression, timezone=timezone):
            return expression, timezone, None, None
        case Every(interval_us=interval):
            return None, None, timedelta(microseconds=interval), None
        case ByFunction(function=function):
            return None, None, None, function


def _fires(schedule: Schedule, functions: Functions, count: int) -> list[Instant]:
    """A function that raises, or a zone this machine does not have, must not keep people from looking."""
    try:
        return upcoming(schedule, count, functions)
    except Exception:
        return [] if schedule.next_fire is None else [schedule.next_fire][:count]


def _datetime(instant: Instant | None) -> datetime | None:
    return None if instant is None else to_datetime(instant)


def _span(span: timedelta) -> str:
    for unit, name in ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "min")):
        if span >= unit and not span % unit:
            return f"{span // unit} {name}"
    return f"{span.total_seconds():g} s"
