"""The scheduler fires the schedules that are due. Every worker does it for every tenant, and exactly one of them
succeeds for each fire.

A worker that is late finds the schedule changed and goes on. So there is no leader, and a worker that dies between
looking and firing leaves no work behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ropewalk.client.schedules.editor import ScheduleEditor
from ropewalk.client.schedules.fires import Fires, PlannedChange
from ropewalk.definitions.schedule import DeclaredSchedule
from ropewalk.domain.schedules.schedule import Schedule
from ropewalk.domain.time import SECOND, Instant
from ropewalk.domain.user_calls import guarded_await
from ropewalk.errors import OutcomeUnknown, StoreRefused, StoreUnavailable
from ropewalk.ports.runtime import Task
from ropewalk.ports.store.capabilities import SCHEDULES
from ropewalk.ports.store.schedules import DueSchedules, ScheduleChange, ScheduleRecord
from ropewalk.runtime.wake import Wake
from ropewalk.worker.context import WorkerContext
from ropewalk.worker.services.one_by_one import together_or_alone


class SchedulerConfig(Struct, frozen=True):
    poll_seconds: float = 3.0
    """A schedule that another process made is noticed within this time, even if its hint is lost."""
    spread_seconds: float = 0.02
    """The workers of a fleet look at the same fire at different times within this span, so that most find it done."""
    broken_seconds: float = 30.0
    """This worker ignores a schedule for this long if its function raised or this machine lacks its time zone."""
    batch: int = 50
    wait_seconds: float = 1.0
    """How long one look waits for the functions of schedules. What they answer later is written when they answer."""


class Scheduler:
    """The service that fires schedules, and stores the schedules that code declares."""

    def __init__(
        self,
        worker_context: WorkerContext,
        fires: Fires,
        config: SchedulerConfig | None = None,
        *,
        editor: ScheduleEditor | None = None,
        declared: Iterable[DeclaredSchedule] = (),
    ) -> None:
        self._worker_context = worker_context
        self._store = SCHEDULES.of(worker_context.store)
        self._fires = fires
        self._config = config or SchedulerConfig()
        self._editor = editor
        self._undeclared = [(each, 0.0) for each in declared]
        """Schedules that code declares and that are not stored yet, each with the time from which to try again."""
        self._wake = Wake(worker_context.runtime)
        self._wait_seconds = 0.0
        self._broken: dict[tuple[str, str, int], float] = {}
        """The schedules that this worker ignores, as (tenant, name, version), each with the end of that time."""
        self._calling: dict[tuple[str, str, int], asyncio.Future[bool]] = {}
        """The schedules whose functions are being called, each with whether it was fired. Where that takes longer than
        a look waits, the answer is already False."""
        self._tasks: dict[tuple[str, str, int], Task] = {}
        """The tasks that call these functions."""

    def nudge(self) -> None:
        """Has the scheduler look at once, because schedules may have changed. Any thread may call this."""
        self._wake.set_threadsafe()

    async def run(self) -> None:
        try:
            while True:
                while await self.run_once():
                    pass
                await self._wake.wait(self._wait_seconds)
        finally:
            for task in self._tasks.values():
                task.cancel()

    async def declare(self) -> None:
        """Stores the schedules that code declares. One that cannot be stored is reported and tried again later, because
        it must not keep the others or the worker from starting. Raises if an option does not fit or the store is away.
        """
        if self._editor is None or not self._undeclared:
            return
        clock = self._worker_context.runtime.monotonic()
        for each, _ in self._undeclared:
            self._editor.plan_of(each)
        left: list[tuple[DeclaredSchedule, float]] = []
        for each, again_at in self._undeclared:
            if again_at > clock or not await self._declared(self._editor, each):
                left.append((each, again_at if again_at > clock else clock + self._config.broken_seconds))
        self._undeclared = left

    async def _declared(self, editor: ScheduleEditor, each: DeclaredSchedule) -> bool:
        try:
            await guarded_await(editor.declare(each))
        except (StoreUnavailable, StoreRefused, OutcomeUnknown):
            raise
        except Exception as error:
            self._worker_context.events.report(error, f"schedule {each.name}")
            return False
        return True

    async def run_once(self) -> bool:
        """Fires what is due. Returns True if there was anything, because only another look then shows the next time."""
        if not self._worker_context.guard.calm:
            self._wait_seconds = self._config.poll_seconds
            return False
        await self.declare()
        after: Schedule | None = None
        fired = False
        while True:
            found = await self._store.due_schedules(after=after, limit=self._config.batch)
            fired |= await self._fire(found)
            if len(found.schedules) < self._config.batch:
                self._wait_seconds = self._until(found)
                return fired
            after = found.schedules[-1].schedule

    async def _fire(self, found: DueSchedules) -> bool:
        """Fires these schedules. Returns whether there was anything to fire, even if another worker was faster.

        A schedule that calls functions is fired in a task of its own, so that it holds up nothing else.
        """
        answers = [self._begun(each, found.now) for each in found.schedules if each.schedule.plan.functions]
        plain = [each for each in found.schedules if not each.schedule.plan.functions]
        fired = await self._fire_records(plain, found.now)
        if answers:
            await asyncio.wait(answers)
        return any(answer.result() for answer in answers) or fired

    def _begun(self, record: ScheduleRecord, now: Instant) -> asyncio.Future[bool]:
        key = _key(record)
        if key in self._calling:
            return self._calling[key]
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._calling[key] = answer
        timer = self._worker_context.runtime.after(self._config.wait_seconds, lambda: _answer(answer, fired=False))

        async def fire() -> None:
            fired = False
            try:
                fired = await self._fire_records([record], now)
            except (StoreUnavailable, StoreRefused):
                pass  # The schedule stays due, and the next look uses the same store.
            finally:
                timer.cancel()
                self._tasks.pop(key, None)
                del self._calling[key]
                late = answer.done()
                _answer(answer, fired=fired)
            if late:
                self._wake.set()

        self._tasks[key] = self._worker_context.runtime.spawn(fire(), name="ropewalk-schedule")
        return answer

    async def _fire_records(self, records: Sequence[ScheduleRecord], now: Instant) -> bool:
        planned = [(record, change) for record in records if (change := await self._take(record, now))]
        if not planned:
            return False
        answered = await together_or_alone(planned, self._change, lambda each, error: self._leave_alone(each[0], error))
        return bool(answered)

    async def _change(self, planned: Sequence[tuple[ScheduleRecord, PlannedChange]]) -> None:
        changes = [ScheduleChange(before=record, after=change.after, jobs=change.jobs) for record, change in planned]
        answers = await self._store.change_schedules(changes)
        for (record, change), changed in zip(planned, answers, strict=True):
            if changed is not None:
                self._fires.publish(record.schedule, change, changed)

    def _leave_alone(self, record: ScheduleRecord, error: Exception) -> None:
        """Reports the error of a schedule and ignores the schedule for a while, so that it delays no other one."""
        self._broken[_key(record)] = self._worker_context.runtime.monotonic() + self._config.broken_seconds
        self._worker_context.events.report(error, f"schedule {record.schedule.name}")

    async def _take(self, record: ScheduleRecord, now: Instant) -> PlannedChange | None:
        clock = self._worker_context.runtime.monotonic()
        self._broken = {each: until for each, until in self._broken.items() if until > clock}
        if _key(record) in self._broken:
            return None
        try:
            return await guarded_await(self._fires.take(record.schedule, now))
        except Exception as error:
            self._leave_alone(record, error)
            return None

    def _until(self, found: DueSchedules) -> float:
        runtime, config = self._worker_context.runtime, self._config
        poll = config.poll_seconds * (0.5 + runtime.random() / 2)
        if found.next_fire is None:
            return poll
        return min(poll, (found.next_fire - found.now) / SECOND + config.spread_seconds * runtime.random())


def _answer(answer: asyncio.Future[bool], *, fired: bool) -> None:
    if not answer.done():
        answer.set_result(fired)


def _key(record: ScheduleRecord) -> tuple[str, str, int]:
    return record.schedule.tenant, record.schedule.name, record.version
