"""From the fires of a schedule that are due to the jobs they are, and after the commit to those who want to hear.

The functions that schedules name, by their own name: what this process has of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeAlias, cast

from msgspec import Struct, structs

from ropewalk.definitions.job import Job
from ropewalk.definitions.schedule import DeclaredSchedule, NextFunction, RunFunction, function_name
from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.schedules.due import advance, due
from ropewalk.domain.schedules.schedule import Following, Schedule, job_of
from ropewalk.domain.time import Instant, to_datetime, to_instant
from ropewalk.errors import DefinitionError, InvalidInput, RopewalkError
from ropewalk.observe.events import Event, EventHub
from ropewalk.observe.tracing import fired, firing
from ropewalk.ports.notifier import Hint
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.schedules import ScheduleChanged
from ropewalk.ports.store.submission import Accepted
from ropewalk.ports.tracing import FireSpan, Tracing

AnyFunction: TypeAlias = Callable[[datetime], Any]


class ScheduleFunctions:
    def __init__(self, functions: Iterable[AnyFunction] = ()) -> None:
        self._functions: dict[str, AnyFunction] = {}
        self.following: dict[str, Following] = {}
        """each as the domain asks it, for `next`"""
        for function in functions:
            self.add(function)

    def add(self, function: AnyFunction) -> None:
        name = function_name(function, "functions")
        held = self._functions.setdefault(name, function)
        if held is not function:
            raise DefinitionError(
                f"two functions of schedules are named {name!r}, in {_module(held)} and {_module(function)}: "
                "rename one of them, they are stored by name"
            )
        self.following[name] = _asked(function)

    def add_from(self, declared: DeclaredSchedule) -> None:
        """What a declaration brings along."""
        options = declared.options
        for given in (options.get("next"), options.get("run")):
            if given is not None and not isinstance(given, str):
                self.add(given)

    def name_of(self, given: NextFunction | RunFunction | str, field: str) -> str:
        """Of a function that is registered here: otherwise nobody might ever go on with the schedule."""
        name = function_name(given, field)
        held = self._functions.get(name)
        if held is None or (not isinstance(given, str) and held is not given):
            raise InvalidInput(
                f"{field}={name!r} is not registered with this app: pass the function with App(functions=[...])",
                field=field,
            )
        return name

    def run(self, name: str) -> RunFunction | None:
        return cast("RunFunction | None", self._functions.get(name))


def _asked(function: AnyFunction) -> Following:
    def following(after: Instant) -> Instant | None:
        answer = function(to_datetime(after))
        return None if answer is None else to_instant(answer, f"what next={function.__name__} answered")

    return following


def _module(function: AnyFunction) -> str:
    return str(getattr(function, "__module__", "?"))


MakeJob: TypeAlias = "Callable[[Job[Any, Any], str], NewJob]"
"""options resolved and checked, for a tenant"""


class Fire(Struct, frozen=True):
    at: Instant
    job: NewJob
    span: FireSpan | None
    """where the app traces"""


class Turn(Struct, frozen=True):
    """What a schedule becomes, and the fires that come with it."""

    after: Schedule | None
    """None: it is deleted"""
    fires: list[Fire] = []

    @property
    def jobs(self) -> list[NewJob]:
        return [fire.job for fire in self.fires]


class Fires:
    def __init__(
        self,
        store: Store,
        runtime: Runtime,
        events: EventHub,
        functions: ScheduleFunctions,
        make_job: MakeJob,
        *,
        tracing: Tracing | None = None,
    ) -> None:
        self._store = store
        self._runtime = runtime
        self._events = events
        self._functions = functions
        self._make_job = make_job
        self._tracing = tracing

    async def take(self, schedule: Schedule, now: Instant) -> Turn | None:
        """What is due, unless it is nothing or only another process can go on. Raises what the functions raise."""
        taken = due(schedule, now, self._functions.following)
        if taken.next_fire == schedule.next_fire or (taken.fires and not self.can_make(schedule)):
            return None
        made = [(fire, await self.job(schedule, fire)) for fire in taken.fires]
        fires = [self._fire(schedule, at, job_of(schedule, new, at)) for at, new in made if new is not None]
        return Turn(advance(schedule, taken), fires)

    def _fire(self, schedule: Schedule, at: Instant, new: NewJob) -> Fire:
        span = firing(schedule.name, new, self._tracing, self._events)
        return Fire(at, new if span is None else structs.replace(new, trace=span.trace), span)

    def can_make(self, schedule: Schedule) -> bool:
        """Is the function here that makes its jobs, if it has one?"""
        work = schedule.plan.work
        return not isinstance(work, str) or self._functions.run(work) is not None

    async def job(self, schedule: Schedule, fire: Instant) -> NewJob | None:
        """Of one fire, still without its own id; None where the schedule's function wants none."""
        work = schedule.plan.work
        if not isinstance(work, str):
            return work
        run = self._functions.run(work)
        assert run is not None, "asked only where can_make"
        answer: object = run(to_datetime(fire))
        made = await answer if inspect.isawaitable(answer) else answer
        if made is None:
            return None
        if not isinstance(made, Job):
            raise InvalidInput(f"run={work} of schedule {schedule.name!r} answered {made!r}: return a job or None")
        return self._make_job(made, schedule.tenant)

    def told(self, schedule: Schedule, turn: Turn, changed: ScheduleChanged) -> None:
        """After the commit: hooks hear of the fires, workers of the jobs, on_error of those that were refused."""
        queues: set[str] = set()
        for fire, answer in zip(turn.fires, changed.answers, strict=True):
            if isinstance(answer, RopewalkError):
                self._events.report(answer, f"schedule {schedule.name}")
                continue
            [accepted] = answer
            if self._events.meter is not None:
                self._events.meter.fired(schedule.name)
            if fire.span is not None:
                fired(fire.span, self._events)
            self._tell(schedule, fire, accepted)
            self._events.accepted([fire.job], [accepted])
            if not accepted.duplicate:
                queues.add(fire.job.queue)
        if queues:
            self._store.notifier.publish(Hint(ready=tuple(queues)))

    def _tell(self, schedule: Schedule, fire: Fire, accepted: Accepted) -> None:
        new = fire.job
        if not self._events.heard(new.type):
            return
        self._events.emit(
            Event(
                kind="schedule_fired",
                job_id=accepted.id,
                type=new.type,
                queue=new.queue,
                tenant=schedule.tenant,
                at_us=self._runtime.now(),
                attempt=0,
                group_id=accepted.group_id,
                schedule=schedule.name,
                fire_time=to_datetime(fire.at),
            )
        )
