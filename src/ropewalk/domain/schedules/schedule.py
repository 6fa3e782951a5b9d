"""A schedule: what is to run, and by which times. How it begins, is edited, declared again, resumed; no clock in it.

Which of its fires are due, and what becomes of those that were missed, is due.py's.

By which times a schedule fires: a cron expression, an interval, or a function that somebody registered.
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
"""the fire that follows an instant; None: there is none, the schedule has ended"""
Functions: TypeAlias = Mapping[str, Following]
"""what this process has registered, by name"""

NO_FUNCTIONS: Final[Functions] = {}
INTERVAL_US_MIN: Final[Span] = SECOND // 10


class ByCron(Struct, frozen=True, tag="cron"):
    expression: str
    timezone: str = "UTC"


class Every(Struct, frozen=True, tag="every"):
    """At anchor, anchor + interval, anchor + 2 × interval …: however late one fires, the next is where it was."""

    interval_us: Span
    anchor: Instant | None = None
    """None: the moment the schedule is stored"""


class ByFunction(Struct, frozen=True, tag="next"):
    """At the times a registered function tells, one after the other. Only a process that has it can go on."""

    function: str


Timing: TypeAlias = ByCron | Every | ByFunction


def following(timing: Timing, functions: Functions) -> Following | None:
    """How to come from one fire to the next; None where only another process knows."""
    match timing:
        case ByCron(expression=expression, timezone=timezone):
            cron, zone = parse_cron(expression), zone_of(timezone)
            return lambda after: fire_after(cron, after, zone)
        case Every(interval_us=interval, anchor=anchor):
            assert anchor is not None, "a stored interval has its anchor"
            return partial(every_after, anchor, interval)
        case ByFunction(function=name):
            function = functions.get(name)
            return None if function is None else partial(_asked, name, function)


def every_after(anchor: Instant, interval_us: Span, after: Instant) -> Instant:
    """The smallest anchor + k × interval after `after`, k from 0 up."""
    if after < anchor:
        return anchor
    return anchor + ((after - anchor) // interval_us + 1) * interval_us


def checked_timing(timing: Timing, stored: Timing | None, now: Instant) -> Timing:
    """As it is to be stored: checked, and an interval with its anchor, which it keeps while it stays the same."""
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


def _asked(name: str, function: Following, after: Instant) -> Instant | None:
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
    """What people declare. Equal plans, as stored, are the same declaration."""

    timing: Timing
    work: NewJob | str
    """a template, stored without its id: every fire has its own; or the registered function that makes the job"""
    missed: Missed = "skip"

    @property
    def functions(self) -> list[str]:
        """The names of the registered functions that it calls, without repetition."""
        times = [self.timing.function] if isinstance(self.timing, ByFunction) else []
        work = [self.work] if isinstance(self.work, str) else []
        return list(dict.fromkeys(times + work))


class Schedule(Struct, frozen=True, kw_only=True):
    """A schedule as stored."""

    name: str
    tenant: str = DEFAULT_TENANT
    plan: Plan
    generation: int = 1
    """+1 for every edit: what fires after it is another job than what fired before, even at the same time"""
    next_fire: Instant | None
    """None: it has ended"""
    last_fire: Instant | None = None
    paused: bool = False
    overridden: bool = False
    """edited at run time: declaring it again in code changes nothing"""


def begin(
    name: str, plan: Plan, now: Instant, *, tenant: str = DEFAULT_TENANT, functions: Functions = NO_FUNCTIONS
) -> Schedule:
    """A new schedule: its first fire is the first after now. Refuses a plan that cannot work."""
    plan = _as_stored(plan, None, now)
    return Schedule(name=name, tenant=tenant, plan=plan, next_fire=_first_fire(plan.timing, now, functions))


def edit(
    schedule: Schedule, plan: Plan, now: Instant, *, functions: Functions = NO_FUNCTIONS, overridden: bool = True
) -> Schedule:
    """Another plan from now on. Other times begin after now: take what the old ones still owe first (due.py)."""
    plan = _as_stored(plan, schedule.plan, now)
    same_times = plan.timing == schedule.plan.timing
    next_fire = schedule.next_fire if same_times else _first_fire(plan.timing, now, functions)
    return structs.replace(
        schedule, plan=plan, generation=schedule.generation + 1, next_fire=next_fire, overridden=overridden
    )


def declare(
    schedule: Schedule, plan: Plan, now: Instant, *, functions: Functions = NO_FUNCTIONS, reset: bool = False
) -> Schedule:
    """The plan as code says it at a start: the same one changes nothing, and after a run-time edit none does.

    `reset` gives the code the last word again.
    """
    if schedule.overridden and not reset:
        return schedule
    if _as_stored(plan, schedule.plan, now) == schedule.plan:
        return structs.replace(schedule, overridden=False)
    return edit(schedule, plan, now, functions=functions, overridden=False)


def pause(schedule: Schedule) -> Schedule:
    return structs.replace(schedule, paused=True)


def resume(schedule: Schedule, now: Instant, *, functions: Functions = NO_FUNCTIONS) -> Schedule:
    """End a pause. What it left out was not missed: the next fire is after now.

    Where this process does not have the function, the next fire stays, and a process that has it goes on from there.
    """
    times = following(schedule.plan.timing, functions)
    next_fire = schedule.next_fire
    if schedule.paused and times is not None and next_fire is not None and next_fire <= now:
        next_fire = times(now)
    return structs.replace(schedule, paused=False, next_fire=next_fire)


def fire_id(schedule: Schedule, fire: Instant) -> str:
    """The id of the job of one fire: whoever enqueues it, and however often, it is the same job."""
    # Encoded as an array, because names may contain any character that would separate them.
    told = msgspec.json.encode((schedule.tenant, schedule.name, schedule.generation, fire))
    return str(uuid5(_NAMESPACE, told.decode()))


def job_of(schedule: Schedule, template: NewJob, fire: Instant) -> NewJob:
    """The job of one fire, from the schedule's template or from what its function made."""
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
