"""The rules of the state machine about schedules: changes from current and outdated versions, and fires."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from msgspec import structs

from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.schedules.schedule import ByCron, Every, Plan, Schedule
from ropewalk.domain.time import HOUR, SECOND
from ropewalk.ports.store.schedules import ScheduleChange, ScheduleChanged, ScheduleRecord
from ropewalk.testing.clock import START, FakeRuntime
from ropewalk.testing.contract import strategies
from ropewalk.testing.contract.comparable import submitted
from ropewalk.testing.contract.lockstep import MANY, Lockstep
from ropewalk.testing.contract.store_scheduler import firing_change

_BEGAN = FakeRuntime(START).now()

plans = st.builds(
    Plan,
    timing=st.sampled_from((Every(SECOND, _BEGAN), Every(HOUR, _BEGAN), ByCron("*/5 * * * *", "Asia/Tokyo"))),
    work=strategies.new_jobs,
    missed=st.sampled_from(("skip", "once", "all")),
)
schedules = st.builds(
    Schedule,
    name=st.sampled_from(("s", "t")),
    tenant=strategies.tenants,
    plan=plans,
    generation=st.integers(1, 3),
    next_fire=st.sampled_from((None, _BEGAN, _BEGAN + SECOND, _BEGAN + 2 * HOUR)),
    paused=strategies.seldom,
    overridden=st.booleans(),
)
befores = st.lists(st.integers(0, 3), max_size=2)
"""The positions of stored states that were read, counted from the newest."""


class ScheduleRules(RuleBasedStateMachine):
    """A part of the state machine of machine.py, which keeps the stores."""

    stores: Lockstep

    def __init__(self) -> None:
        super().__init__()
        self.read: list[ScheduleRecord] = []
        """Every stored state of a schedule that was ever read."""

    @rule(lives=st.lists(st.tuples(befores, schedules, strategies.seldom), min_size=1, max_size=3))
    def change_schedules(self, lives: list[tuple[list[int], Schedule, bool]]) -> None:
        """Change schedules one after another, from states that may be outdated, or create them."""
        for which, schedule, deleted in lives:
            read = [self.read[-1 - number] for number in which if number < len(self.read)]
            changes = [ScheduleChange(before=each, after=None if deleted else _like(schedule, each)) for each in read]
            self._change(changes or [ScheduleChange(before=None, after=schedule, jobs=_jobs(schedule))])

    @rule(limit=st.sampled_from((1, MANY)))
    def fire_schedules(self, limit: int) -> None:
        due = self.stores.ask(lambda store: store.due_schedules(after=None, limit=limit))
        if due.schedules:
            last = due.schedules[-1].schedule
            self.stores.ask(lambda store: store.due_schedules(after=last, limit=limit))
        self._change([firing_change(record, due.now) for record in due.schedules])

    @rule(tenant=strategies.tenants, after=st.sampled_from((None, "s")), limit=st.integers(1, 3))
    def look_at_schedules(self, tenant: str, after: str | None, limit: int) -> None:
        self.stores.ask(lambda store: store.list_schedules(tenant, after=after, limit=limit))
        self.read += self.stores.ask(lambda store: store.get_schedules(tenant, ["t", "s"])).schedules

    def _change(self, changes: Sequence[ScheduleChange]) -> None:
        answers = self.stores.ask(lambda store: store.change_schedules(changes), compared=_compared)
        for change, answer in zip(changes, answers, strict=True):
            if answer is not None and answer.version is not None and change.after is not None:
                self.read.append(ScheduleRecord(schedule=change.after, version=answer.version))


def _jobs(schedule: Schedule) -> list[NewJob]:
    """Return the template of a schedule as its job; the store may refuse what the template asks for."""
    assert isinstance(schedule.plan.work, NewJob)
    return [structs.replace(schedule.plan.work, tenant=schedule.tenant)]


def _like(schedule: Schedule, read: ScheduleRecord) -> Schedule:
    return structs.replace(schedule, name=read.schedule.name, tenant=read.schedule.tenant)


def _compared(answers: Sequence[ScheduleChanged | None]) -> list[object]:
    return [None if each is None else (each.version, submitted(each.answers)) for each in answers]
