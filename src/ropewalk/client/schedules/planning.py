"""From what people say about a schedule to the plan that is stored."""

from __future__ import annotations

from ropewalk.client.schedules.fires import MakeJob
from ropewalk.client.schedules.functions import ScheduleFunctions
from ropewalk.definitions.job import Job
from ropewalk.definitions.schedule import ScheduleOptions, check_complete, check_options, timing_of
from ropewalk.domain.bounds import Limits, check_name
from ropewalk.domain.jobs.record import NewJob
from ropewalk.domain.schedules.schedule import Plan
from ropewalk.errors import InvalidInput


class Planner:
    def __init__(self, functions: ScheduleFunctions, make_job: MakeJob, limits: Limits) -> None:
        self._functions = functions
        self._make_job = make_job
        self._limits = limits

    def plan(self, options: ScheduleOptions, tenant: str, name: str, stored: Plan | None = None) -> Plan:
        """Over what is stored, where something is. Raises InvalidInput naming the option."""
        check_name(name, "name", self._limits)
        check_name(tenant, "tenant", self._limits)
        if stored is None:
            check_complete(options)
        else:
            if not options:
                raise InvalidInput(f"nothing is given that schedule {name!r} should become: give what changes")
            check_options(options)
        timing = timing_of(options, None if stored is None else stored.timing)
        if "next" in options:
            self._functions.name_of(options["next"], "next")
        missed = options.get("missed", "skip" if stored is None else stored.missed)
        return Plan(timing=timing, work=self._work(options, tenant, stored), missed=missed)

    def _work(self, options: ScheduleOptions, tenant: str, stored: Plan | None) -> NewJob | str:
        if "job" in options:
            return self._template(options["job"], tenant)
        if "run" in options:
            return self._functions.name_of(options["run"], "run")
        assert stored is not None, "a complete one says what to do"
        return stored.work

    def _template(self, job: Job[object, object], tenant: str) -> NewJob:
        new = self._make_job(job, tenant)
        for field, value, instead in (("run_at", new.run_at, "delay"), ("deadline", new.deadline, "ttl")):
            if value is not None:
                raise InvalidInput(
                    f"job= has {field}, one moment for every fire: use {instead}, or run= with a function", field=field
                )
        return new
