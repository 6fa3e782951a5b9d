"""The fires of a schedule: their jobs are made when they are due, and published after they were stored."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct, structs

from ropewalk.client.schedules.function_calls import FunctionCall, FunctionCalls
from ropewalk.client.schedules.functions import ScheduleFunctions
from ropewalk.definitions.job import Job
from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.schedules.due import Due, advance, due
from ropewalk.domain.schedules.schedule import Schedule, job_of
from ropewalk.domain.shown_values import shown
from ropewalk.domain.time import Instant, to_datetime
from ropewalk.errors import InvalidInput, RopewalkError
from ropewalk.observe.events import Event, EventHub
from ropewalk.observe.tracing import begin_fire_span, end_fire_span
from ropewalk.ports.notifier import Hint
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.schedules import ScheduleChanged
from ropewalk.ports.store.submission import Accepted
from ropewalk.ports.tracing import FireSpan, Tracing

MakeJob: TypeAlias = "Callable[[Job[Any, Any], str], NewJob]"
"""A function that makes the record of a job for a tenant, with its options resolved and checked."""


class Fire(Struct, frozen=True):
    """One moment at which a schedule is due, with the job that belongs to it."""

    at: Instant
    job: NewJob
    span: FireSpan | None
    """The span of this fire; None if the app does not trace."""


class PlannedChange(Struct, frozen=True):
    """A planned change of a schedule, and the fires that are to be stored with it."""

    after: Schedule | None
    """The schedule after the change; None deletes it."""
    fires: list[Fire] = []

    @property
    def jobs(self) -> list[NewJob]:
        return [fire.job for fire in self.fires]


class Fires:
    """Makes the jobs of fires, and publishes them to hooks, metrics and workers once they are stored."""

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
        self._calls = FunctionCalls(runtime)

    async def take(self, schedule: Schedule, now: Instant) -> PlannedChange | None:
        """Returns the change by the fires that are due now; None if none is due, or if only another process has the
        function that makes the jobs.

        Raises what the functions of the schedule raise, and WaitTimeout if they take too long.
        """
        return await self._calls.within_limit(schedule, lambda call: self._take(schedule, now, call))

    async def _take(self, schedule: Schedule, now: Instant, call: FunctionCall) -> PlannedChange | None:
        def look() -> Due:
            return due(schedule, now, self._functions.following)

        taken = await call.off_the_loop(look) if schedule.plan.functions else look()
        if taken.next_fire == schedule.next_fire or (taken.fires and not self.can_make(schedule)):
            return None
        made = [(fire, await self._job(schedule, fire, call)) for fire in taken.fires]
        fires = [self._fire(schedule, at, job_of(schedule, new, at)) for at, new in made if new is not None]
        return PlannedChange(advance(schedule, taken), fires)

    def _fire(self, schedule: Schedule, at: Instant, new: NewJob) -> Fire:
        span = begin_fire_span(schedule.name, new, self._tracing, self._events)
        return Fire(at, new if span is None else structs.replace(new, trace=span.trace), span)

    def can_make(self, schedule: Schedule) -> bool:
        """Whether this process can make the jobs of the schedule, for which it may need a function."""
        work = schedule.plan.work
        return not isinstance(work, str) or self._functions.run(work) is not None

    async def job(self, schedule: Schedule, fire: Instant) -> NewJob | None:
        """Returns the job of one fire, without an id; None if the function of the schedule returns no job for it.

        Raises what the function raises, and WaitTimeout if it takes too long.
        """
        return await self._calls.within_limit(schedule, lambda call: self._job(schedule, fire, call))

    async def _job(self, schedule: Schedule, fire: Instant, call: FunctionCall) -> NewJob | None:
        work = schedule.plan.work
        if not isinstance(work, str):
            return work
        run = self._functions.run(work)
        assert run is not None, "this is called only where can_make is True"
        answer: object = await call.off_the_loop(lambda: run(to_datetime(fire)))
        made = await answer if inspect.isawaitable(answer) else answer
        if made is None:
            return None
        if not isinstance(made, Job):
            raise InvalidInput(
                f"run={work} of schedule {schedule.name!r} returned {shown(made)}: it must return a job or None"
            )
        return self._make_job(made, schedule.tenant)

    def publish(self, schedule: Schedule, planned: PlannedChange, changed: ScheduleChanged) -> None:
        """Publishes fires after the commit: events for hooks, hints for workers, and errors for jobs that were
        refused."""
        queues: set[str] = set()
        for fire, answer in zip(planned.fires, changed.answers, strict=True):
            if isinstance(answer, RopewalkError):
                self._events.report(answer, f"schedule {schedule.name}")
                continue
            [accepted] = answer
            if self._events.meter is not None:
                self._events.meter.fired(schedule.name)
            if fire.span is not None:
                end_fire_span(fire.span, self._events)
            self._publish_fire(schedule, fire, accepted)
            self._events.publish_accepted([fire.job], [accepted])
            if not accepted.duplicate:
                queues.add(fire.job.queue)
        if queues:
            self._store.notifier.publish(Hint(ready=tuple(queues)))

    def _publish_fire(self, schedule: Schedule, fire: Fire, accepted: Accepted) -> None:
        new = fire.job
        if not self._events.has_listener(new.type):
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
