"""Schedules: what is to run and at which times, and how people create, edit, declare, pause and resume them.

The times are those of a cron expression, of an interval, or of a registered function. These functions read no clock.
due.py decides which fires are due and what becomes of those that were missed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Literal, TypeAlias
from uuid import UUID, uuid5

import msgspec
from msgspec import Struct, structs

from ropewalk.domain.jobs.record import DEFAULT_TENANT, NewJob
from ropewalk.domain.schedules.cron import parse_cron
from ropewalk.domain.schedules.fire_times import fire_after, zone_of
from ropewalk.domain.time import SECOND, Instant, Span, to_datetime
from ropewalk.errors import InvalidInput

Following: TypeAlias = Callable[[Instant], Instant | None]
"""A function that returns the fire that follows an instant, or None if the schedule has ended."""
Functions: TypeAlias = Mapping[str, Following]
"""The functions that this process has registered, by name."""

NO_FUNCTIONS: Final[Functions] = {}
INTERVAL_US_MIN: Final[Span] = SECOND // 10
"""Two fires of a schedule are at least this far apart."""


class ByCron(Struct, frozen=True, tag="cron"):
    """The schedule fires when a cron expression fits the clock of a zone."""

    expression: str
    timezone: str = "UTC"


class Every(Struct, frozen=True, tag="every"):
    """The schedule fires at anchor, anchor + interval, anchor + 2 × interval … A late fire does not move the next
    one."""

    interval_us: Span
    anchor: Instant | None = None
    """None means the instant at which the schedule is stored."""


class ByFunction(Struct, frozen=True, tag="next"):
    """The schedule fires at the times that a registered function returns one after another. Only a process that has
    registered the function can continue the schedule."""

    function: str


Timing: TypeAlias = ByCron | Every | ByFunction


def following(timing: Timing, functions: Functions) -> Following | None:
    """Returns the function that leads from one fire to the next; None if this process has not registered it."""
    match timing:
        case ByCron(expression=expression, timezone=timezone):
            cron, zone = parse_cron(expression), zone_of(timezone)
            return lambda after: fire_after(cron, after, zone)
        case Every(interval_us=interval, anchor=anchor):
            assert anchor is not None, "a stored interval has its anchor"
            return partial(every_after, anchor, interval)
        case ByFunction(function=name):
            function = functions.get(name)
            return None if function is None else partial(_checked_answer, name, function)


def every_after(anchor: Instant, interval_us: Span, after: Instant) -> Instant:
    """Returns the smallest anchor + k × interval after `after`, for k from 0 up."""
    if after < anchor:
        return anchor
    return anchor + ((after - anchor) // interval_us + 1) * interval_us


def checked_timing(timing: Timing, stored: Timing | None, now: Instant) -> Timing:
    """Checks a timing and returns it as it is to be stored: an interval has an anchor then, which it keeps as long as
    the interval stays the same. Raises InvalidInput if the timing cannot work."""
    match timing:
        case ByCron(expression=expression, timezone=timezone):
            parse_cron(expression)
            zone_of(timezone)
            return timing
        case Every(interval_us=interval, anchor=anchor):
            if interval < INTERVAL_US_MIN:
                least = f"{INTERVAL_US_MIN / SECOND} s"
                raise InvalidInput(f"every={interval / SECOND} is too short: give at least {least}", field="every")
            if isinstance(stored, Every) and stored.interval_us == interval and anchor is None:
                return stored
            return Every(interval, now if anchor is None else anchor)
        case ByFunction():
            return timing


def _checked_answer(name: str, function: Following, after: Instant) -> Instant | None:
    answer = function(after)
    if answer is not None and answer <= after:
        raise InvalidInput(
            f"next={name!r} returned {to_datetime(answer)} for {to_datetime(after)}: it must return a later time",
            field="next",
        )
    return answer


Missed: TypeAlias = Literal["skip", "once", "all"]

_NAMESPACE: Final = UUID("0d7f4c0a-8f5e-5b61-9d0e-3c1a7b6e24f9")


class Plan(Struct, frozen=True, kw_only=True):
    """What a schedule does, as people declare it. Two plans that are stored the same way are the same declaration."""

    timing: Timing
    work: NewJob | str
    """The template of the job, which is stored without an id because every fire has its own, or the name of the
    registered function that makes the job."""
    missed: Missed = "skip"

    @property
    def functions(self) -> list[str]:
        """The names of the registered functions that the plan calls, without repetition."""
        times = [self.timing.function] if isinstance(self.timing, ByFunction) else []
        work = [self.work] if isinstance(self.work, str) else []
        return list(dict.fromkeys(times + work))


class Schedule(Struct, frozen=True, kw_only=True):
    """A schedule as a store keeps it."""

    name: str
    tenant: str = DEFAULT_TENANT
    plan: Plan
    generation: int = 1
    """This number grows by one with every edit, so that a fire after the edit is another job than a fire before it,
    even at the same time."""
    next_fire: Instant | None
    """The schedule fires next at this instant; None if it has ended."""
    last_fire: Instant | None = None
    paused: bool = False
    overridden: bool = False
    """Whether somebody has edited the schedule at run time, so that a declaration in code changes nothing."""


def begin(
    name: str, plan: Plan, now: Instant, *, tenant: str = DEFAULT_TENANT, functions: Functions = NO_FUNCTIONS
) -> Schedule:
    """Returns a new schedule, whose first fire is after now. Raises InvalidInput if the plan cannot work."""
    plan = _as_stored(plan, None, now)
    return Schedule(name=name, tenant=tenant, plan=plan, next_fire=_first_fire(plan.timing, now, functions))


def edit(
    schedule: Schedule, plan: Plan, now: Instant, *, functions: Functions = NO_FUNCTIONS, overridden: bool = True
) -> Schedule:
    """Returns the schedule with another plan. If its times change, its next fire is after now; the caller must first
    submit the fires that are due by the old times (due.py)."""
    plan = _as_stored(plan, schedule.plan, now)
    same_times = plan.timing == schedule.plan.timing
    next_fire = schedule.next_fire if same_times else _first_fire(plan.timing, now, functions)
    return structs.replace(
        schedule, plan=plan, generation=schedule.generation + 1, next_fire=next_fire, overridden=overridden
    )


def declare(
    schedule: Schedule, plan: Plan, now: Instant, *, functions: Functions = NO_FUNCTIONS, reset: bool = False
) -> Schedule:
    """Returns the schedule after code has declared it at the start of a worker.

    The same plan changes nothing, and after an edit at run time no plan does, unless `reset` is set.
    """
    if schedule.overridden and not reset:
        return schedule
    if _as_stored(plan, schedule.plan, now) == schedule.plan:
        return structs.replace(schedule, overridden=False)
    return edit(schedule, plan, now, functions=functions, overridden=False)


def pause(schedule: Schedule) -> Schedule:
    return structs.replace(schedule, paused=True)


def resume(schedule: Schedule, now: Instant, *, functions: Functions = NO_FUNCTIONS) -> Schedule:
    """Returns the schedule without its pause. The fires during the pause do not count as missed: the next fire is after
    now.

    If this process does not have the function of the schedule, the next fire stays as it is, and a process that has the
    function continues from there.
    """
    times = following(schedule.plan.timing, functions)
    next_fire = schedule.next_fire
    if schedule.paused and times is not None and next_fire is not None and next_fire <= now:
        next_fire = times(now)
    return structs.replace(schedule, paused=False, next_fire=next_fire)


def fire_id(schedule: Schedule, fire: Instant) -> str:
    """Returns the id of the job of one fire. It is the same whoever submits the job, and however often."""
    # The parts are encoded as an array, because names may contain any character that could separate them.
    identity = msgspec.json.encode((schedule.tenant, schedule.name, schedule.generation, fire))
    return str(uuid5(_NAMESPACE, identity.decode()))


def job_of(schedule: Schedule, template: NewJob, fire: Instant) -> NewJob:
    """Returns the job of one fire. `template` is that of the schedule, or what its function made."""
    return structs.replace(template, id=fire_id(schedule, fire), tenant=schedule.tenant)


def _as_stored(plan: Plan, stored: Plan | None, now: Instant) -> Plan:
    if plan.missed not in {"skip", "once", "all"}:
        raise InvalidInput(f"missed={plan.missed!r} is unknown: give 'skip', 'once' or 'all'", field="missed")
    work = plan.work if isinstance(plan.work, str) else structs.replace(plan.work, id="")
    timing = checked_timing(plan.timing, None if stored is None else stored.timing, now)
    return structs.replace(plan, timing=timing, work=work)


def _first_fire(timing: Timing, now: Instant, functions: Functions) -> Instant | None:
    times = following(timing, functions)
    if times is None:
        raise InvalidInput(f"{timing} is not registered in this process: register the function first", field="next")
    return times(now)
