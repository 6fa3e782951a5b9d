"""Jobs of types that an app does not know: refused, taken with one warning a type, or taken without a word.

No worker of that app runs such a job. It may be meant, where another service does, so `App(strict=...)` decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from ropewalk.definitions.job import Job
from ropewalk.definitions.job_types.job_type import JobType
from ropewalk.definitions.registry import Registry
from ropewalk.definitions.warn import warn
from ropewalk.domain.jobs.record import NewJob
from ropewalk.errors import DefinitionError, UnknownJobType, UnregisteredJobType

AnyJob: TypeAlias = Job[Any, Any]


class UnregisteredTypes:
    """What one app does about them."""

    def __init__(self, registry: Registry, *, strict: bool | None) -> None:
        self._registry = registry
        self._strict = strict
        self._registered: set[str] = set()
        """Types that were found in the registry. They stay in it, so a job of theirs needs no second look."""
        self._warned: set[str] = set()

    def check(self, new: NewJob) -> None:
        """A job that is about to be written. Raises UnknownJobType, or DefinitionError for its compensation."""
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
        """A type of jobs that are to be written. Raises UnknownJobType."""
        if name in self._registered or self._strict is False:
            return
        if name in self._registry:
            self._registered.add(name)
            return
        if self._strict:
            raise UnknownJobType(f"{self._registry.unknown(name)}. Add it to App(jobs=[...]): this app is strict")
        if len(self._registry) == 0 or name in self._warned:
            return  # an app without types is a client: that others run its jobs is what it is for
        self._warned.add(name)
        warn(
            f"the job type {name!r} is not registered with this app, so no worker of it runs such jobs: add it to "
            "App(jobs=[...]). App(strict=False) says that other services run it, App(strict=True) refuses its jobs",
            UnregisteredJobType,
        )

    def check_registered(self) -> None:
        """The compensations that registered types declare. Raises DefinitionError."""
        if self._strict is False:
            return
        for job_type in self._registry:
            self._check_compensations(job_type.name, job_type.options.on_failure)

    def check_scheduled(self, schedule: str, job: AnyJob) -> None:
        """The job of a schedule that code declares. Raises DefinitionError."""
        try:
            self.check_type(job.type.name)
        except UnknownJobType as error:
            raise DefinitionError(f"schedule {schedule!r}: {error}") from error
        if self._strict is not False and job.type.name in self._registry:
            self._check_compensations(job.type.name, job.options.get("on_failure"))

    def _check_compensations(self, failed: str, wanted: JobType[..., Any, Any] | AnyJob | None) -> None:
        for name in _named(wanted):
            if name not in self._registry:
                raise self._nobody_compensates(failed, name)

    def _nobody_compensates(self, failed: str, wanted: str) -> DefinitionError:
        return DefinitionError(
            f"{failed}: on_failure={wanted} is not registered with this app, so no worker of it would run the "
            "compensation: add it to App(jobs=[...]). App(strict=False) says that other services run it"
        )


def _named(wanted: JobType[..., Any, Any] | AnyJob | None) -> Iterator[str]:
    """The type of a compensation, and of those that the job given as a template says itself."""
    while isinstance(wanted, Job):
        yield wanted.type.name
        wanted = wanted.options.get("on_failure")
    if wanted is not None:
        yield wanted.name
