"""How stored schedules are changed: read, decided by the domain, compared and set; again while others are first.

From what people say about a schedule to the plan that is stored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct, structs

from ropewalk.client.schedules.fires import Fires, MakeJob, ScheduleFunctions, Turn
from ropewalk.definitions.enqueue_options import in_domain
from ropewalk.definitions.job import Job
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.definitions.schedule import DeclaredSchedule, ScheduleOptions, check_complete, check_options, timing_of
from ropewalk.domain import checks
from ropewalk.domain.bounds import Bounds, check, check_name
from ropewalk.domain.jobs.record import IdempotencyKey, NewJob
from ropewalk.domain.schedules.schedule import Plan, Schedule, begin, declare, edit
from ropewalk.domain.time import DAY, Instant
from ropewalk.domain.user_calls import guarded, guarded_await
from ropewalk.errors import Conflict, InvalidInput
from ropewalk.observe.events import EventHub
from ropewalk.ports.notifier import Hint
from ropewalk.ports.store.capabilities import SCHEDULES
from ropewalk.ports.store.core import Store
from ropewalk.ports.store.schedules import ScheduleChange

NamedJob: TypeAlias = Callable[[str, object], Job[Any, Any]]
"""makes a job of a registered type from arguments by name"""


class Planner:
    def __init__(self, functions: ScheduleFunctions, make_job: MakeJob, bounds: Bounds, named_job: NamedJob) -> None:
        self._functions = functions
        self._make_job = make_job
        self._bounds = bounds
        self._named_job = named_job

    def plan(
        self,
        options: ScheduleOptions,
        tenant: str,
        name: str,
        stored: Plan | None = None,
        template: TemplateChange | None = None,
    ) -> Plan:
        """Over what is stored, where something is. Raises InvalidInput naming the option.

        `template` changes the job that is stored or given, and leaves the rest of it as it is.
        """
        check_name(name, "name", self._bounds)
        check_name(tenant, "tenant", self._bounds)
        if stored is None:
            check_complete(options)
        else:
            if not options and template is None:
                raise InvalidInput(f"nothing is given that schedule {name!r} should become: give what changes")
            check_options(options)
        timing = timing_of(options, None if stored is None else stored.timing)
        if "next" in options:
            self._functions.name_of(options["next"], "next")
        missed = options.get("missed", "skip" if stored is None else stored.missed)
        work = self._work(options, tenant, stored)
        if template is not None:
            work = self._changed(work, name, template)
        return Plan(timing=timing, work=work, missed=missed)

    def _work(self, options: ScheduleOptions, tenant: str, stored: Plan | None) -> NewJob | str:
        if "job" in options:
            return self._template(options["job"], tenant)
        if "run" in options:
            return self._functions.name_of(options["run"], "run")
        assert stored is not None, "a complete one says what to do"
        return stored.work

    def _changed(self, work: NewJob | str, name: str, change: TemplateChange) -> NewJob:
        if isinstance(work, str):
            field = "using" if change.arguments is None else "arguments"
            raise InvalidInput(
                f"the jobs of schedule {name!r} are made by the function {work!r}, so {field}= has nothing to change: "
                "give job= to replace the function",
                field=field,
            )
        fields: dict[str, Any] = {}
        if change.arguments is not None:
            job = self._named_job(work.type, change.arguments)
            fields["input"] = job.input
            if (unique := job.type.options.unique) is not None:
                fields["key"] = IdempotencyKey(key=guarded(unique, job.arguments), window_us=DAY)
        fields |= _template_fields(change.using)
        new = structs.replace(work, **fields)
        check(structs.replace(new, id=name), self._bounds)  # a stored template has no id: each fire has its own
        return new

    def _template(self, job: Job[object, object], tenant: str) -> NewJob:
        new = self._make_job(job, tenant)
        for field, value, instead in (("run_at", new.run_at, "delay"), ("deadline", new.deadline, "ttl")):
            if value is not None:
                raise InvalidInput(
                    f"job= has {field}, one moment for every fire: use {instead}, or run= with a function", field=field
                )
        return new


class TemplateChange(Struct, frozen=True):
    """What becomes other of a schedule's job, which is otherwise left as it is stored."""

    arguments: Mapping[str, object] | None
    using: EnqueueOptions

    @classmethod
    def of(cls, arguments: Mapping[str, object] | None, using: EnqueueOptions | None) -> TemplateChange | None:
        """None where nothing is given. Raises InvalidInput naming the option that does not fit."""
        if arguments is not None:
            checks.mapping(arguments, "arguments")
        if using is not None:
            checks.mapping(using, "using")
        if arguments is None and not using:
            return None
        change = cls(arguments, using or {})
        _template_fields(change.using)
        return change


_FIELD_OF: Final[Mapping[str, str]] = {
    "queue": "queue",
    "priority": "priority",
    "delay": "delay_us",
    "max_attempts": "max_attempts",
    "max_crashes": "max_crashes",
    "backoff": "backoff",
    "timeout": "timeout_us",
    "ttl": "ttl_us",
    "lease": "lease_us",
    "correlation_id": "correlation_id",
    "tags": "tags",
    "workflow_id": "workflow_id",
    "workflow_type": "workflow_type",
    "limit": "limit_key",
    "fairness": "fairness",
}
"""The options of a job that an edit can change alone, and the field of the template that keeps each."""


