"""From the fires of a schedule that are due to the jobs they are, and after the commit to those who want to hear."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from ropewalk.definitions.job import Job
from ropewalk.domain.due import advance, due
from ropewalk.domain.instants import Instant, to_datetime
from ropewalk.domain.job import NewJob
from ropewalk.domain.schedule import Schedule, job_of
from ropewalk.engine.events import Event, EventHub
from ropewalk.engine.schedules.functions import ScheduleFunctions
from ropewalk.errors import InvalidInput, RopewalkError
from ropewalk.ports.exchange import Accepted
from ropewalk.ports.notifier import Hint
from ropewalk.ports.runtime import Runtime
from ropewalk.ports.schedules import ScheduleChanged
from ropewalk.ports.store import Store

MakeJob: TypeAlias = "Callable[[Job[Any, Any], str], NewJob]"
"""options resolved and checked, for a tenant"""


class Turn(Struct, frozen=True):
    """What a schedule becomes, and the jobs that come with it."""

    after: Schedule | None
    """None: it is deleted"""
    jobs: list[NewJob] = []
    fires: list[Instant] = []
    """of each job"""


class Fires:
    def __init__(
        self, store: Store, runtime: Runtime, events: EventHub, functions: ScheduleFunctions, make_job: MakeJob
    ) -> None:
        self._store = store
        self._runtime = runtime
        self._events = events
        self._functions = functions
        self._make_job = make_job

    async def take(self, schedule: Schedule, now: Instant) -> Turn | None:
        """What is due, unless it is nothing or only another process can go on. Raises what the functions raise."""
        taken = due(schedule, now, self._functions.following)
        if taken.next_fire == schedule.next_fire or (taken.fires and not self.can_make(schedule)):
            return None
        made = [(fire, await self.job(schedule, fire)) for fire in taken.fires]
        jobs = [(fire, job_of(schedule, new, fire)) for fire, new in made if new is not None]
        return Turn(advance(schedule, taken), [new for _, new in jobs], [fire for fire, _ in jobs])

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
        for new, fire, answer in zip(turn.jobs, turn.fires, changed.answers, strict=True):
            if isinstance(answer, RopewalkError):
                self._events.report(answer, f"schedule {schedule.name}")
                continue
            [accepted] = answer
            if self._events.meter is not None:
                self._events.meter.fired(schedule.name)
            self._tell(schedule, new, fire, accepted)
            self._events.accepted([new], [accepted])
            if not accepted.duplicate:
                queues.add(new.queue)
        if queues:
            self._store.notifier.publish(Hint(ready=tuple(queues)))

    def _tell(self, schedule: Schedule, new: NewJob, fire: Instant, accepted: Accepted) -> None:
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
                fire_time=to_datetime(fire),
            )
        )
