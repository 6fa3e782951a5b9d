"""Checks what users say about a schedule: when it fires, which jobs it makes, and what happens to missed fires.

This module knows no store, and functions only by their names, which client/schedules/functions.py resolves.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Final, TypeAlias, TypedDict, Unpack, cast, get_args

from msgspec import structs

from ropewalk.definitions.job import Job
from ropewalk.domain import checks
from ropewalk.domain.jobs.record import DEFAULT_TENANT
from ropewalk.domain.schedules.cron import parse_cron
from ropewalk.domain.schedules.fire_times import zone_name, zone_of
from ropewalk.domain.schedules.schedule import ByCron, ByFunction, Every, Missed, Timing, checked_timing
from ropewalk.domain.shown_values import shown
from ropewalk.domain.time import Seconds
from ropewalk.errors import InvalidInput

NextFunction: TypeAlias = Callable[[datetime], datetime | None]
"""A function from a time in UTC to the fire time after it, or None if the schedule has ended."""
RunFunction: TypeAlias = "Callable[[datetime], Job[Any, Any] | Awaitable[Job[Any, Any] | None] | None]"
"""A function from a fire time to the job of this fire, or None if there is none this time."""


class ScheduleOptions(TypedDict, total=False):
    """The options of a schedule: one of cron, every and next says when it fires, and one of job and run which jobs."""

    cron: str
    """A cron expression with five fields, or with six of which the first one is the second."""
    timezone: str | tzinfo
    """The zone whose clock `cron` reads, by name or as a ZoneInfo; the default is UTC."""
    every: Seconds
    """The time between two fires, counted from the moment at which the schedule is stored."""
    next: NextFunction | str
    """A registered function that computes the next fire time, or its name."""
    job: Job[Any, Any]
    """A template, of which every fire makes a new job."""
    run: RunFunction | str
    """A registered function that makes the job of each fire, or its name."""
    missed: Missed
    """What happens to fires that no worker was there for: skip (the default), once, or all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSchedule:
    """A schedule that code declares: made by `schedule(...)`, for `App(schedules=[...])`."""

    name: str
    tenant: str
    reset: bool
    options: ScheduleOptions


def schedule(
    name: str, *, tenant: str = DEFAULT_TENANT, reset: bool = False, **options: Unpack[ScheduleOptions]
) -> DeclaredSchedule:
    """Declare a schedule in code, which workers store when they start. Raises InvalidInput naming the option.

    >>> schedule("nightly", cron="30 3 * * *", timezone="Europe/Oslo", job=report(kind="sales"))
    >>> schedule("pulse", every=10, job=ping(), missed="once")

    With `reset`, the declared options replace what was edited at run time whenever a worker starts.
    """
    checks.text(name, "name")
    checks.text(tenant, "tenant")
    checks.flag(reset, "reset")
    check_complete(options)
    return DeclaredSchedule(name=name, tenant=tenant, reset=reset, options=options)


def check_complete(options: ScheduleOptions) -> None:
    """Check the options of a new schedule, which say when it fires and which jobs it makes. Raises InvalidInput."""
    check_options(options)
    for names in (_WHEN, _WHAT):
        if not any(name in options for name in names):
            raise InvalidInput(f"none of {_listed(names)} is given: give one of them", field=names[0])
    if "timezone" in options and "cron" not in options:
        raise InvalidInput("timezone is given without cron: only cron reads a clock on the wall", field="timezone")
    timing_of(options)


def check_options(options: ScheduleOptions) -> None:
    """Check that each option fits, and that no two say the same. Raises InvalidInput."""
    given = cast("Mapping[str, object]", options)
    checks.known_names(given, ScheduleOptions.__annotations__, "option of a schedule")
    for names in (_WHEN, _WHAT):
        named = [name for name in names if name in given]
        if len(named) > 1:
            raise InvalidInput(f"{_listed(named)} are both given: give one of {_listed(names)}", field=named[1])
    if "job" in given and not isinstance(given["job"], Job):
        raise InvalidInput(f"job={shown(given['job'])} is no job: call a job type, like job=report()", field="job")
    if "cron" in given:
        parse_cron(checks.text(given["cron"], "cron"))
    if "timezone" in given:
        zone_of(zone_name(given["timezone"]))
    if "every" in options:
        checks.positive_span(options["every"], "every")
    if "missed" in given:
        checks.choice(given["missed"], "missed", get_args(Missed))
    for name in ("next", "run"):
        if name in given:
            function_name(given[name], name)


def timing_of(options: ScheduleOptions, stored: Timing | None = None) -> Timing:
    """When a schedule with these options fires; if they do not say it, the stored timing.

    A new cron expression keeps the stored time zone. Raises InvalidInput.
    """
    timing = stored
    if "cron" in options:
        zone = options["timezone"] if "timezone" in options else _zone_before(stored)
        timing = ByCron(options["cron"], zone_name(zone))
    elif "every" in options:
        timing = Every(checks.positive_span(options["every"], "every"))
    elif "next" in options:
        timing = ByFunction(function_name(options["next"], "next"))
    elif "timezone" in options:
        if not isinstance(stored, ByCron):
            raise InvalidInput("timezone is for schedules with cron: give that, too", field="timezone")
        timing = structs.replace(stored, timezone=zone_name(options["timezone"]))
    assert timing is not None, "either is given"
    checked_timing(timing, None, 0)
    return timing


def _zone_before(stored: Timing | None) -> str:
    """The time zone of an expression that is given without one."""
    if stored is None:
        return "UTC"
    if isinstance(stored, ByCron):
        return stored.timezone
    # UTC would be a guess: it may have been edited from an expression in another zone, which is not stored any more.
    raise InvalidInput(
        "cron is given for a schedule that had no time zone: say whose clock it reads with timezone, like "
        "'Europe/Oslo' or 'UTC'",
        field="timezone",
    )


def function_name(function: object, field: str) -> str:
    """The name by which a function is stored. Raises InvalidInput for a lambda, which has none."""
    if isinstance(function, str):
        return checks.text(function, field)
    name = getattr(function, "__name__", None)
    if callable(function) and isinstance(name, str) and name.isidentifier():
        return name
    raise InvalidInput(
        f"{field}={function!r} has no name to be stored by: give a function made with def, or the name of one",
        field=field,
    )


_WHEN: Final = ("cron", "every", "next")
_WHAT: Final = ("job", "run")


def _listed(names: list[str] | tuple[str, ...]) -> str:
    *first, last = [f"{name}=" for name in names]
    return f"{', '.join(first)} and {last}"
