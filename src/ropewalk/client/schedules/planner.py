"""The planner makes the plan that is stored from the options of a schedule as people write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct, structs

from ropewalk.client.schedules.fires import MakeJob
from ropewalk.client.schedules.functions import ScheduleFunctions
from ropewalk.definitions.enqueue_options import checked_options
from ropewalk.definitions.job import Job
from ropewalk.definitions.options import EnqueueOptions
from ropewalk.definitions.schedule import ScheduleOptions, check_complete, check_options, timing_of
from ropewalk.domain import checks
from ropewalk.domain.bounds import Bounds, check, check_name
from ropewalk.domain.jobs.record import IdempotencyKey, NewJob
from ropewalk.domain.schedules.schedule import Plan
from ropewalk.domain.time import DAY
from ropewalk.domain.user_calls import guarded
from ropewalk.errors import InvalidInput

NamedJob: TypeAlias = Callable[[str, object, bytes], Job[Any, Any]]
"""A function that makes a job of a registered type from arguments by name, over those of a stored input."""


class Planner:
    """Makes and changes the plans of the schedules of one app."""

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
        """Returns the plan by these options, over the stored plan if there is one. Raises InvalidInput, which names the
        option that does not fit.

        `template` changes parts of the job, whether it is the stored one or comes with the options.
        """
        check_name(name, "name", self._bounds)
        check_name(tenant, "tenant", self._bounds)
        if stored is None:
            check_complete(options)
        else:
            if not options and template is None:
                raise InvalidInput(f"there is nothing to change in schedule {name!r}: give at least one option")
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
        assert stored is not None, "complete options name a job or a function"
        return stored.work

    def _changed(self, work: NewJob | str, name: str, change: TemplateChange) -> NewJob:
        if isinstance(work, str):
            field = "using" if change.arguments is None else "arguments"
            raise InvalidInput(
                f"the jobs of schedule {name!r} are made by the function {work!r}, so {field}= cannot change them: "
                "give job= to replace the function",
                field=field,
            )
        fields: dict[str, Any] = {}
        if change.arguments is not None:
            job = self._named_job(work.type, change.arguments, work.input)
            fields["input"] = job.input
            if (unique := job.type.options.unique) is not None:
                fields["key"] = IdempotencyKey(key=guarded(unique, job.arguments), window_us=DAY)
        fields |= _template_fields(change.using)
        new = structs.replace(work, **fields)
        # A stored template has no id, because each fire has its own.
        check(structs.replace(new, id=name), self._bounds)
        return new

    def _template(self, job: Job[object, object], tenant: str) -> NewJob:
        new = self._make_job(job, tenant)
        for field, value, instead in (("run_at", new.run_at, "delay"), ("deadline", new.deadline, "ttl")):
            if value is not None:
                raise InvalidInput(
                    f"job= has {field}, which would be the same for every fire: use {instead}, or run= with a function",
                    field=field,
                )
        return new


class TemplateChange(Struct, frozen=True):
    """A change of parts of the job of a schedule."""

    arguments: Mapping[str, object] | None
    using: EnqueueOptions

    @classmethod
    def of(cls, arguments: Mapping[str, object] | None, using: EnqueueOptions | None) -> TemplateChange | None:
        """Returns the change; None if there is nothing to change. Raises InvalidInput, which names the option that does
        not fit."""
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
"""The options of a job that an edit can change alone, and the field of the template for each of them."""


def _template_fields(using: EnqueueOptions) -> dict[str, Any]:
    checked = checked_options(cast("Mapping[str, object]", using))
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
            raise InvalidInput(f"{name} needs idempotency_key", field=name)
    if "priority" in fields:
        fields["inherits_priority"] = False
    return fields
