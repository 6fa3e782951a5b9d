"""Job types by name, which `enqueue("name", ...)` finds and workers run, and what an app does about unknown types."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from types import ModuleType
from typing import Any, TypeAlias

from ropewalk.definitions.job import Job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.warn import warn
from ropewalk.domain import checks
from ropewalk.domain.jobs.record import NewJob
from ropewalk.errors import DefinitionError, UnknownJobType, UnregisteredJobType

AnyJobType: TypeAlias = JobType[..., Any, Any]
AnyJob: TypeAlias = Job[Any, Any]
Item: TypeAlias = "AnyJobType | Registry | ModuleType"
"""Something that a registry takes: a job type, all types of another registry, or all types that a module contains."""


class Registry:
    """The job types that an app knows. It takes job types, other registries, and modules with job types in them."""

    def __init__(self, *items: Item) -> None:
        self._types: dict[str, AnyJobType] = {}
        self.add(*items)

    def add(self, *items: Item) -> None:
        """Add job types and resolve their annotations. Adding the same job type again changes nothing.

        Raises DefinitionError for a wrong declaration, and for two types with the same name.
        """
        for item in items:
            for job_type in _types_in(item):
                self._add(job_type)

    def get(self, name: str) -> AnyJobType:
        """The job type with this name. Raises UnknownJobType."""
        if not isinstance(name, str):
            raise checks.wrong("name", name, "the name of a job type")
        found = self._types.get(name)
        if found is None:
            raise UnknownJobType(self.unknown(name))
        return found

    def names(self) -> list[str]:
        """The names of all job types."""
        return list(self._types)

    def __iter__(self) -> Iterator[AnyJobType]:
        return iter(self._types.values())

    def __len__(self) -> int:
        return len(self._types)

    def __contains__(self, item: object) -> bool:
        """Whether a job type, or a type with this name, is registered."""
        if isinstance(item, JobType):
            return any(item is each for each in self._types.values())
        return item in self._types

    def __repr__(self) -> str:
        return f"Registry({', '.join(self._types)})"

    def _add(self, job_type: AnyJobType) -> None:
        registered = self._types.get(job_type.name)
        if registered is not None and registered is not job_type:
            raise DefinitionError(
                f"two job types are named {job_type.name!r}: {registered.module}.{registered.qualname} and "
                f"{job_type.module}.{job_type.qualname}; give one of them another with @job(name=...)"
            )
        job_type.resolve()
        self._types[job_type.name] = job_type

    def unknown(self, name: str) -> str:
        """The message about a name that is not registered."""
        known = sorted(self._types)
        near = difflib.get_close_matches(name, known, n=3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
        listed = ", ".join(known) or "none"
        return f"no job type named {name!r} is registered here{hint} Registered: {listed}"


def _types_in(item: object) -> list[AnyJobType]:
    match item:
        case JobType():
            return [item]
        case Registry():
            return list(item)
        case ModuleType():
            return [each for each in vars(item).values() if isinstance(each, JobType)]
        case _:
            raise DefinitionError(f"{item!r} is no job type, Registry or module; is the function decorated with @job?")


class UnregisteredTypes:
    """What one app does about jobs of types that it does not know, which no worker of it runs.

    Another service may run them, so `App(strict=...)` decides: such jobs are refused, submitted with one warning for
    each type, or submitted without a warning.
    """

    def __init__(self, registry: Registry, *, strict: bool | None) -> None:
        self._registry = registry
        self._strict = strict
        self._registered: set[str] = set()
        """Types that were found in the registry, which nobody removes from it, so that they are looked up only once."""
        self._warned: set[str] = set()

    def check(self, new: NewJob) -> None:
        """Check a job before it is submitted. Raises UnknownJobType, or DefinitionError for its compensation."""
        if (new.on_failure is None and new.type in self._registered) or self._strict is False:
            return
        self.check_type(new.type)
        known = new.type in self._registered
        spec = new.on_failure
        while spec is not None:
            if spec.type not in self._registry:
                if known:
                    raise self._nobody_compensates(new.type, spec.type)
                self.check_type(spec.type)
            spec = spec.on_failure

    def check_type(self, name: str) -> None:
        """Check the type of jobs that are to be submitted. Raises UnknownJobType."""
        if name in self._registered or self._strict is False:
            return
        if name in self._registry:
            self._registered.add(name)
            return
        if self._strict:
            raise UnknownJobType(f"{self._registry.unknown(name)}. Add it to App(jobs=[...]): this app is strict")
        if len(self._registry) == 0 or name in self._warned:
            return  # an app without types is a client, whose jobs others run
        self._warned.add(name)
        warn(
            f"the job type {name!r} is not registered with this app, so no worker of it runs such jobs: add it to "
            "App(jobs=[...]). App(strict=False) says that other services run it, App(strict=True) refuses its jobs",
            UnregisteredJobType,
        )

    def check_registered(self) -> None:
        """Check the compensations that registered types declare. Raises DefinitionError."""
        if self._strict is False:
            return
        for job_type in self._registry:
            self._check_compensations(job_type.name, job_type.options.on_failure)

    def check_scheduled(self, schedule: str, job: AnyJob) -> None:
        """Check the job of a schedule that is declared in code. Raises DefinitionError."""
        try:
            self.check_type(job.type.name)
        except UnknownJobType as error:
            raise DefinitionError(f"schedule {schedule!r}: {error}") from error
        if self._strict is not False and job.type.name in self._registry:
            self._check_compensations(job.type.name, job.options.get("on_failure"))

    def _check_compensations(self, failed: str, compensation: JobType[..., Any, Any] | AnyJob | None) -> None:
        for name in _type_names(compensation):
            if name not in self._registry:
                raise self._nobody_compensates(failed, name)

    def _nobody_compensates(self, failed: str, compensation: str) -> DefinitionError:
        return DefinitionError(
            f"{failed}: on_failure={compensation} is not registered with this app, so no worker of it would run the "
            "compensation: add it to App(jobs=[...]). App(strict=False) says that other services run it"
        )


def _type_names(compensation: JobType[..., Any, Any] | AnyJob | None) -> Iterator[str]:
    """The names of the type of a compensation, and of the compensations that jobs among them have themselves."""
    while isinstance(compensation, Job):
        yield compensation.type.name
        compensation = compensation.options.get("on_failure")
    if compensation is not None:
        yield compensation.name
