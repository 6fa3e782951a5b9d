"""What the state machine does with schedules: changed by those who are up to date and those who are not, and fired."""

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
from ropewalk.testing.contract import draws
from ropewalk.testing.contract.clockwork import taken
from ropewalk.testing.contract.compared import submitted
from ropewalk.testing.contract.lockstep import MANY, Lockstep

_BEGAN = FakeRuntime(START).now()

plans = st.builds(
    Plan,
    timing=st.sampled_from((Every(SECOND, _BEGAN), Every(HOUR, _BEGAN), ByCron("*/5 * * * *", "Asia/Tokyo"))),
    work=draws.new_jobs,
    missed=st.sampled_from(("skip", "once", "all")),
)
schedules = st.builds(
    Schedule,
    name=st.sampled_from(("s", "t")),
    tenant=draws.tenants,
    plan=plans,
    generation=st.integers(1, 3),
    next_fire=st.sampled_from((None, _BEGAN, _BEGAN + SECOND, _BEGAN + 2 * HOUR)),
    paused=draws.seldom,
    overridden=st.booleans(),
)
befores = st.lists(st.integers(0, 3), max_size=2)
"""of the states that were read, the newest first"""


class ScheduleRules(RuleBasedStateMachine):
    """Mixed into the machine of machine.py, which keeps the stores."""

    stores: Lockstep

    def __init__(self) -> None:
        super().__init__()
        self.read: list[ScheduleRecord] = []
        """every state of a schedule ever seen"""

    @rule(lives=st.lists(st.tuples(befores, schedules, draws.seldom), min_size=1, max_size=3))
    def change_schedules(self, lives: list[tuple[list[int], Schedule, bool]]) -> None:
        """One after another, each from states that were read earlier and may be out of date; or from none."""
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
        self._change([taken(record, due.now) for record in due.schedules])

    @rule(tenant=draws.tenants, after=st.sampled_from((None, "s")), limit=st.integers(1, 3))
    def look_at_schedules(self, tenant: str, after: str | None, limit: int) -> None:
        self.stores.ask(lambda store: store.list_schedules(tenant, after=after, limit=limit))
        self.read += self.stores.ask(lambda store: store.get_schedules(tenant, ["t", "s"])).schedules

    def _change(self, changes: Sequence[ScheduleChange]) -> None:
        answers = self.stores.ask(lambda store: store.change_schedules(changes), compared=_compared)
        for change, answer in zip(changes, answers, strict=True):
            if answer is not None and answer.version is not None and change.after is not None:
                self.read.append(ScheduleRecord(schedule=change.after, version=answer.version))


def _jobs(schedule: Schedule) -> list[NewJob]:
    """The template itself, as it is: what it asks for may be refused."""
    assert isinstance(schedule.plan.work, NewJob)
    return [structs.replace(schedule.plan.work, tenant=schedule.tenant)]


def _like(schedule: Schedule, read: ScheduleRecord) -> Schedule:
    return structs.replace(schedule, name=read.schedule.name, tenant=read.schedule.tenant)


def _compared(answers: Sequence[ScheduleChanged | None]) -> list[object]:
    return [None if each is None else (each.version, submitted(each.answers)) for each in answers]