def _template_fields(using: EnqueueOptions) -> dict[str, Any]:
    checked = in_domain(cast("Mapping[str, object]", using))
    fields: dict[str, Any] = {}
    for name, value in checked.items():
        if name in _FIELD_OF:
            fields[_FIELD_OF[name]] = value
        elif name == "idempotency_key":
            scope, window_us = checked.get("idempotency_scope", "open"), checked.get("idempotency_window", DAY)
            fields["key"] = IdempotencyKey(key=value, scope=scope, window_us=window_us)
        elif name not in {"idempotency_scope", "idempotency_window"}:
            raise InvalidInput(f"{name}= cannot be changed alone: give job= with all of its options", field=name)
        elif "idempotency_key" not in checked:
            raise InvalidInput(f"{name} is given without idempotency_key", field=name)
    if "priority" in fields:
        fields["inherits_priority"] = False
    return fields


Decide: TypeAlias = Callable[[Schedule | None, Instant], Awaitable[Turn]]
"""what becomes of a schedule, or of there being none"""

TRIES_MAX: Final = 100


class Timetable:
    def __init__(
        self, store: Store, events: EventHub, functions: ScheduleFunctions, fires: Fires, planner: Planner
    ) -> None:
        self._store = store
        self._events = events
        self._functions = functions
        self._fires = fires
        self._planner = planner

    def plan_of(self, declared: DeclaredSchedule) -> Plan:
        """Raises InvalidInput naming the option that does not fit."""
        return self._planner.plan(declared.options, declared.tenant, declared.name)

    async def declare(self, declared: DeclaredSchedule) -> None:
        """As code says it at a start: unless it was edited at run time, what is stored follows the code.

        Raises what a function of the schedule raises.
        """
        tenant, name, plan = declared.tenant, declared.name, self.plan_of(declared)

        async def decide(held: Schedule | None, now: Instant) -> Turn:
            if held is None:
                return self._begun(tenant, name, plan, now)
            following = self._functions.following
            return await self._replanned(
                held, now, lambda was: declare(was, plan, now, functions=following, reset=declared.reset)
            )

        await self.change(tenant, name, decide)

    async def create(self, tenant: str, name: str, options: ScheduleOptions, *, dry_run: bool = False) -> Schedule:
        """With `dry_run` nothing is stored: the answer is what would be."""
        plan = self._planner.plan(options, tenant, name)

        async def decide(held: Schedule | None, now: Instant) -> Turn:
            if held is not None:
                raise Conflict(f"there is a schedule {name!r} already: edit it, or delete it first")
            return self._begun(tenant, name, plan, now)

        return await (self.preview if dry_run else self.change)(tenant, name, decide)

    async def edit(
        self, held: Schedule, options: ScheduleOptions, now: Instant, template: TemplateChange | None = None
    ) -> Turn:
        """At run time: only what is given changes."""
        return await self._replanned(held, now, lambda was: self.edited(was, options, now, template))

    def edited(
        self, held: Schedule, options: ScheduleOptions, now: Instant, template: TemplateChange | None = None
    ) -> Schedule:
        """The schedule with what is given changed, leaving aside what its old times still owe."""
        plan = self._planner.plan(options, held.tenant, held.name, held.plan, template)
        return edit(held, plan, now, functions=self._functions.following)

    async def preview(self, tenant: str, name: str, decide: Decide) -> Schedule:
        """What `change` would make of the schedule now. Writes nothing."""
        read = await SCHEDULES.of(self._store).get_schedules(tenant, [name])
        record = next(iter(read.schedules), None)
        turn = await decide(None if record is None else record.schedule, read.now)
        assert turn.after is not None, "nobody asks what a deleted schedule would be"
        return turn.after

    async def change(self, tenant: str, name: str, decide: Decide) -> Schedule:
        """The schedule as it is then; where it is deleted, as it was."""
        stored = SCHEDULES.of(self._store)
        for _ in range(TRIES_MAX):
            read = await stored.get_schedules(tenant, [name])
            record = next(iter(read.schedules), None)
            held = None if record is None else record.schedule
            turn = await decide(held, read.now)
            left = held if turn.after is None else turn.after
            assert left is not None, "what is changed is there, or will be"
            if turn.after == held:
                return left
            change = ScheduleChange(before=record, after=turn.after, jobs=turn.jobs)
            [changed] = await stored.change_schedules([change])
            if changed is not None:
                self._store.notifier.publish(Hint(control=True))
                self._fires.told(left, turn, changed)
                return left
        raise Conflict(f"schedule {name!r} is changed by others all the time: try again")

    def _begun(self, tenant: str, name: str, plan: Plan, now: Instant) -> Turn:
        return Turn(begin(name, plan, now, tenant=tenant, functions=self._functions.following))

    async def _replanned(self, held: Schedule, now: Instant, replan: Callable[[Schedule], Schedule]) -> Turn:
        """Where its times become others, what the old ones still owe comes with the change."""
        after = replan(held)
        if after.plan.timing == held.plan.timing:
            return Turn(after)
        owed = await self._owed(held, now)
        assert owed.after is not None, "no fire deletes its schedule"
        return Turn(replan(owed.after), owed.fires)

    async def _owed(self, held: Schedule, now: Instant) -> Turn:
        """What cannot be made here is given up, loudly: this change may be what mends the schedule."""
        try:
            turn = await guarded_await(self._fires.take(held, now))
        except Exception as error:
            self._events.report(error, f"schedule {held.name}")
            return Turn(held)
        if turn is not None:
            return turn
        if held.next_fire is not None and held.next_fire <= now and not held.paused:
            given_up = f"schedule {held.name!r} got other times while a fire was due that no function here can make"
            self._events.report(Conflict(given_up), f"schedule {held.name}")
        return Turn(held)
