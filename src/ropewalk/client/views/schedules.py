"""A schedule as users see it, with datetimes, its timing in words, and its next fires."""

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
    """A schedule at the moment when it was read."""

    name: str
    tenant: str
    cron: str | None
    timezone: str | None
    """The time zone of `cron`."""
    every: timedelta | None
    next: str | None
    """The name of the function that computes its times."""
    job_type: str | None
    """The type of its template; None if a function makes its jobs."""
    queue: str | None
    arguments: Mapping[str, object] | None = field(repr=False)
    """The arguments of its template, decoded by the job type if that is registered here."""
    run: str | None
    """The name of the function that makes its jobs."""
    missed: Missed
    next_fire: datetime | None
    """The time of its next fire; None if it has ended."""
    last_fire: datetime | None
    upcoming: tuple[datetime, ...]
    """Its next fires from `next_fire` on, as many as were asked for and can be computed here."""
    paused: bool
    overridden: bool
    """Whether it was edited at run time, so that declaring it in code changes nothing."""
    generation: int
    """The generation is 1, and grows by one with every edit."""
    version: int | None
    """The version for `edit_schedule(if_rev=...)`, which changes with every change of the schedule and with every fire;
    None for a preview of a schedule that is not stored."""
    options: Mapping[str, object] = field(default_factory=dict[str, object])
    """The other options of its template, named as in `Job.using`, with spans in seconds."""
    secrets: tuple[str, ...] = ()
    """The names of arguments and fields of its template that must be hidden from people, as in JobInfo."""

    @property
    def when(self) -> str:
        """Its timing in words."""
        if self.cron is not None:
            return f"{self.cron} ({self.timezone})"
        if self.every is not None:
            return f"every {_span(self.every)}"
        return f"at the times of {self.next}"

    @property
    def ended(self) -> bool:
        """Whether it never fires again."""
        return self.next_fire is None

    def __redacted__(self, hide: Hide) -> object:
        return shown_fields(self, hide, self.secrets, ("arguments",))


def info_of(
    schedule: Schedule, version: int | None, describe: Describer, functions: Functions, fires: int
) -> ScheduleInfo:
    """Returns the view of a schedule with this many of its next fires."""
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
    """Returns the options of a template that differ from the defaults of a job."""
    plain = NewJob(id="", type="", input=b"")
    options: dict[str, object] = {
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
            options[name] = span / SECOND
    if template.limit_key is not None:
        options["limit"] = template.limit_key
    if template.key is not None:
        options["idempotency_key"] = template.key.key
    return options


def _timing_fields(timing: Timing) -> tuple[str | None, str | None, timedelta | None, str | None]:
    match timing:
        case ByCron(expression=expression, timezone=timezone):
            return expression, timezone, None, None
        case Every(interval_us=interval):
            return None, None, timedelta(microseconds=interval), None
        case ByFunction(function=function):
            return None, None, None, function


def _fires(schedule: Schedule, functions: Functions, count: int) -> list[Instant]:
    """Returns the next fires. If a function raises or this machine lacks the time zone, people can still see the
    schedule, with its stored next fire."""
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
